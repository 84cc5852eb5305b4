"""A failed write, or a frozen group, loses nothing: later answers equal those of a twin that never tried."""

from __future__ import annotations

import random
from errno import ENOSPC
from inspect import getclosurevars
from typing import TYPE_CHECKING, Any

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster

from koordinator.emulator.core.overrides import force_rebalance, freeze, thaw
from koordinator.emulator.server import build
from koordinator.emulator.storage.data_dir import DataDir
from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.list_transactions import ListTransactionsRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from clients.frame_clients import Peer

    from koordinator.emulator.core.data.storage import LogBatches

START_MS = 1_700_000_000_000

MEMBERS, TOPICS = ("a", "b", "c"), ("t", "u")


class Side(DurableCluster):
    """One of two equal clusters, and what its clients know."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, release: str) -> None:
        monkeypatch.setattr(build, "_clock", lambda: lambda: START_MS * 1000)
        self.files = CrashingFiles()
        super().__init__(DIR, self.files, kafka_version=release, group_consumer_assignment_interval_ms=0)
        self._ids: random.Random = getclosurevars(self.built.runtime.new_uuid).nonlocals["generator"]
        self.epochs = dict.fromkeys(MEMBERS, 0)
        self.owned: dict[str, tuple[TopicPartitions, ...]] = dict.fromkeys(MEMBERS, ())
        self.producers: dict[str, tuple[int, int]] = {}
        for topic in TOPICS:
            self.create(topic)

    def act(self, number: int, seed: int) -> Any:
        """Take a step; both sides draw the same ids and choices in a step of the same number."""
        self._ids.seed(number)
        # the answers of a connection are decoded again with each request
        self.client = self.connect()
        chance = random.Random(f"{seed} {number}")
        return chance.choice(ACTS)(self, chance)

    def stored(self) -> dict[str, bytes]:
        """Return the content of all logs on disk."""
        names = [name for name in self.files.names(DIR) if "-" in name and LOG in self.files.names(DIR / name)]
        return {name: data for name in names if (data := self.files.read(DIR / name / LOG))}

    def heartbeat(self, member: str, epoch: int, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch, **fields)
        response = self.exchange(request, 1)
        if response is not None and not response.error_code:
            self.epochs[member] = max(response.member_epoch, 0)
            if response.assignment is not None:
                self.owned[member] = response.assignment.topic_partitions
        return response


LOG = "00000000000000000000.log"


def _beat(side: Side, chance: random.Random) -> Any:
    member = chance.choice(MEMBERS)
    if side.epochs[member] == 0:
        names = tuple(sorted(chance.sample(TOPICS, chance.choice((1, 2)))))
        fields: dict[str, Any] = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": names}
        return side.heartbeat(member, 0, topic_partitions=(), **fields)
    owned = chance.choice((None, side.owned[member], side.owned[member]))
    names_now = chance.choice((None, None, ("t",), ("t", "u")))
    return side.heartbeat(member, side.epochs[member], topic_partitions=owned, subscribed_topic_names=names_now)


def _leave(side: Side, chance: random.Random) -> Any:
    return side.heartbeat(chance.choice(MEMBERS), -1)


def _grow(side: Side, chance: random.Random) -> Any:
    name = chance.choice(TOPICS)
    count = len(side.node.cluster.topics[name].logs) + 1 if name in side.node.cluster.topics else 2
    row = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return side.exchange(CreatePartitionsRequest(topics=(row,)), 3)


def _recreate(side: Side, chance: random.Random) -> Any:
    name = chance.choice(TOPICS)
    return side.delete(name) if name in side.node.cluster.topics else side.create(name)


def _produce(side: Side, chance: random.Random) -> Any:
    batch = chance.choice(({}, {"producer_id": 7, "producer_epoch": 0, "base_sequence": chance.randrange(2)}))
    return side.produce("t", b"v", **batch) if "t" in side.node.cluster.topics else None


def _commit(side: Side, chance: random.Random) -> Any:
    return side.commit(chance.choice(("g", "simple", "other")), chance.choice(TOPICS), chance.randrange(100))


def _delete_offsets(side: Side, chance: random.Random) -> Any:
    rows = (OffsetDeleteRequestPartition(partition_index=0),)
    topics = (OffsetDeleteRequestTopic(name=chance.choice(TOPICS), partitions=rows),)
    return side.exchange(OffsetDeleteRequest(group_id=chance.choice(("g", "simple")), topics=topics), 0)


def _delete_groups(side: Side, chance: random.Random) -> Any:
    return side.exchange(DeleteGroupsRequest(groups_names=(chance.choice(("g", "simple", "other")),)), 2)


def _init(side: Side, chance: random.Random) -> Any:
    name = chance.choice(("x", "y"))
    response = side.exchange(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
    if not response.error_code:
        side.producers[name] = response.producer_id, response.producer_epoch
    return response


def _end(side: Side, chance: random.Random) -> Any:
    name = chance.choice(("x", "y"))
    producer_id, epoch = side.producers.get(name, (0, 0))
    ends = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=True)
    return side.exchange(ends, 3)


def _quota(side: Side, chance: random.Random) -> Any:
    entity, op = EntityData(entity_type="user", entity_name="n"), OpData(key="request_percentage", value=5.0)
    del chance
    return side.exchange(AlterClientQuotasRequest(entries=(EntryData(entity=(entity,), ops=(op,)),)), 1)


ACTS: tuple[Callable[[Side, random.Random], Any], ...] = (
    *(_beat, _beat, _beat, _beat, _leave, _grow, _recreate, _produce, _commit, _commit),
    *(_delete_offsets, _delete_groups, _init, _end, _quota),
)


def answers(side: Side) -> list[Any]:
    """Return the answers to requests that change nothing."""
    side.client = side.connect()
    return [
        side.exchange(ConsumerGroupDescribeRequest(group_ids=("g",)), 0),
        sorted(side.exchange(ListGroupsRequest(), 4).groups, key=lambda row: row.group_id),
        side.exchange(ListTransactionsRequest(), 0),
        side.exchange(MetadataRequest(topics=None), 9),
        {(group, topic): side.committed(group, topic) for group in ("g", "simple", "other") for topic in TOPICS},
        [side.values(topic) for topic in TOPICS if topic in side.node.cluster.topics],
    ]


BEFORE, TRIED, AFTER = 10, 3, 5
"""The numbers of steps."""

FEW, MANY = 4, 40
"""The numbers of sequences that every run plays, and a slow one."""


def _seeds() -> list[Any]:
    return [*range(FEW), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(FEW, MANY))]


def _joined(side: Side) -> None:
    side.heartbeat("a", 0, rebalance_timeout_ms=30_000, subscribed_topic_names=("t",), topic_partitions=())
    assert [len(row.partitions) for row in side.owned["a"]] == [1]


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_a_topic_change_is_noticed_after_a_failed_write(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(monkeypatch, release)
    _joined(side)
    _grow_t(side)
    side.files.room = 0
    assert side.heartbeat("a", side.epochs["a"]).error_code == Error.NOT_COORDINATOR
    side.files.room = None
    side.heartbeat("a", side.epochs["a"])
    assert [len(row.partitions) for row in side.owned["a"]] == [2]


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_a_topic_change_is_noticed_after_a_freeze(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(monkeypatch, release)
    _joined(side)
    _grow_t(side)
    _override(side, freeze)
    beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=side.epochs["a"])
    waiting = side.connect()
    side.send(waiting, side.request(waiting, beat, 1))
    assert waiting.answers() == [], "the heartbeat would change the group"
    _override(side, thaw)
    ((_, response),) = waiting.answers()
    assert [len(row.partitions) for row in response.assignment.topic_partitions] == [2]


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_writes_that_fail_one_after_the_other_are_all_taken_back(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(monkeypatch, release)
    _joined(side)
    before = answers(side)
    side.files.room = 0
    for member in ("b", "c"):
        _send_join(side, member)
    side.files.room = None
    assert answers(side) == before


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_writes_decided_on_one_that_fails_are_not_written(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(monkeypatch, release)
    _joined(side)
    before, stored = answers(side), side.stored()
    _override(side, freeze)
    peers = [_send_join(side, member) for member in ("b", "c")]
    append, failures = DataDir.append, iter([OSError(ENOSPC, "planted")])

    def fail_once(data_dir: DataDir, appends: Iterable[LogBatches]) -> None:
        for failure in failures:
            raise failure
        append(data_dir, appends)

    monkeypatch.setattr(DataDir, "append", fail_once)
    _override(side, thaw)
    assert [response.error_code for peer in peers for _, response in peer.answers()] == [Error.NOT_COORDINATOR] * 2
    assert answers(side) == before
    assert side.stored() == stored


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_a_forced_rebalance_after_a_failed_write_hides_no_topic_change(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = Side(monkeypatch, release)
    _joined(side)
    _grow_t(side)
    side.files.room = 0
    side.heartbeat("a", side.epochs["a"])
    side.files.room = None
    _override(side, lambda store, group: force_rebalance(store, group, "a test asked"))
    forced = side.exchange(ConsumerGroupDescribeRequest(group_ids=("g",)), 0).groups[0].group_epoch
    side.heartbeat("a", side.epochs["a"])
    assert side.exchange(ConsumerGroupDescribeRequest(group_ids=("g",)), 0).groups[0].group_epoch == forced + 1


def _send_join(side: Side, member: str) -> Peer:
    peer = side.connect()
    join = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    side.send(peer, side.request(peer, join, 1))
    return peer


def _grow_t(side: Side) -> None:
    row = CreatePartitionsTopic(name="t", count=2, assignments=None)
    assert side.exchange(CreatePartitionsRequest(topics=(row,)), 3).results[0].error_code == 0


def _override(side: Side, action: Callable[..., None]) -> None:
    side._perform(side.broker.broker(1).perform(side.now, side.node.coordinator.override(side.now, "g", action)))
    side.settle()


@pytest.mark.parametrize("release", ["4.0", "4.4"])
@pytest.mark.parametrize("seed", _seeds())
def test_after_failed_writes_answers_equal_those_of_a_twin_that_never_tried(
    seed: int, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, twin = (Side(monkeypatch, release) for _ in range(2))
    for number in range(BEFORE):
        assert tried.act(number, seed) == twin.act(number, seed)
    known = dict(tried.epochs), dict(tried.owned), dict(tried.producers)
    tried.files.room = 0
    for number in range(BEFORE, BEFORE + TRIED):
        tried.act(number, seed)
    tried.files.room = None
    # clients try again with what they knew
    tried.epochs, tried.owned, tried.producers = known
    assert answers(tried) == answers(twin)
    for number in range(BEFORE + TRIED, BEFORE + TRIED + AFTER):
        assert tried.act(number, seed) == twin.act(number, seed)
    assert answers(tried) == answers(twin)
    assert tried.stored() == twin.stored()
