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
* The facts of groups, shares and transactions (`groups/facts.py`, …) tell the trace what happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

from .data.share.facts import ShareFact
from .groups.facts import GroupFact
from .timers import TimerFired
from .transactions.facts import TransactionChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message
    from koordinator.wire.errors import Error
    from koordinator.wire.messages.share_state_records import Key as ShareStateKey
    from koordinator.wire.messages.share_state_records import Value as ShareStateValue
    from koordinator.wire.messages.transactions_topic import TransactionLogValue

    from .groups.records import CoordinatorRecord

    Answer = tuple["Call", Callable[[Error], Message | None]]
    """A call that waits for a write, and its response by the error of the write; None if it waits for another one."""


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


@value
class Reply:
    """The response to a call; `response` is None if the client expects none (Produce with acks 0).

    `reason` says for the trace and the log why the request is refused, where the response has no field for it.
    """

    call: Call
    response: Message | None
    reason: str = ""


@value
class CloseConnection:
    """The failure of a call that expects no response: the connection closes, as in Kafka."""

    call: Call
    reason: str


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


@value
class Failed:
    """An unexpected exception: a bug of koordinator that ends these calls."""

    error: Exception
    calls: tuple[Call, ...] = ()


Fact = GroupFact | ShareFact | TransactionChanged | TimerFired
CoordinatorWrite = Append | AppendTransaction | AppendShareState
InternalTopicEffect = CoordinatorWrite | InternalTopicWritten | TransactionEnded
Effect = Reply | CloseConnection | SendRequest | InternalTopicEffect | Failed | Fact
