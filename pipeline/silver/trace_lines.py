"""The lines of traces as rows of silver/event, silver/header and silver/outcome, and back.

The `part` of a row is `event`, `header`, `test` (the outcome of a test), `ignored` or `quarantine`. For quarantined
rows `reject_reason` and `detail` say why.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from koordinator.emulator.trace.vocabulary import KINDS, METADATA_KINDS

from ..schema import API_KEY_MAX, EVENT, HEADER, OUTCOME, TRACE_SCHEMA_VERSIONS
from ..schema.kinds import ArrayOf, Kind, MapOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SOURCE = "koordinator"

EVENT_KINDS = frozenset(KINDS) - {*METADATA_KINDS}

RENAMED = {"wall_us": "wall_ts", "group_us": "group_ts_us"}
"""Columns with another name in trace lines."""

NAMES = {"verb": "verb", "puppet": "puppet", "hold": "hold_id"}
"""The name of the column `name` in trace lines, by kind of event."""

NOT_IN_LINES = {"trace_id", "source", "home", "batch", "name"}

PERFETTO = re.compile(r'\s*\{\s*"(traceEvents|displayTimeUnit)"\s*:')
"""The start of a trace in Perfetto's format, which the pytest plugin writes beside each trace file."""

BITS = {"smallint": 16, "int": 32, "bigint": 64}

Row = dict[str, Any]


def _integer(bits: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:  # noqa: ANN401 - a value of JSON
        if type(value) is not int or (value if value >= 0 else ~value).bit_length() >= bits:
            raise ValueError(value)
        return value

    return convert


def _double(value: Any) -> float:  # noqa: ANN401 - a value of JSON
    if type(value) not in (int, float):
        raise ValueError(value)
    return float(value)


def _boolean(value: Any) -> bool:  # noqa: ANN401 - a value of JSON
    if type(value) is not bool:
        raise ValueError(value)
    return value


def _text(value: Any) -> str:  # noqa: ANN401 - a value of JSON
    text = value if type(value) is str else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # half of a surrogate pair is no text
    return text if text.isascii() else text.encode(errors="replace").decode()


def converter(kind: Kind) -> Callable[[Any], Any]:
    """Return the function from values of JSON to those of a type. It raises ValueError for any other value."""
    match kind:
        case ArrayOf():
            element = converter(kind.element)
            return lambda values: [None if each is None else element(each) for each in _instance(values, list)]
        case MapOf():
            of_value = converter(kind.value)
            return lambda values: {
                name: None if each is None else of_value(each) for name, each in _instance(values, dict).items()
            }
        case "string":
            return _text
        case "double":
            return _double
        case "boolean":
            return _boolean
        case _:
            return _integer(BITS[str(kind)])


def _instance(value: Any, kind: type) -> Any:  # noqa: ANN401 - a value of JSON
    if not isinstance(value, kind):
        raise ValueError(value)  # noqa: TRY004 - one exception for all values
    return value


COLUMNS = {
    RENAMED.get(each.name, each.name): (each.name, converter(each.kind))
    for table in (EVENT, HEADER, OUTCOME)
    for each in table.definitions
    if each.name not in ("source", "name")
} | {name: (name, _text) for name in NAMES.values()}
"""Every key that a line may have, with its column and its conversion."""


def trace_row(raw: str, own_trace_id: str) -> Row:
    """Return the row of a line; without a trace id it belongs to the trace of its file."""
    if not raw.strip() or PERFETTO.match(raw):
        return {"part": "ignored"}
    row: Row = {}
    try:
        for key, value in _instance(json.loads(raw), dict).items():
            if value is not None and key in COLUMNS:
                name, convert = COLUMNS[key]
                row[name] = convert(value)
    except (ValueError, RecursionError):
        return _rejected("bad_json", "expected a JSON object with the columns of a trace")
    row["source"] = SOURCE
    row.setdefault("trace_id", own_trace_id)
    for name in NAMES.values():
        if name in row:
            row.setdefault("name", row.pop(name))
    return row | _judged(row)


def _judged(row: Row) -> Row:
    """Return the part of a line; of an invalid one the reason, too."""
    if row.get("kind") == "header":
        version = row.get("schema_version")
        if version in TRACE_SCHEMA_VERSIONS:
            return {"part": "header"}
        supported = ", ".join(map(str, TRACE_SCHEMA_VERSIONS))
        return _rejected("unknown_version", f"schema_version {_or_none(version)}; supported: {supported}")
    return {"part": "test"} if row.get("kind") == "test" else judged_event(row)


def judged_event(row: Row) -> Row:
    """Return the part of a possible event; of an invalid one the reason, too."""
    kind, key = row.get("kind"), row.get("api_key")
    missing = [RENAMED.get(name, name) for name in ("kind", "seq", "wall_us") if row.get(name) is None]
    if missing:
        return _rejected("missing_key", f"{', '.join(missing)} missing")
    if kind not in EVENT_KINDS:
        return _rejected("unknown_kind", f"kind {kind}")
    if kind in ("request", "response") and (key is None or not 0 <= key <= API_KEY_MAX):
        return _rejected("unknown_api", f"api_key {_or_none(key)}")
    return {"part": "event"}


def _rejected(reason: str, detail: str) -> Row:
    return {"part": "quarantine", "reject_reason": reason, "detail": detail}


def _or_none(value: object) -> object:
    return "none" if value is None else value


def lines_of(events: Iterable[Row]) -> Iterator[Row]:
    """Convert events back to the lines of their trace."""
    for event in events:
        line = {
            RENAMED.get(name, name): value
            for name, value in event.items()
            if name not in NOT_IN_LINES and value is not None
        }
        if event["name"] is not None and event["kind"] in NAMES:
            line[NAMES[event["kind"]]] = event["name"]
        if event["body"] is not None:
            line["body"] = json.loads(event["body"])
        yield line
