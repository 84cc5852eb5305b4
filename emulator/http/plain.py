"""Plain data as JSON and back. Bytes are `{"base64": "..."}`; where bytes are wanted, text may stand for its UTF-8."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

BASE64 = "base64"


def to_json(value: Any) -> str:  # noqa: ANN401 - plain data
    """Plain data as a JSON document."""
    return json.dumps(value, default=_bytes_to_json, separators=(",", ":"), ensure_ascii=False)


def from_json(document: str | bytes) -> Any:  # noqa: ANN401 - plain data
    """A JSON document as plain data. Raises ValueError for what is none."""
    return json.loads(document, object_hook=_bytes_from_json)


def _bytes_to_json(value: object) -> object:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} is no plain data")
    return {BASE64: base64.b64encode(value).decode()}


def _bytes_from_json(value: dict[str, Any]) -> object:
    match value:
        case {"base64": str(encoded)} if len(value) == 1:
            try:
                return base64.b64decode(encoded, validate=True)
            except binascii.Error as error:
                raise ValueError(f"base64: {error}: {encoded[:60]!r}") from error
        case _:
            return value
