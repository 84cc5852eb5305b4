"""`--koordinator-backend=kafka`, with an emulator in another process as the running Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from clients.raw_member import Rival

from koordinator import Cluster
from koordinator.client.errors import ClientError
from koordinator.emulator.core.refusal import RefusedError
from koordinator.handles.kafka_port import KafkaPort
from koordinator.handles.port import ClusterStopped, EmulatorOnly
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write_assignment
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Iterator

END_S = 60


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """The bootstrap servers of the running Kafka."""
    command = [sys.executable, "-m", "koordinator", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["bootstrap_servers"]
        finally:
            process.terminate()
            process.wait(END_S)


@pytest.fixture
def kafka(bootstrap: str) -> Iterator[Cluster]:
    cluster = Cluster(KafkaPort(bootstrap))
    yield cluster
    cluster.stop()


def test_topics_and_records_are_as_on_the_emulator(kafka: Cluster, bootstrap: str) -> None:
    assert kafka.bootstrap_servers == bootstrap
    kafka.create_topic("orders", partitions=3, records=["a", ("k", "b"), {"value": "c", "partition": 2}])
    assert kafka.produce("orders", {"value": "d", "headers": {"h": "1"}, "partition": 0}) == 1
    found = kafka.records("orders")
    assert sorted(record.value for record in found) == [b"a", b"b", b"c", b"d"]
    assert {record.partition for record in found if record.value in {b"c", b"d"}} == {0, 2}
    assert next(record.headers for record in found if record.value == b"d") == (("h", b"1"),)
    assert kafka.produce("made-by-producing", "x") == 1
    orders = kafka.topic("orders")
    assert orders.records() == found
    assert sum(each.end_offset for each in orders.partitions) == 4
    assert {orders, kafka.topic("made-by-producing")} <= set(kafka.topics())
    with pytest.raises(RefusedError, match=r"there is no topic 'order'; there is .*; did you mean 'orders'\?"):
        kafka.records("order")
    with pytest.raises(RefusedError, match="topic 'orders': TOPIC_ALREADY_EXISTS"):
        kafka.create_topic("orders")
    with pytest.raises(ValueError, match="orders has no partition 7: it has 3"):
        kafka.produce("orders", {"value": "e", "partition": 7})
    assert kafka.client_config("kafka-python")["bootstrap_servers"] == bootstrap


def test_groups_support_description_waits_and_assertions(kafka: Cluster) -> None:
    group = kafka.group("g")
    assert (group.state, group.generation, group.members, group.offsets) == ("Dead", -1, [], {})
    kafka.create_topic("t", partitions=2)
    with Rival(kafka.bootstrap_servers, "one") as rival:
        generation = rival.join().generation_id
        assert group.wait_state("CompletingRebalance").state == "CompletingRebalance"
        held = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="t", partitions=(0,)),))
        row = SyncGroupRequestAssignment(member_id=rival.member_id, assignment=write_assignment(held, 0))
        sync = SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=rival.member_id,
            group_instance_id="one",
            assignments=(row,),
        )
        assert rival.ask(sync, 3).error_code == 0
        snapshot = group.wait_stable(members=1).snapshot()
        assert [(member.label, member.assignment) for member in snapshot.members] == [("one", {"t": [0]})]
        assert (snapshot.protocol, snapshot.leader) == ("range", None), "a broker does not tell the leader"
        offsets = (OffsetCommitRequestPartition(partition_index=0, committed_offset=3),)
        commit = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=generation,
            member_id=rival.member_id,
            group_instance_id="one",
            topics=(OffsetCommitRequestTopic(name="t", partitions=offsets),),
        )
        assert rival.ask(commit, 7).topics[0].partitions[0].error_code == 0
    assert [each.id for each in kafka.groups()] == ["g"]
    assert group.offsets == {("t", 0): 3}
    group.assert_committed({("t", 0): 3})
    group.assert_assignment({"one": {"t": [0]}})
    (member,) = group.members
    group.assert_assignment({member.client_id: {"t": [0]}}).assert_assignment({member.member_id: {"t": [0]}})
    with pytest.raises(AssertionError, match=r"t \[1\] has no owner"):
        group.assert_owned_exactly_once(["t"])
    with pytest.raises(AssertionError, match="t 1: expected 5, nothing is committed"):
        group.assert_committed({("t", 1): 5})
    with pytest.raises(AssertionError, match=r"group 'g' was not stable with 7 members within 0\.01 s\nnow: Stable"):
        group.wait_stable(members=7, timeout=0.01)


def test_only_the_tests_own_data_is_removed_after_it(bootstrap: str) -> None:
    theirs, ours = Cluster(KafkaPort(bootstrap)), Cluster(KafkaPort(bootstrap))
    theirs.create_topic("theirs")
    ours.create_topic("ours")
    commit_as_nobody(bootstrap, "named", "ours")
    commit_as_nobody(bootstrap, "not-named", "theirs")
    assert ours.group("named").offsets == {("ours", 0): 1}
    ours.stop()
    ours.stop()
    with pytest.raises(ClusterStopped, match=r"Cluster\.groups\(\): the test has disconnected from the Kafka at "):
        ours.groups()
    again = Cluster(KafkaPort(bootstrap))
    groups = {each.id for each in again.groups()}
    assert "named" not in groups
    assert "not-named" in groups
    assert again.group("not-named").offsets == {("theirs", 0): 1}
    again.create_topic("ours")
    again.stop()
    assert Cluster(KafkaPort(bootstrap)).group("not-named").state == "Empty", "it was there before"
    theirs.stop()


def commit_as_nobody(bootstrap: str, group: str, topic: str) -> None:
    """Commit like a consumer with a manual assignment."""
    offsets = (OffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
    rows = (OffsetCommitRequestTopic(name=topic, partitions=offsets),)
    with Rival(bootstrap) as rival:
        commit = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=rows)
        assert rival.ask(commit, 7).topics[0].partitions[0].error_code == 0


LEVERS = {
    "advance": lambda cluster: cluster.group("g").advance(1),
    "trace": lambda cluster: cluster.trace(),
    "events": lambda cluster: cluster.group("g").events(),
    "add_node": lambda cluster: cluster.add_node(),
    "rebalances": lambda cluster: cluster.group("g").assert_rebalances(exactly=0),
    "generation": lambda cluster: cluster.group("g").wait_stable(after_generation=3),
}


@pytest.mark.parametrize("lever", LEVERS.values(), ids=LEVERS)
def test_a_lever_is_refused_with_the_remedy(kafka: Cluster, lever: Any) -> None:
    with pytest.raises(EmulatorOnly, match=r"only the emulator .* mark the test with @pytest\.mark\.koordinator_emul"):
        lever(kafka)


def test_an_unreachable_cluster_is_reported_with_its_address() -> None:
    with pytest.raises(ClientError, match=r"127\.0\.0\.1:1: cannot connect"):
        KafkaPort("127.0.0.1:1")
    with pytest.raises(ValueError, match="bootstrap 'nowhere': must be HOST:PORT, such as localhost:9092"):
        KafkaPort("nowhere")


# -- the plugin ---

TESTS = """
import pytest

