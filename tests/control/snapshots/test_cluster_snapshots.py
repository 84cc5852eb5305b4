"""A snapshot is one JSON document; restored it gives equal answers."""

from __future__ import annotations

import copy
import json
from collections import deque
from typing import Any

import pytest
from brokers.cluster import joining
from builders import requests

from koordinator import Cluster, Simulation, faults
from koordinator.emulator.config.options import Options
from koordinator.handles.simulation import VirtualTimePort
from koordinator.wire.errors import Error


def a_world(cluster: Cluster) -> None:
    cluster.create_topic("orders", partitions=3, records=[("k", "v"), "w"])
    group = cluster.group("svc")
    for name in ("a", "b"):
        # a group that was loaded knows of its members only the protocol they voted for
        group.create_puppet(name, ("range",), topics=["orders"], instance_id=f"i-{name}").join()
    group.wait_stable(members=2)
    group.puppets["a"].commit({("orders", 0): 1})
    cluster.load_groups([{"group_id": "old", "generation": 4, "members": [{"instance_id": "x"}]}])
    group.advance("1m")


def answers(cluster: Cluster) -> list[object]:
    groups = [[each.id, each.describe(), each.offsets, each.clock] for each in cluster.groups()]
    return [groups, cluster.dump_groups(), cluster.records("orders"), cluster.produce("orders", "more")]


def a_document() -> dict[str, Any]:
    with Simulation() as cluster:
        a_world(cluster)
        document = json.loads(json.dumps(cluster.snapshot()))
    assert isinstance(document, dict)
    return document


def test_a_restored_cluster_gives_equal_answers() -> None:
    with Simulation() as cluster:
        a_world(cluster)
        document = json.loads(json.dumps(cluster.snapshot()))
        then = answers(cluster)
    with Simulation(topics={"other": 2}, seed=99) as another:
        another.load_groups([{"group_id": "gone", "generation": 1, "members": [{"instance_id": "y"}]}])
        another.restore(document)
        assert answers(another) == then
        assert another.group("gone").state == "Dead"
        assert "other" not in [topic.name for topic in another.topics()]
        another.create_topic("other")


def test_a_restored_cluster_continues() -> None:
    document = a_document()
    with Simulation() as cluster:
        cluster.restore(document)
        back = cluster.group("svc").create_puppet("again", topics=["orders"], instance_id="i-a")
        with cluster.group("svc").assert_no_rebalance():
            back.join()
        assert back.assignment == {"orders": [0, 1]}
        again = cluster.snapshot()
        assert [topic["topic_id"] for topic in again["topics"]] == [topic["topic_id"] for topic in document["topics"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.update(format=2), "format 2: must be 1"),
        (lambda said: said.pop("topics"), "not a snapshot of a cluster: KeyError: 'topics'"),
        (lambda said: said["clocks"][0].update(mode="reall"), "clock 'reall': must be real, manual or auto"),
        (
            lambda said: said["topics"][0]["partitions"][0].update(batches="AAAA"),
            "orders-0: the last write is torn",
        ),
        (lambda said: said["topics"][1]["partitions"].pop(), "offsets.topic.num.partitions=49, this cluster 50"),
    ],
)
def test_an_invalid_snapshot_is_refused_without_changes(change: Any, said: str) -> None:
    document = copy.deepcopy(a_document())
    change(document)
    with Simulation() as cluster:
        a_world(cluster)
        before = cluster.snapshot()
        with pytest.raises(ValueError, match=said):
            cluster.restore(document)
        assert cluster.snapshot() == before


def test_a_node_that_is_down_has_no_part_in_it() -> None:
    with Simulation(brokers=2) as cluster:
        cluster.nodes[2].stop()
        with pytest.raises(ValueError, match="node 2 is down; a cluster can be restored only while"):
            cluster.restore(cluster.snapshot())
        with pytest.raises(ValueError, match="node 2 is down; a cluster can be reset only while"):
            cluster.reset()


def test_a_reset_clears_the_named_scopes_only() -> None:
    with Simulation() as cluster:
        a_world(cluster)
        cluster.reset("trace")
        assert cluster.events() == []
        cluster.reset("groups")
        assert ([group.id for group in cluster.groups()], len(cluster.records("orders"))) == ([], 2)
        a_world_again = cluster.group("svc").puppets["a"]
        assert a_world_again.state != "out"
        cluster.add_rule("Heartbeat", faults.error("UNKNOWN_MEMBER_ID"), optional=True)
        cluster.reset()
        assert cluster.rules == []
        assert cluster.group("svc").puppets == {}
        assert cluster.topic("orders") not in cluster.topics()
        cluster.create_topic("orders")
        with pytest.raises(ValueError, match=r"scope 'topic': must be some of .*; did you mean 'topics'"):
            cluster.reset("topic")


