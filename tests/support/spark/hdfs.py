"""A Hadoop file system on loopback with one data node: Hadoop's own test cluster, from Maven Central."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from brokers.kafka_releases import CACHE, LOG_WRITER, fetched

from spark.cluster import LOOPBACK, QUICK, environ, process, run_program

if TYPE_CHECKING:
    from collections.abc import Iterator

NEEDED = ("org.junit.jupiter:junit-jupiter-api:5.13.4", "org.mockito:mockito-core:4.11.0", LOG_WRITER)
"""Undeclared dependencies of the test cluster."""

STARTED = re.compile(r"Started MiniDFSCluster -- namenode on port (\d+)")
SHELL_S = 600


def version() -> str:
    """Return the version of Spark's Hadoop."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


class Hdfs:
    """A running file system.

    Attributes:
        url: the URL of its root, without a slash.
    """

    def __init__(self, folder: Path, java: list[str], port: str) -> None:
        self.url = f"hdfs://{LOOPBACK}:{port}"
        self._folder = folder
        self._java = java

    def shell(self, *command: str) -> str:
        """Run `hdfs dfs` with a command and return its output."""
        shell = [*self._java, "org.apache.hadoop.fs.FsShell", "-fs", self.url, *command]
        return run_program(shell, environ(self._folder), SHELL_S)


@contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """Start an empty file system with its files below the folder."""
    jars = fetched(CACHE / f"hadoop-{version()}", f"org.apache.hadoop:hadoop-client-minicluster:{version()}", *NEEDED)
    # the shell requires it
    (folder / "core-site.xml").write_text("<configuration/>")
    java = ["java", *QUICK.split(), f"-Dtest.build.data={folder / 'hdfs'}", "-cp", f"{folder}:{jars}/*"]
    command = [*java, "org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1", "-nnport", "0"]
    with process(folder, "hdfs", command, STARTED) as said:
        yield Hdfs(folder, java, said[1])
