"""Traces as a data source of Spark's own: files as the pipeline reads them, and a trace that grows."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from koordinator import Emulator
from koordinator.client.problems import ClientError
from koordinator.pipeline.bronze import lines as bronze
from koordinator.pipeline.schema import EVENT
from koordinator.pipeline.silver import intake
from koordinator.pipeline.source import KoordinatorSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from koordinator import Cluster

    Follow = Callable[[Cluster], Any]

TRACE = Path(__file__).parents[1] / "pages" / "traces" / "cooperative.jsonl"
QUERY_S = 120

in_spark = pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the server's Python would have to have us, too")


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(KoordinatorSource)
    return spark


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator(topics={"t": 2}) as cluster:
        yield cluster


@pytest.fixture
def follower() -> Iterator[Follow]:
    """Makes readers that follow a cluster."""
    made = []

    def follow(cluster: Cluster) -> Any:
        source = KoordinatorSource({"bootstrap.servers": cluster.bootstrap_servers})
        made.append(source.simpleStreamReader(EVENT.columns))
        return made[-1]

    yield follow
    for reader in made:
        reader.stop()


def read(reader: Any, start: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rows, end = reader.read(start)
    return [dict(zip(EVENT.names, row, strict=True)) for row in rows], end


def write(path: Path, *events: dict[str, object]) -> Path:
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


@in_spark
@pytest.mark.parametrize("packing", ["plain", "gzip", "zstd"])
def test_files_have_the_events_that_the_pipeline_finds_in_them(
    source: SparkSession, tmp_path: Path, packing: str
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    if packing == "plain":
        (folder / TRACE.name).write_bytes(TRACE.read_bytes())
    elif packing == "gzip":
        (folder / f"{TRACE.name}.gz").write_bytes(gzip.compress(TRACE.read_bytes()))
    else:
        with pa.output_stream(folder / f"{TRACE.name}.zst", compression="zstd") as packed:
            packed.write(TRACE.read_bytes())
    found = source.read.format("koordinator").load(str(folder))
    text = source.read.text(str(folder))
    expected = intake.ingest(intake.parse_lines(bronze.bronze_lines(bronze.select_lines(text)))).event
    assert found.columns == EVENT.names
    events = found.where("kind <> 'header'").orderBy("seq").collect()
    assert len(events) > 100
    assert events == expected.orderBy("seq").collect()
    header, *others = found.where("kind = 'header'").collect()
    assert not others
    assert header.body == TRACE.read_text().splitlines()[0]


@in_spark
def test_what_is_written_to_parquet_of_it_is_an_input_of_the_pipeline(source: SparkSession, tmp_path: Path) -> None:
    source.read.format("koordinator").load(str(TRACE)).write.parquet(str(tmp_path / "p"))
    rows = source.read.parquet(str(tmp_path / "p")).selectExpr("*", "'f' AS source_file", "'i' AS ingest_id")
    taken = intake.ingest(intake.parse_table(rows))
    assert taken.quarantine.count() == 0
    assert taken.header.count() == 1
    assert taken.event.count() == len(TRACE.read_text().splitlines()) - 1


@in_spark
def test_only_the_columns_that_are_named_are_read(source: SparkSession) -> None:
    frame = source.read.format("koordinator").schema("seq BIGINT, kind STRING").load(str(TRACE))
    assert [tuple(row) for row in frame.orderBy("seq").limit(2).collect()] == [(None, "header"), (1, "conn")]


@in_spark
def test_a_line_that_is_none_of_a_trace_is_named(source: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"seq": 1, "kind": "conn"}, {"seq": 2})
    with pytest.raises(PySparkException, match=r"a\.jsonl: line 2: a JSON object with a kind is wanted"):
        source.read.format("koordinator").load(str(path)).collect()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="option 'path' is missing"):
        KoordinatorSource({}).reader(EVENT.columns)
    with pytest.raises(ValueError, match="no file of this name"):
        KoordinatorSource({"path": str(tmp_path)}).reader(EVENT.columns).partitions()
    with pytest.raises(ValueError, match=r"option 'bootstrap\.servers' is missing"):
        KoordinatorSource({}).simpleStreamReader(EVENT.columns)
    with pytest.raises(ValueError, match="'localhost' is not host:port"):
        KoordinatorSource({"bootstrap.servers": "localhost"}).simpleStreamReader(EVENT.columns)


@in_spark
def test_a_stream_follows_a_running_emulator_from_where_its_checkpoint_is(
    source: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    def follow() -> list[int | None]:
        growing = source.readStream.format("koordinator").option("bootstrap.servers", cluster.bootstrap_servers)
        writer = growing.load().writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "o"))
        assert query.awaitTermination(QUERY_S)
        assert query.exception() is None
        rows = source.read.parquet(str(tmp_path / "o")).select("seq").collect()
        return sorted((row.seq for row in rows), key=lambda seq: seq or 0)

    first = follow()
    assert first == [None, *range(1, len(first))]
    cluster.group("g").puppet("one", topics=["t"]).join()
    second = follow()
    assert len(second) > len(first)
    assert second == [None, *range(1, len(second))]


def test_a_follower_reads_on_where_it_was_over_one_connection(cluster: Cluster, follower: Follow) -> None:
    reader = follower(cluster)
    first, end = read(reader, reader.initialOffset())
    assert [row["kind"] for row in first][:2] == ["header", "conn"]
    # its second connection, to the leader, came while it read; nothing comes after that
    again, end = read(reader, end)
    assert read(reader, end) == ([], end)
    cluster.create_topic("other")
    cluster.group("g").puppet("one", topics=["t"])
    more, _ = read(reader, end)
    assert [row["kind"] for row in more][:1] == ["puppet"]
    assert [row["seq"] for row in (*first[1:], *again, *more)] == list(range(1, more[-1]["seq"] + 1))


def test_a_batch_that_was_planned_is_read_again_the_same(cluster: Cluster, follower: Follow) -> None:
    reader = follower(cluster)
    start = reader.initialOffset()
    rows, end = reader.read(start)
    assert list(follower(cluster).readBetweenOffsets(start, end)) == list(rows)


def test_an_emulator_that_was_started_anew_is_read_from_its_beginning(cluster: Cluster, follower: Follow) -> None:
    reader = follower(cluster)
    _, end = read(reader, reader.initialOffset())
    with Emulator() as other:
        found, _ = read(follower(other), {**end, "offset": 1000})
        assert found[0]["kind"] == "header"
        with pytest.raises(ValueError, match="are gone: follow it with a new checkpoint"):
            follower(other).readBetweenOffsets(end, {**end, "offset": 1000})


def test_what_is_lost_is_told(follower: Follow) -> None:
    with Emulator() as small:
        port: Any = small._port
        port.act(lambda _: setattr(port.parts.trace, "_capacity", 5), "test")
        group = small.group("g")
        for number in range(10):
            group.puppet(f"p{number}", topics=[])
        found, _ = read(follower(small), {"trace_id": "", "offset": 3})
        assert [row["kind"] for row in found][:2] == ["header", "dropped"]
        assert found[1]["count"] == found[1]["seq"]


def test_nobody_there_is_said_so(follower: Follow) -> None:
    with Emulator() as gone:
        reader = follower(gone)
        read(reader, reader.initialOffset())
    with pytest.raises(ClientError):
        reader.read({"trace_id": "", "offset": 1})
