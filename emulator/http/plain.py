"""JSON of operations, in both directions: the only place that serialises results.

A dataclass is an object with its fields in order. Bytes are `{"base64": "..."}`; arguments also accept text, as UTF-8.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import trio
from pydantic import TypeAdapter

from ..control.operations import result

BASE64 = "base64"

ROWS_AT_ONCE = 1_000
"""The rows of a list that are written before clients are served."""

SHOWN_MAX = 60
"""The most characters of an invalid value in an error."""


def to_json(value: Any) -> str:  # noqa: ANN401 - plain data or a result
    """Return the JSON document of plain data or a result."""
    return json.dumps(value, default=_to_plain, separators=(",", ":"), ensure_ascii=False)


async def to_json_in_turns(value: Any) -> str:  # noqa: ANN401 - plain data or a result
    """Return the JSON document; clients are served between the parts of a long list."""
    if not isinstance(value, list) or len(value) <= ROWS_AT_ONCE:
        return to_json(value)
    parts = []
    for at in range(0, len(value), ROWS_AT_ONCE):
        parts.append(to_json(value[at : at + ROWS_AT_ONCE])[1:-1])
        await trio.lowlevel.checkpoint()
    return f"[{','.join(parts)}]"


def from_json(document: str | bytes) -> Any:  # noqa: ANN401 - plain data
    """Parse a JSON document. Raises ValueError if it is invalid, or if a text in it cannot be written as UTF-8."""
    value = json.loads(document, object_hook=_bytes_from_json)
    refuse_surrogates(value)
    return value


def refuse_surrogates(value: object) -> None:
    """Raise ValueError if a text in plain data has a lone surrogate: no client could receive it."""
    match value:
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"a lone surrogate is not a character: {value[:SHOWN_MAX]!r}") from None
        case dict():
            for key, each in value.items():
                refuse_surrogates(key)
                refuse_surrogates(each)
        case list():
            for each in value:
                refuse_surrogates(each)


def result_from_plain(operation: str, value: Any) -> Any:  # noqa: ANN401 - the operation's own type
    """Return an operation's result from its parsed JSON. Raises ValueError if it has another shape."""
    return adapter_of(operation).validate_python(value)


@cache
def adapter_of(operation: str) -> TypeAdapter[Any]:
    """Return the pydantic adapter of an operation's result type."""
    return TypeAdapter(result(operation))


def _to_plain(value: object) -> object:
    if isinstance(value, bytes):
        return {BASE64: base64.b64encode(value).decode()}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _bytes_from_json(value: dict[str, Any]) -> object:
    match value:
        case {"base64": str(encoded)} if len(value) == 1:
            try:
                return base64.b64decode(encoded, validate=True)
            except binascii.Error as error:
                raise ValueError(f"base64: {error}: {encoded[:SHOWN_MAX]!r}") from error
        case _:
            return value
