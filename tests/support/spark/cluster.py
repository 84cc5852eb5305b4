"""A standalone Spark cluster on loopback, and a Spark Connect server; the processes end with the test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from koordinator.pipeline import java

if TYPE_CHECKING:
    from collections.abc import Iterator

READY_S = 600
"""Time limit for starting a Spark process on a busy machine."""

POLL_S = 0.2
END_S = 30
LOOPBACK = "127.0.0.1"

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Java options for a quick start, at the cost of a slower long run."""

MASTER = re.compile(r"Starting Spark master at (spark://[\d.:]+)")
WORKER = re.compile(r"Successfully registered with master")
CONNECT = re.compile(r"Spark Connect server started at: .*?:(\d+)")


def spark_bin() -> Path:
    """Return the folder of PySpark's programs, without an import: this module is read where PySpark is absent."""
    found = find_spec("pyspark")
    assert found is not None, "pyspark is not installed"
    return Path(str(found.origin)).parent / "bin"


@contextmanager
def cluster(folder: Path, workers: int = 2, memory: str = "1g", java_options: str = QUICK) -> Iterator[str]:
    """Start a master and its workers, with one core and so much memory each; yield the address of the master.

    `java_options` are those of the master, the workers and their executors.
    """
    with ExitStack() as running:

        def daemon(name: str, ready: re.Pattern[str], main: str, *arguments: str) -> re.Match[str]:
            command = [str(spark_bin() / "spark-class"), f"org.apache.spark.{main}", *arguments]
            return running.enter_context(process(folder, name, command, ready, java_options))

        options = ("--host", LOOPBACK, "--port", "0", "--webui-port", "0")
        started = daemon("master", MASTER, "deploy.master.Master", *options)
        for number in range(workers):
            name = f"worker-{number}"
            size = ("--cores", "1", "--memory", memory, "--work-dir", str(folder / name))
            daemon(name, WORKER, "deploy.worker.Worker", *options, *size, started[1])
        yield started[1]


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a Spark Connect server with two cores; yield its address."""
    settings = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(spark_bin() / "spark-submit"), "--master", "local[2]", *given, "--class"]
    command += ["org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with process(folder, "connect", command, CONNECT) as started:
        yield f"sc://{LOOPBACK}:{started[1]}"


def run_program(command: list[str], environ: dict[str, str], timeout_s: float) -> str:
    """Run a program that must succeed, and return its output."""
    finished = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, env=environ)
    assert finished.returncode == 0, f"{finished.stdout}\n{finished.stderr}"
    return finished.stdout


def environ(folder: Path) -> dict[str, str]:
    """Return the environment: a Java that starts quickly, this Python, and loopback as the only network."""
    own = {
        "JDK_JAVA_OPTIONS": QUICK,
        "JAVA_HOME": str(java.find_java_home(folder / "java")),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_PUBLIC_DNS": LOOPBACK,
    }
    return {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"} | own


@contextmanager
def process(
    folder: Path, name: str, command: list[str], ready: re.Pattern[str], java_options: str = QUICK
) -> Iterator[re.Match[str]]:
    """Run a process until the block ends; yield the match of its ready message."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        given = environ(folder) | {"JDK_JAVA_OPTIONS": java_options}
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=given
        )
    try:
        yield _wait_for(process, log, ready)
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)


def _wait_for(process: subprocess.Popen[bytes], log: Path, ready: re.Pattern[str]) -> re.Match[str]:
    end = monotonic() + READY_S
    while monotonic() < end and process.poll() is None:
        match = ready.search(log.read_text(errors="replace"))
        if match:
            return match
        sleep(POLL_S)
    raise AssertionError(f"{log.name}: not ready within {READY_S} s; it says:\n{log.read_text(errors='replace')}")
