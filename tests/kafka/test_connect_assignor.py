"""Kafka Connect's own assignor agrees with ours, in recorded rounds and in random ones."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import RELEASES, jars, run
from builders.connect_rounds import parsed, play, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION = RELEASES["3.9-new"].version
SOURCE = Path(__file__).with_name("java") / "AskedAssignor.java"
KEPT = Path(__file__).parents[1] / "control" / "assignors" / "connect_rounds.txt"


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Return a function that asks Kafka's assignor; a line that opens a group has no answer."""
    folder = tmp_path_factory.mktemp("connect")
    path = f"{jars(VERSION, 'connect-runtime')}/*"
    run("javac", "-cp", path, "-d", str(folder), str(SOURCE), timeout_s=120)
    command = (
        "java",
        "-Xmx256m",
        "-cp",
        f"{folder}:{path}",
        f"org.apache.kafka.connect.runtime.distributed.{SOURCE.stem}",
    )
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        put, get = process.stdin, process.stdout

        def asked(line: str) -> str:
            print(line, file=put, flush=True)
            return "" if line.startswith("max ") else get.readline().rstrip("\n")

        yield asked
        put.close()


def test_the_kept_files_match_the_output(ask: Callable[[str], str]) -> None:
    for max_delay, rounds in read(KEPT):
        ask(f"max {max_delay}")
        for question, answer in rounds:
            assert parsed(ask(question)) == parsed(answer), question


@pytest.mark.parametrize("seed", range(20))
def test_random_groups_get_kafkas_answers(ask: Callable[[str], str], seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        for question, theirs, ours in play(random, ask):
            assert ours == theirs, question
