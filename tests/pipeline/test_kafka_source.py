"""Spark's Kafka source, from Maven Central, reads the trace topic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from koordinator import Emulator

if TYPE_CHECKING:
    from koordinator import Cluster

PROGRAM = Path(__file__).parents[1] / "support" / "spark" / "kafka_source.py"
PROGRAM_S = 900
FETCH_S = 600


def read(cluster: Cluster, folder: Path) -> dict[int, dict[str, Any]]:
    """Return the lines in the folder, by offset."""
    command = [sys.executable, str(PROGRAM), cluster.bootstrap_servers, "__koordinator_trace", str(folder)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environ.pop("SPARK_REMOTE", None)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PROGRAM_S + FETCH_S, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr
    return {offset: json.loads(value) for offset, value in json.loads(done.stdout)}


@pytest.mark.needs("java")
def test_sparks_kafka_source_reads_the_trace_and_resumes(tmp_path: Path) -> None:
    with Emulator(topics={"t": 2}) as cluster:
        cluster.group("g").create_puppet("one", topics=["t"])
        first = read(cluster, tmp_path)
        assert first[0]["kind"] == "header"
        assert list(first) == list(range(len(first)))
        assert "puppet" in {line["kind"] for line in first.values()}
        cluster.group("g").create_puppet("two", topics=["t"])
        second = read(cluster, tmp_path)
        traced = {event["seq"]: event for event in cluster.events()}
    assert list(second) == list(range(len(second)))
    assert {offset: second[offset] for offset in first} == first
    # its own reads are not events, except its connections
    assert {line.get("api") for line in second.values()} <= {None, "ApiVersions", "DescribeCluster", "Metadata"}
    for offset, line in second.items():
        if offset:
            assert {name: line[name] for name in traced[offset]} == json.loads(json.dumps(traced[offset]))
