"""A load reads new input once. The tables do not depend on the order of the input, or on interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from spark.loads import TRACES, copied, differing, load, put, read_table, tables, trace
from spark.log_rows import recorded

from koordinator.pipeline import layers, loading
from koordinator.pipeline.fold import frames
from koordinator.pipeline.fold.frames import fold_partition
from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.job_errors import JobFailed, JobRefused, spark_errors_explained
from koordinator.pipeline.jobs import compact as compact_job
from koordinator.pipeline.schema import (
    COUNTS,
    MEMBER_SPAN,
    QUARANTINE,
    SCHEMA_VERSION,
    STATE_TIME,
    TRACE,
)
from koordinator.pipeline.snapshots import LocalSnapshotFiles, as_of, parquet_files
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from koordinator.pipeline.schema import Table

OF_TRACE = ("run_id", "test_id", "cluster")
"""The columns of a row that come from silver/trace."""

BAD = 0.1
"""The tolerated share of bad rows: one line does not exceed it."""

A, B = trace("cooperative"), trace("late_commit")
HALF = len(A) // 2


@pytest.fixture(scope="module", autouse=True)
def _few_tables() -> Iterator[None]:
    """Build a few tables only: the behaviour of a load does not depend on their number; its duration does."""
    paths = {"silver/trace", "silver/fold", "silver/call", "silver/member_span", "silver/round", "gold/state_time"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            layers, "PER_HOME_STEPS", tuple(step for step in layers.PER_HOME_STEPS if step.table.path in paths)
        )
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loading")


@pytest.fixture(scope="module")
def first(folder: Path, spark: SparkSession) -> Path:
    """A store with half a trace. The other half is among the inputs, together with another trace."""
    put(folder / "inputs", "a1.jsonl", A[:HALF])
    load(spark, folder / "first", folder / "inputs")
    put(folder / "inputs", "a2.jsonl", A[HALF:])
    put(folder / "inputs", "b.jsonl", B)
    return folder / "first"


@pytest.fixture(scope="module")
def second(folder: Path, first: Path, spark: SparkSession) -> Path:
    """That store after the second load."""
    load(spark, copied(first, folder / "second"), folder / "inputs")
    return folder / "second"


@pytest.fixture(scope="module")
def whole(folder: Path, spark: SparkSession) -> dict[str, list[Any]]:
    """The tables after one load of everything."""
    put(folder / "whole", "a.jsonl", A)
    put(folder / "whole", "b.jsonl", B)
    load(spark, folder / "of whole", folder / "whole")
    return tables(folder / "of whole")


@pytest.mark.slow
def test_late_lines_give_the_same_tables_as_one_load(second: Path, whole: dict[str, list[Any]]) -> None:
    assert tables(second) == whole
    assert len(whole["silver/event"]) == len(A) + len(B) - 2


def test_a_second_load_reads_new_files_only(second: Path, folder: Path, spark: SparkSession) -> None:
    store = copied(second, folder / "only new")
    counts = read_table(store, COUNTS).to_pylist()
    assert {(row["batch"], row["source_file"].rpartition("/")[2], row["read"]) for row in counts} == {
        ("text-1", "a1.jsonl", HALF),
        ("text-2", "a2.jsonl", len(A) - HALF),
        ("text-2", "b.jsonl", len(B)),
    }
    assert load(spark, store, folder / "inputs").counts == []


@pytest.fixture(scope="module")
def both_sizes(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Path, Path]:
    """Two stores of the same inputs: one loaded as small, the other as large, in more partitions than it needs."""
    folder, generated = tmp_path_factory.mktemp("sizes"), generate_trace(7, 1, 60)
    for path in TRACES.glob("*.jsonl"):
        put(folder / "inputs", path.name, trace(path.stem))
    put(folder / "inputs", "generated.jsonl", [*generated.lines, "{"])
    put(folder / "inputs", "server.log", recorded("4.3"))
    load(spark, folder / "small", folder / "inputs", max_bad_ratio=BAD)
    settings = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "16"}
    before = {name: spark.conf.get(name) for name in settings}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "SMALL_BYTES", -1)
        for name, value in settings.items():
            spark.conf.set(name, value)
        load(spark, folder / "large", folder / "inputs", max_bad_ratio=BAD)
    for name, old in before.items():
        spark.conf.set(name, str(old))
    return folder / "small", folder / "large"


def test_a_large_load_makes_the_tables_of_a_small_one(both_sizes: tuple[Path, Path]) -> None:
    small, large = both_sizes
    assert differing(tables(large), tables(small)) == {}
    for table in (COUNTS, QUARANTINE):
        names = [name for name in table.names if name != "ingest_id"]
        one, other = ({*map(repr, read_table(each, table).select(names).to_pylist())} for each in both_sizes)
        assert one == other != set()


def test_rows_of_the_fold_have_the_columns_of_their_trace(both_sizes: tuple[Path, Path]) -> None:
    for each in both_sizes:
        rows = {(row["trace_id"], *map(row.get, OF_TRACE)) for row in read_table(each, STATE_TIME).to_pylist()}
        traces = {(row["trace_id"], *map(row.get, OF_TRACE)) for row in read_table(each, TRACE).to_pylist()}
        assert rows <= traces
        assert all(any(values) for values in zip(*rows, strict=True))


def test_a_small_table_of_the_fold_is_one_file(both_sizes: tuple[Path, Path]) -> None:
    assert [len(parquet_files(each, MEMBER_SPAN.path)) for each in both_sizes] == [1, 1]


def test_late_lines_can_empty_a_table(
    first: Path, folder: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_state_time(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Table, pa.Table, str]]:
        return (made for made in fold_partition(batches) if made[0] is not STATE_TIME)

    monkeypatch.setattr(frames, "fold_partition", no_state_time)
    store = copied(first, tmp_path / "store")
    before = read_table(store, STATE_TIME).num_rows
    load(spark, store, folder / "inputs")
    assert (before > 0, read_table(store, STATE_TIME).num_rows) == (True, 0)


def test_late_lines_after_compact_replace_the_rows_of_their_home_only(
    second: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copied(second, tmp_path / "store")
    monkeypatch.setattr(compact_job, "open_session", lambda **_: nullcontext(spark))
    assert CliRunner().invoke(compact_job.compact, ["--store", str(store)], standalone_mode=False).exit_code == 0
    compacted = as_of(LocalSnapshotFiles(store), str(store), None)
    assert {len(folders) for folders in compacted.tables.values()} == {1}
    assert tables(store) == tables(second)
    conn = next(line for line in map(json.loads, A) if line["kind"] == "conn") | {"seq": 10**6, "conn_id": 10**6}
    put(tmp_path / "late", "late.jsonl", [json.dumps(conn)])
    load(spark, store, tmp_path / "late")
    changed = differing(tables(store), tables(second))
    assert {table: len(rows) for table, rows in changed.items()} == {
        "silver/event": 1,
        "silver/trace": 2,
        "silver/run": 2,
    }
    calls = as_of(LocalSnapshotFiles(store), str(store), None).folders("silver/call")
    # the rows of the other traces of its home, and the new ones
    assert [folder.homes for folder in calls] == [("text-2",), ("text-1", "text-4"), ("text-1", "text-4")]


@pytest.fixture(params=["small", "large"])
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load in memory, and by Spark."""
    if request.param == "large":
        monkeypatch.setattr(loading, "SMALL_BYTES", -1)


