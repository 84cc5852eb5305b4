"""Prepared groups in Python: `cluster.load_groups` and `cluster.dump_groups`."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from clients.groups_command import ask, link

from koordinator import Emulator
from koordinator.client.admin import Admin
from koordinator.client.connection import Address
from koordinator.client.errors import Failure
from koordinator.client.groups import describe
from koordinator.client.logs import ADMIN_CLIENT_ID, OFFSETS_TOPIC, append
from koordinator.emulator.broker.offsets_log import batch_of
from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.emulator.formats.groups_file import parse_groups
from koordinator.emulator.formats.json_lines import LineError
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from koordinator import Cluster

WORLD: list[dict[str, object]] = [
    {"group_id": "svc", "members": [{"instance_id": "a", "assignment": {"t": [0, 1]}}, {"instance_id": "b"}]},
    {"group_id": "svc", "topic": "t", "partition": 0, "offset": 5},
]
A = "a-00000000-0000-0000-0000-000000000001"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator(topics={"t": 2}) as running:
        yield running


def check(cluster: Cluster) -> None:
    svc = cluster.group("svc").describe()
    assert (svc.state, svc.generation, svc.leader) == ("Stable", 1, A)
    assert {member.label: member.assignment for member in svc.members} == {"a": {"t": [0, 1]}, "b": {}}
    assert cluster.group("svc").offsets == {("t", 0): 5}


def test_two_short_lines_make_a_stable_group_of_two_static_members(cluster: Cluster) -> None:
    cluster.load_groups(WORLD)
    check(cluster)


def test_lines_may_be_text(cluster: Cluster) -> None:
    cluster.load_groups(map(json.dumps, WORLD))
    check(cluster)


def test_a_file_is_named_by_its_path(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "world.jsonl"
    path.write_text("\n".join(map(json.dumps, WORLD)), encoding="utf-8")
    cluster.load_groups(path)
    check(cluster)
    path.write_text("\n{}", encoding="utf-8")
    with pytest.raises(LineError, match=r"world.jsonl:2: group_id is missing"):
        cluster.load_groups(str(path))
    with pytest.raises(FileNotFoundError):
        cluster.load_groups(tmp_path / "none")


def test_a_bad_line_changes_nothing(cluster: Cluster) -> None:
    with pytest.raises(LineError, match=r"^groups:2: unknown field 'ofset'"):
        cluster.load_groups([WORLD[0], {"group_id": "svc", "topic": "t", "partition": 0, "ofset": 5}])
    assert cluster.groups() == []


def test_a_dump_can_be_loaded(cluster: Cluster) -> None:
    assert cluster.dump_groups() == []
    cluster.load_groups(WORLD)
    dumped = cluster.dump_groups()
    with Emulator(topics={"t": 2}, config={"offsets.topic.num.partitions": 2}) as other:
        other.load_groups(dumped)
        assert other.dump_groups() == dumped
        check(other)


def test_a_member_of_the_file_continues_its_membership(cluster: Cluster) -> None:
    cluster.load_groups(WORLD)
    there = link(cluster.bootstrap_servers)
    request = HeartbeatRequest(group_id="svc", generation_id=1, member_id=A, group_instance_id="a")
    assert ask(there, request, ApiKey.HEARTBEAT, HeartbeatResponse).error_code == Error.NONE
    there.close()


def test_parked_members_are_answered_when_their_group_is_overwritten(cluster: Cluster) -> None:
    cluster.load_groups(WORLD)
    there = link(cluster.bootstrap_servers)
    request = JoinGroupRequest(
        group_id="svc",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        group_instance_id="new",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff"),),
    )
    answers: list[JoinGroupResponse] = []
    joining = threading.Thread(
        target=lambda: answers.append(ask(there, request, ApiKey.JOIN_GROUP, JoinGroupResponse)), daemon=True
    )
    joining.start()
    svc = cluster.group("svc")
    while svc.state != "PreparingRebalance":
        assert there.deadline.left(), f"nobody has joined: {svc.describe()}"
    cluster.load_groups(WORLD)
    joining.join(there.deadline.left())
    assert [answer.error_code for answer in answers] == [Error.NOT_COORDINATOR]
    check(cluster)
    there.close()


def test_groups_are_taken_over_by_whoever_coordinates_them() -> None:
    with Emulator(topics={"t": 2}, brokers=3) as cluster:
        groups = [f"g{number}" for number in range(12)]
        cluster.load_groups({"group_id": group, "members": [{}]} for group in groups)
        assert len({coordinator.id for each in groups if (coordinator := cluster.coordinator(each))}) == 3
        assert {cluster.group(each).state for each in groups} == {"Stable"}


def test_groups_are_loaded_over_the_wire_and_from_python_with_a_data_directory_too(tmp_path: Path) -> None:
    batch = batch_of(parse_groups(map(json.dumps, WORLD), "world", 1, lambda _: None), 1)
    with Emulator(topics={"t": 2}, data_dir=tmp_path / "data") as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        with Admin([Address(host, int(port))], 10, "1", ADMIN_CLIENT_ID) as admin:
            assert isinstance(describe(admin, ["svc"])["svc"], Failure)
            at = (OFFSETS_TOPIC, offsets_partition("svc", 50))
            assert append(admin, {at: [batch]}) == {at: None}
        check(cluster)
        cluster.load_groups([{"group_id": "svc", "topic": "t", "partition": 1, "offset": 9}])
        assert cluster.group("svc").offsets == {("t", 0): 5, ("t", 1): 9}
        dumped = cluster.dump_groups()
    with Emulator(data_dir=tmp_path / "data") as cluster:
        assert cluster.dump_groups() == dumped
        assert cluster.group("svc").offsets == {("t", 0): 5, ("t", 1): 9}
