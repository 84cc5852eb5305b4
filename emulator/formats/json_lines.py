"""JSON lines that users write: one object on each line, with the file and line in errors.

A reader of an object raises BadLine with the problem; `objects` adds the place. Empty lines are skipped.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

_T = TypeVar("_T")


class LineError(ValueError):
    """A bad line of a file; the message has the file, the line and the problem."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


class BadLine(ValueError):
    """The problem of the current line."""


def objects(
    lines: Iterable[str | bytes], file: str, read: Callable[[dict[str, object]], _T]
) -> Iterator[tuple[int, _T]]:
    """Yield the line number and `read(object)` of each line. Raises LineError at the first bad line."""
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                yield number, read(_object(line))
        except BadLine as error:
            raise LineError(file, number, str(error)) from None


def _object(line: str | bytes) -> dict[str, object]:
    try:
        text = line if isinstance(line, str) else line.decode()
        # NaN and Infinity are not JSON; a repeated name would lose a value
        data = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadLine(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise BadLine("not JSON: nested too deeply") from None
    if not isinstance(data, dict):
        raise BadLine(f"expected a JSON object, not {describe(data)}")
    return data


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadLine(f"{name!r} is repeated")
            seen.add(name)
    return result


def _no_constant(name: str) -> object:
    raise BadLine(f"not JSON: {name}")


# -- values of fields; `field` is the name in errors ---------------------------------------------------------


def require_fields(data: dict[str, object], fields: Collection[str], where: str = "") -> None:
    """Raise BadLine for a field that is not one of these."""
    unknown = sorted(set(data) - set(fields))
    if unknown:
        raise BadLine(f"{where}unknown field {unknown[0]!r}; known: {', '.join(sorted(fields))}")


def required(data: dict[str, object], field: str) -> object:
    """Return the value of a mandatory field."""
    if field not in data:
        raise BadLine(f"{field} is missing")
    return data[field]


def text(field: str, value: object) -> str:
    """Return a string that UTF-8 can encode."""
    if not isinstance(value, str):
        raise BadLine(f"{field}: expected a string, not {describe(value)}")
    encoded(field, value)
    return value


def integer(field: str, value: object, least: int, most: int) -> int:
    """Return an integer in a range."""
    # Python counts a bool as an integer, JSON does not
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadLine(f"{field}: expected an integer from {least} to {most}, not {describe(value)}")
    return value


def mapping(field: str, value: object) -> dict[str, object]:
    """Return an object."""
    if not isinstance(value, dict):
        raise BadLine(f"{field}: expected an object, not {describe(value)}")
    return cast("dict[str, object]", value)


def array(field: str, value: object) -> list[object]:
    """Return an array."""
    if not isinstance(value, list):
        raise BadLine(f"{field}: expected an array, not {describe(value)}")
    return cast("list[object]", value)


def is_base64(value: object) -> bool:
    """Return whether a value has the form of bytes, `{"base64": "…"}`."""
    return isinstance(value, dict) and set(value) == {"base64"}


def from_base64(field: str, value: object) -> bytes:
    """Return the bytes of a value for which `is_base64` is true."""
    coded = cast("dict[str, object]", value)["base64"]
    if not isinstance(coded, str):
        raise BadLine(f"{field}: base64 must be a string, not {describe(coded)}")
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadLine(f"{field}: not base64: {error}") from None


def to_base64(data: bytes) -> dict[str, str]:
    """Return bytes as `{"base64": "…"}`."""
    return {"base64": base64.b64encode(data).decode()}


def encoded(field: str, value: str) -> bytes:
    """Return a string in UTF-8."""
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise BadLine(f"{field}: a lone surrogate is not a character") from None


def describe(value: object) -> str:
    """Return the type of a value, or the value itself, for an error."""
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
