"""The ids of brokers are chosen by `broker_ids`, in every place that configures a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from koordinator import Emulator, Simulation, faults
from koordinator.cli import main
from koordinator.emulator.broker.listeners import Listeners

if TYPE_CHECKING:
    from koordinator import Cluster


def test_clients_and_handles_see_the_chosen_ids() -> None:
    with Emulator(broker_ids=[0, 5, 1], topics={"orders": 3}) as cluster:
        assert list(cluster.nodes) == [0, 5, 1]
        cluster.move_coordinator("svc", to=0)
        assert cluster.coordinator("svc") == cluster.nodes[0]
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        assert sorted(admin.list_topics(timeout=60).brokers) == [0, 1, 5]
        leaders = [cluster.leader("orders", partition) for partition in range(3)]
        assert sorted(node.id for node in leaders if node) == [0, 1, 5]
        assert cluster.add_node().id == 6


def test_the_events_of_node_0_name_it_and_those_of_the_cluster_name_none() -> None:
    with Simulation(broker_ids=[0, 1], topics={"orders": 3}) as cluster:
        cluster.move_coordinator("svc", to=0)
        cluster.add_rule("Heartbeat", faults.drop(), broker=0, optional=True)
        cluster.group("svc").create_puppet("a", topics=["orders"]).join().wait_state("stable")
        events = cluster.events()
        assert {event.get("node") for event in events if event["kind"] == "state"} == {0}
        assert {event.get("node") for event in events if event["kind"] == "rule"} == {None}


@pytest.mark.koordinator(broker_ids=[0, 1, 2])
def test_the_marker_takes_ids(koordinator: Cluster) -> None:
    assert list(koordinator.nodes) == [0, 1, 2]


def test_the_flag_of_pytest_takes_ids(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(koordinator):\n    assert list(koordinator.nodes) == [0, 7]")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--koordinator-broker-ids=0,7", timeout=170)
    result.assert_outcomes(passed=1)


def test_the_flag_of_serve_names_its_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", "--broker-ids", "0,x"])
    assert end.value.code == 2
    assert "'0,x': must be an integer from 0 to" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--broker-ids", "1,1"), "--broker-ids [1, 1]: must be at most 100 different integers from 0 to 2147483647"),
        (("--brokers", "3", "--broker-ids", "0,1"), "--brokers 3: --broker-ids has 2 ids; leave --brokers out"),
        (("--brokers", "3", "--racks", "a,b"), "--racks ['a', 'b']: must be one name for each of the 3 brokers"),
        (("--broker-ids", "4", "--racks", "a,b"), "--racks ['a', 'b']: must be one name for each of the 1 brokers"),
        (("--racks", "a,,b"), "--racks ['a', '', 'b']: must be one name for each of the 3 brokers"),
    ],
)
def test_serve_names_the_flags_of_brokers(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", "--port", "0", *arguments])
    assert end.value.code == 2
    assert text in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"broker_ids": [1, 1]}, r"broker_ids \[1, 1\]: must be at most 100 different integers"),
        ({"broker_ids": [-1]}, r"broker_ids \[-1\]: must be at most 100 different integers"),
        ({"broker_ids": [0, 1], "brokers": 3}, "brokers 3: broker_ids has 2 ids; leave brokers out"),
        ({"broker_ids": "0,1"}, "Emulator: broker_ids='0,1': must be a list of integer"),
    ],
)
def test_invalid_ids_are_refused(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Emulator(**arguments).start()  # type: ignore[arg-type]


def test_the_ports_follow_the_order_of_the_ids() -> None:
    listeners = Listeners("127.0.0.1", 9092, {}, {}, (7, 0, 3))
    assert [listeners.of(node)[0].port for node in (7, 0, 3)] == [9092, 9093, 9094]
    assert listeners.of(8)[0].port == 9095


@pytest.mark.parametrize("ids", [[0], [5, 3]])
def test_a_cluster_without_broker_1_serves_groups(ids: list[int]) -> None:
    with Simulation(broker_ids=ids, topics={"orders": 3}) as cluster:
        cluster.group("svc").create_puppet("a", topics=["orders"]).join().wait_state("stable")
        assert cluster.coordinator("svc") in cluster.nodes.values()
