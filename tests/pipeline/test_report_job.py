"""`koordinator-pipeline report` writes the page, its timelines and the summary, or a one-line error."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from spark.report_store import ROWS, reader, unfinished

from koordinator.pipeline import schema
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PATIENCE_S = 280

MAIN = "from koordinator.pipeline.cli import main; main()"


def report(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Path:
    """Write the report's tables as `run` would, with one event."""
    store, read = Store(str(tmp_path / "store")), reader(spark)
    store.open(spark, [])
    for path in ROWS:
        table = schema.TABLES[path]
        store.write(read(table).withColumns({name: F.lit("text-0") for name in table.partitions}), table)
    event = [("t", 3, "response", "C03")]
    frame = spark.createDataFrame(event, "trace_id string, seq long, kind string, group_id string")
    columns = [F.col(name) if name in frame.columns else F.lit(None).cast(kind.dataType).alias(name)
              for name, kind in zip(schema.EVENT.names, schema.EVENT.columns.fields, strict=True)]  # fmt: skip
    store.write(frame.select(*columns, F.lit("text-0").alias("home"), F.lit("text-0").alias("batch")), schema.EVENT)
    return tmp_path / "store"


def test_page_timelines_and_summary_are_written_to_the_given_paths(store: Path, tmp_path: Path) -> None:
    html, markdown = tmp_path / "new" / "page.html", tmp_path / "summary.md"
    done = report("--store", str(store), "--html", str(html), "--markdown", str(markdown), "--title", "a & b")
    assert (done.returncode, done.stdout) == (0, f"{html}\n"), done.stderr
    text = html.read_text(encoding="utf-8")
    assert "<title>a &amp; b</title>" in text
    assert 'href="page-timelines/t.html#seq=3"' in text
    assert "C03" in (tmp_path / "new" / "page-timelines" / "t.html").read_text(encoding="utf-8")
    assert markdown.read_text(encoding="utf-8").startswith("## a & b\n\n**6 rebalances**")


def test_the_report_of_an_unfinished_store_says_so(spark: SparkSession, store: Path, tmp_path: Path) -> None:
    unfinished(spark, Store(str(store)))
    done = report("--store", str(store), "--html", str(tmp_path / "page.html"), "--markdown", "-")
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, (tmp_path / "page.html").read_text(encoding="utf-8")):
        assert "The store is incomplete: the load of text-7 is not finished." in text


def test_a_folder_that_is_not_a_store_gives_one_line_and_no_files(tmp_path: Path) -> None:
    done = report("--store", str(tmp_path / "nowhere"), "--html", str(tmp_path / "page.html"))
    assert done.returncode == 2
    assert done.stderr.strip().startswith(f"koordinator-pipeline: {tmp_path / 'nowhere'}: not a store")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