def test_a_request_that_waits_behind_another_is_served_after_a_restore() -> None:
    document = a_document()
    delay = {"group.initial.rebalance.delay.ms": 3_000}
    port = VirtualTimePort(Options(clock="manual", config=delay, seed=1, topics={"orders": 3}))
    runtime, inbox = port.built.runtime, deque[Any]()
    connection = runtime.connect_in_process(port.now, 1, "c", inbox)
    runtime.send_message(port.now, connection, 5, joining("i"))
    # a group without members would take it: the one of the snapshot has some
    commit = requests.offset_commit("svc", {("orders", 0): 7})
    runtime.send_message(port.now, connection, 7, commit)
    assert not inbox
    port.perform("snapshots.restore", {"document": document})
    (_, joined), (_, committed) = inbox
    assert joined.response.error_code == Error.NOT_COORDINATOR
    assert committed.response.topics[0].partitions[0].error_code == Error.UNKNOWN_MEMBER_ID


def test_a_reset_discards_a_group_that_has_written_no_record() -> None:
    delay = {"group.initial.rebalance.delay.ms": 3_000}
    port = VirtualTimePort(Options(brokers=3, kafka_version="3.9", clock="manual", config=delay, seed=1))
    runtime = port.built.runtime
    coordinator = runtime.cluster.coordinator_of("g")
    connection = runtime.connect_in_process(port.now, coordinator, "c", deque())
    runtime.send_message(port.now, connection, 5, joining("i"))
    assert "__consumer_offsets" not in runtime.cluster.topics
    assert runtime.groups() == {"g"}
    port.perform("snapshots.reset", {"scope": ["groups"]})
    assert not runtime.groups()
    assert port.perform("clocks.advance", {"group": "g", "by": "5m"}) == []


def test_a_flapping_puppet_that_is_away_does_not_return_after_a_reset() -> None:
    with Simulation(clock="real") as cluster:
        cluster.create_topic("orders", 2)
        group = cluster.group("svc")
        group.create_puppet("a", ("range",), topics=["orders"], behaviour="flapping").join()
        group.wait_stable(members=1)
        cluster.pass_time(12)
        assert group.puppets["a"].state == "out"
        cluster.reset("puppets")
        cluster.reset("trace")
        cluster.pass_time(60)
        assert [event for event in cluster.events() if event.get("api") == "JoinGroup"] == []


def test_what_waits_in_group_time_waits_no_longer_after_a_reset() -> None:
    with Simulation(clock="real") as cluster:
        cluster.create_topic("orders", 2)
        group = cluster.group("svc")
        group.create_puppet("a", ("range",), topics=["orders"]).join()
        group.create_puppet("b", ("range",), topics=["orders"], behaviour="straggler").join()
        group.wait_stable(members=2)
        group.advance("10m")
        group.rebalance()
        cluster.pass_time(1)
        rule = cluster.add_rule("JoinGroup", faults.delay(5_000, clock="group"), optional=True)
        group.create_puppet("c", ("range",), topics=["orders"]).join()
        assert rule.hits == 1
        cluster.reset("groups")
        cluster.reset("trace")
        cluster.pass_time(20)
        assert {event["client_id"] for event in cluster.events() if event.get("api") == "JoinGroup"} == {"a", "b", "c"}


def test_a_group_that_returns_has_the_mode_that_its_clock_was_given() -> None:
    with Simulation(clock="manual") as cluster:
        group = cluster.group("svc")
        group.set_clock("real")
        cluster.create_topic("orders")
        group.set_offsets({("orders", 0): 1})
        cluster.pass_time(8 * 86_400)
        assert (group.state, group.clock) == ("Dead", "real")


def test_the_trace_goes_on_after_a_reset_as_if_nothing_were_missing() -> None:
    with Simulation() as cluster:
        a_world(cluster)
        newest = cluster.events()[-1]["seq"]
        cluster.reset("trace")
        cluster.nodes[1].pause()
        assert [(event["seq"], event["kind"]) for event in cluster.events()] == [(newest + 1, "node")]  # type: ignore[operator]


def test_a_restored_transaction_keeps_its_producer_its_partitions_and_its_offsets() -> None:
    with Simulation(topics={"t": 1, "in": 1}, brokers=3) as cluster:
        cluster.create_producer("p", "x").init().produce("t", "kept").send_offsets("g", {("in", 0): 7})
        document = json.loads(json.dumps(cluster.snapshot()))
        then = cluster.transaction("x").describe()
    with Simulation(brokers=3) as another:
        another.create_producer("q", "gone").init()
        another.restore(document)
        transaction = another.transaction("x")
        now = transaction.describe()
        assert (now.state, now.producer_id, now.partitions) == ("Ongoing", then.producer_id, then.partitions)
        assert transaction.pending_offsets == {"g": {("in", 0): 7}}
        assert another.transaction("gone").state == "Dead"
        transaction.abort()
        transaction.wait_state("CompleteAbort")
        assert another.group("g").pending_offsets == {}


def test_a_reset_of_topics_discards_transactions() -> None:
    with Simulation(topics={"t": 1}) as cluster:
        cluster.create_producer("p", "x").init().produce("t", "a")
        cluster.reset("topics")
        assert cluster.transaction("x").state == "Dead"
        cluster.create_topic("t", 1)
        producer = cluster.create_producer("q", "x").init().produce("t", "b")
        assert (producer.error, producer.producer_epoch) == (None, 0)
