"""`koordinator-pipeline run` and `watch` as users start them, with two recorded traces, and with a full disk."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from spark.loads import READ_COLUMNS, differing, ended, put, read_table, tables

from koordinator.pipeline.jobs.generate import WRITERS
from koordinator.pipeline.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STORIES = {name: ended(name) for name in ("cooperative", "static_bounce")}

GOLDEN = Path(__file__).parent / "golden"
TOLD = ("gold/rebalance", "gold/member_downtime", "gold/partition_gap", "gold/state_time", "mart/verdict")
"""The tables recorded in `golden`."""

LOAD_S = 900
"""Time limit of a load on a busy machine."""

ENVIRON = {name: value for name, value in os.environ.items() if name not in {"SPARK_REMOTE", "COLUMNS"}}


MAIN = "from koordinator.pipeline.cli import main; main()"

FEW_TABLES = ("silver/trace", "silver/call", "silver/member_span", "gold/state_time")
"""The behaviour of a job does not depend on the number of tables; its duration does."""

MAIN_WITH_FEW_TABLES = f"""
from koordinator.pipeline import layers
few = {("silver/fold", *FEW_TABLES)}
layers.PER_HOME_STEPS = tuple(step for step in layers.PER_HOME_STEPS if step.table.path in few)
layers.STORE_STEPS = ()
{MAIN}
"""


def command(job: str, inputs: Path, store: Path, *more: str, main: str = MAIN_WITH_FEW_TABLES) -> list[str]:
    where = ["--input", str(inputs), "--output", str(store), "--master", "local[2]"]
    return [sys.executable, "-c", main, job, *where, *more]


def run_process(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, env=ENVIRON, capture_output=True, text=True, timeout=LOAD_S)


PROGRESS = re.compile(r"^koordinator-pipeline: \d+ s, \d+ of \d+ steps done: .*\n", re.MULTILINE)
"""The lines of a job that takes longer than ten seconds."""


@pytest.fixture(scope="module")
def run_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the store that `run` writes from the traces as Parquet files, with the files of a report beside it."""
    root = tmp_path_factory.mktemp("run_store")
    (root / "inputs").mkdir()
    for name, story in STORIES.items():
        WRITERS["parquet"](story, root / "inputs" / f"{name}.parquet")
    report = ["--html", str(root / "page.html"), "--markdown", str(root / "summary.md"), "--title", "two traces"]
    ended = run_process(command("run", root / "inputs", root / "store", *report, main=MAIN))
    assert (ended.returncode, PROGRESS.sub("", ended.stderr)) == (0, "")
    read = sum(len(story.lines) for story in STORIES.values())
    assert ended.stdout.startswith(f"read         {read:,} rows of 2 files in ")
    assert ended.stdout.endswith(f"\n{root / 'page.html'}\n")
    return root / "store"


def test_a_load_writes_the_report_of_what_it_loaded(run_store: Path) -> None:
    rebalances = read_table(run_store, TABLES["gold/rebalance"]).num_rows
    summary = run_store.with_name("summary.md").read_text(encoding="utf-8")
    assert summary.startswith(f"## two traces\n\n**{rebalances} rebalances**")
    assert "<title>two traces</title>" in run_store.with_name("page.html").read_text(encoding="utf-8")
    assert list(run_store.with_name("page-timelines").glob("*.html"))


@pytest.mark.parametrize("path", TOLD)
def test_tables_of_recorded_traces_equal_the_golden_ones(run_store: Path, path: str) -> None:
    golden = GOLDEN / f"{path.rpartition('/')[2]}.csv"
    text = table_text(run_store, path)
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
        pytest.fail(f"{golden} was not there: look at what is written there now")
    assert text.splitlines() == golden.read_text().splitlines()


def table_text(store: Path, path: str) -> str:
    """Return a table as text, ordered by key, without columns that depend on how it was read."""
    table = TABLES[path]
    names = [name for name in table.names if name not in READ_COLUMNS]
    rows = read_table(store, table).select(names).to_pylist()
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


def assert_as_after_one_run(store: Path, run_store: Path) -> None:
    found, expected = tables(store), tables(run_store)
    assert differing(found, {path: expected[path] for path in found}) == {}
    assert set(FEW_TABLES) <= set(found)


@pytest.fixture
def start_process() -> Iterator[Callable[[list[str]], WatchProcess]]:
    """Start processes that run until they are stopped."""
    running: list[WatchProcess] = []

    def start(command: list[str]) -> WatchProcess:
        running.append(WatchProcess(command))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.communicate()


class WatchProcess:
    """A process that prints a line from time to time."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        # the signal must reach this process group only, like Ctrl-C in a terminal
        self.process = subprocess.Popen(
            command, env=ENVIRON, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )

    def read_line(self) -> str:
        """Return the next line; wait for it."""
        assert self.process.stdout
        readable, _, _ = select.select([self.process.stdout], [], [], LOAD_S)
        assert readable, f"watch printed nothing for {LOAD_S} s"
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        return line

    def interrupt(self) -> tuple[int, str, str]:
        """Press Ctrl-C, and return the exit status and the output."""
        os.killpg(self.process.pid, signal.SIGINT)
        said, complained = self.process.communicate(timeout=LOAD_S)
        return self.process.returncode, said, complained


def move_in(folder: Path, name: str) -> None:
    """Move a complete file into the folder atomically."""
    put(folder.parent, name, STORIES[name].lines).rename(folder / f"{name}.jsonl")


@pytest.mark.slow
def test_watch_loads_new_files_until_interrupted_and_continues_after_a_restart(
    run_store: Path, tmp_path: Path, start_process: Callable[[list[str]], WatchProcess]
) -> None:
    inputs, store = tmp_path / "inputs", tmp_path / "store"
    inputs.mkdir()
    first, second = STORIES
    watch = start_process(command("watch", inputs, store, "--every", "0.2"))
    move_in(inputs, first)
    assert watch.read_line().startswith(f"1 files, {len(STORIES[first].lines) - 2} events, 0.000% bad; in all ")
    assert watch.interrupt() == (0, "", "")
    move_in(inputs, second)
    second_run = run_process(command("watch", inputs, store, "--looks", "2", "--every", "0"))
    assert (second_run.returncode, PROGRESS.sub("", second_run.stderr)) == (0, "")
    assert second_run.stdout.startswith(f"1 files, {len(STORIES[second].lines) - 2} events, 0.000% bad; in all ")
    assert len(second_run.stdout.splitlines()) == 1
    assert_as_after_one_run(store, run_store)


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


@pytest.mark.slow
@pytest.mark.needs("mounts")
@pytest.mark.parametrize("size", ["80k"])
def test_a_full_disk_gives_one_line_and_the_next_load_succeeds(run_store: Path, tmp_path: Path, size: str) -> None:
    disk, inputs, said, kept = (tmp_path / name for name in ("disk", "inputs", "said", "kept"))
    disk.mkdir()
    for name, story in STORIES.items():
        put(inputs, f"{name}.jsonl", story.lines)
    run = shlex.join(command("run", inputs, disk / "store"))
    script = FULL.format(size=size, disk=disk, said=said, kept=kept, run=run)
    ended = run_process(["unshare", "--map-root-user", "--mount", "sh", "-c", script])
    assert ended.returncode == 0, ended.stderr
    assert said.read_text().splitlines() == [
        "koordinator-pipeline run: the disk is full. Free some space and run the command again",
        "1",
    ]
    assert_as_after_one_run(kept, run_store)
