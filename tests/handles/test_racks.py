"""Brokers have racks, which clients see, and replicas are spread over them (KIP-36)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from koordinator import Emulator
from koordinator.emulator.core.brokers import Brokers, Registration

if TYPE_CHECKING:
    from koordinator import Cluster


def racks(cluster: Cluster) -> dict[int, str | None]:
    """The racks of the brokers, as a client sees them."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    nodes = admin.describe_cluster(request_timeout=60).result(60).nodes
    return {node.id: node.rack for node in nodes}


def test_clients_see_the_racks() -> None:
    with Emulator(racks=["a", "b"]) as cluster:
        assert racks(cluster) == {1: "a", 2: "b"}
        assert cluster.add_node(rack="c").id == 3
        assert cluster.add_node().id == 4
        assert racks(cluster) == {1: "a", 2: "b", 3: "c", 4: None}
        assert {each.id: each.rack for each in cluster.nodes.values()} == {1: "a", 2: "b", 3: "c", 4: None}
        removed = cluster.nodes[3]
        removed.remove()
        assert removed.rack is None
    with Emulator(broker_ids=[5, 0], racks=["x", "y"]) as cluster:
        assert racks(cluster) == {5: "x", 0: "y"}


@pytest.mark.koordinator(racks=["a", "b", "a"])
def test_the_marker_takes_racks(koordinator: Cluster) -> None:
    assert racks(koordinator) == {1: "a", 2: "b", 3: "a"}


def test_the_flag_of_pytest_takes_racks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(koordinator):\n    assert list(koordinator.nodes) == [1, 2]")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--koordinator-racks=a,b", timeout=170)
    result.assert_outcomes(passed=1)


def test_racks_in_one_text_are_refused() -> None:
    with pytest.raises(ValueError, match="Emulator: racks='a,b': must be a list of string"):
        Emulator(racks="a,b")


@pytest.mark.parametrize(
    ("in_racks", "placed"),
    [
        ([None] * 4, [(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2)]),
        (["a", "a", "b", "b"], [(1, 3, 2), (2, 3, 1), (3, 1, 4), (4, 1, 3)]),
        (["a", "a", "a", "b"], [(1, 4, 2), (2, 4, 3), (3, 4, 1), (4, 1, 2)]),
        (["a", "b", "c", None], [(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2)]),
    ],
)
def test_the_replicas_of_a_partition_are_in_as_many_racks_as_can_be(
    in_racks: list[str | None], placed: list[tuple[int, ...]]
) -> None:
    brokers = Brokers({node: Registration(node, {}, rack) for node, rack in enumerate(in_racks, 1)})
    assert brokers.place_replicas(range(4), 3) == placed
    brokers[4].is_up = False
    assert all(replicas[:3].count(4) == 0 for replicas in brokers.place_replicas(range(4), 3))
