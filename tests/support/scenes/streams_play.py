"""Members of streams groups, in short words, on the coordinator of `play`; the controller creates topics at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.emulator.core.data import topic_admin
from koordinator.emulator.core.effects import SendRequest
from koordinator.emulator.core.groups.streams.tasks import rows_of
from koordinator.wire.errors import Error
from koordinator.wire.messages import streams_group_heartbeat as wire
from koordinator.wire.messages.create_topics import CreateTopicsRequest
from koordinator.wire.messages.offsets_topic import write_key
from koordinator.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from scenes.play import Exchange, Play

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from koordinator.emulator.core.effects import Effect
    from koordinator.emulator.core.groups.group import BaseGroup
    from koordinator.emulator.core.groups.group_store import GroupStore
    from koordinator.emulator.core.groups.streams.group import StreamsGroup

    Given = dict[str, list[int]]
    """Partitions of tasks by subtopology."""

ALL = {"0": [0, 1, 2, 3]}

NOTHING: tuple[wire.TaskIds, ...] = ()


def internal(name: str, partitions: int = 0, **configs: str) -> wire.TopicInfo:
    """Return an internal topic of a topology."""
    pairs = tuple(wire.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items())
    return wire.TopicInfo(name=name, partitions=partitions, replication_factor=-1, topic_configs=pairs)


def subtopology(name: str = "0", sources: Sequence[str] = ("t",), **fields: Any) -> wire.Subtopology:
    """Return a subtopology that reads topics."""
    return wire.Subtopology(subtopology_id=name, source_topics=tuple(sources), **fields)


def topology(*subtopologies: wire.Subtopology, epoch: int = 0) -> wire.Topology:
    """Return a topology; by default one subtopology without state that reads t."""
    return wire.Topology(epoch=epoch, subtopologies=subtopologies or (subtopology(),))


STATELESS = topology()

STATEFUL = topology(subtopology(state_changelog_topics=(internal("app-store-changelog"),)))


def tasks(partitions: Mapping[str, Sequence[int]] | None) -> tuple[wire.TaskIds, ...] | None:
    """Return tasks as a request has them."""
    if partitions is None:
        return None
    return tuple(wire.TaskIds(subtopology_id=name, partitions=tuple(listed)) for name, listed in partitions.items())


class StreamsPlay(Play):
    """A coordinator whose streams groups compute a target with every change; topics are t (4 partitions) and u (2).

    `creates` is whether the controller answers at once; else requests wait in `creations`.
    """

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.creates = True
        self.creations: list[SendRequest] = []
        self.asked: list[CreateTopicsRequest] = []

    def request(self, member_id: str, epoch: int, group: str = "g", **fields: Any) -> wire.StreamsGroupHeartbeatRequest:
        """Return a heartbeat. `owned` are active tasks; with it the others are given, too, as `standby` or none."""
        owned, standby = fields.pop("owned", None), fields.pop("standby", {})
        given = {}
        if owned is not None:
            given = {"active_tasks": tasks(owned), "standby_tasks": tasks(standby), "warmup_tasks": ()}
        defaults = {"endpoint_information_epoch": 0, **given}
        return wire.StreamsGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=epoch, **(defaults | fields)
        )

    def start(self, member_id: str, epoch: int, **fields: Any) -> Exchange[Any]:
        """Send a heartbeat."""
        return self.send(self.request(member_id, epoch, **fields), 0)

    def heart(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Send a heartbeat and return the response."""
        return self.start(member_id, epoch, **fields).response

    def beat(self, member_id: str, epoch: int, **fields: Any) -> tuple[Any, Any]:
        """Send a heartbeat and return (epoch, active tasks): None for no tasks; (error, text) if it fails."""
        return seen(self.heart(member_id, epoch, **fields))

    def start_join(self, member_id: str, topology: wire.Topology = STATELESS, **fields: Any) -> Exchange[Any]:
        """Send the heartbeat of a member that joins, alone in its process."""
        defaults: dict[str, Any] = {
            "topology": topology,
            "rebalance_timeout_ms": 60_000,
            "process_id": f"process-{member_id}",
            "owned": {},
        }
        return self.start(member_id, 0, **(defaults | fields))

    def enter(self, member_id: str, topology: wire.Topology = STATELESS, **fields: Any) -> Any:
        """Let a member join, and return the response."""
        return self.start_join(member_id, topology, **fields).response

    def come(self, member_id: str, topology: wire.Topology = STATELESS, **fields: Any) -> tuple[Any, Any]:
        """Let a member join, and return (epoch, active tasks), or (error, text)."""
        return seen(self.enter(member_id, topology, **fields))

    def repeat(self, member_id: str, **fields: Any) -> Any:
        """Send the heartbeat of a member that has the tasks which it was given, and return the response."""
        member = self.streams_group().members[member_id]
        tasks = {
            "active_tasks": rows_of(member.assigned.active),
            "standby_tasks": rows_of(member.assigned.standby),
            "warmup_tasks": (),
        }
        return self.heart(member_id, member.epoch, **(tasks | fields))

    def described(self, group: str = "g") -> Any:
        """Return the row of StreamsGroupDescribe."""
        return self.send(StreamsGroupDescribeRequest(group_ids=(group,)), 0).response.groups[0]

    def shape(self, group: str = "g") -> tuple[str, int, int]:
        """Return the state of a group, its epoch and that of its target."""
        row = self.described(group)
        return row.group_state, row.group_epoch, row.assignment_epoch

    def streams_group(self, group: str = "g") -> StreamsGroup:
        """Return the state of a group."""
        found: Any = self.coordinator.store.groups[group]
        return found

    def override(self, action: Callable[[GroupStore, BaseGroup], None], group: str = "g") -> None:
        """Do something to a group that no request does."""
        self._perform(self.coordinator.override(self.now, group, action))

    def written(self) -> list[list[int]]:
        """Return the record types of each batch, tombstones negative, since the last call."""
        batches, self.appended = self.appended, []
        return [
            [_type(record.key) * (1 if record.value is not None else -1) for record in append.records]
            for append in batches
        ]

    def _perform(self, effects: Iterable[Effect]) -> None:
        listed = list(effects)
        creations = [effect for effect in listed if isinstance(effect, SendRequest) and _creates(effect)]
        super()._perform(effect for effect in listed if effect not in creations)
        self.creations += creations
        self.asked += [each.request for each in creations if isinstance(each.request, CreateTopicsRequest)]
        if self.creates:
            self.create()

    def create(self) -> None:
        """Let the controller create what it was asked for."""
        while self.creations:
            sent = self.creations.pop(0)
            assert isinstance(sent.request, CreateTopicsRequest)
            response = topic_admin.create_topics(self.cluster, sent.request)
            self._perform(self.coordinator.answered(self.now, sent.token, response))

    def lose(self) -> None:
        """Let the waiting creations fail: the controller cannot be reached."""
        while self.creations:
            self._perform(self.coordinator.answered(self.now, self.creations.pop(0).token, None))


def seen(response: Any) -> tuple[Any, Any]:
    """Return (epoch, active tasks) of a response, or (error, text)."""
    if response.error_code:
        return Error(response.error_code), response.error_message
    return response.member_epoch, given(response.active_tasks)


def given(rows: Iterable[wire.TaskIds] | None) -> Given | None:
    """Return tasks of a message by subtopology."""
    return None if rows is None else {row.subtopology_id: list(row.partitions) for row in rows}


def statuses(response: Any) -> list[tuple[int, str]]:
    """Return the status codes and details of a response."""
    return [(row.status_code, row.status_detail) for row in response.status]


def _creates(effect: SendRequest) -> bool:
    return isinstance(effect.request, CreateTopicsRequest)


def _type(key: Any) -> int:
    return int.from_bytes(write_key(key)[:2], "big")
