"""Files with one JSON object on each line, as people write them: what they say, and where they are wrong.

What reads the object of a line raises BadLine, with what is wrong; `objects` adds where. Empty lines are skipped.
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
    """A line of a file is bad. The text names the file, the line and what is wrong."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


class BadLine(ValueError):
    """What is wrong with the line that is being read."""


def objects(
    lines: Iterable[str | bytes], file: str, read: Callable[[dict[str, object]], _T]
) -> Iterator[tuple[int, _T]]:
    """What `read` makes of each object, with the number of its line. Raises LineError at the first bad one."""
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                yield number, read(_object(line))
        except BadLine as error:
            raise LineError(file, number, str(error)) from None


def _object(line: str | bytes) -> dict[str, object]:
    try:
        text = line if isinstance(line, str) else line.decode()
        # NaN and Infinity are not JSON; a name twice in an object is a slip that would lose one of the two
        data = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadLine(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise BadLine("not JSON: nested too deeply") from None
    if not isinstance(data, dict):
        raise BadLine(f"a JSON object is wanted, not {kind(data)}")
    return data


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadLine(f"{name!r} comes twice")
            seen.add(name)
    return result


def _no_constant(name: str) -> object:
    raise BadLine(f"not JSON: {name}")


# What may stand in a field. `field` is its name in what is said of it.


def only(data: dict[str, object], fields: Collection[str], where: str = "") -> None:
    """Refuse a field that is not one of these."""
    unknown = sorted(set(data) - set(fields))
    if unknown:
        raise BadLine(f"{where}unknown field {unknown[0]!r}; there are {', '.join(sorted(fields))}")


def required(data: dict[str, object], field: str) -> object:
    """The value of a field that cannot be left out."""
    if field not in data:
        raise BadLine(f"{field} is missing")
    return data[field]


def text(field: str, value: object) -> str:
    """A string that can be encoded."""
    if not isinstance(value, str):
        raise BadLine(f"{field}: a string is wanted, not {kind(value)}")
    encoded(field, value)
    return value


def integer(field: str, value: object, least: int, most: int) -> int:
    """An integer in a range."""
    # to Python a bool is an integer, to JSON it is not
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadLine(f"{field}: an integer from {least} to {most} is wanted, not {kind(value)}")
    return value


def mapping(field: str, value: object) -> dict[str, object]:
    """An object."""
    if not isinstance(value, dict):
        raise BadLine(f"{field}: an object is wanted, not {kind(value)}")
    return cast("dict[str, object]", value)


def array(field: str, value: object) -> list[object]:
    """An array."""
    if not isinstance(value, list):
        raise BadLine(f"{field}: an array is wanted, not {kind(value)}")
    return cast("list[object]", value)


def is_base64(value: object) -> bool:
    """Whether a value stands for any bytes: `{"base64": "…"}`."""
    return isinstance(value, dict) and set(value) == {"base64"}


def from_base64(field: str, value: object) -> bytes:
    """The bytes a value stands for, for which `is_base64` holds."""
    coded = cast("dict[str, object]", value)["base64"]
    if not isinstance(coded, str):
        raise BadLine(f"{field}: base64 has to be a string, not {kind(coded)}")
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadLine(f"{field}: not base64: {error}") from None


def to_base64(data: bytes) -> dict[str, str]:
    """What stands for these bytes."""
    return {"base64": base64.b64encode(data).decode()}


def encoded(field: str, value: str) -> bytes:
    """A string in UTF-8."""
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise BadLine(f"{field}: half a surrogate pair is no character") from None


def kind(value: object) -> str:
    """What a value is, to say that it is not what is wanted."""
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
