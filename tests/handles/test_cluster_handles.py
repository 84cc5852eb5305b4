"""Handles of a cluster: topics, records, groups, and client settings."""

from __future__ import annotations

import asyncio
import threading

import pytest
import trio
from scenes.direct_members import join, join_request, sync

from koordinator import Cluster, Emulator, Simulation
from koordinator.emulator.core.effects import Reply
from koordinator.handles.checks import GroupTimeout
from koordinator.handles.port import BlockingCallInLoop
from koordinator.trace import read

# -- topics and records ---


def test_records_can_be_written_in_every_way(cluster: Cluster) -> None:
    full = {"key": "k", "value": b"v", "partition": 3, "timestamp": 1_000, "headers": {"h": "x"}}
    assert cluster.produce("orders", "text", b"bytes", ("k", None), full) == 4
    by_value = {record.value: record for record in cluster.records("orders")}
    assert by_value.keys() == {b"text", b"bytes", None, b"v"}
    assert by_value[None].key == b"k"
    last = by_value[b"v"]
    assert (last.partition, last.timestamp, last.key, last.headers) == (3, 1_000, b"k", (("h", b"x"),))


def test_a_topic_can_be_created_with_records(cluster: Cluster) -> None:
    cluster.create_topic("many", partitions=2, records=5)
    assert sorted(record.value or b"" for record in cluster.records("many")) == [b"0", b"1", b"2", b"3", b"4"]
    cluster.create_topic("few", records=["a"])
    assert [(record.partition, record.value) for record in cluster.records("few")] == [(0, b"a")]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (5, "record 1: must be a value, a pair"),
        ({"vale": "x"}, "record 1: unknown field 'vale'.* did you mean 'value'"),
        ({"key": 5}, "record 1: key: must be a string, bytes or None"),
        ({"partition": "0"}, "record 1: partition: must be an integer"),
        ({"partition": 4}, "no partition 4"),
    ],
)
def test_of_records_with_a_bad_one_none_is_written(cluster: Cluster, record: object, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        cluster.produce("orders", "good", record)  # type: ignore[arg-type]
    assert cluster.records("orders") == []


def test_an_invalid_topic_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="already exists"):
        cluster.create_topic("orders")
    with pytest.raises(ValueError, match="at least 1 partition, not 0"):
        cluster.create_topic("new", partitions=0)
    with pytest.raises(TypeError, match="records='abc': must be an integer, list or None"):
        cluster.create_topic("new", records="abc")


# -- groups ---


def test_a_group_that_does_not_exist_is_dead(cluster: Cluster) -> None:
    group = cluster.group("nobody")
    assert (group.state, group.generation, group.protocol, group.leader) == ("Dead", -1, None, None)
    assert (group.members, group.assignment, group.offsets, group.events()) == ([], {}, {}, [])
    assert cluster.groups() == []


def test_a_group_is_stable_when_its_members_have_their_assignment(cluster: Cluster) -> None:
    group = cluster.group("g")
    join(cluster, join_request("i1"))
    (member,) = group.members
    with pytest.raises(GroupTimeout):
        group.wait_stable(members=1, timeout=0.01)
    sync(cluster, member.member_id, (2, 0, 1))
    assert group.wait_stable(members=1, timeout=60) is group
    (member,) = group.members
    assert (member.instance_id, member.client_id, member.client_host) == ("i1", "app", "/127.0.0.1")
    assert (member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms) == (("range",), 45_000, 60_000)
    assert group.assignment == {"i1": {"orders": [0, 1, 2]}}
    assert (group.state, group.generation, group.protocol, group.leader) == ("Stable", 1, "range", member.member_id)
    assert [each.id for each in cluster.groups()] == ["g"]


def test_a_group_is_not_stable_while_a_follower_has_not_asked_for_its_assignment() -> None:
    # the delay lets both join before the phase ends
    with Emulator(config={"group.initial.rebalance.delay.ms": 1}) as cluster:
        group = cluster.group("g")
        join(cluster, join_request("i1"), join_request("i2"))
        leader, follower = (member.member_id for member in group.members)
        assert group.leader == leader
        sync(cluster, leader, (0, 1))
        assert group.state == "Stable"
        with pytest.raises(GroupTimeout, match=f"no SyncGroup yet from {follower}"):
            group.wait_stable(members=2, timeout=0.01)
        assert any(isinstance(effect, Reply) for effect in sync(cluster, follower))
        group.wait_stable(members=2, timeout=60)


