"""Records as tests write them, and their validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from ..config.seed_record import SeedRecord
from ..config.suggest import unknown

RecordLike = str | bytes | tuple[str | bytes | None, str | bytes | None] | Mapping[str, object] | SeedRecord
"""A value; a pair of key and value; or a mapping with some of `key value partition timestamp headers`."""

RECORDS_MAX = 1_000_000
"""The largest number of records that one call generates."""

FIELDS = ("key", "value", "partition", "timestamp", "headers")


def seed_records(records: object) -> list[SeedRecord]:
    """Return the records of a call; a number generates that many records, with the values "0", "1", "2" and so on.

    Raises ValueError with the position of the invalid record.
    """
    return list(each_seed_record(records))


def each_seed_record(records: object) -> Iterator[SeedRecord]:
    """Yield the records of `seed_records` one by one."""
    if isinstance(records, int) and not isinstance(records, bool):
        if not 0 <= records <= RECORDS_MAX:
            raise ValueError(f"records={records}: must be from 0 to {RECORDS_MAX:,}")
        yield from (SeedRecord(value=str(number).encode()) for number in range(records))
        return
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise ValueError(f"records: must be a number or a list of records, not {records!r}")  # noqa: TRY004 - one error
    yield from (_seed_record(position, record) for position, record in enumerate(records))


def _seed_record(position: int, record: object) -> SeedRecord:
    where = f"record {position}"
    match record:
        case SeedRecord():
            return record
        case str() | bytes():
            return SeedRecord(value=_bytes(where, record))
        case (key, value):
            return SeedRecord(key=_bytes(f"{where}: key", key), value=_bytes(f"{where}: value", value))
        case Mapping():
            return _from_mapping(where, cast("Mapping[str, object]", record))
        case _:
            raise ValueError(
                f"{where}: must be a value, a pair of key and value, or a mapping with some of {', '.join(FIELDS)},"
                f" not {record!r}"
            )


def _from_mapping(where: str, record: Mapping[str, object]) -> SeedRecord:
    for name in record:
        if name not in FIELDS:
            raise ValueError(f"{where}: {unknown('field', name, FIELDS)}")
    headers = record.get("headers") or ()
    pairs = headers.items() if isinstance(headers, Mapping) else cast("Iterable[tuple[str, object]]", headers)
    return SeedRecord(
        key=_bytes(f"{where}: key", record.get("key")),
        value=_bytes(f"{where}: value", record.get("value")),
        partition=_integer(f"{where}: partition", record.get("partition")),
        timestamp=_integer(f"{where}: timestamp", record.get("timestamp")),
        headers=tuple((name, _bytes(f"{where}: header {name}", value)) for name, value in pairs),
    )


def _bytes(where: str, value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise ValueError(f"{where}: must be a string, bytes or None, not {value!r}")


def _integer(where: str, value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ValueError(f"{where}: must be an integer, not {value!r}")
