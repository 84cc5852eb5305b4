"""The core's inputs and outputs: values, never calls.

A `Call` identifies a request and its connection; the core knows nothing else of the outside. The result of every input
is one ordered list of effects:

* `Reply` answers a call. A call without a reply in the list is *parked*.
* `CloseConnection` closes the connection of a failed call that must not be answered (Produce with acks 0).
* `Append` requests a write to `__consumer_offsets`; responses that depend on it stay parked until the input
  `appended(now, token, error)`.
* `AppendTransaction` does the same for `__transaction_state`, `AppendShareState` for `__share_group_state`.
* `SendRequest` sends a request to a broker; the response is the input `answered(now, token, response)`.
* `InternalTopicWritten` reports that others than its coordinator have written to an internal topic.
* `TransactionEnded` reports a marker in `__consumer_offsets`.
* `Failed` reports a bug; its calls get UNKNOWN_SERVER_ERROR.
* The facts (`StateChanged`, `MemberChanged`, …) describe what happened, for the trace. Nothing depends on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import ready, value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.apis import Message
    from koordinator.wire.errors import Error
    from koordinator.wire.messages.share_state_records import Key as ShareStateKey
    from koordinator.wire.messages.share_state_records import Value as ShareStateValue
    from koordinator.wire.messages.transactions_topic import TransactionLogValue

    from .groups.records import CoordinatorRecord
    from .timers import TimerKey

    Answer = tuple["Call", Callable[[Error], Message | None]]
    """A call that waits for a write, and its response by the error of the write; None if it waits for another one."""


@ready
@value
class Call:
    """A request: its connection, API version and client.

    `client_host` is Java's text of an address (`/127.0.0.1`), as DescribeGroups shows it. A null client id is "" here,
    as in Kafka. Addresses in the response are those of the `listener` that received the request. The `principal` is
    the authenticated user, `User:alice`; "" stands for the cluster itself and for puppets. `has_token`: it has
    authenticated by a delegation token.
    """

    connection: int
    correlation_id: int
    api_key: int
    api_version: int
    client_id: str
    client_host: str
    listener: str = "PLAINTEXT"
    principal: str = ""
    has_token: bool = False


@ready
@value
class Reply:
    """The response to a call; `response` is None if the client expects none (Produce with acks 0)."""

    call: Call
    response: Message | None


@value
class CloseConnection:
    """The failure of a call that expects no response: the connection closes, as in Kafka."""

    call: Call
    reason: str


@ready
@value
class Append:
    """A batch of records to write to a partition of `__consumer_offsets`; `token` identifies the result.

    A batch of a transaction has the id and epoch of its `producer`.
    """

    token: int
    partition: int
    records: tuple[CoordinatorRecord, ...]
    producer: tuple[int, int] | None = None


@value
class AppendTransaction:
    """The state of a transactional id to write to a partition of `__transaction_state`; None is a tombstone."""

    token: int
    partition: int
    transactional_id: str
    record: TransactionLogValue | None


@value
class AppendShareState:
    """A record of a share partition to write to a partition of `__share_group_state`; None is a tombstone."""

    token: int
    partition: int
    key: ShareStateKey
    record: ShareStateValue | None


@value
class SendRequest:
    """A request to another broker, or to this one; its response is the input `answered` with the same token."""

    node_id: int
    token: int
    version: int
    request: Message


@value
class InternalTopicWritten:
    """A write of others to a partition of an internal topic; the coordinator reloads the partition.

    Kafka reloads it only with the next change of leader; a test would wait for that in vain.
    """

    topic: str
    partition: int


@value
class TransactionEnded:
    """A marker in a partition of `__consumer_offsets`; the coordinator commits or drops the pending offsets."""

    partition: int
    producer_id: int
    is_commit: bool


@ready
@value
class StateChanged:
    """A group's change of state. `reason` has Kafka's wording, `cause` is its kind."""

    group_id: str
    group_now: int
    before: str
    after: str
    generation: int
    cause: str
    reason: str
    member_id: str | None = None
    client_reason: str | None = None


@ready
@value
class MemberChanged:
    """A change of membership; `change` is added, pending, loaded, removed or replaced.

    A loaded member has its `assignment`, as the record contains it.
    """

    group_id: str
    group_now: int
    member_id: str
    instance_id: str | None
    change: str
    cause: str
    reason: str
    assignment: bytes = b""


@value
class TargetComputed:
    """The target of a consumer group for an epoch: by member id, the partitions of each topic (KIP-848)."""

    group_id: str
    group_now: int
    epoch: int
    assignor: str
    target: Mapping[str, Mapping[str, tuple[int, ...]]]


@value
class MemberReconciled:
    """A step of a member of a consumer group towards its target: revoke, wait, take, or reach the epoch (KIP-848).

    `state` is the member's (`MemberState`) in small letters; `revoking` are the partitions that it has to give up.
    """

    group_id: str
    group_now: int
    member_id: str
    instance_id: str | None
    epoch: int
    state: str
    assigned: Mapping[str, tuple[int, ...]]
    revoking: Mapping[str, tuple[int, ...]]


@value
class RebalanceAvoided:
    """The return of a static member to a Stable group without a rebalance (KIP-345)."""

    group_id: str
    group_now: int
    member_id: str
    instance_id: str
    generation: int
    reason: str


@ready
@value
class TimerFired:
    """A timer that fired. `group_now` is the group's own time; node timers have no group."""

    key: TimerKey
    group_id: str | None
    due: int


@value
class Superseded:
    """A parked call that will never be answered, as in Kafka.

    A newer request of the same member has replaced it; or it is a SyncGroup of a member that has left.
    """

    call: Call
    group_id: str
    member_id: str


@value
class OffsetsExpired:
    """Committed offsets that were removed: by retention, by OffsetDelete, or with their topic."""

    group_id: str
    group_now: int
    partitions: tuple[tuple[str, int], ...]
    cause: str


@value
class PendingOffsetsDecided:
    """Offsets of a transaction (topic, partition, offset) that its marker committed or dropped."""

    group_id: str
    group_now: int
    producer_id: int
    offsets: tuple[tuple[str, int, int], ...]
    is_commit: bool


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


OffsetsFact = OffsetsExpired | PendingOffsetsDecided
ConsumerGroupFact = TargetComputed | MemberReconciled
ShareGroupFact = LocksEnded | DeadLettersWritten
GroupFact = (
    StateChanged | MemberChanged | RebalanceAvoided | Superseded | OffsetsFact | ConsumerGroupFact | ShareGroupFact
)
Fact = GroupFact | TimerFired | TransactionChanged


@value
class Failed:
    """An unexpected exception: a bug of koordinator that ends these calls."""

    error: Exception
    calls: tuple[Call, ...] = ()


CoordinatorWrite = Append | AppendTransaction | AppendShareState
InternalTopicEffect = CoordinatorWrite | InternalTopicWritten | TransactionEnded
Effect = Reply | CloseConnection | SendRequest | InternalTopicEffect | Failed | Fact
