"""Requests of a partition leader to the share coordinator: the state of a share partition is read and written.

A coordinator that is loading, elsewhere or not reached is asked again, as is one that does not know the partition:
five times, after 1 s, 2 s, 4 s, 8 s and 16 s (`PersisterStateManager`, whose waits vary by a fifth). In the end the
error counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import read_share_group_state as reading
from koordinator.wire.messages import write_share_group_state as writing
from koordinator.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from koordinator.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from koordinator.wire.values import mutable, value

from ...effects import SendRequest
from ...refusal import Refusal
from ...timers import ShareStateRetry
from ..topic import SHARE_STATE_TOPIC, share_state_key
from .batches import StateBatch

if TYPE_CHECKING:
    from uuid import UUID

    from koordinator.wire.messages.initialize_share_group_state import PartitionResult

    from ...cluster import ClusterState
    from ...timers import DataTimerKey, Timers
    from .partition import SharePartition, StateWrite

READ_VERSION, WRITE_VERSION = 0, 1

RETRIES_MAX, FIRST_RETRY_MS = 5, 1_000

UNREACHED = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})
"""The errors of a coordinator that is not there."""

RETRIABLE = UNREACHED | {Error.UNKNOWN_TOPIC_OR_PARTITION}
"""The errors after which a request is sent again."""

FENCED = frozenset({Error.FENCED_LEADER_EPOCH, Error.FENCED_STATE_EPOCH})
"""The errors of a leader that is not the leader of this state any more."""


@mutable
class LedPartition:
    """A share partition that this node leads: not loaded yet without a `state`, and of no use once it `is_dropped`."""

    group_id: str
    topic_id: UUID
    partition: int
    leader_epoch: int
    state: SharePartition | None = None
    is_dropped: bool = False

    @property
    def coordinator_key(self) -> str:
        """The key of its share coordinator."""
        return share_state_key(self.group_id, self.topic_id, self.partition)


@value
class LoadedState:
    """The stored state of a share partition; start offset -1 if there is none."""

    start: int
    state_epoch: int
    batches: tuple[StateBatch, ...]


@mutable
class StateRequest:
    """A request to the share coordinator; a write has what it completes."""

    target: LedPartition
    message: ReadShareGroupStateRequest | WriteShareGroupStateRequest
    write: StateWrite | None = None
    retries: int = 0


class StateRequests:
    """The requests of a node to share coordinators that are not answered, by token."""

    def __init__(self, cluster: ClusterState, timers: Timers[DataTimerKey]) -> None:
        self.sent: dict[int, StateRequest] = {}
        self._cluster = cluster
        self._timers = timers

    def read(self, target: LedPartition) -> tuple[int, SendRequest]:
        """Ask for the state of a share partition; return the token, and the request."""
        row = reading.PartitionData(partition=target.partition, leader_epoch=target.leader_epoch)
        topic = reading.ReadStateData(topic_id=target.topic_id, partitions=(row,))
        message = ReadShareGroupStateRequest(group_id=target.group_id, topics=(topic,))
        return self._begin(StateRequest(target, message))

    def write(self, target: LedPartition, state: SharePartition, write: StateWrite) -> tuple[int, SendRequest]:
        """Store changes of a share partition; return the token, and the request."""
        row = writing.PartitionData(
            partition=target.partition,
            state_epoch=state.state_epoch,
            leader_epoch=target.leader_epoch,
            start_offset=write.start,
            delivery_complete_count=write.complete_count,
            state_batches=tuple(
                writing.StateBatch(
                    first_offset=each.first,
                    last_offset=each.last,
                    delivery_state=each.state,
                    delivery_count=each.count,
                )
                for each in write.batches
            ),
        )
        topic = writing.WriteStateData(topic_id=target.topic_id, partitions=(row,))
        message = WriteShareGroupStateRequest(group_id=target.group_id, topics=(topic,))
        return self._begin(StateRequest(target, message, write))

    def _begin(self, request: StateRequest) -> tuple[int, SendRequest]:
        token = next(self._cluster.request_tokens)
        self.sent[token] = request
        return token, self.send(token)

    def send(self, token: int) -> SendRequest:
        """Return the request to the present share coordinator."""
        request = self.sent[token]
        node_id = self._cluster.coordinator_of(request.target.coordinator_key, SHARE_STATE_TOPIC)
        version = READ_VERSION if request.write is None else WRITE_VERSION
        return SendRequest(node_id, token, version, request.message)

    def answered(
        self, now: int, token: int, response: ReadShareGroupStateResponse | WriteShareGroupStateResponse | None
    ) -> tuple[StateRequest, LoadedState | Refusal | None] | None:
        """Return what was asked, with the state that was read or why it failed; None if it is asked again.

        The errors are those that members get: COORDINATOR_NOT_AVAILABLE, GROUP_ID_NOT_FOUND,
        UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER for a fenced leader, else UNKNOWN_SERVER_ERROR
        (`SharePartition.fetchPersisterError`).
        """
        request = self.sent[token]
        row = _row(request.target, response)
        error = Error(row.error_code) if row is not None else Error.UNKNOWN_SERVER_ERROR
        if response is None:
            error = Error.COORDINATOR_NOT_AVAILABLE
        if error in RETRIABLE and request.retries < RETRIES_MAX:
            self._timers.set(ShareStateRetry(token), now + FIRST_RETRY_MS * 2**request.retries)
            request.retries += 1
            return None
        del self.sent[token]
        if error is not Error.NONE:
            return request, _refusal(request, error, (row.error_message if row is not None else None) or "")
        if not isinstance(row, reading.PartitionResult):
            return request, None
        batches = tuple(
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in row.state_batches
        )
        return request, LoadedState(row.start_offset, row.state_epoch, batches)


def _row(
    target: LedPartition, response: ReadShareGroupStateResponse | WriteShareGroupStateResponse | None
) -> reading.PartitionResult | PartitionResult | None:
    """Return the row of a share partition in a response, if there is one."""
    if response is None:
        return None
    rows = (row for topic in response.results if topic.topic_id == target.topic_id for row in topic.partitions)
    return next((row for row in rows if row.partition == target.partition), None)


def _refusal(request: StateRequest, error: Error, message: str) -> Refusal:
    if error in UNREACHED:
        error = Error.COORDINATOR_NOT_AVAILABLE
    elif error in FENCED:
        error = Error.NOT_LEADER_OR_FOLLOWER
    elif error not in {Error.GROUP_ID_NOT_FOUND, Error.UNKNOWN_TOPIC_OR_PARTITION}:
        error = Error.UNKNOWN_SERVER_ERROR
    return Refusal(error, f"Error in {'read' if request.write is None else 'write'} state RPC. {message}")
