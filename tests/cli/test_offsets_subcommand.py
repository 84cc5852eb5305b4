"""`koordinator offsets`: copying groups from a cluster to a file and to another cluster, and refusals."""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING

import pytest
from brokers.scripted_broker import Scripted, coordinator
from clients.groups_command import Ran, commit, form, runner

from koordinator import Emulator
from koordinator.client.admin import Admin
from koordinator.client.connection import Address
from koordinator.client.groups import delete_groups
from koordinator.client.logs import ADMIN_CLIENT_ID
from koordinator.emulator.broker.offsets_log import batch_of
from koordinator.emulator.formats.groups_file import parse_groups
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from koordinator.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from koordinator.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from koordinator.wire.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from koordinator.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from koordinator import Cluster

WORLD = (
    '{"group_id": "svc", "generation": 7, "members": [{"instance_id": "a", "assignment": {"t": [0]}}, {}]}\n'
    '{"group_id": "svc", "topic": "t", "partition": 0, "offset": 5}\n'
    '{"group_id": "simple", "topic": "t", "partition": 1, "offset": 6}\n'
)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `koordinator offsets` with arguments."""
    return runner(capsys, "offsets")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "world.jsonl"
    path.write_text(WORLD, encoding="utf-8")
    return path


def test_a_file_is_loaded_and_each_group_is_reported(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], world: Path
) -> None:
    ran = run("load", str(world), *at)
    assert (ran.status, ran.out, ran.err) == (0, "svc: 2 members, 1 offset\nsimple: 0 members, 1 offset\n", [])
    svc = cluster.group("svc").describe()
    assert (svc.state, svc.generation, [member.instance_id for member in svc.members]) == ("Stable", 7, ["a", None])
    assert cluster.group("simple").offsets == {("t", 1): 6}


def test_a_consumer_group_is_dumped_and_loaded_into_a_cluster_and_a_data_directory(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], tmp_path: Path
) -> None:
    group = cluster.group("svc")
    group.create_puppet("a", topics=["t"], group_protocol="consumer").join()
    before = group.wait_stable(members=1, all_owned=True).assignment
    file, data = tmp_path / "dumped.jsonl", tmp_path / "data"
    assert run("dump", str(file), *at).err == []
    with Emulator(topics={"t": 4}) as other:
        ran = run("load", str(file), "--bootstrap-server", other.bootstrap_servers)
        assert (ran.out, ran.err) == ("svc: 1 member, 0 offsets\n", [])
        loaded = other.group("svc").wait_stable(members=1, all_owned=True)
        assert (loaded.type, loaded.epoch, loaded.assignment) == ("consumer", group.epoch, before)
    with Emulator(topics={"t": 4}, data_dir=data):
        pass
    assert run("load", str(file), "--data-dir", str(data)).err == []
    with Emulator(data_dir=data) as other:
        assert other.group("svc").assignment == before


def test_a_dump_loads_unchanged_into_another_cluster(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], tmp_path: Path
) -> None:
    form(cluster.bootstrap_servers, "svc", "a", None)
    commit(cluster.bootstrap_servers, "simple", {0: 1, 3: 2})
    file = tmp_path / "dumped.jsonl"
    ran = run("dump", str(file), *at)
    assert (ran.status, ran.out, ran.err) == (0, "", [])
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(line["group_id"], line.get("partition")) for line in lines] == [
        ("simple", 0),
        ("simple", 3),
        ("svc", None),
    ]
    assert [member["assignment"] for member in lines[2]["members"]] == [{"t": [0]}, {"t": [1]}]
    with Emulator(topics={"t": 4}, config={"offsets.topic.num.partitions": 3}) as other:
        assert run("load", str(file), "--bootstrap-server", other.bootstrap_servers).err == []
        assert other.dump_groups() == lines
        assert other.group("svc").describe() == cluster.group("svc").describe()


def test_a_dash_is_stdout_and_stdin(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(WORLD.encode())))
    assert run("load", "-", *at).err == []
    ran = run("dump", "-", *at)
    assert [json.loads(line) for line in ran.out.splitlines()] == cluster.dump_groups()


def test_groups_may_be_selected(run: Callable[..., Ran], at: tuple[str, str], world: Path) -> None:
    run("load", str(world), *at)
    ran = run("dump", "-", *at, "--group", "simple")
    assert [json.loads(line)["group_id"] for line in ran.out.splitlines()] == ["simple"]
    assert (ran.status, ran.err) == (0, [])


def test_a_missing_group_is_reported_with_a_similar_one_and_the_others_are_written(
    run: Callable[..., Ran], at: tuple[str, str], world: Path
) -> None:
    run("load", str(world), *at)
    ran = run("dump", "-", *at, "--group", "simple", "--group", "svcs", "--group", "other")
    assert [json.loads(line)["group_id"] for line in ran.out.splitlines()] == ["simple"]
    assert (ran.status, ran.failures) == (
        1,
        [
            "svcs: there is no such group in __consumer_offsets; did you mean 'svc'?",
            "other: there is no such group in __consumer_offsets",
        ],
    )


def test_what_a_dump_leaves_out_is_reported(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    kinds = {"workers": "share", "app": "streams", "svc": "consumer", "gone": "share"}
    puppets = {
        name: cluster.group(name).create_puppet("a", topics=["t"], group_protocol=kind) for name, kind in kinds.items()
    }
    for puppet in puppets.values():
        puppet.join()
    puppets["gone"].leave()
    host, port = cluster.bootstrap_servers.split(":")
    with Admin([Address(host, int(port))], 10.0, "1") as admin:
        assert delete_groups(admin, ["gone"]).successes == ("gone",)
    share = "workers: is a share group; it is left out, because its offsets are not in __consumer_offsets"
    streams = "app: is a streams group; only its committed offsets are written, without members and topology"
    ran = run("dump", "-", *at)
    assert [json.loads(line)["group_id"] for line in ran.out.splitlines()] == ["svc"]
    assert (ran.status, ran.failures) == (0, [streams, share])
    ran = run("dump", "-", *at, "--group", "workers")
    assert (ran.status, ran.out, ran.failures) == (0, "", [share])


def test_a_cluster_without_groups_is_an_empty_file(run: Callable[..., Ran], at: tuple[str, str]) -> None:
    ran = run("dump", "-", *at)
    assert (ran.status, ran.out, ran.err) == (0, "", [])


def test_a_group_with_members_is_refused_and_nothing_is_written(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], world: Path
) -> None:
    form(cluster.bootstrap_servers, "svc", None)
    before = cluster.dump_groups()
    ran = run("load", str(world), *at)
    assert (ran.status, ran.out, ran.failures) == (1, "", ["svc: has 1 member: stop or remove them first"])
    assert cluster.dump_groups() == before


@pytest.mark.parametrize(
    ("topic", "partition", "problem"),
    [
        ("unknown", 0, "there is no topic unknown: create it first, or remove its lines"),
        ("t", 4, "topic t has 4 partitions: there is no partition 4"),
        ("t", -1, "topic t has 4 partitions: there is no partition -1"),
    ],
)
def test_an_offset_in_a_partition_that_does_not_exist_is_refused_and_nothing_is_written(
    run: Callable[..., Ran],
    cluster: Cluster,
    at: tuple[str, str],
    world: Path,
    topic: str,
    partition: int,
    problem: str,
) -> None:
    line = json.dumps({"group_id": "other", "topic": topic, "partition": partition, "offset": 1})
    world.write_text(f"{WORLD}{line}\n", encoding="utf-8")
    ran = run("load", str(world), *at)
    assert (ran.status, ran.out, ran.failures) == (1, "", [f"other: {problem}"])
    assert cluster.dump_groups() == []


def test_a_file_of_many_batches_is_loaded_completely(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], tmp_path: Path
) -> None:
    cluster.add_partitions("t", 400)
    file = tmp_path / "large.jsonl"
    lines = [
        {"group_id": "g", "topic": "t", "partition": number, "offset": number, "metadata": "m" * 3000}
        for number in range(400)
    ]
    assert len(json.dumps(lines)) > MESSAGE_BYTES_MAX
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert run("load", str(file), *at).err == []
    assert cluster.group("g").offsets == {("t", number): number for number in range(400)}


MESSAGE_BYTES_MAX = 1_048_588
"""The default of `message.max.bytes`."""


# -- other brokers ---


@pytest.fixture
def broker() -> Iterator[Scripted]:
    """A broker with one partition of `__consumer_offsets`, two of the topic t, and no groups."""
    kinds = ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_DESCRIBE
    with Scripted(versions=dict.fromkeys(kinds)) as scripted:
        row = MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,))
        other = MetadataResponsePartition(partition_index=1, leader_id=1, replica_nodes=(1,), isr_nodes=(1,))
        topics = (
            MetadataResponseTopic(name="__consumer_offsets", partitions=(row,)),
            MetadataResponseTopic(name="t", partitions=(row, other)),
        )
        scripted.answers(
            ApiKey.METADATA,
            lambda request, _: MetadataResponse(
                brokers=(scripted.row,),
                topics=tuple(
                    each
                    for each in topics
                    if request.topics is None or each.name in {one.name for one in request.topics}
                ),
            ),
        )
        scripted.answers(ApiKey.LIST_GROUPS, ListGroupsResponse())
        unknown = Error.GROUP_ID_NOT_FOUND
        scripted.answers(
            ApiKey.DESCRIBE_GROUPS,
            lambda request, _: DescribeGroupsResponse(
                groups=tuple(DescribedGroup(group_id=each, error_code=unknown) for each in request.groups)
            ),
        )
        scripted.answers(
            ApiKey.OFFSET_FETCH,
            lambda request, _: OffsetFetchResponse(
                groups=tuple(OffsetFetchResponseGroup(group_id=each.group_id) for each in request.groups)
            ),
        )
        written = PartitionProduceResponse(index=0, base_offset=0)
        topic = TopicProduceResponse(name="__consumer_offsets", partition_responses=(written,))
        scripted.answers(ApiKey.PRODUCE, ProduceResponse(responses=(topic,)))
        yield scripted


def test_a_coordinator_that_does_not_reload_is_reported(run: Callable[..., Ran], broker: Scripted, world: Path) -> None:
    ran = run("load", str(world), "--bootstrap-server", broker.bootstrap)
    assert ran.status == 0
    assert [line.split(", ")[0] for line in ran.failures] == ["svc: written", "simple: written"]
    assert "reads __consumer_offsets after a restart" in ran.failures[0]


def test_groups_of_kip_848_are_refused(run: Callable[..., Ran], broker: Scripted, world: Path) -> None:
    listed = ListedGroup(group_id="svc", protocol_type="consumer", group_state="Empty", group_type="consumer")
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(listed,)))
    ran = run("load", str(world), "--bootstrap-server", broker.bootstrap)
    assert (ran.status, ran.failures) == (1, ["svc: is a group of type consumer, and of type classic in the file"])
    assert broker.requests(ApiKey.PRODUCE) == []


def test_nothing_is_written_if_the_groups_cannot_be_listed(
    run: Callable[..., Ran], broker: Scripted, world: Path
) -> None:
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(error_code=Error.CLUSTER_AUTHORIZATION_FAILED))
    ran = run("load", str(world), "--bootstrap-server", broker.bootstrap)
    (failure,) = ran.failures
    assert (ran.status, "CLUSTER_AUTHORIZATION_FAILED (31)" in failure) == (1, True)
    assert broker.requests(ApiKey.PRODUCE) == []


def test_a_group_that_cannot_be_described_is_not_written(
    run: Callable[..., Ran], broker: Scripted, world: Path
) -> None:
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker, Error.GROUP_AUTHORIZATION_FAILED))
    ran = run("load", str(world), "--bootstrap-server", broker.bootstrap)
    assert (ran.status, [line.partition(":")[0] for line in ran.failures]) == (1, ["svc", "simple"])
    assert broker.requests(ApiKey.PRODUCE) == []


def test_a_refused_write_is_reported(run: Callable[..., Ran], broker: Scripted, world: Path) -> None:
    row = PartitionProduceResponse(index=0, error_code=Error.TOPIC_AUTHORIZATION_FAILED, base_offset=-1)
    topic = TopicProduceResponse(name="__consumer_offsets", partition_responses=(row,))
    broker.answers(ApiKey.PRODUCE, ProduceResponse(responses=(topic,)))
    ran = run("load", str(world), "--bootstrap-server", broker.bootstrap)
    (failure,) = ran.failures
    assert (ran.status, ran.out) == (1, "")
    assert failure.startswith("__consumer_offsets-0: TOPIC_AUTHORIZATION_FAILED (29)")


def test_an_unreadable_log_writes_no_partial_file(run: Callable[..., Ran], broker: Scripted, tmp_path: Path) -> None:
    good = batch_of(parse_groups(WORLD.splitlines(), "world", 1, lambda _: None), 1)
    bad = write_batch([Record(timestamp=1, key=b"\0\2\0\1g", value=b"\0\x09")], base_offset=3)
    row = PartitionData(
        partition_index=0, high_watermark=4, last_stable_offset=4, aborted_transactions=None, records=good + bad
    )
    topic = FetchableTopicResponse(topic="__consumer_offsets", partitions=(row,))
    broker.answers(ApiKey.FETCH, FetchResponse(responses=(topic,)))
    file = tmp_path / "none.jsonl"
    ran = run("dump", str(file), "--bootstrap-server", broker.bootstrap)
    assert (ran.status, ran.failures) == (1, ["__consumer_offsets-0: GroupMetadataValue has the version 9"])
    assert not file.exists()


@pytest.mark.parametrize("command", ["dump", "load"])
def test_without_a_broker_there_is_one_line_and_status_1(run: Callable[..., Ran], world: Path, command: str) -> None:
    ran = run(command, str(world), "--timeout", "5", "--bootstrap-server", "127.0.0.1:1")
    (failure,) = ran.failures
    assert (ran.status, failure.startswith("127.0.0.1:1: cannot connect: ")) == (1, True)
    assert world.read_text(encoding="utf-8") == WORLD


# -- usage errors ---

ANYWHERE = ("--bootstrap-server", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["load", "x"], "give either --bootstrap-server or --data-dir"),
        (["load", *ANYWHERE], "Missing argument 'FILE'"),
        (["load", "{none}", *ANYWHERE], "{none}: No such file or directory"),
        (["load", "{bad}", *ANYWHERE], "{bad}:2: offset is missing"),
        (["load", "{folder}", *ANYWHERE], "is a directory"),
        (["dump", "x", "--security-protocol", "SSL", *ANYWHERE], "write security.protocol into a file"),
        (["dump", "x", "--json", *ANYWHERE], "No such option"),
        (["dmp"], "No such command 'dmp'"),
    ],
)
def test_a_usage_error_is_one_line_and_status_2(
    run: Callable[..., Ran], tmp_path: Path, arguments: list[str], expected: str
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"group_id": "g"}\n{"group_id": "g", "topic": "t", "partition": 0}\n', encoding="utf-8")
    places = {"none": tmp_path / "none", "bad": bad, "folder": tmp_path}
    ran = run(*(argument.format(**places) for argument in arguments))
    assert (ran.status, ran.out) == (2, "")
    (line,) = ran.err
    assert line.startswith("koordinator offsets")
    assert expected.format(**places) in line


def test_an_unwritable_file_is_one_line_and_status_2(
    run: Callable[..., Ran], at: tuple[str, str], tmp_path: Path
) -> None:
    ran = run("dump", str(tmp_path / "no" / "where"), *at)
    assert (ran.status, ran.out) == (2, "")
    (line,) = ran.err
    assert line.endswith(f"{os.sep}where: No such file or directory")


def test_the_client_id_is_the_one_that_may_write_internal_topics(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], world: Path
) -> None:
    run("load", str(world), *at)
    produced = [event for event in cluster.events() if event["kind"] == "request" and event["api"] == "Produce"]
    assert {event["client_id"] for event in produced} == {ADMIN_CLIENT_ID}
