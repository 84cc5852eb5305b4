"""What happened to transactions, for the trace. Nothing depends on it."""

from __future__ import annotations

from koordinator.wire.values import value


@value
class TransactionChanged:
    """A transactional id's change of state that is durable; `cause` is a value of `TransactionCause`."""

    transactional_id: str
    before: str
    after: str
    producer_id: int
    epoch: int
    partitions: tuple[tuple[str, int], ...]
    cause: str
    client_id: str = ""
