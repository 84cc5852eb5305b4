"""Members of streams groups, by the shorthand of the reference: `x.join("A")`, `x.beat("A", 2)`, `x.settle_in("A")`.

Topics are t (4 partitions), u (2), and those that the scenario creates. Tasks are partitions by subtopology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from koordinator.wire.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from scenarios.modern_members import LIMIT_S, Given, ModernMembers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scenarios.player import Player

VERSION = 0
"""The version of the heartbeats and descriptions of streams groups."""

ALL: Given = {"0": [0, 1, 2, 3]}

REBALANCE_S = 30


class StreamsMembers(ModernMembers):
    """Heartbeats of members of the play's group, and requests about it. Raises Absent where the protocol is absent."""

    def __init__(self, play: Player) -> None:
        play.needs(ApiKey.STREAMS_GROUP_HEARTBEAT, VERSION)
        super().__init__(play)
        self.stateless = topology(self.part("0", ["t"]))
        self.store = f"{play.g}-store-changelog"
        self.stateful = topology(self.part("0", ["t"], stores=[internal_topic(self.store, cleanup_policy="compact")]))

    def is_assigned(self, topic: str, group: str) -> bool:
        given = self.join("probe", topology(self.part("0", [topic])), group=group, recorded=False)
        return bool(given[1])

    def part(self, name: str, sources: Iterable[str] = (), **fields: Any) -> Subtopology:
        """Return a subtopology that reads topics with short names; see `subtopology`."""
        return subtopology(name, [self._real.get(each, each) for each in sources], **fields)

    # -- heartbeats --------------------------------------------------------------------------------------------

    def heart(
        self,
        member_id: str,
        epoch: int,
        *,
        group: str | None = None,
        recorded: bool = True,
        owned: Mapping[str, Iterable[int]] | None = None,
        standby: Mapping[str, Iterable[int]] | None = None,
        tags: Mapping[str, str] | None = None,
        endpoint: tuple[str, int] | None = None,
        **fields: Any,
    ) -> Any:
        """Send StreamsGroupHeartbeat and return the response.

        `owned` and `standby` are the member's tasks; with either of them all three lists are sent. `fields` are those
        of the request.
        """
        lists = {} if owned is None and standby is None else {**_tasks(owned, standby)}
        named = {
            "client_tags": tags and tuple(KeyValue(key=key, value=text) for key, text in tags.items()),
            "user_endpoint": endpoint and Endpoint(host=endpoint[0], port=endpoint[1]),
        }
        request = StreamsGroupHeartbeatRequest(
            group_id=self._play.g if group is None else group,
            member_id=member_id,
            member_epoch=epoch,
            **{"endpoint_information_epoch": -1, **named, **lists, **fields},
        )
        return self._play.slowly(request, VERSION, recorded=recorded)

    def report(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Send a heartbeat; return (epoch, active tasks, standby tasks, statuses), None for absent tasks."""
        response = self.heart(member_id, epoch, **fields)
        assert (response.error_code, response.error_message, response.member_id) == (0, None, member_id), response
        active, standby, warmup = map(_given, (response.active_tasks, response.standby_tasks, response.warmup_tasks))
        assert warmup == (None if active is None else {}), response
        statuses = [(each.status_code, each.status_detail) for each in response.status]
        return response.member_epoch, active, standby, statuses

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Send a heartbeat; return (epoch, active tasks), None for no tasks. There are no standby tasks or statuses."""
        reached, active, standby, statuses = self.report(member_id, epoch, **fields)
        assert (standby, statuses) == (None if active is None else {}, []), (standby, statuses)
        return reached, active

    def joining(self, member_id: str, topology: Topology | None = None) -> dict[str, Any]:
        """Return the fields of a join that is complete."""
        return {
            "rebalance_timeout_ms": self._play.ms(REBALANCE_S),
            "topology": self.stateless if topology is None else topology,
            "owned": {},
            "process_id": member_id,
        }

    def join(self, member_id: str, topology: Topology | None = None, **fields: Any) -> Any:
        """Join with a topology, as `beat`."""
        return self.beat(member_id, 0, **{**self.joining(member_id, topology), **fields})

    def join_report(self, member_id: str, topology: Topology | None = None, **fields: Any) -> Any:
        """Join with a topology, as `report`."""
        return self.report(member_id, 0, **{**self.joining(member_id, topology), **fields})

    def refusal(self, member_id: str, epoch: int, **fields: Any) -> tuple[int, str | None]:
        """Send a heartbeat and return its error with the message."""
        response = self.heart(member_id, epoch, **fields)
        lists = response.active_tasks, response.standby_tasks, response.warmup_tasks
        rest = response.member_id, response.member_epoch, response.heartbeat_interval_ms, response.status, *lists
        assert rest == ("", 0, 0, (), None, None, None), response
        return response.error_code, response.error_message

    def refused_join(self, member_id: str, topology: Topology | None = None, **fields: Any) -> tuple[int, str | None]:
        """Join, as `refusal`."""
        return self.refusal(member_id, 0, **{**self.joining(member_id, topology), **fields})

    def settle_in(self, member_id: str, topology: Topology) -> Any:
        """Join, and send heartbeats until the internal topics exist; return (epoch, active tasks)."""
        epoch, active, _, _ = self.join_report(member_id, topology, recorded=False)
        return (epoch, active) if active else self.ready(member_id, epoch)

    def ready(self, member_id: str, epoch: int) -> Any:
        """Send heartbeats until there are active tasks. How many are needed depends on the broker's speed."""
        limit = self._play.target.seconds + LIMIT_S
        active: Given | None = None
        while not active:
            assert self._play.target.seconds < limit, f"{member_id} gets no tasks at epoch {epoch}"
            self._play.wait(0.05)
            epoch, active, _, _ = self.report(member_id, epoch, recorded=False)
        return epoch, active

    def converge(self, *members: str) -> dict[str, tuple[int, Given, Given]]:
        """Let members report what they have until nothing changes; return epoch, active and standby tasks of each."""
        held = self.members(recorded=False)
        unchanged = 0
        while unchanged < 2 * len(members):
            for member_id in members:
                epoch, active, standby = held[member_id]
                row = self.report(member_id, epoch, owned=active, standby=standby, recorded=False)
                then = row[0], active if row[1] is None else row[1], standby if row[2] is None else row[2]
                unchanged = unchanged + 1 if then == held[member_id] else 0
                held[member_id] = then
        return held

    # -- about the group ---------------------------------------------------------------------------------------

    def described(self, group: str | None = None, *, recorded: bool = True) -> Any:
        """Return the row of StreamsGroupDescribe."""
        request = StreamsGroupDescribeRequest(group_ids=(self._play.g if group is None else group,))
        asked = self._play.ask(request, VERSION)
        (row,) = (asked.answer() if recorded else asked.unrecorded()).groups
        return row

    def shape(self, *, recorded: bool = True) -> tuple[str, int, int]:
        """Return the state of the group, its epoch, and that of its target."""
        row = self.described(recorded=recorded)
        return row.group_state, row.group_epoch, row.assignment_epoch

    def members(self, *, recorded: bool = True) -> dict[str, tuple[int, Given, Given]]:
        """Return the epoch, the active and the standby tasks of each member."""
        return {
            row.member_id: (
                row.member_epoch,
                _given(row.assignment.active_tasks) or {},
                _given(row.assignment.standby_tasks) or {},
            )
            for row in self.described(recorded=recorded).members
        }

    @staticmethod
    def tasks(rows: Iterable[Any]) -> Given:
        """Return the tasks of a message or record."""
        return _given(rows) or {}


def topology(*parts: Subtopology, epoch: int = 0) -> Topology:
    """Return a topology of subtopologies."""
    return Topology(epoch=epoch, subtopologies=parts)


def subtopology(
    name: str,
    sources: Iterable[str] = (),
    *,
    patterns: Iterable[str] = (),
    reads: Iterable[TopicInfo] = (),
    writes: Iterable[str] = (),
    stores: Iterable[TopicInfo] = (),
    together: Iterable[tuple[tuple[int, ...], tuple[int, ...]]] = (),
) -> Subtopology:
    """Return a subtopology: `reads` and `writes` are repartition topics, `stores` are changelogs.

    `together` are copartition groups: indexes of `sources` and of `reads`.
    """
    return Subtopology(
        subtopology_id=name,
        source_topics=tuple(sources),
        source_topic_regex=tuple(patterns),
        state_changelog_topics=tuple(stores),
        repartition_sink_topics=tuple(writes),
        repartition_source_topics=tuple(reads),
        copartition_groups=tuple(
            CopartitionGroup(source_topics=left, source_topic_regex=(), repartition_source_topics=right)
            for left, right in together
        ),
    )


def internal_topic(name: str, partitions: int = 0, **configs: str) -> TopicInfo:
    """Return an internal topic; the names of configs have _ for the dots."""
    rows = tuple(KeyValue(key=key.replace("_", "."), value=text) for key, text in configs.items())
    return TopicInfo(name=name, partitions=partitions, replication_factor=0, topic_configs=rows)


def _tasks(
    active: Mapping[str, Iterable[int]] | None, standby: Mapping[str, Iterable[int]] | None
) -> dict[str, tuple[TaskIds, ...]]:
    return {"active_tasks": task_rows(active), "standby_tasks": task_rows(standby), "warmup_tasks": ()}


def task_rows(tasks: Mapping[str, Iterable[int]] | None) -> tuple[TaskIds, ...]:
    """Return tasks as rows of a message."""
    return tuple(
        TaskIds(subtopology_id=name, partitions=tuple(partitions)) for name, partitions in (tasks or {}).items()
    )


def _given(rows: Iterable[Any] | None) -> Given | None:
    return None if rows is None else {row.subtopology_id: sorted(row.partitions) for row in rows}
