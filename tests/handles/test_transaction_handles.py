"""Transactions from a test: description, waits, overrides, holds, and scripted producers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from koordinator import Simulation
from koordinator.handles.transactions import TransactionTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster
    from koordinator.handles.transactions import PuppetProducer

RELEASES = ("4.4", "3.9", "2.8")


@pytest.fixture(params=RELEASES)
def simulation(request: pytest.FixtureRequest) -> Simulation:
    return Simulation(topics={"t": 2, "in": 1}, kafka_version=request.param, brokers=2)


@pytest.fixture
def cluster(simulation: Simulation) -> Iterator[Cluster]:
    with simulation as cluster:
        yield cluster


@pytest.fixture
def producer(cluster: Cluster) -> PuppetProducer:
    producer = cluster.create_producer("p", "x").init()
    assert producer.error is None
    return producer


def test_a_transaction_is_described_while_it_is_open(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a", partition=1).send_offsets("g", {("in", 0): 7})
    assert producer.error is None
    transaction = cluster.transactions["x"]
    seen = transaction.describe()
    assert (seen.state, seen.client_id, seen.timeout_ms) == ("Ongoing", "p", 60_000)
    assert seen.partitions["t"] == [1]
    assert (transaction.producer_id, transaction.producer_epoch) == (producer.producer_id, producer.producer_epoch)
    assert transaction.pending_offsets == {"g": {("in", 0): 7}}
    assert cluster.group("g").pending_offsets == {("in", 0): 7}
    assert cluster.group("g").offsets == {}


def test_a_committed_transaction_leaves_its_offsets(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a").send_offsets("g", {("in", 0): 7}).commit()
    assert producer.error is None
    cluster.transaction("x").wait_state("CompleteCommit")
    cluster.assert_no_open_transactions()
    assert cluster.group("g").offsets == {("in", 0): 7}
    assert cluster.group("g").pending_offsets == {}
    producer.produce("t", "b").commit()
    assert producer.error is None


def test_an_aborted_transaction_leaves_no_offsets(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a").send_offsets("g", {("in", 0): 7}).abort()
    assert producer.error is None
    cluster.transaction("x").wait_state("CompleteAbort")
    assert cluster.group("g").offsets == {}


def test_an_override_aborts_a_transaction_and_fences_its_producer(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a").send_offsets("g", {("in", 0): 7})
    cluster.transaction("x").abort()
    cluster.transaction("x").wait_state("CompleteAbort")
    assert producer.produce("t", "late").error == "INVALID_PRODUCER_EPOCH"
    causes = [event["cause"] for event in cluster.events() if event["kind"] == "transaction"]
    assert causes[-2:] == ["operator", "markers_written"]
    assert cluster.group("g").offsets == {}


def test_a_transaction_expires_without_a_move_of_the_clock(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a")
    before = cluster.events()[-1]["wall_ts"]
    cluster.transaction("x").expire()
    cluster.transaction("x").wait_state("CompleteAbort")
    changes = [event for event in cluster.events() if event["kind"] == "transaction"]
    assert [event["cause"] for event in changes][-2:] == ["timed_out", "markers_written"]
    assert changes[-1]["wall_ts"] == before


@pytest.mark.parametrize("override", ["abort", "expire"])
def test_an_override_of_a_transaction_that_is_not_open_is_refused(
    cluster: Cluster, producer: PuppetProducer, override: str
) -> None:
    assert producer.error is None
    with pytest.raises(ValueError, match="'x' is Empty: only an Ongoing one can be aborted"):
        getattr(cluster.transaction("x"), override)()
    with pytest.raises(ValueError, match="there is no transaction 'y'; there is 'x'"):
        getattr(cluster.transaction("y"), override)()


def test_a_hold_parks_the_end_of_one_transaction(cluster: Cluster, producer: PuppetProducer) -> None:
    other = cluster.create_producer("q").init().produce("t", "b")
    producer.produce("t", "a")
    with cluster.transaction("x").hold("EndTxn") as hold:
        producer.commit()
        assert (producer.waits_for, hold.wait_entered().client_id) == ("EndTxn", "p")
        assert other.commit().error is None
        with pytest.raises(ValueError, match="'p' still waits for the response to its EndTxn"):
            producer.abort()
        with pytest.raises(TransactionTimeout, match="waiting for EndTxn"):
            producer.wait_answered(timeout=1)
    assert producer.wait_answered().error is None
    cluster.transaction("x").wait_state("CompleteCommit")


def test_a_step_that_waits_at_one_node_outlives_another(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a", partition=0).produce("t", "a", partition=1)
    coordinator = cluster.transaction("x").coordinator
    (another,) = (node for node in cluster.nodes.values() if node != coordinator)
    with cluster.transaction("x").hold("EndTxn") as hold:
        producer.commit()
        hold.wait_entered()
        another.kill()
        assert (producer.waits_for, producer.error) == ("EndTxn", None)
    assert producer.wait_answered().error is None


def test_offsets_of_transactions_are_loaded_after_compaction(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.send_offsets("g", {("in", 0): 7}).commit()
    cluster.transaction("x").wait_state("CompleteCommit")
    cluster.compact("__consumer_offsets")
    for node in cluster.nodes:
        cluster.move_coordinator("g", to=node)
        cluster.group("g").assert_committed({("in", 0): 7})


def test_a_hold_on_markers_keeps_a_transaction_prepared(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a").send_offsets("g", {("in", 0): 7})
    with cluster.transaction("x").hold("WriteTxnMarkers") as hold:
        assert producer.commit().error is None
        hold.wait_entered()
        cluster.transaction("x").wait_state("PrepareCommit")
        with pytest.raises(AssertionError, match="'x': PrepareCommit"):
            cluster.assert_no_open_transactions()
        assert cluster.group("g").pending_offsets == {("in", 0): 7}
    cluster.transaction("x").wait_state("CompleteCommit")
    assert cluster.group("g").offsets == {("in", 0): 7}


def test_a_delayed_marker_keeps_one_partition_undecided(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a", partition=0).produce("t", "b", partition=1)
    cluster.set_markers("t", 1, "delayed")
    producer.commit()
    assert cluster.transaction("x").wait_state("PrepareCommit").partitions == {"t": [1]}
    cluster.set_markers("t", 1, "written")
    cluster.transaction("x").wait_state("CompleteCommit")
    cluster.assert_no_open_transactions()


def test_a_lost_marker_leaves_a_hanging_transaction(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a", partition=1)
    cluster.set_markers("t", 1, "lost")
    producer.commit()
    cluster.transaction("x").wait_state("CompleteCommit")
    with pytest.raises(AssertionError, match=r"t-1: producer .* that no coordinator will end"):
        cluster.assert_no_open_transactions()


def test_markers_of_an_unknown_partition_or_fate_are_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="no partition 2 of topic 't'; it has 0 to 1"):
        cluster.set_markers("t", 2, "lost")
    with pytest.raises(ValueError, match=r"must be one of written, delayed, lost.*delayed"):
        cluster.set_markers("t", 0, "delay")  # type: ignore[arg-type]


def test_a_second_producer_fences_the_first(cluster: Cluster, producer: PuppetProducer) -> None:
    second = cluster.create_producer("second", "x").init()
    assert second.error is None
    assert producer.produce("t", "late").error is not None
    assert second.produce("t", "a").commit().error is None


def test_offsets_of_a_member_are_refused_with_an_old_generation(cluster: Cluster, producer: PuppetProducer) -> None:
    group = cluster.group("g")
    member = group.create_puppet("m", topics=["in"]).join()
    group.wait_stable(members=1)
    assert producer.send_offsets("g", {("in", 0): 1}, member).error is None
    old = group.generation - 1
    assert producer.send_offsets("g", {("in", 0): 1}, member, generation=old).error == "ILLEGAL_GENERATION"


def test_another_coordinator_completes_what_a_killed_one_has_prepared(
    cluster: Cluster, producer: PuppetProducer
) -> None:
    producer.produce("t", "a").send_offsets("g", {("in", 0): 7})
    transaction = cluster.transaction("x")
    coordinator = transaction.coordinator
    assert coordinator is not None
    with transaction.hold("WriteTxnMarkers") as hold:
        producer.commit()
        hold.wait_entered()
        coordinator.kill()
    coordinator.start()
    transaction.wait_state("CompleteCommit")
    assert cluster.group("g").offsets == {("in", 0): 7}


def test_a_stopped_producer_leaves_its_transaction_open(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a").stop()
    assert cluster.transaction("x").state == "Ongoing"
    assert producer.commit().error is None
    assert [each.name for each in cluster.producers.values()] == ["p"]


def test_producers_are_found_by_their_names(cluster: Cluster, producer: PuppetProducer) -> None:
    other = cluster.create_producer("q", "y")
    assert list(cluster.producers) == ["p", "q"]
    assert cluster.producers["p"].describe() == producer.describe()
    assert cluster.producers["q"].describe() == other.describe()


def test_a_failed_wait_shows_the_events_of_the_transaction(cluster: Cluster, producer: PuppetProducer) -> None:
    producer.produce("t", "a", partition=1).send_offsets("g", {("in", 0): 7})
    with pytest.raises(TransactionTimeout) as failed:
        cluster.transaction("x").wait_state("CompleteCommit", timeout=1)
    first, *_, last = str(failed.value).splitlines()
    assert "'x' was not CompleteCommit within 1 s; it is Ongoing, producer" in first
    assert "t [1]; g: in-0=7" in first
    assert re.search(r"p +TxnOffsetCommit v\d, in-0: 7 -> OK", last)
    assert re.search(r"x +Empty => Ongoing, partitions_added, epoch 0, ", str(failed.value))


def test_an_unknown_transaction_is_dead(cluster: Cluster) -> None:
    assert cluster.transaction("nobody").state == "Dead"
    assert cluster.transactions == {}
    with pytest.raises(ValueError, match="state 'Open': must be one of"):
        cluster.transaction("nobody").wait_state("Open")
