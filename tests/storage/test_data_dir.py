"""Recovery from a data directory: restored state, cut-off tails, and refused directories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster

from koordinator import Emulator
from koordinator.emulator.core.data import log as core_log
from koordinator.emulator.storage.data_dir import FORMAT, JOURNAL, LOCK, LOG, META, DataDir, DataDirRefused
from koordinator.emulator.storage.log_recovery import read_log
from koordinator.emulator.storage.metadata_journal import DamagedJournal, read_journal
from koordinator.wire.errors import Error
from koordinator.wire.messages import delete_records, incremental_alter_configs, init_producer_id, update_features
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from koordinator.wire.records import Record, read_header, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def again(durable: DurableCluster, path: Path, **settings: object) -> DurableCluster:
    """Restart the cluster on the same directory."""
    durable.built.close()
    return DurableCluster(path, **settings)


def contents(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


# -- restored state -------------------------------------------------------------------------------------


def test_topics_records_and_offsets_survive_a_restart_with_their_ids(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    assert durable.create("t", partitions=3, retention_ms="5000") is Error.NONE
    assert durable.produce("t", b"a", b"b", partition=2) is Error.NONE
    assert durable.commit("g", "t", 7) is Error.NONE
    before = {name: topic.topic_id for name, topic in durable.node.cluster.topics.items()}
    cluster_id = durable.node.cluster.cluster_id

    durable = again(durable, tmp_path)

    cluster = durable.node.cluster
    assert cluster.cluster_id == cluster_id
    assert {name: topic.topic_id for name, topic in cluster.topics.items()} == before
    assert (len(cluster.topics["t"].logs), cluster.topics["t"].configs) == (3, {"retention.ms": "5000"})
    assert durable.values("t", partition=2) == [b"a", b"b"]
    assert durable.committed("g", "t") == 7
    assert durable.logged == []


def test_a_new_topic_after_a_restart_has_an_id_of_its_own_though_the_seed_is_the_same(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    durable.create("t")
    durable = again(durable, tmp_path)
    durable.create("u")
    durable = again(durable, tmp_path)
    durable.create("v")
    assert len({topic.topic_id for topic in durable.node.cluster.topics.values()}) == 3


def test_grown_configured_and_deleted_topics_are_as_they_were_left(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    durable.create("grown")
    durable.create("gone")
    durable.create("configured", retention_ms="1")
    durable.produce("gone", b"x")
    assert (
        durable.exchange(
            CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="grown", count=4, assignments=None),)), 3
        )
        .results[0]
        .error_code
        == Error.NONE
    )
    change = incremental_alter_configs.AlterableConfig(name="cleanup.policy", config_operation=0, value="compact")
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=2, resource_name="configured", configs=(change,)
    )
    durable.exchange(incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    assert durable.delete("gone") is Error.NONE
    assert not (tmp_path / "gone-0").exists()

    durable = again(durable, tmp_path)

    topics = durable.node.cluster.topics
    assert {name: len(topic.logs) for name, topic in topics.items()} == {"grown": 4, "configured": 1}
    assert topics["configured"].configs == {"retention.ms": "1", "cleanup.policy": "compact"}


def test_a_recreated_topic_is_empty(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    durable.create("t")
    durable.produce("t", b"old")
    durable.delete("t")
    durable.create("t")
    assert durable.values("t") == []
    durable.produce("t", b"new")
    assert again(durable, tmp_path).values("t") == [b"new"]


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    durable.create("t")
    for value in (b"a", b"b", b"c"):
        durable.produce("t", value)
    row = delete_records.DeleteRecordsPartition(partition_index=0, offset=2)
    topic = delete_records.DeleteRecordsTopic(name="t", partitions=(row,))
    durable.exchange(delete_records.DeleteRecordsRequest(topics=(topic,)), 2)
    durable = again(durable, tmp_path)
    log = durable.node.cluster.topics["t"].logs[0]
    assert (log.start, log.end, durable.values("t", offset=2)) == (2, 3, [b"c"])


def test_an_idempotent_producer_continues_after_a_restart(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    durable.create("t")
    assert durable.produce("t", b"a", b"b", producer_id=0, producer_epoch=0, base_sequence=0) is Error.NONE
    durable = again(durable, tmp_path)
    assert durable.produce("t", b"a", b"b", producer_id=0, producer_epoch=0, base_sequence=0) is Error.NONE
    assert durable.produce("t", b"d", producer_id=0, producer_epoch=0, base_sequence=3) is (
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert durable.produce("t", b"c", producer_id=0, producer_epoch=0, base_sequence=2) is Error.NONE
    assert durable.values("t") == [b"a", b"b", b"c"]


def test_no_producer_id_is_handed_out_twice(tmp_path: Path) -> None:
    ids: list[int] = []
    durable = DurableCluster(tmp_path)
    for _ in range(3):
        wanted = init_producer_id.InitProducerIdRequest(transactional_id=None)
        ids += [durable.exchange(wanted, 4).producer_id for _ in range(2)]
        durable = again(durable, tmp_path)
    assert len(set(ids)) == len(ids) == 6


def test_the_level_of_a_feature_survives_a_restart(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    row = update_features.FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    assert durable.exchange(update_features.UpdateFeaturesRequest(feature_updates=(row,)), 1).error_code == 0
    durable = again(durable, tmp_path)
    wanted = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    levels = {row.name: row.max_version_level for row in durable.exchange(wanted, 3).finalized_features}
    assert levels["transaction.version"] == 1


def test_offsets_survive_a_change_of_offsets_topic_num_partitions(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path, offsets_topic_num_partitions=7)
    durable.create("t")
    groups = [f"group-{number}" for number in range(20)]
    for number, group in enumerate(groups):
        durable.commit(group, "t", number)
    durable = again(durable, tmp_path, offsets_topic_num_partitions=3)
    assert [durable.committed(group, "t") for group in groups] == list(range(20))
    assert durable.built.warnings == ("offsets.topic.num.partitions: 7, as in the data directory",)


@pytest.mark.slow
def test_a_compacted_partition_is_on_disk_as_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_log, "COMPACTED_BYTES_MIN", 4_000)
    monkeypatch.setattr(core_log, "UNCOMPACTED_BYTES", 500)
    durable = DurableCluster(tmp_path, offsets_topic_num_partitions=1)
    durable.create("t")
    for number in range(200):
        assert durable.commit(f"g{number % 3}", "t", number) is Error.NONE
    file = tmp_path / "__consumer_offsets-0" / LOG
    (log,) = durable.node.cluster.topics["__consumer_offsets"].logs
    assert file.read_bytes() == log.content
    assert file.stat().st_size < 5_000
    durable = again(durable, tmp_path)
    assert [durable.committed(f"g{number}", "t") for number in range(3)] == [198, 199, 197]
    assert durable.commit("g0", "t", 500) is Error.NONE
    assert again(durable, tmp_path).committed("g0", "t") == 500


# -- durability ------------------------------------------------------------------------------------


def test_an_input_without_writes_does_not_touch_the_disk() -> None:
    files = CrashingFiles()
    durable = DurableCluster(DIR, files)
    durable.create("t")
    durable.commit("g", "t", 1)
    before = files.steps
    assert durable.committed("g", "t") == 1
    assert durable.values("t") == []
    durable.wait(100)
    assert files.steps == before


# -- cut-off tails -----------------------------------------------------------------------------------------


def written(tmp_path: Path) -> tuple[Path, bytes, list[int]]:
    """Make a directory with ten batches in t-0; return the file, its bytes, and the ends of the batches."""
    durable = DurableCluster(tmp_path)
    durable.create("t")
    for number in range(10):
        durable.produce("t", b"value %d" % number)
    durable.built.close()
    file = tmp_path / "t-0" / LOG
    data = file.read_bytes()
    ends = [0]
    for _, batch in read_log(data).batches:
        ends.append(ends[-1] + len(batch))
    return file, data, ends


def test_every_prefix_of_a_log_is_taken_back_up_to_its_last_whole_batch(tmp_path: Path) -> None:
    _, data, ends = written(tmp_path)
    for length in range(len(data) + 1):
        found = read_log(data[:length])
        assert found.end == max(end for end in ends if end <= length)
        assert len(found.batches) == ends.index(found.end)
        assert bool(found.damage) is (length not in ends)


def test_a_torn_last_write_is_cut_off_with_a_line_and_once(tmp_path: Path) -> None:
    file, data, ends = written(tmp_path)
    file.write_bytes(data[: ends[9] + 30])
    durable = DurableCluster(tmp_path)
    assert durable.logged == [
        f"data directory {tmp_path}: t-0: the last write is torn: 30 bytes behind offset 8 are cut off"
    ]
    assert file.stat().st_size == ends[9]
    assert durable.produce("t", b"new") is Error.NONE
    durable = again(durable, tmp_path)
    assert durable.logged == []
    assert durable.values("t") == [*(b"value %d" % number for number in range(9)), b"new"]


@pytest.mark.parametrize("damage", ["garbage", "hole", "gone"])
def test_damage_in_the_middle_is_named_and_cut_off_with_all_behind_it_as_kafka_does(
    tmp_path: Path, damage: str
) -> None:
    file, data, ends = written(tmp_path)
    third = slice(ends[2], ends[3])
    middle = {"garbage": b"\x02garbage" * 9, "hole": bytes(ends[3] - ends[2]), "gone": data[third][:40]}[damage]
    file.write_bytes(data[: third.start] + middle + data[third.stop :])
    bad = file.stat().st_size - third.start
    durable = DurableCluster(tmp_path)
    (line,) = durable.logged
    assert line == (
        f"data directory {tmp_path}: t-0: damaged at byte {third.start}, behind offset 1: {bad} bytes are cut off, "
        "and with them 7 whole batches up to offset 9, as Kafka does"
    )
    assert durable.values("t") == [b"value 0", b"value 1"]


def test_a_torn_last_line_of_the_journal_is_cut_off(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    durable.create("t")
    durable.create("u")
    durable.built.close()
    journal = tmp_path / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-1])
    durable = DurableCluster(tmp_path)
    assert list(durable.node.cluster.topics) == ["t"]
    (line,) = durable.logged
    assert line.startswith(f"data directory {tmp_path}: {JOURNAL}: the last write is torn: ")
    assert again(durable, tmp_path).logged == []


def test_every_prefix_of_a_journal_is_read_and_another_change_of_it_is_damage(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    for name in ("t", "u", "v"):
        durable.create(name)
    data = (tmp_path / JOURNAL).read_bytes()
    ends = [0, *(at + 1 for at, byte in enumerate(data) if byte == ord("\n"))]
    for length in range(len(data) + 1):
        topics, torn = read_journal(data[:length])
        assert length - torn == max(end for end in ends if end <= length)
        assert len(topics.by_id) == ends.index(length - torn)
    changed = data.replace(b'"u"', b'"x"')
    with pytest.raises(DamagedJournal, match=r"line 2 is damaged, .*: the checksum does not match"):
        read_journal(changed)


def test_only_groups_of_an_unreadable_partition_are_not_served(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path, offsets_topic_num_partitions=50)
    durable.create("t")
    durable.commit("g", "t", 1)  # partition 3
    durable.commit("grp", "t", 2)  # partition 29
    topic = durable.node.cluster.topics["__consumer_offsets"]
    bad = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00"
    batch = write_batch([Record(timestamp=0, key=bad, value=b"\x00\x63")])
    durable.node.cluster.storage.append(topic, 3, read_header(batch), batch)
    durable = again(durable, tmp_path)
    assert durable.committed("grp", "t") == 2
    with pytest.raises(AssertionError, match="16"):
        durable.committed("g", "t")
    (line,) = durable.logged
    assert line.startswith("__consumer_offsets-3 cannot be loaded by node 1: ")


# -- refused directories ------------------------------------------------------------------------------------------


def newer(path: Path) -> None:
    meta = json.loads((path / META).read_text())
    (path / META).write_text(json.dumps({**meta, "format": FORMAT + 1}))


def damaged(path: Path) -> None:
    journal = path / JOURNAL
    journal.write_bytes(b"garbage\n" + journal.read_bytes())


def of_kafka(path: Path) -> None:
    (path / META).unlink()
    (path / "meta.properties").write_text("version=1\n")


REFUSALS: list[tuple[Callable[[Path], object], str]] = [
    (newer, "format 2 is newer than the supported format 1"),
    (damaged, f"{JOURNAL}: line 1 is damaged, and it is not the last one: "),
    (of_kafka, f"not empty, and without {META}: it belongs to Apache Kafka"),
    (lambda path: (path / META).unlink(), f"not empty, and without {META}: it belongs to another program"),
    (lambda path: (path / META).write_text("{}"), f"{META} is invalid"),
    (lambda path: (path / META).write_text("garbage"), f"{META} is invalid"),
]


@pytest.mark.parametrize(("spoil", "reason"), REFUSALS)
def test_a_foreign_directory_is_refused_and_not_changed(
    tmp_path: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    durable = DurableCluster(tmp_path)
    durable.create("t")
    durable.produce("t", b"x")
    durable.built.close()
    spoil(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(DataDirRefused) as refused:
        DataDir(tmp_path, pytest.fail)
    assert str(refused.value).startswith(f"data directory {tmp_path}: {reason}")
    assert contents(tmp_path) == before


def test_a_directory_in_use_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(DataDirRefused, match="in use by another process"):
        DataDir(tmp_path, pytest.fail)
    assert contents(tmp_path) == before
    again(durable, tmp_path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [("file", "Not a directory"), ("file/below", "Not a directory"), ("/proc/none/below", "No such file")],
)
def test_a_path_that_is_no_directory_is_refused(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataDirRefused, match=reason):
        DataDir(tmp_path / path, pytest.fail)


def test_a_first_start_that_was_cut_short_is_a_first_start_again(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    (tmp_path / f"{META}.new").write_text("{")
    durable = DurableCluster(tmp_path)
    durable.create("t")
    assert list(again(durable, tmp_path).node.cluster.topics) == ["t"]


def test_compacted_and_expired_records_do_not_come_back(tmp_path: Path) -> None:
    configs = {"cleanup.policy": "compact,delete"}
    with Emulator(data_dir=tmp_path) as cluster:
        topic = cluster.create_topic("t", configs=configs)
        topic.produce(("a", "1"), ("a", "2"))
        topic.produce({"key": "a", "value": None})
        topic.compact()
        assert (topic.records(), topic.partitions[0].end_offset) == ([], 3)
        topic.produce(("b", "1"), ("b", "2"))
        topic.expire_records(before=4)
    with Emulator(data_dir=tmp_path) as cluster:
        topic = cluster.topic("t")
        assert [(record.offset, record.value) for record in topic.records()] == [(4, b"2")]
        assert (topic.configs, topic.partitions[0].end_offset) == (configs, 5)


def test_a_compacted_log_ends_where_it_ended_before_a_restart(tmp_path: Path) -> None:
    with Emulator(data_dir=tmp_path) as cluster:
        topic = cluster.create_topic("t", configs={"cleanup.policy": "compact"})
        topic.produce(("a", "1"), {"key": "a", "value": None})
        topic.compact()
    with Emulator(data_dir=tmp_path) as cluster:
        topic = cluster.topic("t")
        topic.produce(("a", "2"))
        assert [record.offset for record in topic.records()] == [2]