@pytest.mark.koordinator(topics={"orders": 2}, seed=7, leaks="error")
def test_same(koordinator):
    koordinator.produce("orders", "a", "b")
    assert {record.value for record in koordinator.records("orders")} == {b"a", b"b"}
    assert koordinator.group("svc").state == "Dead"

def test_deleted_topics_disappear(koordinator):
    with pytest.raises(ValueError, match="there is no topic 'orders'"):
        koordinator.records("orders")

@pytest.mark.koordinator_emulator_only
def test_marked(koordinator):
    koordinator.group("svc").events()

@pytest.mark.koordinator(brokers=3)
def test_asks_the_marker_for_more(koordinator):
    pass

def test_asks_the_factory_for_more(koordinator_factory):
    koordinator_factory(config={"group.max.size": 2})

def test_plain():
    pass

def test_fails(koordinator):
    koordinator.group("svc").wait_stable(timeout=0)
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=TESTS)
    return pytester.runpytest("-p", "no:hypothesispytest", *arguments)


def test_tests_run_on_kafka_and_those_for_the_emulator_are_skipped_and_counted(
    pytester: pytest.Pytester, bootstrap: str
) -> None:
    here = ("--koordinator-backend=kafka", f"--koordinator-bootstrap={bootstrap}")
    result = run(pytester, *here, "--strict-markers", "-rs", "--koordinator-brokers=2")
    result.assert_outcomes(passed=3, skipped=3, failed=1)
    result.stdout.fnmatch_lines([f"koordinator: Kafka at {bootstrap}; skipped as only on the emulator: 3"])
    result.stdout.fnmatch_lines_random(
        [
            "SKIPPED * koordinator: only on the emulator: marked koordinator_emulator_only",
            "SKIPPED * koordinator: only on the emulator: the test sets brokers=3",
            "SKIPPED * koordinator: only on the emulator: the test sets config={'group.max.size': 2}",
            "E *GroupTimeout: group 'svc' was not stable within 0 s",
        ]
    )
    assert not pytester.path.joinpath("test-results").exists()
    run(pytester, "-k", "not fails").assert_outcomes(passed=6)


def test_an_unreachable_kafka_is_an_error_of_one_line(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--koordinator-backend=kafka", "--koordinator-bootstrap=127.0.0.1:1", "-k", "same")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*UsageError: koordinator: 127.0.0.1:1: cannot connect*"])


def test_explore_is_refused_on_a_running_kafka(pytester: pytest.Pytester, bootstrap: str) -> None:
    here = ("--koordinator-backend=kafka", f"--koordinator-bootstrap={bootstrap}", "--koordinator-explore=2")
    run(pytester, *here).stderr.fnmatch_lines(
        ["*--koordinator-explore needs the emulator: a running Kafka has no seed"]
    )
