"""The commands on the page of clusters: on a cluster, submitted, or through Spark Connect, the tables are the same."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from broken.exploring import failures_here
from pyarrow import parquet
from scenes.documentation import BASH, blocks
from spark import cluster
from spark.hdfs import hdfs
from spark.loads import load, put, tables, trace

from koordinator.lab.sweep import row_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

JOB_S = 900
TRACES = ("cooperative",)

BROKEN_SEEDS = 120
"""Schedules with a broken core, of which some fail."""

COMMANDS = [block.text for block in blocks("bash") if block.page.stem == "pipeline-cluster"]
MASTER, FILES = "spark://host:7077", "hdfs://namenode"
"""The addresses in the commands."""

SHELL = """
set -eu
koordinator-pipeline() { "$PYTHON" -m koordinator.pipeline "$@" $SETTINGS; }
spark-submit() { "$BIN/spark-submit" --conf spark.driver.host=127.0.0.1 --conf spark.sql.shuffle.partitions=2 "$@"; }
python() { "$PYTHON" "$@"; }
pip() { mkdir -p dist; cp "$KOORDINATOR_WHEEL" dist; }
"""
"""The programs in the commands; the wheel exists already. SETTINGS follow the options of a page's command."""

UNCOMPILED = ("spark.sql.codegen.wholeStage=false", "spark.sql.codegen.factoryMode=NO_CODEGEN")
"""The settings line of a job that sees its inputs, and that they are small."""

TWO_PARTITIONS = "spark.sql.shuffle.partitions=2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("beyond")


@pytest.fixture(scope="module")
def inputs(folder: Path) -> Path:
    for name in TRACES:
        put(folder / "inputs", f"{name}.jsonl", trace(name))
    return folder / "inputs"


@pytest.fixture(scope="module")
def here(spark: SparkSession, folder: Path, inputs: Path) -> dict[str, list[str]]:
    """Return the tables that this machine produces."""
    load(spark, folder / "here", inputs)
    return tables(folder / "here")


def run(folder: Path, of: str, *settings: str, **addresses: str) -> None:
    """Run the command of the page that has a text, with the addresses of this machine and more settings."""
    (command,) = (text for text in COMMANDS if of in text)
    for name, address in addresses.items():
        command = command.replace({"master": MASTER, "remote": "sc://host:15002", "files": FILES}[name], address)
    command = command.replace("spark.executor.memory=4g", "spark.executor.memory=1g")
    (folder / "work").mkdir(exist_ok=True)
    given = {"PYTHON": sys.executable, "BIN": str(cluster.spark_bin())}
    given["KOORDINATOR_WHEEL"] = str(Path(os.environ.get("KOORDINATOR_WHEEL", "")).absolute())
    given["SETTINGS"] = " ".join(f"--conf {setting}" for setting in settings)
    script = f"cd {folder}/work\n{SHELL}{command}"
    cluster.run_program([BASH, "-c", script], cluster.environ(folder) | given, JOB_S)


def test_a_job_on_two_workers_writes_the_same_tables(folder: Path, inputs: Path, here: dict[str, list[str]]) -> None:
    shutil.copytree(inputs, folder / "cluster" / "traces")
    with cluster.cluster(folder) as master:
        settings = ("spark.driver.host=127.0.0.1", TWO_PARTITIONS)
        run(folder, "run --master", *settings, master=master, files=str(folder / "cluster"))
    executors = {path.parents[2].name for path in folder.glob("worker-*/app-*/*/stderr")}
    assert executors == {"worker-0", "worker-1"}
    assert tables(folder / "cluster" / "store") == here


@pytest.mark.skipif("KOORDINATOR_WHEEL" not in os.environ, reason="make spark-cluster-test names the wheel that it has")
def test_a_submitted_job_writes_the_same_tables(folder: Path, inputs: Path, here: dict[str, list[str]]) -> None:
    shutil.copytree(inputs, folder / "submitted" / "traces")
    with cluster.cluster(folder) as master:
        run(folder, "spark-submit", master=master, files=str(folder / "submitted"))
    assert tables(folder / "submitted" / "store") == here


def test_the_laboratory_on_two_workers_has_the_runs_of_this_machine(folder: Path) -> None:
    cells = ["--grid", "scheme=consumer,static", "--grid", "situation=bounce,crash", "--seeds", "15"]
    with cluster.cluster(folder) as master:
        for job in (["lab", "--output", str(folder / "lab"), *cells], ["explore", "--seeds", "500"]):
            settings = ["--master", master, "--conf", "spark.driver.host=127.0.0.1"]
            cluster.run_program(
                [sys.executable, "-m", "koordinator.pipeline", *job, *settings], cluster.environ(folder), JOB_S
            )
        broken = [sys.executable, "-m", "broken.exploring", master, str(BROKEN_SEEDS)]
        failures = json.loads(cluster.run_program(broken, cluster.environ(folder), JOB_S).splitlines()[-1])
    executors = {path.parents[2].name for path in folder.glob("worker-*/app-*/*/stderr")}
    assert executors == {"worker-0", "worker-1"}
    rows = parquet.read_table(folder / "lab" / "lab_result").to_pylist()
    assert len(rows) == 60
    assert rows == [{**row, **row_of(row["cell"])} for row in rows]
    assert failures == failures_here(BROKEN_SEEDS) != []


def test_a_spark_connect_server_writes_the_same_tables(folder: Path, inputs: Path, here: dict[str, list[str]]) -> None:
    shutil.copytree(inputs, folder / "remote" / "traces")
    with cluster.connect_server(folder) as remote:
        run(folder, "--remote", remote=remote, files=str(folder / "remote"))
    assert tables(folder / "remote" / "store") == here


@pytest.mark.needs("java")
def test_inputs_and_store_in_hdfs_give_the_same_tables(folder: Path, inputs: Path, here: dict[str, list[str]]) -> None:
    with hdfs(folder) as there:
        there.shell("-put", str(inputs), "/traces")
        run(folder, "run --master", *UNCOMPILED, TWO_PARTITIONS, master="local[2]", files=there.url)
        there.shell("-get", "/store", str(folder / "fetched"))
    assert tables(folder / "fetched") == here