@pytest.mark.usefixtures("_size")
def test_a_table_without_rows_has_a_file_with_its_columns(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path / "in", "a.jsonl", [line for line in A if json.loads(line)["kind"] in ("header", "conn")])
    load(spark, tmp_path / "store", tmp_path / "in")
    for table in (STATE_TIME, MEMBER_SPAN):
        (file,) = parquet_files(tmp_path / "store", table.path)
        assert (pq.read_schema(file).names, pq.read_metadata(file).num_rows) == (table.stored_arrow.names, 0)


@pytest.mark.usefixtures("_size")
def test_files_and_folders_may_have_any_name(tmp_path: Path, spark: SparkSession) -> None:
    names = ["a b.jsonl", "a%20b.jsonl", "ü.jsonl", "x[1].jsonl", "q?.jsonl", "s*r.jsonl", "c,d#e+f.jsonl"]
    for number, name in enumerate(names):
        put(tmp_path / "in [a]%20b", name, generate_trace(7, number, 20).lines)
    counts = load(spark, tmp_path / "store", tmp_path / "in [a]%20b").counts
    assert [row["quarantined"] for row in counts] == [0] * len(names)
    assert {Path(unquote(row["source_file"])).name for row in counts} == set(names)


JOB_S = 900
"""The limit of a job in a process of its own, also on a busy machine."""

KILLED = """
import os, signal, sys
from koordinator.pipeline import cli, store
real = store.write
def write(frame, path):
    real(frame, path)
    if sys.argv[1] in path:
        os.killpg(0, signal.SIGKILL)
store.write = write
cli.main(sys.argv[2:])
"""


