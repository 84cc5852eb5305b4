"""Members of consumer groups, in short words, on the coordinator of `play`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders import requests

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.offsets_topic import write_key
from scenes.play import Exchange, Play

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from koordinator.emulator.core.groups.consumer.group import ConsumerGroup

Given = dict[str, list[int]]
"""Partitions by topic name."""


class ConsumerPlay(Play):
    """A coordinator whose consumer groups compute a target with every change; topics are t (4 partitions) and u (2)."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**{"group_consumer_assignment_interval_ms": 0, **settings})
        self.names = {topic.topic_id: name for name, topic in self.cluster.topics.items()}

    def heart(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Send a heartbeat with the fields of `start_heart` and return the response."""
        return self.start_heart(member_id, epoch, **fields).response

    def start_heart(
        self,
        member_id: str,
        epoch: int,
        *,
        topics: Sequence[str] | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        inst: str | None = None,
        rack: str | None = None,
        timeout: int = -1,
        assignor: str | None = None,
        regex: str | None = None,
        group: str = "g",
        version: int = 1,
    ) -> Exchange[Any]:
        """Send ConsumerGroupHeartbeat."""
        ids = {name: topic.topic_id for name, topic in self.cluster.topics.items()}
        request = requests.consumer_group_heartbeat(
            group,
            member_id,
            epoch,
            inst,
            topics=topics,
            regex=regex,
            owned=None if owned is None else {ids[name]: rows for name, rows in owned.items()},
            rebalance_ms=timeout,
            rack_id=rack,
            assignor=assignor,
        )
        return self.send(request, version)

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Send a heartbeat and return (epoch, assignment): None for no assignment; an error alone if it fails."""
        response = self.heart(member_id, epoch, **fields)
        return Error(response.error_code) if response.error_code else (response.member_epoch, self.given(response))

    def subscribe(self, member_id: str, topics: Sequence[str] = ("t",), **fields: Any) -> Any:
        """Join with a rebalance timeout of 30 s, as `beat`."""
        return self.beat(member_id, 0, **{"topics": topics, "owned": {}, "timeout": 30_000, **fields})

    def given(self, response: Any) -> Given | None:
        """Return the assignment of a response by topic names."""
        return None if response.assignment is None else self.named(response.assignment.topic_partitions)

    def named(self, rows: Any) -> Given:
        """Return the partitions of a message by topic names, sorted."""
        return {self.names[row.topic_id]: sorted(row.partitions) for row in rows}

    def described(self, group: str = "g", version: int = 1) -> Any:
        """Return the row of ConsumerGroupDescribe."""
        return self.send(ConsumerGroupDescribeRequest(group_ids=(group,)), version).response.groups[0]

    def shape(self, group: str = "g") -> tuple[str, int, int]:
        """Return the state of a group, its epoch and that of its target."""
        row = self.described(group)
        return row.group_state, row.group_epoch, row.assignment_epoch

    def targets(self, group: str = "g") -> dict[str, Given]:
        """Return the target of each member."""
        members = self.described(group).members
        return {member.member_id: self.named(member.target_assignment.topic_partitions) for member in members}

    def converge(self, members: dict[str, tuple[int, Given]], group: str = "g") -> dict[str, tuple[int, Given]]:
        """Let members heartbeat in turn with their partitions, until a round changes nothing."""
        changed = True
        while changed:
            changed = False
            for member_id, (epoch, owned) in members.items():
                new_epoch, given = self.beat(member_id, epoch, owned=owned, group=group)
                now = new_epoch, owned if given is None else given
                changed |= now != members[member_id]
                members[member_id] = now
        return members

    def consumer_group(self, group: str = "g") -> ConsumerGroup:
        """Return the state of a group."""
        found: Any = self.coordinator.store.groups[group]
        return found

    def commit_as(self, member_id: str, epoch: int, offsets: Mapping[tuple[str, int], int], version: int = 9) -> Any:
        """Commit offsets and return the errors by partition."""
        request = requests.offset_commit("g", offsets, epoch, member_id)
        rows = self.send(request, version).response.topics
        return [Error(row.error_code) for topic in rows for row in topic.partitions]

    def fetch_as(self, member_id: str | None, epoch: int, at: tuple[str, int] = ("t", 0)) -> Any:
        """Return the committed offset of a partition, or the error of the group."""
        request = requests.offset_fetch(9, "g", [at], member=(member_id, epoch))
        (row,) = self.send(request, 9).response.groups
        return Error(row.error_code) if row.error_code else row.topics[0].partitions[0].committed_offset

    def delete_offset(self, topic: str) -> Error:
        """Delete the offset of partition 0 of a topic and return its error."""
        response = self.send(requests.offset_delete("g", [(topic, 0)]), 0).response
        assert not response.error_code
        return Error(response.topics[0].partitions[0].error_code)

    def record_types(self) -> list[int]:
        """Return the types of the records in the latest batch; negative for tombstones."""
        types = []
        for record in self.appended[-1].records:
            code = int.from_bytes(write_key(record.key)[:2], "big")
            types.append(code if record.value is not None else -code)
        return types
