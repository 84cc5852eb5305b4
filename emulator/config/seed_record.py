"""A record as a test or an operator gives it, before it has an offset."""

from __future__ import annotations

from koordinator.wire.values import value


@value
class SeedRecord:
    """A record to write.

    Without a `partition`, the key chooses it; records without a key take turns. `timestamp` is in milliseconds and
    defaults to the time of the write.
    """

    key: bytes | None = None
    value: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
