"""A load reads new input once. The tables do not depend on the order of the input, or on interruptions."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from spark.loads import copied, load, put, tables, trace

from koordinator.pipeline import file_streams, layers
from koordinator.pipeline.fold.frames import FOLD, unfolded
from koordinator.pipeline.job_errors import JobFailed, JobRefused
from koordinator.pipeline.schema import COUNTS, EVENT, QUARANTINE, SCHEMA_VERSION, STATE_TIME
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

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


def test_late_lines_give_the_same_tables_as_one_load(second: Path, whole: dict[str, list[Any]]) -> None:
    assert tables(second) == whole
    assert len(whole["silver/event"]) == len(A) + len(B) - 2


def test_a_second_load_reads_new_files_only(second: Path, folder: Path, spark: SparkSession) -> None:
    store = copied(second, folder / "only new")
    counts = Store(str(store)).read(spark, COUNTS)
    assert {(row.batch, row["source_file"].rpartition("/")[2], row["read"]) for row in counts.collect()} == {
        ("text-0", "a1.jsonl", HALF),
        ("text-1", "a2.jsonl", len(A) - HALF),
        ("text-1", "b.jsonl", len(B)),
    }
    assert load(spark, store, folder / "inputs").counts == []


def test_late_lines_can_empty_a_table(
    first: Path, folder: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half_state_time(event: DataFrame, folded: DataFrame) -> DataFrame:
        made = unfolded(STATE_TIME, folded)
        return made if event.count() < HALF else made.where("false")

    steps = [step for step in layers.PER_HOME_STEPS if step.table != STATE_TIME]
    shrinks = layers.Step(STATE_TIME, half_state_time, (EVENT, FOLD))
    monkeypatch.setattr(layers, "PER_HOME_STEPS", (*steps, shrinks))
    store = copied(first, tmp_path / "store")
    before = Store(str(store)).read(spark, STATE_TIME).count()
    load(spark, store, folder / "inputs")
    assert (before > 0, Store(str(store)).read(spark, STATE_TIME).count()) == (True, 0)


KILLED = """
import os, signal, sys
from koordinator.pipeline import cli, store
real = store.overwrite
def overwrite(frame, path, partitions):
    if path.endswith(sys.argv[1]):
        os.killpg(0, signal.SIGKILL)
    real(frame, path, partitions)
store.overwrite = overwrite
cli.main(sys.argv[2:])
"""


def test_the_next_load_finishes_a_killed_load(
    first: Path, second: Path, tmp_path: Path, folder: Path, spark: SparkSession
) -> None:
    store = copied(first, tmp_path / "store")
    job = ["run", "--input", str(folder / "inputs"), "--output", str(store), "--master", "local[2]"]
    command = [sys.executable, "-c", KILLED, "silver/header", *job]
    environ = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    done = subprocess.run(
        command, check=False, env=environ, start_new_session=True, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
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


@pytest.mark.parametrize(
    ("inputs", "pattern"),
    [
        (["/data"], "/data"),
        (["/data/a", "/data/b/*.jsonl"], "/data/{a,b/*.jsonl}"),
        (["/data", "/data-2"], "/{data,data-2}"),
        (["/data/{a/x,b}", "/data/{a/y,c}"], "/data/{{a/x,b},{a/y,c}}"),
        (["s3a://bucket/ci", "s3a://bucket/cd"], "s3a://bucket/{ci,cd}"),
    ],
)
def test_the_combined_pattern_starts_with_the_common_prefix(inputs: list[str], pattern: str) -> None:
    assert file_streams.combined_glob(inputs) == pattern


@pytest.mark.parametrize("other", ["s3a://other/x", "/x"])
def test_inputs_on_several_file_systems_are_refused(other: str) -> None:
    with pytest.raises(JobRefused, match=f"--input s3a://bucket/x, --input {other}: they are on several file systems"):
        file_streams.combined_glob(["s3a://bucket/x", other])


def test_a_file_that_changed_after_it_was_read_is_reported(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path / "inputs", "b.jsonl", B)
    load(spark, tmp_path / "store", tmp_path / "inputs")
    changed = tmp_path / "inputs" / "b.jsonl"
    changed.write_text(changed.read_text() + "\n")
    assert [name.rpartition("/")[2] for name in load(spark, tmp_path / "store", tmp_path / "inputs").changed] == [
        "b.jsonl"
    ]


def test_too_many_bad_rows_stop_a_load_that_continues_with_a_higher_limit(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path / "inputs", "b.jsonl", [*B, "{"])
    with pytest.raises(
        JobFailed, match=r"1 of 56 rows are bad \(1\.786%\), more than --max-bad-ratio 1\.000%"
    ) as caught:
        load(spark, tmp_path / "store", tmp_path / "inputs", max_bad_ratio=0.01)
    reason = "bad_json: expected a JSON object with the columns of a trace"
    assert str(caught.value).endswith(f"{tmp_path}/inputs/b.jsonl:{len(B) + 1}: {reason}")
    loaded = load(spark, tmp_path / "store", tmp_path / "inputs", max_bad_ratio=0.02)
    assert loaded.rows("quarantined") == 1
    assert [line.rpartition("/")[2] for line in loaded.bad_lines()] == [f"b.jsonl:{len(B) + 1}: {reason}"]
    (row,) = Store(str(tmp_path / "store")).read(spark, QUARANTINE).collect()
    assert (row.raw, row.reason, row.line_no) == ("{", "bad_json", len(B) + 1)


def test_a_store_without_its_checkpoint_is_refused(
    first: Path, folder: Path, tmp_path: Path, spark: SparkSession
) -> None:
    store = copied(first, tmp_path / "store")
    shutil.rmtree(store / "checkpoint")
    with pytest.raises(JobRefused, match="restore it, or load the inputs into a new store"):
        load(spark, store, folder / "inputs")


def test_a_store_of_another_version_is_refused(
    first: Path, folder: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copied(first, tmp_path / "store")
    monkeypatch.setattr("koordinator.pipeline.store.SCHEMA_VERSION", SCHEMA_VERSION + 1)
    with pytest.raises(JobRefused, match=f"its tables have version {SCHEMA_VERSION}"):
        load(spark, store, folder / "inputs")


def test_readers_refuse_a_folder_that_is_not_a_store(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(JobRefused, match="not a store of koordinator-pipeline"):
        Store(str(tmp_path)).require(spark)
