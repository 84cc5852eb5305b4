"""Lines of groups files for consumer groups (KIP-848): dumped, loaded elsewhere, and refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from koordinator import Simulation
from koordinator.emulator.formats.json_lines import LineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster

CONFIG = {"group.consumer.assignment.interval.ms": 0}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Simulation(topics={"orders": 4}, config=CONFIG) as cluster:
        yield cluster


def test_one_line_makes_a_stable_group(cluster: Cluster) -> None:
    members = [{"instance_id": "a", "assignment": {"orders": [0, 1]}}, {"assignment": {"orders": [2, 3]}}]
    cluster.load_groups([{"group_id": "svc", "type": "consumer", "epoch": 7, "members": members}])
    group = cluster.group("svc").wait_stable(members=2, all_owned=True)
    assert (group.type, group.epoch, group.generation) == ("consumer", 7, 7)
    assert next((member.label, member.epoch) for member in group.members) == ("a", 7)
    assert [member.target for member in group.members] == [{"orders": [0, 1]}, {"orders": [2, 3]}]


def test_a_member_of_the_line_goes_on_with_its_epoch(cluster: Cluster) -> None:
    line = {"group_id": "svc", "type": "consumer", "epoch": 7, "members": [{"member_id": "m", "topics": ["orders"]}]}
    cluster.load_groups([line])
    group = cluster.group("svc")
    group.create_puppet("peer", group_protocol="consumer").join()
    assert group.epoch == 8
    group.expire_session("m")
    group.wait_stable(members=1, all_owned=True)


def test_a_group_in_the_middle_of_a_reconciliation_is_the_same_elsewhere(cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.create_puppet("a", group_protocol="consumer", behaviour="manual", instance_id="a").join().sync()
    group.create_puppet("old", topics=["orders"]).join()
    group.puppets["a"].heartbeat()
    before = group.describe()
    assert before.state == "Reconciling"
    lines = cluster.dump_groups()
    assert [(line["group_id"], line["type"]) for line in lines] == [("svc", "consumer")]
    with Simulation(topics={"others": 1, "orders": 4}, config=CONFIG) as other:
        other.load_groups(map(json.dumps, lines))
        after = other.group("svc").describe()
        assert other.dump_groups() == lines
    assert (after.state, after.epoch, after.generation) == (before.state, before.epoch, before.generation)
    parts = [
        [(each.member_id, each.type, each.epoch, each.assignment, each.target, each.pending_revocation) for each in of]
        for of in (before.members, after.members)
    ]
    assert parts[0] == parts[1]
    assert [each.type for each in after.members] == ["consumer", "classic"]


def test_a_loaded_group_replaces_the_members_of_an_earlier_one(cluster: Cluster) -> None:
    line = {"group_id": "svc", "type": "consumer", "members": [{"member_id": "first", "topics": ["orders"]}]}
    cluster.load_groups([line])
    cluster.load_groups([line | {"members": [{"member_id": "second", "topics": ["orders"]}]}])
    assert [member.member_id for member in cluster.group("svc").members] == ["second"]


def test_resolved_patterns_are_kept(cluster: Cluster) -> None:
    member = {"member_id": "m", "pattern": "^o.*", "assignment": {"orders": [0, 1, 2, 3]}}
    line = {"group_id": "svc", "type": "consumer", "patterns": {"^o.*": ["orders"]}, "members": [member]}
    cluster.load_groups([line])
    cluster.group("svc").wait_stable(members=1, all_owned=True)
    (dumped,) = cluster.dump_groups()
    assert dumped["patterns"] == {"^o.*": ["orders"]}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"members": [{"assignment": {"gone": [0]}}]}, "the topic 'gone' does not exist: create it first"),
        ({"members": [{"state": "BUSY"}]}, r"members\[0\].state: expected one of STABLE, UNREVOKED_PARTITIONS"),
        ({"members": [{"member_id": "m"}, {"member_id": "m"}]}, "two of them have the member_id 'm'"),
        ({"generation": 1}, "unknown field 'generation'"),
        ({"members": [{"classic": {"protocol": {}}}]}, "unknown field 'protocol'"),
        ({"type": "share"}, "type: expected classic or consumer, not 'share'"),
    ],
)
def test_a_bad_line_is_refused(cluster: Cluster, fields: dict[str, object], problem: str) -> None:
    with pytest.raises(LineError, match=problem):
        cluster.load_groups([{"group_id": "svc", "type": "consumer"} | fields])
