"""Kafka's own DumpLogSegments reads the logs of a data directory."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from brokers.durable_broker import DurableCluster
from brokers.kafka_releases import RELEASES, jars

from koordinator.emulator.storage.data_dir import LOG

if TYPE_CHECKING:
    from pathlib import Path

DUMP_S = 120


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    durable = DurableCluster(tmp_path, offsets_topic_num_partitions=1)
    durable.create("t")
    durable.produce("t", b"hello", b"world")
    durable.produce("t", b"again", producer_id=5, producer_epoch=0, base_sequence=0)
    durable.commit("g", "t", 7)
    durable.built.close()
    return tmp_path


def dumped(*arguments: str) -> list[str]:
    """Return the tool's output for every record; the releases up to 3.9 include it."""
    command = ("java", "-cp", f"{jars(RELEASES['3.9-new'].version)}/*", "kafka.tools.DumpLogSegments", *arguments)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=DUMP_S, check=True)
    lines = ran.stdout.splitlines()
    assert not [line for line in lines if "isvalid: false" in line], lines
    return [line for line in lines if line.startswith("| offset: ")]


def test_records_are_read(directory: Path) -> None:
    lines = dumped("--print-data-log", "--files", str(directory / "t-0" / LOG))
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["hello", "world", "again"]


def test_offsets_are_decoded(directory: Path) -> None:
    (line,) = dumped("--offsets-decoder", "--print-data-log", "--files", str(directory / "__consumer_offsets-0" / LOG))
    assert '"group":"g","topic":"t","partition":0' in line
    assert '"offset":7,"leaderEpoch":-1' in line
