"""The commands and programs on the pages of the pipeline."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click
import pytest
from scenes.documentation import blocks
from spark.loads import TRACES

from koordinator import Emulator
from koordinator.pipeline.cli import jobs

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COMMAND = re.compile(r"^(?:\$ )?koordinator-pipeline +((?:\"[^\"]*\"|[^\"\n])*)$", re.MULTILINE)
COMMANDS = [
    command
    for block in blocks("bash", "console", "yaml")
    for command in COMMAND.findall(re.sub(r"\\\n\s*", "", block.text).replace("    koordinator", "koordinator"))
]
INPUTS = ("test-results", "traces", "store")


def example(of: str) -> str:
    """Return the program of the pipeline's pages that has this text."""
    (found,) = (block.text for block in blocks("python") if block.page.stem.startswith("pipeline") and of in block.text)
    return found


def test_there_are_commands_of_every_job() -> None:
    assert {line.split()[0] for line in COMMANDS} >= {"compare", "generate", "report", "run", "verify"}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_has_valid_options(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in INPUTS:
        (tmp_path / name).mkdir()
    name, *arguments = takewhile(
        lambda word: not word.startswith(">"), shlex.split(line.replace("…", ""), comments=True)
    )
    job = jobs.get_command(click.Context(jobs), name)
    assert job is not None
    job.make_context(name, arguments)


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the server's Python would have to have us, too")
def test_the_data_source_reads_files(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copy(TRACES / "cooperative.jsonl", tmp_path)
    names: dict[str, Any] = {"spark": spark}
    exec(example('load("traces"').replace('"traces"', repr(str(tmp_path))), names)  # noqa: S102 - our own pages
    assert names["events"].count() > 0


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the server's Python would have to have us, too")
def test_the_data_source_follows_an_emulator(spark: SparkSession, tmp_path: Path) -> None:
    text = example('readStream.format("koordinator")')
    for name in ("checkpoint", "events"):
        text = text.replace(f'"{name}"', repr(str(tmp_path / name)))
    names: dict[str, Any] = {"spark": spark}
    with Emulator() as cluster:
        exec(text.replace("127.0.0.1:9092", cluster.bootstrap_servers), names)  # noqa: S102 - our own pages
        try:
            names["query"].processAllAvailable()
        finally:
            names["query"].stop()
    assert spark.read.parquet(str(tmp_path / "events")).count() > 0
