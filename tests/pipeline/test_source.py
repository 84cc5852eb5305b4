"""The Spark data source: files as the pipeline reads them, and a growing trace."""

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
from koordinator.client.errors import ClientError
from koordinator.pipeline.frames import rows_of
from koordinator.pipeline.local_files import list_files, read_lines
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
    """Create readers that follow a cluster."""
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
def test_files_give_the_events_that_the_pipeline_reads(source: SparkSession, tmp_path: Path, packing: str) -> None:
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
    files = list_files([str(folder)]) or []
    expected = intake.ingest(intake.parse_lines(read_lines(files), [files[0].source_file])).event
    assert found.columns == EVENT.names
    events = found.where("kind <> 'header'").orderBy("seq").collect()
    assert len(events) > 100
    assert [row.asDict() for row in events] == rows_of(expected.sort_by("seq"))
    header, *others = found.where("kind = 'header'").collect()
    assert not others
    assert header.body == TRACE.read_text().splitlines()[0]


@in_spark
def test_its_rows_as_parquet_are_an_input_of_the_pipeline(source: SparkSession, tmp_path: Path) -> None:
    source.read.format("koordinator").load(str(TRACE)).write.parquet(str(tmp_path / "p"))
    rows = source.read.parquet(str(tmp_path / "p")).selectExpr("*", "'f' AS source_file", "'i' AS ingest_id")
    taken = intake.ingest(intake.parse_table(rows))
    assert taken.quarantine.count() == 0
    assert taken.header.count() == 1
    assert taken.event.count() == len(TRACE.read_text().splitlines()) - 1


@in_spark
def test_a_schema_selects_columns(source: SparkSession) -> None:
    frame = source.read.format("koordinator").schema("seq BIGINT, kind STRING").load(str(TRACE))
    assert [tuple(row) for row in frame.orderBy("seq").limit(2).collect()] == [(None, "header"), (1, "conn")]


@in_spark
def test_the_error_names_an_invalid_line(source: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"seq": 1, "kind": "conn"}, {"seq": 2})
    with pytest.raises(PySparkException, match=r"a\.jsonl: line 2: expected a JSON object with a key 'kind'"):
        source.read.format("koordinator").load(str(path)).collect()


def test_errors_name_missing_options(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="option 'path' is missing"):
        KoordinatorSource({}).reader(EVENT.columns)
    with pytest.raises(ValueError, match="no such file"):
        KoordinatorSource({"path": str(tmp_path)}).reader(EVENT.columns).partitions()
    with pytest.raises(ValueError, match=r"option 'bootstrap\.servers' is missing"):
        KoordinatorSource({}).simpleStreamReader(EVENT.columns)
    with pytest.raises(ValueError, match="'localhost' is not host:port"):
        KoordinatorSource({"bootstrap.servers": "localhost"}).simpleStreamReader(EVENT.columns)


def test_the_trace_is_followed_with_tls_and_sasl(tmp_path: Path) -> None:
    with Emulator(security="sasl_ssl", users={"alice": "planted"}, topics={"t": 2}) as cluster:
        settings = cluster.client_config("java", user="alice")
        options = {"bootstrap.servers": cluster.bootstrap_servers}
        file = tmp_path / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        for given in (settings, {"command.config": str(file)}):
            reader = KoordinatorSource({**given, **options}).simpleStreamReader(EVENT.columns)
            lines, _ = read(reader, reader.initialOffset())
            reader.stop()
            assert lines[0]["kind"] == "header"
        wrong = KoordinatorSource({**settings, **options, "sasl.jaas.config": 'username="alice" password="no"'})
        with pytest.raises(ClientError, match="password"):
            read(wrong.simpleStreamReader(EVENT.columns), {"trace_id": "", "offset": 0})
    with pytest.raises(ValueError, match=r"security\.protocol=SASL"):
        KoordinatorSource({**options, "security.protocol": "sasl"}).simpleStreamReader(EVENT.columns)


@in_spark
def test_a_stream_follows_an_emulator_from_its_checkpoint(
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
    cluster.group("g").create_puppet("one", topics=["t"]).join()
    second = follow()
    assert len(second) > len(first)
    assert second == [None, *range(1, len(second))]


def test_a_reader_continues_over_one_connection(cluster: Cluster, follower: Follow) -> None:
    reader = follower(cluster)
    first, end = read(reader, reader.initialOffset())
    assert [row["kind"] for row in first][:2] == ["header", "conn"]
    # the second connection, to the leader, opened during the read; nothing follows it
    again, end = read(reader, end)
    assert read(reader, end) == ([], end)
    cluster.create_topic("other")
    cluster.group("g").create_puppet("one", topics=["t"])
    more, _ = read(reader, end)
    assert [row["kind"] for row in more][:1] == ["puppet"]
    assert [row["seq"] for row in (*first[1:], *again, *more)] == list(range(1, more[-1]["seq"] + 1))


def test_a_planned_batch_can_be_read_again(cluster: Cluster, follower: Follow) -> None:
    reader = follower(cluster)
    start = reader.initialOffset()
    rows, end = reader.read(start)
    assert list(follower(cluster).readBetweenOffsets(start, end)) == list(rows)


def test_a_restarted_emulator_is_read_from_the_beginning(cluster: Cluster, follower: Follow) -> None:
    reader = follower(cluster)
    _, end = read(reader, reader.initialOffset())
    with Emulator() as other:
        found, _ = read(follower(other), {**end, "offset": 1000})
        assert found[0]["kind"] == "header"
        with pytest.raises(ValueError, match="no longer exist: start the query with a new checkpoint"):
            follower(other).readBetweenOffsets(end, {**end, "offset": 1000})


def test_dropped_events_are_reported(follower: Follow) -> None:
    with Emulator() as small:
        port: Any = small._port
        port.act(lambda _: setattr(port.served.trace, "_capacity", 5), "test")
        group = small.group("g")
        for number in range(10):
            group.create_puppet(f"p{number}", topics=[])
        found, _ = read(follower(small), {"trace_id": "", "offset": 3})
        assert [row["kind"] for row in found][:2] == ["header", "dropped"]
        assert found[1]["count"] == found[1]["seq"]


def test_a_missing_emulator_is_an_error(follower: Follow) -> None:
    with Emulator() as gone:
        reader = follower(gone)
        read(reader, reader.initialOffset())
    with pytest.raises(ClientError):
        reader.read({"trace_id": "", "offset": 1})
