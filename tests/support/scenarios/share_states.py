"""Where share groups stand: requests to the share coordinator, and those of admins about offsets.

A partition is named by ("x", 0), a topic of the scenario and a number; batches are texts such as "0-4/2/1 5-5/0/2": the
offsets, the state, the number of deliveries.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

from builders import requests
from builders.requests import by_topic

from koordinator.wire.errors import Error
from koordinator.wire.messages import alter_share_group_offsets as alter_wire
from koordinator.wire.messages import delete_share_group_offsets as delete_offsets_wire
from koordinator.wire.messages import delete_share_group_state as delete_wire
from koordinator.wire.messages import describe_share_group_offsets as describe_wire
from koordinator.wire.messages import initialize_share_group_state as initialize_wire
from koordinator.wire.messages import read_share_group_state as read_wire
from koordinator.wire.messages import read_share_group_state_summary as summary_wire
from koordinator.wire.messages import write_share_group_state as write_wire
from koordinator.wire.records import Record, write_batch
from scenarios.share_members import ShareMembers, batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.wire.apis import Message
    from scenarios.answers import Partition

UNKNOWN = -1
"""An unchanged start offset, a number of records that nobody knows."""

LATEST = 1 << 20
"""An epoch that is not older than any other."""

BATCH = re.compile(r"(-?\d+)-(-?\d+)/(-?\d+)/(-?\d+)")

UNKNOWN_TOPIC = UUID(int=1 << 64)
"""The id of no topic."""


class ShareStates(ShareMembers):
    """Requests about the share partitions of the play's group, or of another one."""

    # -- records of topics -------------------------------------------------------------------------------------

    def produce(self, topic: str, *counts: int, timestamp: int = 1000, partition: int = 0) -> None:
        """P: write batches of so many records to a partition; `timestamp` is in ms."""
        for count in counts:
            batch = write_batch([Record(timestamp=timestamp, value=b"v")] * count)
            request = requests.produce(self._real[topic], {partition: batch})
            answer = self._play.slowly(request, 9)
            assert answer.responses[0].partition_responses[0].error_code == Error.NONE, answer

    # -- share coordinator -------------------------------------------------------------------------------------

    def initialize(self, at: Partition, state_epoch: int, start: int, group: str | None = None) -> Any:
        """InitializeShareGroupState of one partition: the error, with its message if there is one."""
        row = initialize_wire.PartitionData(partition=at[1], state_epoch=state_epoch, start_offset=start)
        topic = initialize_wire.InitializeStateData(topic_id=self._id_of(at), partitions=(row,))
        request = initialize_wire.InitializeShareGroupStateRequest(group_id=self._group(group), topics=(topic,))
        return _error(self._state_row(request))

    def write(
        self,
        at: Partition,
        written: str,
        *,
        start: int = UNKNOWN,
        done: int = UNKNOWN,
        state_epoch: int = LATEST,
        leader_epoch: int = LATEST,
    ) -> Any:
        """WriteShareGroupState of one partition, as `initialize`; `done` is the number of completed deliveries."""
        row = write_wire.PartitionData(
            partition=at[1],
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=done,
            state_batches=tuple(map(_batch, written.split())),
        )
        topic = write_wire.WriteStateData(topic_id=self._id_of(at), partitions=(row,))
        request = write_wire.WriteShareGroupStateRequest(group_id=self._play.g, topics=(topic,))
        return _error(self._state_row(request, 1))

    def read(self, at: Partition, leader_epoch: int = 0, *, recorded: bool = True) -> Any:
        """R: ReadShareGroupState of one partition: (state epoch, start offset, batches), or the error."""
        row = read_wire.PartitionData(partition=at[1], leader_epoch=leader_epoch)
        topic = read_wire.ReadStateData(topic_id=self._id_of(at), partitions=(row,))
        request = read_wire.ReadShareGroupStateRequest(group_id=self._play.g, topics=(topic,))
        found = self._state_row(request, recorded=recorded)
        return _error(found) or (found.state_epoch, found.start_offset, batches(found.state_batches))

    def summary(self, at: Partition, leader_epoch: int = 0) -> Any:
        """ReadShareGroupStateSummary of one partition: (state epoch, leader epoch, start offset, completed deliveries),
        or the error.
        """
        row = summary_wire.PartitionData(partition=at[1], leader_epoch=leader_epoch)
        topic = summary_wire.ReadStateSummaryData(topic_id=self._id_of(at), partitions=(row,))
        request = summary_wire.ReadShareGroupStateSummaryRequest(group_id=self._play.g, topics=(topic,))
        found = self._state_row(request, 1)
        return _error(found) or (
            *(found.state_epoch, found.leader_epoch, found.start_offset, found.delivery_complete_count),
        )

    def delete_state(self, at: Partition) -> Any:
        """DeleteShareGroupState of one partition, as `initialize`."""
        row = delete_wire.PartitionData(partition=at[1])
        topic = delete_wire.DeleteStateData(topic_id=self._id_of(at), partitions=(row,))
        return _error(self._state_row(delete_wire.DeleteShareGroupStateRequest(group_id=self._play.g, topics=(topic,))))

    def await_state(self, at: Partition, wanted: tuple[int, int, str]) -> None:
        """Wait until R of a partition is `wanted`: the leader writes releases after its answers."""
        self._play.wait_until(f"the state of {at} is {wanted}", lambda: self.read(at, recorded=False) == wanted)

    def _state_row(self, request: Message, version: int = 0, *, recorded: bool = True) -> Any:
        answer = self._play.slowly(request, version, recorded=recorded)
        ((row,),) = (topic.partitions for topic in answer.results)
        return row

    def _id_of(self, at: Partition) -> UUID:
        return self._ids.get(at[0], UNKNOWN_TOPIC)

    def _group(self, group: str | None) -> str:
        return self._play.g if group is None else group

    # -- offsets -----------------------------------------------------------------------------------------------

    def offsets(
        self, topics: Mapping[str, Iterable[int]] | None = None, group: str | None = None, version: int = 1
    ) -> dict[Partition, Any]:
        """DO: DescribeShareGroupOffsets: (start offset, lag) of each partition, of all by default; or its error."""
        row = self.offsets_row(None if topics is None else topics.items(), group, version)
        assert (row.error_code, row.error_message) == (Error.NONE, None), row
        return {
            (self.short(topic.topic_name), each.partition_index): _error(each) or (each.start_offset, each.lag)
            for topic in row.topics
            for each in topic.partitions
        }

    def offsets_row(
        self, topics: Iterable[tuple[str, Iterable[int]]] | None, group: str | None = None, version: int = 1
    ) -> Any:
        """Return the row of DescribeShareGroupOffsets of a group."""
        named = None
        if topics is not None:
            named = tuple(
                describe_wire.DescribeShareGroupOffsetsRequestTopic(
                    topic_name=self._real.get(name, name), partitions=tuple(partitions)
                )
                for name, partitions in topics
            )
        asked = describe_wire.DescribeShareGroupOffsetsRequestGroup(group_id=self._group(group), topics=named)
        request = describe_wire.DescribeShareGroupOffsetsRequest(groups=(asked,))
        (row,) = self._play.slowly(request, version, recorded=True).groups
        return row

    def alter(self, starts: Mapping[Partition, int], group: str | None = None) -> Any:
        """AlterShareGroupOffsets: the error of each partition; or that of the request, with its message."""
        rows = by_topic((name, (partition, start)) for (name, partition), start in starts.items())
        answer = self.alter_rows(((name, dict(each)) for name, each in rows.items()), group)
        if answer.error_code:
            assert answer.responses == ()
            return answer.error_code, answer.error_message
        return {
            (self.short(topic.topic_name), each.partition_index): _error(each)
            for topic in answer.responses
            for each in topic.partitions
        }

    def alter_rows(
        self, rows: Iterable[tuple[str, Mapping[int, int]]], group: str | None = None, *, recorded: bool = True
    ) -> Any:
        """AlterShareGroupOffsets: return the response to topics, each with start offsets by partition."""
        topics = tuple(
            alter_wire.AlterShareGroupOffsetsRequestTopic(
                topic_name=self._real.get(name, name),
                partitions=tuple(
                    alter_wire.AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=start)
                    for partition, start in starts.items()
                ),
            )
            for name, starts in rows
        )
        request = alter_wire.AlterShareGroupOffsetsRequest(group_id=self._group(group), topics=topics)
        return self._play.slowly(request, 0, recorded=recorded)

    def delete_offsets(self, *names: str, group: str | None = None) -> Any:
        """DeleteShareGroupOffsets: the error of each topic; or that of the request, with its message."""
        answer = self.delete_rows(*names, group=group)
        if answer.error_code:
            assert answer.responses == ()
            return answer.error_code, answer.error_message
        return {self.short(topic.topic_name): _error(topic) for topic in answer.responses}

    def delete_rows(self, *names: str, group: str | None = None) -> Any:
        """Return the response of DeleteShareGroupOffsets."""
        topics = tuple(
            delete_offsets_wire.DeleteShareGroupOffsetsRequestTopic(topic_name=self._real.get(name, name))
            for name in names
        )
        request = delete_offsets_wire.DeleteShareGroupOffsetsRequest(group_id=self._group(group), topics=topics)
        return self._play.slowly(request, 0, recorded=True)

    def short(self, topic: str) -> str:
        """Return the scenario's name of a topic."""
        return next((name for name, real in self._real.items() if real == topic), topic)


def _batch(text: str) -> write_wire.StateBatch:
    read = BATCH.fullmatch(text)
    assert read, text
    first, last, state, count = map(int, read.groups())
    return write_wire.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)


def _error(row: Any) -> Any:
    """Return the error of a row, with its message if there is one; 0 without an error."""
    return (row.error_code, row.error_message) if row.error_message is not None else row.error_code
