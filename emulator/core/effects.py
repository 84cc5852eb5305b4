"""What the core is told, and what it answers: values, never calls.

`Call` says who asks and where the answer goes; it is all the core knows of the outside. Everything the core
does comes back as one ordered list of effects:

* `Reply` answers a call. A call that is not replied to in the same list is *parked*.
* `CloseConnection` closes the connection of a failed call that must not be answered (Produce with acks 0).
* `Append` asks for records to be written to `__consumer_offsets`; answers that depend on them stay parked until
  the input `appended(now, token, error)` comes back.
* `OffsetsTopicWritten` says that somebody else than the coordinator has written to `__consumer_offsets`.
* The facts (`StateChanged`, `MemberChanged`, …) say what happened, for the trace. Nothing depends on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from .groups.coordinator_records import CoordinatorRecord
    from .timers import TimerKey


@value
class Call:
    """One request in hand: who asks, in which version, and where the answer goes.

    `client_host` is Java's text of an address (`/127.0.0.1`), as DescribeGroups shows it; a null client id of the
    request header is "" here, as in Kafka. Addresses in an answer are those of the `listener` it came in by.
    """

    connection: int
    correlation_id: int
    api_key: int
    api_version: int
    client_id: str
    client_host: str
    listener: str = "PLAINTEXT"


@value
class Reply:
    """The answer to a parked or a fresh call. `response` None: the request wants no answer (Produce, acks 0)."""

    call: Call
    response: Message | None


@value
class CloseConnection:
    """A call that wants no answer has failed: closing its connection is the only way to say so, as in Kafka."""

    call: Call
    reason: str


@value
class Append:
    """Records to be written, as one batch, to a partition of `__consumer_offsets`; the answer names `token`."""

    token: int
    partition: int
    records: tuple[CoordinatorRecord, ...]


@value
class OffsetsTopicWritten:
    """A client has written to a partition of `__consumer_offsets`; the coordinator takes over what is there now.

    Kafka's does so at its next load only; here a test would wait for that in vain.
    """

    partition: int


@value
class StateChanged:
    """A group went from one state to another. `reason` is worded as Kafka logs it, `cause` is its kind."""

    group_id: str
    group_now: int
    before: str
    after: str
    generation: int
    cause: str
    reason: str
    member_id: str | None = None
    client_reason: str | None = None


@value
class MemberChanged:
    """A member came, went or was replaced: `change` is one of added, pending, removed, replaced, fenced."""

    group_id: str
    group_now: int
    member_id: str
    instance_id: str | None
    change: str
    cause: str
    reason: str


@value
class RebalanceAvoided:
    """A static member came back in Stable without a rebalance: what KIP-345 saves."""

    group_id: str
    group_now: int
    member_id: str
    instance_id: str
    generation: int
    reason: str


@value
class TimerFired:
    """A deadline passed. `group_now` is the group's own time; node timers have no group."""

    key: TimerKey
    group_id: str | None
    due: int


@value
class Superseded:
    """A parked call will, as in Kafka, never be answered.

    A newer one of the same member has taken its place; or it is a SyncGroup, and its member has left the group.
    """

    call: Call
    group_id: str
    member_id: str


@value
class OffsetsExpired:
    """Committed offsets were dropped: by retention, OffsetDelete, or because their topic is gone."""

    group_id: str
    group_now: int
    partitions: tuple[tuple[str, int], ...]
    cause: str


Fact = StateChanged | MemberChanged | RebalanceAvoided | TimerFired | Superseded | OffsetsExpired
Effect = Reply | CloseConnection | Append | OffsetsTopicWritten | Fact
