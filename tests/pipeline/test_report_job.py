"""`koordinator-pipeline report` writes the page, its timelines and the summary, or a one-line error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from spark.in_process import run_in_process
from spark.literal_frames import literal
from spark.report_store import ROWS, reader, write_store

from koordinator.pipeline import schema
from koordinator.pipeline.snapshots import parquet_files

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write the report's tables as `run` would, with one event."""
    event = {"trace_id": "t", "seq": 3, "kind": "response", "group_id": "C03"}
    tables = {schema.TABLES[path]: reader()(schema.TABLES[path]) for path in ROWS}
    write_store(tmp_path / "store", tables | {schema.EVENT: literal(None, schema.EVENT, event)})
    return tmp_path / "store"


def test_page_timelines_and_summary_are_written_to_the_given_paths(
    store: Path, tmp_path: Path, spark: SparkSession
) -> None:
    html, markdown = tmp_path / "new" / "page.html", tmp_path / "summary.md"
    files = ["--html", str(html), "--markdown", str(markdown)]
    done = run_in_process(spark, ["report", "--store", str(store), *files, "--title", "a & b"], tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{html}\n"), done.stderr
    text = html.read_text(encoding="utf-8")
    assert "<title>a &amp; b</title>" in text
    assert 'href="page-timelines/t.html#seq=3"' in text
    assert "C03" in (tmp_path / "new" / "page-timelines" / "t.html").read_text(encoding="utf-8")
    assert markdown.read_text(encoding="utf-8").startswith("## a & b\n\n**6 rebalances**")


def test_a_folder_that_is_not_a_store_gives_one_line_and_no_files(tmp_path: Path, spark: SparkSession) -> None:
    done = run_in_process(spark, ["report", "--store", "nowhere", "--html", "page.html"], tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().startswith(f"koordinator-pipeline: {tmp_path / 'nowhere'}: not a store")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_table_that_cannot_be_read_gives_one_line(store: Path, tmp_path: Path, spark: SparkSession) -> None:
    (file,) = parquet_files(store, "gold/rebalance")
    file.write_text("damaged")
    done = run_in_process(spark, ["report", "--store", str(store), "--html", "page.html"], tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert str(file) in line
    assert line.endswith(". Repair or remove the file, and run the command again")
