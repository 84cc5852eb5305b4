"""`__consumer_offsets`: the emulator loads Kafka's records, and Kafka decodes the emulator's."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from brokers.kafka_releases import RELEASES, jars
from brokers.real_kafka import RealKafka
from clients.groups_command import ask, commit, form, link, runner

from koordinator import Emulator
from koordinator.emulator.core.data.topic import OFFSETS_TOPIC
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clients.groups_command import Ran

DECODE_S = 60
"""Time limit for Kafka's tool to read a file."""

DECODER = RELEASES["3.9-new"]
"""The release of the tool: the newest releases lack it in Maven Central."""


@pytest.fixture
def offsets(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return a function that runs `koordinator offsets`."""
    return runner(capsys, "offsets")


@pytest.fixture
def groups(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return a function that runs `koordinator groups`."""
    return runner(capsys)


def described(bootstrap: str, *group_ids: str) -> list[DescribedGroup]:
    """Return all fields of DescribeGroups except authorized operations, with members sorted by id."""
    there = link(bootstrap)
    request = DescribeGroupsRequest(groups=group_ids)
    groups = ask(there, request, ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse).groups
    there.close()
    return [
        replace(group, members=tuple(sorted(group.members, key=lambda member: str(member.member_id))))
        for group in sorted(groups, key=lambda group: str(group.group_id))
    ]


def fetched(bootstrap: str, *group_ids: str) -> dict[str, set[tuple[object, ...]]]:
    """Return every field of every committed offset of the groups."""
    there = link(bootstrap)
    rows = tuple(OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids)
    answer = ask(there, OffsetFetchRequest(groups=rows), ApiKey.OFFSET_FETCH, OffsetFetchResponse)
    there.close()
    assert {group.error_code for group in answer.groups} == {Error.NONE}
    return {
        group.group_id: {
            (topic.name, row.partition_index, row.committed_offset, row.committed_leader_epoch, row.metadata)
            for topic in group.topics
            for row in topic.partitions
        }
        for group in answer.groups
    }


@pytest.mark.parametrize("broker", ["3.9-old", "3.9-new", "4.4"])
def test_groups_of_a_real_broker_are_in_the_emulator_as_they_were(
    release: Callable[[str], RealKafka],
    offsets: Callable[..., Ran],
    groups: Callable[..., Ran],
    name: str,
    tmp_path: Path,
    broker: str,
) -> None:
    kafka = release(broker)
    at, topic, file = kafka.bootstrap_servers, f"{name}.t", tmp_path / "groups.jsonl"
    kafka.create_topic(topic, 3)
    deleted, left, simple, stable = ids = [f"{name}.{each}" for each in ("deleted", "left", "simple", "stable")]
    form(at, stable, "a", None, "b", topic=topic)
    commit(at, left, {0: 4}, topic=topic)
    form(at, left, None, topic=topic)
    commit(at, simple, {0: 1, 2: 3}, topic=topic)
    commit(at, simple, {0: 2}, topic=topic)
    commit(at, deleted, {1: 1}, topic=topic)
    assert groups("remove-members", left, "--all", "--bootstrap-server", at).status == 0
    assert groups("delete", deleted, "--bootstrap-server", at).status == 0

    only = [word for each in ids for word in ("--group", each)]
    (missing,) = offsets("dump", str(file), "--bootstrap-server", at, *only).failures
    assert missing.startswith(f"{deleted}: there is no such group in __consumer_offsets")

    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {line["group_id"] for line in lines} == {left, simple, stable}
    members = [member for line in lines if line["group_id"] == stable for member in line["members"]]
    assert sorted(member["assignment"][topic] for member in members) == [[0], [1], [2]]
    was, offsets_were = described(at, *ids), fetched(at, *ids)
    assert [group.group_state for group in was] == ["Dead", "Empty", "Empty", "Stable"]
    config = {"kafka.version": kafka.release.line, **kafka.release.settings}
    with Emulator(topics={topic: 3}, config=config) as cluster:
        assert offsets("load", str(file), "--bootstrap-server", cluster.bootstrap_servers).err == []
        assert described(cluster.bootstrap_servers, *ids) == was
        assert fetched(cluster.bootstrap_servers, *ids) == offsets_were


WORLD = (
    {"group_id": "svc", "generation": 7, "members": [{"instance_id": "a", "assignment": {"t": [0]}}, {}]},
    {"group_id": "svc", "topic": "t", "partition": 0, "offset": 5, "leader_epoch": 2, "metadata": "m"},
)


def test_a_restarted_kafka_has_the_loaded_groups(offsets: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "groups.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in WORLD), encoding="utf-8")
    folder = tmp_path / "kafka"
    folder.mkdir()
    with RealKafka(folder) as kafka, Emulator(topics={"t": 1}) as cluster:
        at = kafka.bootstrap_servers
        kafka.create_topic("t")
        loaded = offsets("load", str(file), "--bootstrap-server", at)
        assert (loaded.status, loaded.out) == (0, "svc: 2 members, 1 offset\n")
        (failure,) = loaded.failures
        assert failure.startswith("svc: written, but its coordinator does not know it yet")
        assert described(at, "svc")[0].group_state == "Dead"

        kafka.restart()

        cluster.load_groups(WORLD)
        assert described(at, "svc") == described(cluster.bootstrap_servers, "svc")
        assert fetched(at, "svc") == fetched(cluster.bootstrap_servers, "svc") == {"svc": {("t", 0, 5, 2, "m")}}
        refused = offsets("load", str(file), "--bootstrap-server", at)
        assert (refused.status, refused.failures) == (1, ["svc: has 2 members: stop or remove them first"])


@dataclass(frozen=True)
class Decoded:
    """A record as Kafka's tool prints it: the version of its key, which is its type, and of its value."""

    type: int
    key: dict[str, Any]
    version: int | None
    value: dict[str, Any] | None


RECORD = re.compile(r"^\| offset: (\d+) .*? key: (\{.*\}) payload: (.*)$", re.MULTILINE)


def decoded(log: Path) -> list[Decoded]:
    """Return a segment as `kafka.tools.DumpLogSegments` decodes it."""
    command = ("java", "-cp", f"{jars(DECODER.version)}/*", "kafka.tools.DumpLogSegments", "--offsets-decoder")
    ran = subprocess.run(
        [*command, "--print-data-log", "--files", str(log)],
        capture_output=True,
        text=True,
        timeout=DECODE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    records = []
    for _, key, payload in RECORD.findall(ran.stdout):
        named, value = json.loads(key), json.loads(payload) if payload.startswith("{") else None
        version, data = (None, None) if value is None else (int(value["version"]), value["data"])
        records.append(Decoded(int(named["type"]), named["data"], version, data))
    assert records, ran.stdout
    return records


def segment(bootstrap: str, partition: int) -> bytes:
    """Return the batches of a partition of `__consumer_offsets`, as fetched by a client."""
    there = link(bootstrap)
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=(FetchTopic(topic=OFFSETS_TOPIC, partitions=(asked,)),))
    answer = ask(there, request, ApiKey.FETCH, FetchResponse)
    there.close()
    (row,) = answer.responses[0].partitions
    assert row.records
    return bytes(row.records)


@pytest.mark.parametrize(("like", "version"), [("3.9-new", 3), ("4.4", 4)])
def test_kafka_decodes_every_field_of_the_emulators_records(
    groups: Callable[..., Ran], tmp_path: Path, like: str, version: int
) -> None:
    config = {"offsets.topic.num.partitions": "1", "kafka.version": RELEASES[like].line, **RELEASES[like].settings}
    with Emulator(topics={"t": 2}, config=config) as cluster:
        at = cluster.bootstrap_servers
        first, second = form(at, "svc", "a", None)
        commit(at, "simple", {1: 7})
        assert groups("delete", "simple", "--bootstrap-server", at).status == 0
        log = tmp_path / "00000000000000000000.log"
        log.write_bytes(segment(at, 0))
        state = cluster.dump_groups()[0]["state_changed_at"]
    records = decoded(log)
    *svc, gone = (record for record in records if record.type == 2)
    assert (gone.key, gone.version, gone.value) == ({"group": "simple"}, None, None)
    assert {(each.key["group"], each.version) for each in svc} == {("svc", 3)}
    assert svc[-1].value == {
        "protocolType": "consumer",
        "generation": 2,
        "protocol": "range",
        "leader": first,
        "currentStateTimestamp": state,
        "members": [
            {
                "memberId": member_id,
                "groupInstanceId": instance_id,
                "clientId": "koordinator",
                "clientHost": "/127.0.0.1",
                "rebalanceTimeout": 30_000,
                "sessionTimeout": 30_000,
                "subscription": {
                    "topics": ["t"],
                    "userData": None,
                    "ownedPartitions": [],
                    "generationId": -1,
                    "rackId": None,
                },
                "assignment": {"assignedPartitions": [{"topic": "t", "partitions": [place]}], "userData": None},
            }
            for place, (member_id, instance_id) in enumerate([(first, "a"), (second, None)])
        ],
    }
    committed, tombstone = (record for record in records if record.type == 1)
    assert committed.key == tombstone.key == {"group": "simple", "topic": "t", "partition": 1}
    assert committed.version == version
    assert committed.value is not None
    timestamp = committed.value.pop("commitTimestamp")
    assert committed.value == {"offset": 7, "leaderEpoch": -1, "metadata": ""}
    assert abs(timestamp - state) < 60_000
    assert (tombstone.version, tombstone.value) == (None, None)
