"""`koordinator-pipeline run` and `watch` as their users start them, over two recorded traces; on a full disk, too."""

from __future__ import annotations

import csv
import io
import json
import os
import select
import shlex
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import dataset
from spark.loads import OF_READING, differing, ended, put, tables

from koordinator.pipeline.jobs.generate import WRITERS
from koordinator.pipeline.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STORIES = {name: ended(name) for name in ("cooperative", "static_bounce")}

GOLDEN = Path(__file__).parent / "golden"
TOLD = ("gold/rebalance", "gold/member_downtime", "gold/partition_gap", "gold/state_time", "mart/verdict")
"""The tables that are kept in `golden`, to be read."""

LOAD_S = 280
"""How long a load may take on a machine that does a lot besides."""

ENVIRON = {name: value for name, value in os.environ.items() if name not in {"SPARK_REMOTE", "COLUMNS"}}


MAIN = "from koordinator.pipeline.cli import main; main()"

FEW = ("silver/trace", "silver/call", "silver/member_span", "gold/state_time")
"""What a job does does not depend on how many tables it makes, how long it takes does."""

MAIN_OF_FEW = f"""
from koordinator.pipeline import layers
layers.PER_HOME_STEPS = tuple(step for step in layers.PER_HOME_STEPS if step.table.path in {FEW})
layers.STORE_STEPS = ()
{MAIN}
"""


def command(job: str, inputs: Path, store: Path, *more: str, main: str = MAIN_OF_FEW) -> list[str]:
    where = ["--input", str(inputs), "--output", str(store), "--master", "local[2]"]
    return [sys.executable, "-c", main, job, *where, *more]


def done(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, env=ENVIRON, capture_output=True, text=True, timeout=LOAD_S)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that `run` has made of the traces as Parquet files."""
    root = tmp_path_factory.mktemp("ran")
    (root / "inputs").mkdir()
    for name, story in STORIES.items():
        WRITERS["parquet"](story, root / "inputs" / f"{name}.parquet")
    ended = done(command("run", root / "inputs", root / "store", main=MAIN))
    assert (ended.returncode, ended.stderr) == (0, "")
    read = sum(len(story.lines) for story in STORIES.values())
    assert ended.stdout.startswith(f"read         {read:,} rows of 2 files in ")
    return root / "store"


@pytest.mark.parametrize("path", TOLD)
def test_the_tables_of_recorded_traces_are_as_they_were(ran: Path, path: str) -> None:
    golden = GOLDEN / f"{path.rpartition('/')[2]}.csv"
    text = told(ran, path)
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
        pytest.fail(f"{golden} was not there: look at what is written there now")
    assert text.splitlines() == golden.read_text().splitlines()


def told(store: Path, path: str) -> str:
    """A table by its key, but for what depends on the way of reading."""
    table = TABLES[path]
    names = [name for name in table.names if name not in OF_READING]
    rows = dataset.dataset(store / path, format="parquet", partitioning="hive").to_table(names).to_pylist()
    lines = [[_cell(row[name]) for name in names] for row in rows]
    keys = [names.index(name) for name in table.key]
    kept = io.StringIO()
    csv.writer(kept, lineterminator="\n").writerows(
        [names, *sorted(lines, key=lambda line: [line[key] for key in keys])]
    )
    return kept.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, (str, datetime)) else json.dumps(value)


def assert_as_after_one_run(store: Path, ran: Path) -> None:
    found, wanted = tables(store), tables(ran)
    assert differing(found, {path: wanted[path] for path in found}) == {}
    assert set(FEW) <= set(found)


@pytest.fixture
def started() -> Iterator[Callable[[list[str]], Watching]]:
    """Start what goes on until it is ended."""
    running: list[Watching] = []

    def start(command: list[str]) -> Watching:
        running.append(Watching(command))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.communicate()


class Watching:
    """A process that says something in lines from time to time."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        # a signal is for it alone, as in a terminal it is for it and its Java
        self.process = subprocess.Popen(
            command, env=ENVIRON, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )

    def says(self) -> str:
        """The next line, when it comes."""
        assert self.process.stdout
        heard, _, _ = select.select([self.process.stdout], [], [], LOAD_S)
        assert heard, f"watch has said nothing for {LOAD_S} s"
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        return line

    def interrupted(self) -> tuple[int, str, str]:
        """Press Ctrl-C, and say how it has ended."""
        os.killpg(self.process.pid, signal.SIGINT)
        said, complained = self.process.communicate(timeout=LOAD_S)
        return self.process.returncode, said, complained


def moved_there(folder: Path, name: str) -> None:
    """A whole file, all at once."""
    put(folder.parent, name, STORIES[name].lines).rename(folder / f"{name}.jsonl")


def test_watch_loads_files_as_they_come_until_it_is_interrupted_and_goes_on_when_it_is_started_again(
    ran: Path, tmp_path: Path, started: Callable[[list[str]], Watching]
) -> None:
    inputs, store = tmp_path / "inputs", tmp_path / "store"
    inputs.mkdir()
    first, second = STORIES
    watch = started(command("watch", inputs, store, "--every", "0.2"))
    moved_there(inputs, first)
    assert watch.says().startswith(f"1 files, {len(STORIES[first].lines) - 2} events, 0.000% bad; in all ")
    assert watch.interrupted() == (0, "", "")
    moved_there(inputs, second)
    again = done(command("watch", inputs, store, "--looks", "2", "--every", "0"))
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith(f"1 files, {len(STORIES[second].lines) - 2} events, 0.000% bad; in all ")
    assert len(again.stdout.splitlines()) == 1
    assert_as_after_one_run(store, ran)


FULL = """
set -e
mount -t tmpfs -o size={size} tmpfs {disk}
set +e
{run} 2>{said}
echo $? >>{said}
set -e
mount -o remount,size=64m {disk}
{run} >/dev/null
cp -R {disk}/store {kept}
"""


@pytest.mark.needs("mounts")
@pytest.mark.parametrize("size", ["160k"])
def test_a_full_disk_is_said_in_one_line_and_with_room_the_next_load_goes_on(
    ran: Path, tmp_path: Path, size: str
) -> None:
    disk, inputs, said, kept = (tmp_path / name for name in ("disk", "inputs", "said", "kept"))
    disk.mkdir()
    for name, story in STORIES.items():
        put(inputs, f"{name}.jsonl", story.lines)
    run = shlex.join(command("run", inputs, disk / "store"))
    script = FULL.format(size=size, disk=disk, said=said, kept=kept, run=run)
    ended = done(["unshare", "--map-root-user", "--mount", "sh", "-c", script])
    assert ended.returncode == 0, ended.stderr
    assert said.read_text().splitlines() == [
        "koordinator-pipeline run: the disk is full. Make room and run this again: it goes on where it stopped",
        "1",
    ]
    assert_as_after_one_run(kept, ran)
