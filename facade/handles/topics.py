"""The handle of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.control.inspect.topics import Topics
from koordinator.emulator.control.nodes import Nodes
from koordinator.emulator.control.results import PartitionInfo
from koordinator.emulator.control.verbs import Verbs

from .names import NodeLike, TopicHandle, node_id_of
from .nodes import Node, node_if_any
from .seeding import plain_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.emulator.control.record_inputs import RecordLike
    from koordinator.emulator.control.results import TopicInfo
    from koordinator.emulator.core.data.direct_records import StoredRecord

__all__ = ["PartitionInfo", "Topic"]


class Topic(TopicHandle):
    """A topic of a cluster. Handles of the same topic are equal. Each property reads the present state.

    Every method may be called from any thread, raises RefusedError (a ValueError) for an unknown topic, and
    ClusterStopped after the cluster has stopped.
    """

    @property
    def id(self) -> str:
        """The topic id, a UUID (KIP-516)."""
        return self._info().topic_id

    @property
    def partitions(self) -> list[PartitionInfo]:
        """The partitions by number, each with the node id of its leader and its end offset."""
        return self._info().partitions

    @property
    def configs(self) -> dict[str, str]:
        """The configs that were set for this topic; those of a running Kafka are not read."""
        return self._info().configs

    def records(self) -> list[StoredRecord]:
        """Return every record, partition by partition: `partition offset timestamp key value headers`."""
        return self._port.call(Topics.records, topic=self.name)

    def produce(self, *records: RecordLike | Iterable[RecordLike]) -> int:
        """Append records, all or none, and return their number; see `Cluster.produce`."""
        return self._port.call(Topics.produce, topic=self.name, records=plain_records(records))

    def add_partitions(self, count: int) -> int:
        """Add `count` partitions, and return their new number. Raises RefusedError as Kafka refuses it."""
        return self._port.call(Verbs.add_partitions, topic=self.name, count=count)

    def compact(self) -> None:
        """Keep only the last record of each key, and no tombstones; see `Cluster.compact`."""
        self._port.call(Verbs.compact, topic=self.name)

    def expire_records(self, *, before: int | None = None) -> None:
        """Delete all records, or those before an offset; see `Cluster.expire_records`."""
        self._port.call(Verbs.expire_records, topic=self.name, before=before)

    def truncate(self, partition: int, *, to: int) -> None:
        """Lose the records from the offset `to` on, as by an unclean election of a leader; see `Cluster.truncate`."""
        self._port.call(Verbs.truncate, topic=self.name, partition=partition, to=to)

    def leader(self, partition: int) -> Node | None:
        """Return the broker that leads a partition; None without a leader or without such a partition."""
        return node_if_any(self._port, self._port.call(Nodes.leader, topic=self.name, partition=partition))

    def move_leader(self, partition: int, to: NodeLike) -> None:
        """Make node `to` the leader of a partition. Raises ValueError if either is unknown or the node is down."""
        self._port.call(Nodes.move_leader, topic=self.name, partition=partition, to=node_id_of(to))

    def _info(self) -> TopicInfo:
        return self._port.call(Topics.describe, topic=self.name)[0]
