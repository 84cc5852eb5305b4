"""Seed files: records for topics as JSON lines.

One object on each line; only `topic` is needed:

    {"topic": "orders", "key": "k1", "value": {"id": 1}, "timestamp": 1700000000000}
    {"topic": "orders", "value": "text", "partition": 0, "headers": {"h": {"base64": "AAE="}}}

A key, a value or a header is a string (UTF-8), null, or `{"base64": "…"}` for any bytes; a value may also
be any other JSON, which is written compactly. Empty lines are skipped.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, cast

from koordinator.emulator.core.cluster import illegal_name
from koordinator.emulator.core.seeds import SeedRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELDS = frozenset({"topic", "key", "value", "partition", "timestamp", "headers"})
"""What a line may have."""

_PARTITION_MAX = 2**31 - 1
_TIMESTAMP_MAX = 2**63 - 1


class SeedError(ValueError):
    """A line of a seed file is bad. The text names the file, the line and what is wrong."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


def parse_seed(lines: Iterable[str], file: str) -> dict[str, list[SeedRecord]]:
    """The records of a seed file by topic, in its order. Raises SeedError at the first bad line."""
    records: dict[str, list[SeedRecord]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            topic, record = _record(line)
        except _BadLineError as error:
            raise SeedError(file, number, str(error)) from None
        records.setdefault(topic, []).append(record)
    return records


class _BadLineError(ValueError):
    pass


def _record(line: str) -> tuple[str, SeedRecord]:
    try:
        # NaN and Infinity are not JSON; a name twice in an object is a slip that would lose one of the two
        data = json.loads(line, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _BadLineError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise _BadLineError("not JSON: nested too deeply") from None
    if not isinstance(data, dict):
        raise _BadLineError(f"a JSON object is wanted, not {_kind(data)}")
    unknown = sorted(set(data) - FIELDS)
    if unknown:
        raise _BadLineError(f"unknown field {unknown[0]!r}; there are {', '.join(sorted(FIELDS))}")
    if "topic" not in data:
        raise _BadLineError("topic is missing")
    topic = data["topic"]
    if not isinstance(topic, str):
        raise _BadLineError(f"topic: a string is wanted, not {_kind(topic)}")
    wrong = illegal_name(topic)
    if wrong is not None:
        raise _BadLineError(f"topic: {wrong}")
    return topic, SeedRecord(
        key=_bytes("key", data.get("key")),
        value=_value(data.get("value")),
        partition=_integer("partition", data.get("partition"), _PARTITION_MAX),
        timestamp=_integer("timestamp", data.get("timestamp"), _TIMESTAMP_MAX),
        headers=_headers(data.get("headers", {})),
    )


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _BadLineError(f"{name!r} comes twice")
            seen.add(name)
    return result


def _no_constant(name: str) -> object:
    raise _BadLineError(f"not JSON: {name}")


def _value(value: object) -> bytes | None:
    if value is None or isinstance(value, str) or _is_base64(value):
        return _bytes("value", value)
    return _encoded("value", json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _headers(headers: object) -> tuple[tuple[str, bytes | None], ...]:
    if not isinstance(headers, dict):
        raise _BadLineError(f"headers: an object is wanted, not {_kind(headers)}")
    named = cast("dict[str, object]", headers)
    for name in named:
        _encoded("headers", name)
    return tuple((name, _bytes(f"headers.{name}", value)) for name, value in named.items())


def _is_base64(value: object) -> bool:
    return isinstance(value, dict) and set(value) == {"base64"}


def _bytes(field: str, value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return _encoded(field, value)
    if not isinstance(value, dict) or set(value) != {"base64"}:
        raise _BadLineError(f'{field}: a string, null or {{"base64": "..."}} is wanted, not {_kind(value)}')
    text = value["base64"]
    if not isinstance(text, str):
        raise _BadLineError(f"{field}: base64 has to be a string, not {_kind(text)}")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _BadLineError(f"{field}: not base64: {error}") from None


def _encoded(field: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _BadLineError(f"{field}: half a surrogate pair is no character") from None


def _integer(field: str, value: object, most: int) -> int | None:
    if value is None:
        return None
    # to Python a bool is an integer, to JSON it is not
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise _BadLineError(f"{field}: an integer from 0 to {most} is wanted, not {_kind(value)}")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
