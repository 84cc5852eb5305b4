"""A job on a cluster, submitted, or through Spark Connect produces the same tables as on this machine."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark import cluster
from spark.hdfs import hdfs
from spark.loads import load, put, read_table, tables, trace

from koordinator.pipeline.schema import VERDICT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

JOB_S = 500
TRACES = ("cooperative",)

UNCOMPILED = ("spark.sql.codegen.wholeStage=false", "spark.sql.codegen.factoryMode=NO_CODEGEN")
"""The settings line of a job that sees its inputs, and that they are small."""


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


def run(folder: Path, inputs: Path | str, store: Path | str, *arguments: str) -> None:
    """Run `koordinator-pipeline run`."""
    job = ["run", "--input", str(inputs), "--output", str(store), *arguments]
    cluster.run_program([sys.executable, "-m", "koordinator.pipeline", *job], cluster.environ(folder), JOB_S)


def test_a_submitted_job_on_two_workers_writes_the_same_tables(
    folder: Path, inputs: Path, here: dict[str, list[str]]
) -> None:
    store = folder / "cluster"
    with cluster.cluster(folder) as master:
        settings = ("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.sql.shuffle.partitions=2")
        run(folder, inputs, store, "--master", master, *settings)
        executors = {path.parents[2].name for path in folder.glob("worker-*/app-*/*/stderr")}
        job = ("verify", "--store", str(store), "--json", str(folder / "verdicts.json"))
        cluster.submit(folder, master, packages(folder), *job, timeout_s=JOB_S)
    assert executors == {"worker-0", "worker-1"}
    assert tables(store) == here
    judged = json.loads((folder / "verdicts.json").read_text())["checks"]
    passed = {check["id"]: check["pass"] for check in judged if check["pass"]}
    assert passed == Counter(
        row["check_id"] for row in read_table(store, VERDICT).to_pylist() if row["status"] == "pass"
    )
    assert passed


def test_a_spark_connect_server_writes_the_same_tables(folder: Path, inputs: Path, here: dict[str, list[str]]) -> None:
    store = folder / "remote"
    with cluster.connect_server(folder) as remote:
        run(folder, inputs, store, "--remote", remote)
    assert tables(store) == here


@pytest.mark.needs("java")
def test_inputs_and_store_in_hdfs_give_the_same_tables(folder: Path, inputs: Path, here: dict[str, list[str]]) -> None:
    settings = [word for setting in (*UNCOMPILED, "spark.sql.shuffle.partitions=2") for word in ("--conf", setting)]
    with hdfs(folder) as there:
        there.shell("-put", str(inputs), "/inputs")
        run(folder, f"{there.url}/inputs", f"{there.url}/store", *settings)
        there.shell("-get", "/store", str(folder / "fetched"))
    assert tables(folder / "fetched") == here


def packages(folder: Path) -> Path:
    """Return the wheel as a .zip file, which --py-files accepts."""
    wheel = os.environ.get("KOORDINATOR_WHEEL")
    if not wheel:
        pytest.skip("there is no wheel: make spark-cluster-test names the one it has built")
    return Path(shutil.copy(wheel, folder / "koordinator.zip"))