def test_a_failed_wait_reports_state_and_events(cluster: Cluster) -> None:
    join(cluster, join_request("i1"))
    with pytest.raises(AssertionError) as caught:
        cluster.group("g").wait_stable(members=2, timeout=0.01)
    first, second, third, fourth, *events = str(caught.value).splitlines()
    assert first == "group 'g' was not stable with 2 members within 0.01 s"
    assert second.startswith("now: CompletingRebalance, generation 1, 1 member; i1: nothing; no SyncGroup yet from ")
    # its connection is none of the server's
    assert third.startswith("i1 has closed its connection without leaving the group; it was last heard from ")
    assert fourth == "its last events:"
    assert 1 <= len(events) <= 16
    assert any("Empty => PreparingRebalance" in event and event.endswith(", member_join of i1") for event in events)
    with pytest.raises(AssertionError, match="it has no events"):
        cluster.group("nobody").wait_stable(timeout=0)


def test_a_wait_inside_a_running_loop_is_refused_and_named(cluster: Cluster) -> None:
    async def wait() -> None:
        cluster.group("g").wait_stable(timeout=60)

    with pytest.raises(BlockingCallInLoop, match=r"would block an asyncio loop"):
        asyncio.run(wait())
    with pytest.raises(BlockingCallInLoop, match=r"would block a Trio loop"):
        trio.run(wait)


def test_non_blocking_calls_work_inside_a_loop(cluster: Cluster) -> None:
    async def look() -> str:
        return cluster.group("g").state

    assert asyncio.run(look()) == "Dead"
    assert trio.run(look) == "Dead"


@pytest.mark.slow
def test_handles_can_be_used_from_many_threads(cluster: Cluster) -> None:
    def work(number: int) -> None:
        for _ in range(50):
            cluster.produce("orders", str(number))
            assert cluster.group("g").state == "Dead"

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(cluster.records("orders")) == 400


def test_an_unknown_kind_of_client_is_refused_and_the_known_are_named(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"unknown .*'librdkafka'; known: kafka-python, confluent-kafka, aiokafka"):
        cluster.client_config("librdkafka")


def test_an_unknown_role_of_a_client_is_refused_and_the_known_are_named(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"unknown role 'producers'; known: consumer, producer, admin.*'producer'"):
        cluster.client_config("java", role="producers")


@pytest.mark.parametrize("role", ["producer", "admin"])
def test_other_clients_have_no_settings_of_consumers(cluster: Cluster, role: str) -> None:
    config = cluster.client_config("java", role=role, client_id="svc")
    common = {"metadata.max.age.ms": 1_000, "reconnect.backoff.max.ms": 1_000}
    assert config == {"bootstrap.servers": cluster.bootstrap_servers, "client.id": "svc", **common}


def test_extra_settings_override_client_settings(cluster: Cluster) -> None:
    config = cluster.client_config("kafka-python", session_timeout_ms=9_000, group_id="g")
    assert (config["session_timeout_ms"], config["group_id"]) == (9_000, "g")
    assert config["bootstrap_servers"] == cluster.bootstrap_servers
    dotted = cluster.client_config("confluent-kafka", group_id="g", error_cb=print, **{"session.timeout.ms": 9_000})
    assert (dotted["group.id"], dotted["error_cb"], dotted["session.timeout.ms"]) == ("g", print, 9_000)


def test_events_have_their_columns_as_attributes() -> None:
    with Simulation(topics={"orders": 1}) as cluster:
        group = cluster.group("svc")
        group.create_puppet("a").join()
        states = [event.state_to for event in group.events() if event.kind == "state"]
        assert states == ["PreparingRebalance", "CompletingRebalance", "Stable"]
        assert group.events() == cluster.events(group="svc")
        (rebalance,) = read(cluster.events()).rebalances
        assert (rebalance.cause, rebalance.outcome) == ("member_join", "completed")
