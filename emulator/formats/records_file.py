"""Seed files: records for topics as JSON lines.

One object on each line; only `topic` is needed:

    {"topic": "orders", "key": "k1", "value": {"id": 1}, "timestamp": 1700000000000}
    {"topic": "orders", "value": "text", "partition": 0, "headers": {"h": {"base64": "AAE="}}}

A key, a value or a header is a string (UTF-8), null, or `{"base64": "…"}` for other bytes; a value may also be any
other JSON, which is stored in compact form. Empty lines are skipped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..config.seed_record import SeedRecord
from ..core.data.topic import illegal_name
from . import json_lines
from .json_lines import BadLine

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELDS = frozenset({"topic", "key", "value", "partition", "timestamp", "headers"})
"""The fields of a line."""

_PARTITION_MAX = 2**31 - 1
_TIMESTAMP_MAX = 2**63 - 1


def parse_seed(lines: Iterable[str | bytes], file: str) -> dict[str, list[SeedRecord]]:
    """Return the records of a seed file by topic, in file order. Raises LineError at the first bad line."""
    records: dict[str, list[SeedRecord]] = {}
    for _, (topic, record) in json_lines.objects(lines, file, _record):
        records.setdefault(topic, []).append(record)
    return records


def topic_name(value: object) -> str:
    """Return the name of a topic. Raises BadLine."""
    name = json_lines.text("topic", value)
    problem = illegal_name(name)
    if problem is not None:
        raise BadLine(f"topic: {problem}")
    return name


def _record(data: dict[str, object]) -> tuple[str, SeedRecord]:
    json_lines.require_fields(data, FIELDS)
    return topic_name(json_lines.required(data, "topic")), SeedRecord(
        key=_bytes("key", data.get("key")),
        value=_value(data.get("value")),
        partition=_integer("partition", data.get("partition"), _PARTITION_MAX),
        timestamp=_integer("timestamp", data.get("timestamp"), _TIMESTAMP_MAX),
        headers=_headers(data.get("headers", {})),
    )


def _value(value: object) -> bytes | None:
    if value is None or isinstance(value, str) or json_lines.is_base64(value):
        return _bytes("value", value)
    return json_lines.encoded("value", json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _headers(value: object) -> tuple[tuple[str, bytes | None], ...]:
    headers = json_lines.mapping("headers", value)
    for name in headers:
        json_lines.encoded("headers", name)
    return tuple((name, _bytes(f"headers.{name}", content)) for name, content in headers.items())


def _bytes(field: str, value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return json_lines.encoded(field, value)
    if json_lines.is_base64(value):
        return json_lines.from_base64(field, value)
    raise BadLine(f'{field}: expected a string, null or {{"base64": "..."}}, not {json_lines.describe(value)}')


def _integer(field: str, value: object, most: int) -> int | None:
    return None if value is None else json_lines.integer(field, value, 0, most)
