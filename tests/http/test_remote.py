"""Handles over HTTP: results, errors and waits are those of the handles in process."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from koordinator import faults, fixtures, handles
from koordinator.emulator.control.operations import OPERATIONS
from koordinator.emulator.http.routes import ROUTES
from koordinator.handles.checks import GroupTimeout
from koordinator.handles.port import BlockingCallInLoop, ClusterStopped
from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    import httpx
    from brokers.http_server import Served


def test_every_operation_has_one_route() -> None:
    assert sorted(route.operation for route in ROUTES) == sorted(OPERATIONS)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_every_operation_is_used_by_a_handle() -> None:
    folders = [Path(package.__file__).parent for package in (handles, fixtures)]
    source = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    used = set(re.findall(r"\b([A-Z]\w+\.[a-z_]+)\b", source))
    assert {function.__qualname__ for function in OPERATIONS.values()} - used == set()


@pytest.mark.slow
def test_offsets_in_a_body_are_json_arrays(http: httpx.Client, server: Remote) -> None:
    group = server.cluster().group("svc")
    group.create_puppet("p", topics=["orders"]).join().wait_state("stable")
    path, at = "/v1/clusters/default/groups/svc", {"offsets": [["orders", 0, 7]]}
    assert http.post(f"{path}/puppets/p/commit", json=at).json()["name"] == "p"
    assert http.post(f"{path}/verify/committed", json=at).json()["ok"]
    refused = http.post(f"{path}/verify/committed", json={"offsets": [["orders", "0", 7]]})
    assert refused.json()["detail"] == "offsets.0.1 '0': must be a valid integer"


@pytest.mark.slow
def test_the_handle_works_over_http_as_in_process(server: Remote) -> None:
    cluster = server.cluster()
    cluster.create_topic("t", partitions=2, records=["a", ("k", b"\xff"), {"value": "v", "partition": 1}])
    assert {(record.key, record.value) for record in cluster.records("t")} == {
        (None, b"a"),
        (None, b"v"),
        (b"k", b"\xff"),
    }
    assert cluster.produce("t", "x", "y") == 2
    cluster.load_groups([{"group_id": "g/1", "generation": 3, "members": [{"instance_id": "i"}]}])
    group = cluster.group("g/1")
    assert (group.state, group.generation, [member.instance_id for member in group.members]) == ("Stable", 3, ["i"])
    assert [each.id for each in cluster.groups()] == ["g/1"]
    assert group.wait_stable(members=1, timeout=60) is group
    assert cluster.dump_groups()[0]["group_id"] == "g/1"
    assert [event["kind"] for event in cluster.events(group="g/1")] == [event["kind"] for event in group.events()]
    assert (cluster.seed, len(cluster.nodes)) == (7, 1)
    second = cluster.add_node()
    cluster.move_coordinator("g/1", to=second.id)
    coordinator = cluster.coordinator("g/1")
    assert coordinator is not None
    assert coordinator.id == second.id
    assert cluster.bootstrap_servers.endswith(second.address())
    second.stop()
    assert second.state == "down"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_real_consumer_of_a_cluster_over_http_is_seen(server: Remote) -> None:
    from kafka import KafkaConsumer  # noqa: PLC0415 - its import warns

    cluster = server.create("mine", topics={"orders": 3})
    consumer = KafkaConsumer("orders", **cluster.client_config("kafka-python", group_id="svc"))
    try:
        consumer.partitions_for_topic("orders")
        deadline_polls = iter(range(100))
        while not consumer.assignment():
            next(deadline_polls)
            consumer.poll(timeout_ms=200)
        group = cluster.group("svc").wait_stable(members=1, timeout=60)
        assert list(group.assignment.values()) == [{"orders": [0, 1, 2]}]
    finally:
        consumer.close()
        cluster.stop()


@pytest.mark.slow
def test_refusals_raise_as_in_process(server: Remote) -> None:
    cluster = server.cluster()
    with pytest.raises(ValueError, match="a topic has at least 1 partition, not 0"):
        cluster.create_topic("t", partitions=0)
    with pytest.raises(ValueError, match="there is no node 9; there are 1"):
        cluster.move_coordinator("g", to=9)
    with pytest.raises(GroupTimeout, match=r"group 'g' was not stable within 0\.1 s"):
        cluster.group("g").wait_stable(timeout=0.1)
    with pytest.raises(ClusterStopped, match="there is no cluster 'two'; there are default"):
        server.cluster("two")


@pytest.mark.slow
@pytest.mark.slow
def test_a_removed_rule_is_no_stopped_cluster(server: Remote) -> None:
    rule = server.cluster().add_rule("Heartbeat", faults.drop())
    rule.remove()
    with pytest.raises(ValueError, match="unknown rule"):
        rule.remove()


@pytest.mark.slow
def test_a_wait_inside_a_running_loop_is_refused(server: Remote) -> None:
    group = server.cluster().group("g")

    async def wait() -> None:
        group.wait_stable(timeout=60)

    with pytest.raises(BlockingCallInLoop, match="would block an asyncio loop"):
        asyncio.run(wait())


@pytest.mark.slow
def test_a_cluster_that_was_deleted_says_so_and_keeps_its_trace(server: Remote) -> None:
    cluster = server.create("short", topics={"t": 1})
    cluster.nodes[1].pause()
    cluster.stop()
    cluster.stop()
    assert [line["kind"] for line in cluster._port.trace_lines()] == ["header", "node"]
    with pytest.raises(ClusterStopped, match="there is no cluster 'short'"):
        cluster.groups()


@pytest.mark.slow
def test_a_server_that_is_not_there_is_named(served: Served) -> None:
    del served
    with Remote("http://127.0.0.1:9") as server, pytest.raises(ConnectionError, match=r"127\.0\.0\.1:9/v1/clusters"):
        server.clusters()


@pytest.mark.slow
def test_a_puppet_is_led_over_http(server: Remote) -> None:
    group = server.cluster().group("svc")
    puppet = group.create_puppet("peer", topics=["orders"])
    puppet.join()
    group.wait_stable(members=1, timeout=60)
    assert puppet.assignment == {"orders": [0, 1]}
    with pytest.raises(ValueError, match="peer"):
        group.create_puppet("peer")
    puppet.leave()
    assert group.state == "Empty"


@pytest.mark.slow
@pytest.mark.parametrize("late", [["c"], ["b", "c"]], ids=["one", "two"])
def test_a_list_in_a_query_has_any_number_of_values(server: Remote, late: list[str]) -> None:
    group = server.create(topics={"orders": 3}).group("svc")
    # a straggler would be late for the second rebalance: all join in the first one
    group.set_clock("manual")
    for name in "abc":
        kind = {"kind": "straggler", "delay_s": 600} if name in late else "healthy"
        group.create_puppet(name, topics=["orders"], behaviour=kind).join()
    group.set_clock("real")
    group.wait_stable(members=3)
    # the members that are removed may be back before anything is looked at: the rebalance says who was there
    with group.expect_rebalance("forced") as expected:
        group.rebalance()
        assert [timer.kind for timer in group.expire_join_phase(without=late)] == ["join"]
    assert len(expected.rebalance.members) == 3 - len(late)
