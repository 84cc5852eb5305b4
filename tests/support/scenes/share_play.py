"""Members of share groups, in short words, on the coordinator of `play`; a share coordinator answers at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.emulator.core.effects import AppendShareState, Call, Failed, Reply, SendRequest
from koordinator.emulator.core.share_state.coordinator import ShareCoordinator
from koordinator.wire.apis import APIS
from koordinator.wire.errors import Error
from koordinator.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from koordinator.wire.messages.offsets_topic import write_key
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from scenes.play import Exchange, Play

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from koordinator.emulator.core.effects import Effect
    from koordinator.emulator.core.groups.share.group import ShareGroup

Given = dict[str, list[int]]
"""Partitions by topic name."""

ALL = {"t": [0, 1, 2, 3]}


class SharePlay(Play):
    """A coordinator whose share groups compute a target with every change; topics are t (4 partitions) and u (2).

    `state` is the result of the share coordinator's writes; None keeps requests to it in `questions`.
    """

    def __init__(self, **settings: object) -> None:
        super().__init__(**{"group_share_assignment_interval_ms": 0, **settings})
        self.state: Error | None = Error.NONE
        self.questions: list[SendRequest] = []
        self.asked: list[Any] = []
        self.state_records: list[AppendShareState] = []
        self.shares = ShareCoordinator(self.cluster, self.settings)
        for partition in range(self.settings.share_coordinator_state_topic_num_partitions):
            self.shares.begin_load(self.now, partition)
            self.shares.loaded(self.now, partition, ())

    def heart(
        self,
        member_id: str,
        epoch: int,
        topics: Sequence[str] | None = None,
        *,
        rack: str | None = None,
        group: str = "g",
    ) -> Any:
        """Send ShareGroupHeartbeat and return the response."""
        return self.start_heart(member_id, epoch, topics, rack=rack, group=group).response

    def start_heart(
        self,
        member_id: str,
        epoch: int,
        topics: Sequence[str] | None = None,
        *,
        rack: str | None = None,
        group: str = "g",
    ) -> Exchange[Any]:
        """Send ShareGroupHeartbeat."""
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=rack,
            subscribed_topic_names=None if topics is None else tuple(topics),
        )
        return self.send(request, 1)

    def beat(self, member_id: str, epoch: int, topics: Sequence[str] | None = None, **fields: Any) -> Any:
        """Send a heartbeat and return (epoch, assignment): None for no assignment; (error, text) if it fails."""
        response = self.heart(member_id, epoch, topics, **fields)
        if response.error_code:
            return Error(response.error_code), response.error_message
        return response.member_epoch, self.given(response)

    def settle_in(self, member_id: str, topics: Sequence[str] = ("t",), group: str = "g") -> Any:
        """Join, and send heartbeats until there is an assignment; return (epoch, assignment)."""
        epoch, given = self.beat(member_id, 0, topics, group=group)
        return (epoch, given) if given else self.beat(member_id, epoch, group=group)

    def given(self, response: Any) -> Given | None:
        """Return the assignment of a response by topic names."""
        return None if response.assignment is None else self.named(response.assignment.topic_partitions)

    def named(self, rows: Any) -> Given:
        """Return the partitions of a message by topic names, sorted."""
        names = {topic.topic_id: name for name, topic in self.cluster.topics.items()}
        return {names[row.topic_id]: sorted(row.partitions) for row in rows}

    def described(self, group: str = "g") -> Any:
        """Return the row of ShareGroupDescribe."""
        return self.send(ShareGroupDescribeRequest(group_ids=(group,)), 1).response.groups[0]

    def shape(self, group: str = "g") -> tuple[str, int, int]:
        """Return the state of a group, its epoch and that of its target."""
        row = self.described(group)
        return row.group_state, row.group_epoch, row.assignment_epoch

    def share_group(self, group: str = "g") -> ShareGroup:
        """Return the state of a group."""
        found: Any = self.coordinator.store.groups[group]
        return found

    def written(self) -> list[list[int]]:
        """Return the record types of each batch, tombstones negative, since the last call."""
        batches, self.appended = self.appended, []
        return [
            [_type(record.key) * (1 if record.value is not None else -1) for record in append.records]
            for append in batches
        ]

    def _perform(self, effects: Iterable[Effect]) -> None:
        listed = list(effects)
        super()._perform(effect for effect in listed if not isinstance(effect, SendRequest))
        questions = [effect for effect in listed if isinstance(effect, SendRequest)]
        self.questions += questions
        self.asked += [each.request for each in questions]
        if self.state is not None:
            self.answer()

    def answer(self) -> None:
        """Let the share coordinator answer the waiting questions."""
        while self.questions:
            sent = self.questions.pop(0)
            response = self.ask_shares(sent.request, sent.version)
            self._perform(self.coordinator.answered(self.now, sent.token, response))

    def ask_shares(self, request: Any, version: int = 0) -> Any:
        """Return the share coordinator's response, whose writes end with `state`."""
        key = next(key for key, api in APIS.items() if api.request is type(request))
        effects = self.shares.handle(self.now, Call(0, 0, key, version, "broker", "/127.0.0.1"), request)
        while isinstance(effect := effects.pop(0), AppendShareState):
            error = self.state or Error.NONE
            if error is Error.NONE:
                self.state_records.append(effect)
            effects += self.shares.appended(self.now, effect.token, error)
        if isinstance(effect, Failed):
            raise effect.error
        assert isinstance(effect, Reply)
        return effect.response

    def lose(self) -> None:
        """Let the waiting questions fail: no share coordinator can be reached."""
        while self.questions:
            self._perform(self.coordinator.answered(self.now, self.questions.pop(0).token, None))


def _type(key: Any) -> int:
    return int.from_bytes(write_key(key)[:2], "big")


def initialized(request: Any) -> dict[int, tuple[int, int]]:
    """Return the state epoch and the start offset of each partition that a request initializes."""
    assert isinstance(request, InitializeShareGroupStateRequest)
    return {row.partition: (row.state_epoch, row.start_offset) for topic in request.topics for row in topic.partitions}
