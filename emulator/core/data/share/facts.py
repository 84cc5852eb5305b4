"""What happened to the records of share groups, for the trace. Nothing depends on it."""

from __future__ import annotations

from koordinator.wire.values import value


@value
class LocksEnded:
    """Locks of records that a member of a share group held, and that ended without an acknowledgement (KIP-932).

    Each row has topic, partition, first and last offset, deliveries, and the state: available or archived. The cause is
    lock_expired, session_closed, or forced by a test.
    """

    group_id: str
    group_now: int
    member_id: str
    records: tuple[tuple[str, int, int, int, int, str], ...]
    cause: str


@value
class RecordsArchived:
    """Records that a member of a share group released after their last delivery, so that they are given up (KIP-932).

    Each row has topic, partition, first and last offset, deliveries, and the state: archived, or archiving while dead
    letters are written (KIP-1191).
    """

    group_id: str
    group_now: int
    member_id: str
    records: tuple[tuple[str, int, int, int, int, str], ...]


@value
class DeadLettersWritten:
    """Records of a share group, given up after `deliveries`, that were written to its topic of dead letters (KIP-1191).

    Or not, because of a `problem`. The cause is rejected or delivered_too_often.
    """

    group_id: str
    group_now: int
    topic: str
    partition: int
    first: int
    last: int
    deliveries: int
    written_to: str
    cause: str
    problem: str


ShareFact = LocksEnded | RecordsArchived | DeadLettersWritten