def test_a_killed_load_changes_nothing_and_the_next_one_starts_again(
    first: Path, second: Path, tmp_path: Path, folder: Path, spark: SparkSession
) -> None:
    store = copied(first, tmp_path / "store")
    job = ["run", "--input", str(folder / "inputs"), "--output", str(store), "--master", "local[2]"]
    command = [sys.executable, "-c", KILLED, "gold/heartbeat", *job]
    environ = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    done = subprocess.run(
        command, check=False, env=environ, start_new_session=True, capture_output=True, text=True, timeout=JOB_S
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert tables(store) == tables(first)
    load(spark, store, folder / "inputs")
    assert tables(store) == tables(second)


def test_a_later_load_may_add_an_input(tmp_path: Path, spark: SparkSession) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    put(one, "a.jsonl", A)
    put(two, "b.jsonl", B)
    assert len(load(spark, tmp_path / "store", one, two).counts) == 2
    put(three / "below", "c.jsonl", [line.replace("trace-b", "trace-c") for line in B])
    (row,) = load(spark, tmp_path / "store", one, two, three).counts
    assert (row.source_file.rpartition("/")[2], row.read) == ("c.jsonl", len(B))


def test_a_file_is_read_once_whatever_its_name(tmp_path: Path, spark: SparkSession) -> None:
    for number, name in enumerate(("a b.jsonl", "c[1]{2}*?.jsonl", "d%20e.jsonl")):
        put(tmp_path / "inputs", name, [line.replace("late_commit", f"trace-{number}") for line in B])
    assert [row["read"] for row in load(spark, tmp_path / "store", tmp_path / "inputs").counts] == [len(B)] * 3
    again = load(spark, tmp_path / "store", tmp_path / "inputs")
    assert (again.counts, again.changed) == ([], [])


def test_a_file_that_changed_after_it_was_read_is_reported(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path / "inputs", "b.jsonl", B)
    load(spark, tmp_path / "store", tmp_path / "inputs")
    changed = tmp_path / "inputs" / "b.jsonl"
    changed.write_text(changed.read_text() + "\n")
    assert [name.rpartition("/")[2] for name in load(spark, tmp_path / "store", tmp_path / "inputs").changed] == [
        "b.jsonl"
    ]


def test_a_trace_that_cannot_be_followed_fails_its_load_by_name(tmp_path: Path, spark: SparkSession) -> None:
    lines = [json.loads(line) for line in B]
    damaged = next(line for line in lines if "assignments" in line.get("body", {}))
    damaged["body"]["assignments"] = "?"
    put(tmp_path / "inputs", "b.jsonl", [json.dumps(line) for line in lines])
    with (
        pytest.raises(
            JobFailed, match=r"^the events of trace late_commit cannot be followed \(AttributeError.*\)\. Rem"
        ),
        spark_errors_explained(),
    ):
        load(spark, tmp_path / "store", tmp_path / "inputs")
    with pytest.raises(JobRefused, match="not a store"):
        Store(str(tmp_path / "store")).open(spark)


def test_too_many_bad_rows_stop_a_load_which_changes_nothing(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path / "inputs", "b.jsonl", [*B, "{"])
    with pytest.raises(
        JobFailed, match=r"1 of 56 rows are bad \(1\.786%\), more than --max-bad-ratio 1\.000%"
    ) as caught:
        load(spark, tmp_path / "store", tmp_path / "inputs", max_bad_ratio=0.01)
    reason = "bad_json: expected a JSON object with the columns of a trace"
    assert str(caught.value).endswith(f"{tmp_path}/inputs/b.jsonl:{len(B) + 1}: {reason}")
    with pytest.raises(JobRefused, match="not a store"):
        Store(str(tmp_path / "store")).open(spark)
    loaded = load(spark, tmp_path / "store", tmp_path / "inputs", max_bad_ratio=0.02)
    assert loaded.rows("quarantined") == 1
    assert [line.rpartition("/")[2] for line in loaded.bad_lines()] == [f"b.jsonl:{len(B) + 1}: {reason}"]
    (row,) = read_table(tmp_path / "store", QUARANTINE).to_pylist()
    assert (row["raw"], row["reason"], row["line_no"]) == ("{", "bad_json", len(B) + 1)


def test_a_store_of_another_version_is_refused(
    first: Path, folder: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copied(first, tmp_path / "store")
    monkeypatch.setattr("koordinator.pipeline.snapshots.SCHEMA_VERSION", SCHEMA_VERSION + 1)
    with pytest.raises(JobRefused, match=f"its tables have version {SCHEMA_VERSION}"):
        load(spark, store, folder / "inputs")


def test_readers_refuse_a_folder_that_is_not_a_store(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(JobRefused, match="not a store of koordinator-pipeline"):
        Store(str(tmp_path)).open(spark)
