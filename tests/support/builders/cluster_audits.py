"""What a cluster must keep in a run of the fuzzer: acknowledged changes, the state before a restart, its clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clients.frame_clients import START

from koordinator.emulator.core.data.topic import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from koordinator.emulator.core.groups.consumer.group import ConsumerGroup
from koordinator.emulator.core.groups.modern.topics import metadata_hash, topic_metadata
from koordinator.wire.errors import Error
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    import random

    from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
    from koordinator.emulator.core.groups.group import BaseGroup
    from koordinator.emulator.core.groups.group_store import GroupStore
    from koordinator.wire.apis import Message

AUDIT = "audit"
"""The group, topic and prefix of transactional ids that only the audit uses."""


class Audit:
    """Acknowledged commits, records and producer epochs, in a group and a topic that no other request concerns."""

    def __init__(self) -> None:
        self.sent = self._latest_at = 0
        # offsets acknowledged in the latest step that acknowledged any, and in earlier ones
        self._latest: set[int] = set()
        self._superseded: set[int] = set()
        self.records: dict[int, bytes] = {}
        self.producers: set[tuple[int, int]] = set()

    def request(self, chance: random.Random) -> tuple[Message, int, str | None, int]:
        """Return the next request, its version, and the key and type of its coordinator."""
        what, self.sent = chance.randrange(3), self.sent + 1
        if what == 0:
            partition = OffsetCommitRequestPartition(
                partition_index=0, committed_offset=self.sent, committed_metadata=""
            )
            topics = (OffsetCommitRequestTopic(name=AUDIT, partitions=(partition,)),)
            return OffsetCommitRequest(group_id=AUDIT, topics=topics), 8, AUDIT, 0
        if what == 1:
            records = write_batch([Record(timestamp=START, value=b"%d" % self.sent)])
            topics = (TopicProduceData(name=AUDIT, partition_data=(PartitionProduceData(index=0, records=records),)),)
            return ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics), 9, None, 0
        name = f"{AUDIT}-{chance.randrange(3)}"
        return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 5, name, 1

    def note(self, request: Any, answer: Any, step: int) -> None:
        """Note an acknowledgement in a step of the run. A producer epoch is given out once, but for a retry."""
        match request:
            case OffsetCommitRequest(group_id="audit"):
                (topic,) = answer.topics
                if topic.partitions[0].error_code == Error.NONE:
                    if step > self._latest_at:
                        self._latest_at = step
                        self._superseded |= self._latest
                        self._latest.clear()
                    self._latest.add(request.topics[0].partitions[0].committed_offset)
            case ProduceRequest() if request.topic_data and request.topic_data[0].name == AUDIT:
                (row,) = answer.responses[0].partition_responses
                if row.error_code == Error.NONE:
                    sent = request.topic_data[0].partition_data[0].records
                    assert row.base_offset not in self.records, "two records were acknowledged at one offset"
                    self.records[row.base_offset] = sent[-2 - len(b"%d" % self.sent) :]
            case InitProducerIdRequest(producer_id=-1) if (request.transactional_id or "").startswith(AUDIT):
                given = answer.producer_id, answer.producer_epoch
                if answer.error_code == Error.NONE:
                    assert given not in self.producers, f"producer id and epoch {given} were given out twice"
                    self.producers.add(given)
            case _:
                pass

    def check(self, runtime: ClusterRuntime) -> None:
        """Check that a cluster has everything that was acknowledged."""
        broker = runtime.broker_of_group(AUDIT)
        if broker is not None and runtime.states[broker.node.node_id] == "up":
            group = broker.node.coordinator.group(AUDIT)
            found = None if group is None else group.offsets.get((AUDIT, 0))
            offset = 0 if found is None else found.offset
            # a commit that was not acknowledged may have been written, and a held one is written late
            is_possible = offset > 0 and offset not in self._superseded
            assert is_possible or not self._latest, f"committed {sorted(self._latest)}, and now it is {offset}"
        topic = runtime.cluster.topics.get(AUDIT)
        if topic is not None:
            log = topic.logs[0]
            for offset, record in self.records.items():
                batch = log.read(offset, 1, first_whole=True)
                assert record in batch, f"the record at {offset} is lost"


def check_clocks(runtime: ClusterRuntime) -> None:
    """Check that every group on a running node has the clock that an advance would move."""
    clocks = runtime.cluster.clocks
    for broker in runtime:
        if runtime.states[broker.node.node_id] == "up":
            for group in broker.node.coordinator.groups.values():
                assert group.clock is clocks.get(group.id), f"{group} has another clock than its id"


class Topics:
    """The subscriptions that consumer groups have had, and whether each group has an epoch for its topics."""

    def __init__(self) -> None:
        self._had: dict[str, dict[frozenset[str], None]] = {}
        self._epochs: dict[str, tuple[int, bool]] = {}
        """The epoch of each group, and whether its subscriptions up to it are all known."""

    def check(self, runtime: ClusterRuntime) -> None:
        """Check that a group has an epoch for each change of its topics that it has seen.

        The topics may be those of an earlier subscription: a dynamic member that takes over an instance id gives its
        own up, and Kafka notices that with the next change (`GroupMetadataManager.replaceMember`).
        """
        version = runtime.cluster.topics.version
        for broker in runtime:
            store = broker.node.coordinator.store
            for group in store.groups.values():
                if not isinstance(group, ConsumerGroup) or not group.members:
                    continue
                names = frozenset(name for member in group.members.values() for name in group.topics_of(member))
                epoch, is_known = self._epochs.get(group.id, (group.epoch, True))
                if group.epoch != epoch:
                    # a thaw serves many requests in one step
                    is_known = group.epoch <= epoch + 1
                self._epochs[group.id] = group.epoch, is_known
                had = self._had.setdefault(group.id, {})
                had.pop(names, None)
                had[names] = None
                is_written = not any(write.group is group for write in store.writes.values())
                if is_known and is_written and group.has_seen_topics(version):
                    seen = (_has_topics(store, group, each) for each in reversed(had))
                    assert any(seen), f"{group} has lost a change of its topics"


def _has_topics(store: GroupStore, group: ConsumerGroup, names: frozenset[str]) -> bool:
    """Return whether the topics of a group, as its records have them, are these topics as they are now."""
    if store.dialect.hashes_topics:
        return group.metadata_hash == metadata_hash(store.cluster, names)
    return set(group.topics) == set(topic_metadata(store.cluster, names))


def may_write_markers(runtime: ClusterRuntime) -> bool:
    """Return whether a transaction may change without another request, also one of a node that is not up."""
    return any(state != "up" for state in runtime.states.values()) or any(
        transaction.data.status.name.startswith("PREPARE") or transaction.change is not None
        for broker in runtime
        for transaction in broker.node.transactions.store.transactions.values()
    )


def durable_state(runtime: ClusterRuntime) -> dict[object, object]:
    """Return what a restart must keep: topics, offsets, and consumer groups with their members."""
    topics = runtime.cluster.topics
    found: dict[object, object] = {
        ("topic", name): (topic.topic_id, [(log.start, log.end) for log in topic.logs])
        for name, topic in topics.items()
        if name not in {OFFSETS_TOPIC, TRANSACTIONS_TOPIC}
    }
    for group in led_groups(runtime):
        found |= {("offset", group.id, *at): value.offset for at, value in group.offsets.items()}
        # a conversion whose request a freeze holds is not written yet
        if isinstance(group, ConsumerGroup) and group.members and group.origin is None:
            found["group", group.id] = (
                group.epoch, group.target_epoch, group.targets, group.static_members,
                {
                    each.id: (each.epoch, each.previous_epoch, each.instance_id, each.names, each.regex,
                              each.state, each.assigned, each.pending)
                    for each in group.members.values()
                },
            )  # fmt: skip
    return found


def led_groups(runtime: ClusterRuntime) -> list[BaseGroup]:
    """Return the groups of running nodes."""
    return [
        group
        for broker in runtime
        if runtime.states[broker.node.node_id] == "up"
        for group in broker.node.coordinator.groups.values()
        if group.id not in broker.node.coordinator.store.forgotten
    ]
