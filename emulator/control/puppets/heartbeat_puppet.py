"""A puppet whose only request is the heartbeat of its protocol: a member of a consumer, share or streams group.

It follows Java's clients 4.3 (`AbstractMembershipManager`, `AbstractHeartbeatRequestManager`): it sends each change
once, and repeats everything after an error. So real members see peers come and go.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from koordinator.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

from ...core.groups.modern.member import JOINING_EPOCH
from .behaviours import SILENT
from .consumer_role import subscribed_topics
from .puppet import PuppetClient
from .states import COORDINATOR_MOVED, PuppetState, PuppetTimer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import ClassVar, NoReturn
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ...core.cluster import ClusterState
    from .puppet import PuppetOptions
    from .supervisor import PuppetSupervisor

    Request = ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest | StreamsGroupHeartbeatRequest
    Response = ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse | StreamsGroupHeartbeatResponse

    Partitions = Mapping[UUID, tuple[int, ...]]
    """Partitions by topic id."""

REQUESTS = (ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest, StreamsGroupHeartbeatRequest)
RESPONSES = (ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatResponse, StreamsGroupHeartbeatResponse)

FIRST_INTERVAL_MS = 5_000
"""The heartbeat interval before the first response: the default of `group.consumer.heartbeat.interval.ms`, and of the
other kinds."""

MEMBERSHIP_LOST = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH)
"""Errors after which a member abandons its partitions and joins with epoch 0."""


class HeartbeatPuppet(PuppetClient):
    """A member of a group of which heartbeats are the only requests; `topics` None stands for all topics."""

    def __init__(
        self, supervisor: PuppetSupervisor, options: PuppetOptions, cluster: ClusterState, topics: Sequence[str] | None
    ) -> None:
        super().__init__(supervisor, options)
        self._cluster = cluster
        self._topics = topics
        self._names: dict[UUID, str] = {}
        self._sent_topics: tuple[str, ...] = ()
        self._server_interval_ms = FIRST_INTERVAL_MS
        self._has_news = True
        """Whether the next heartbeat repeats everything."""

    @property
    def keep_ms(self) -> int:
        """The interval of the latest response."""
        return self._server_interval_ms

    @property
    def is_idle(self) -> bool:
        """Whether the puppet is a stable member with nothing to do but heartbeats."""
        is_sending = self._supervisor.is_timer_set(self, PuppetTimer.HEARTBEAT)
        has_news = self._has_news or self._has_changed()
        return self.state is PuppetState.STABLE and self._connection.is_idle and is_sending and not has_news

    @property
    def is_waiting(self) -> bool:
        """Whether the puppet waits for its connection or for a response."""
        return not self._connection.is_idle

    # -- requests --------------------------------------------------------------------------------------------

    @abstractmethod
    def _request(self, epoch: int, *, is_full: bool) -> Request:
        """Return a heartbeat with this epoch, with all that the coordinator has to know if `is_full`."""

    @abstractmethod
    def _leaving(self) -> Request:
        """Return the heartbeat of a member that leaves."""

    def _has_changed(self) -> bool:
        """Return whether the next heartbeat has news that no response brought."""
        return False

    def _new_member_id(self) -> str:
        return self._supervisor.new_member_id()

    def _subscribed(self) -> tuple[str, ...]:
        return tuple(subscribed_topics(self._cluster, self._topics))

    def _join(self, now: int, reason: str | None) -> None:
        self._refuse_reason(reason)
        self._reset_generation(now)
        self.member_id = self.member_id or self._new_member_id()
        self.state = PuppetState.JOINING
        self._limit_joins(now)
        self._send_heartbeat(now)

    def _refuse_reason(self, reason: str | None) -> None:
        if reason is not None:
            raise ValueError(
                f"puppet {self.name!r}: the {self.group_protocol} protocol has no reasons; remove {reason!r}"
            )

    def _leave(self, now: int) -> None:
        self._connection.send(now, self._leaving())

    def _send_heartbeat(self, now: int) -> None:
        is_joining = self.state is PuppetState.JOINING
        is_full = is_joining or self._has_news
        epoch = JOINING_EPOCH if is_joining else self.generation
        self._has_news = False
        self._connection.send(now, self._request(epoch, is_full=is_full))
        if not self._is_manual:
            self._schedule_heartbeat(now)

    # -- responses -------------------------------------------------------------------------------------------

    def _handle(self, now: int, request: Message, response: Message) -> None:
        assert isinstance(request, REQUESTS)
        assert isinstance(response, RESPONSES)
        if self.state is PuppetState.JOINING and request.member_epoch != JOINING_EPOCH:
            # response of an earlier membership
            return
        self.error = Error(response.error_code)
        if self.state is PuppetState.LEAVING:
            self._left(now)
        elif self.error is not Error.NONE:
            self._refused(now)
        else:
            self._accepted(now, response)

    @abstractmethod
    def _accepted(self, now: int, response: Response) -> None:
        """Take a response without an error."""

    def _known(self, partitions: Partitions) -> dict[UUID, tuple[int, ...]]:
        """Keep the partitions of topics that the puppet can name; it remembers the names of deleted topics."""
        topics = self._cluster.topics.by_id
        self._names.update((topic, topics[topic].name) for topic in partitions if topic in topics)
        return {topic: numbers for topic, numbers in partitions.items() if topic in self._names}

    def _refused(self, now: int) -> None:
        error, self._has_news = self.error, True
        if self._is_manual:
            if error in MEMBERSHIP_LOST or self.state is PuppetState.JOINING:
                self._reset_to_out(now)
        elif error in MEMBERSHIP_LOST:
            self._supervisor.cancel(self, PuppetTimer.REJOIN)
            self._join(now, None)
        elif error in COORDINATOR_MOVED:
            self._connection.rediscover(now)
            self._send_heartbeat(now)
        elif error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            self._connection.back_off(now)
            self._send_heartbeat(now)
        elif error is not Error.TOPIC_AUTHORIZATION_FAILED:
            self._fail(now)

    def on_disconnect(self, now: int) -> None:
        """Repeat everything, to the coordinator found next."""
        self._has_news = True
        if self.state is PuppetState.LEAVING:
            self._leave(now)
        elif self._is_manual:
            self.state = PuppetState.OUT if self.state is PuppetState.JOINING else self.state
        elif self._supervisor.is_timer_set(self, PuppetTimer.HEARTBEAT):
            self._send_heartbeat(now)

    # -- timers ----------------------------------------------------------------------------------------------

    def _heartbeat_due(self, now: int) -> None:
        if self._connection.is_idle:
            self._send_heartbeat(now)
        else:
            self._schedule_heartbeat(now)

    def _reset_generation(self, now: int) -> None:
        super()._reset_generation(now)
        self._has_news = True


class ImmediatePuppet(HeartbeatPuppet):
    """A member of a share or streams group: it takes an assignment at once, and sends a heartbeat after each."""

    no_commits: ClassVar[str]
    """Why it cannot commit."""

    def sync(self, now: int) -> NoReturn:
        """Raise ValueError: such a member has no such step."""
        del now
        kind = self.group_protocol
        raise ValueError(f"puppet {self.name!r} cannot sync: a member of a {kind} group takes its partitions at once")

    def commit(self, now: int, offsets: Mapping[tuple[str, int], int]) -> NoReturn:
        """Raise ValueError with `no_commits`."""
        del now, offsets
        raise ValueError(f"puppet {self.name!r} cannot commit: {self.no_commits}")

    def _prepare_leave(self, reason: str | None, *, temporarily: bool) -> None:
        self._refuse_reason(reason)
        if temporarily:
            raise ValueError(
                f"puppet {self.name!r} cannot leave temporarily: puppets of {self.group_protocol} groups are not static"
            )

    @abstractmethod
    def _take(self, response: Response) -> bool:
        """Take what a response assigns; return whether it assigns anything, if only nothing any more."""

    def _accepted(self, now: int, response: Response) -> None:
        self.generation, self.state = response.member_epoch, PuppetState.STABLE
        self._server_interval_ms = response.heartbeat_interval_ms
        if not self._take(response):
            return
        self._supervisor.note(now, self, "assigned")
        if self.behaviour.kind == SILENT:
            self._supervisor.cancel(self, PuppetTimer.HEARTBEAT)
            return
        self._schedule_flap(now)
        if not self._is_manual and self._connection.is_idle:
            self._send_heartbeat(now)

    def _rejoin_due(self, now: int) -> None:
        """Do nothing: no step of such a member is delayed."""
