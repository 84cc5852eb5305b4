"""A snapshot is written in one step: a crash leaves the old one, and of two writers one is refused."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from koordinator.emulator.storage.files import File, Files
from koordinator.pipeline import snapshots
from koordinator.pipeline.cli import jobs
from koordinator.pipeline.job_errors import JobFailed, JobRefused
from koordinator.pipeline.snapshots import Folder, LocalSnapshotFiles, StoreSnapshot
from koordinator.pipeline.store import SparkSnapshotFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

EVENT = "silver/event"
BEGAN = datetime(2026, 11, 21, 12, tzinfo=UTC)
END_S = 600


class Killed(BaseException):
    """The end of the process."""


class DyingFile(File):
    """A file of a process that is killed at one of its steps."""

    def __init__(self, fd: int, step: Callable[[], None]) -> None:
        super().__init__(fd)
        self._step = step

    def write(self, at: int, data: bytes) -> None:
        self._step()
        super().write(at, data[: len(data) // 2])
        self._step()
        super().write(at, data)

    def sync(self) -> None:
        self._step()
        super().sync()


class DyingFiles(Files):
    """The files of a process that is killed at one of its steps."""

    def __init__(self, lives: int) -> None:
        self.lives = lives

    def step(self) -> None:
        self.lives -= 1
        if self.lives < 0:
            raise Killed

    def make_dir(self, path: Path) -> None:
        self.step()
        super().make_dir(path)

    def open(self, path: Path) -> File:
        self.step()
        return DyingFile(super().open(path)._fd, self.step)

    def rename(self, path: Path, target: Path) -> None:
        self.step()
        super().rename(path, target)

    def sync_dir(self, path: Path) -> None:
        self.step()
        super().sync_dir(path)


def snapshot(number: int, **tables: list[str]) -> StoreSnapshot:
    """Return a snapshot that was written `number` hours after BEGAN."""
    folders = {name.replace("_", "/", 1): tuple(map(Folder, each)) for name, each in tables.items()}
    return StoreSnapshot(number, (BEGAN + timedelta(hours=number)).isoformat(), tables=folders)


def put(root: Path, *each: StoreSnapshot) -> None:
    """Write snapshots with their folders."""
    for one in each:
        for path in one.paths():
            (root / path).mkdir(parents=True, exist_ok=True)
        snapshots.commit(LocalSnapshotFiles(root), one, str(root))


def as_of(root: Path, when: str | None = None) -> int:
    return snapshots.as_of(LocalSnapshotFiles(root), str(root), when).number


def test_a_writer_that_is_killed_at_any_step_leaves_the_old_snapshot_or_the_new_one(tmp_path: Path) -> None:
    left = []
    for lives in range(7):
        root = tmp_path / str(lives)
        put(root, snapshot(1))
        with pytest.raises(Killed):
            LocalSnapshotFiles(root, DyingFiles(lives)).write(2, snapshot(2).to_json())
        left.append(as_of(root))
        put(root, snapshot(left[-1] + 1))
        assert as_of(root) == left[-1] + 1
    assert left == [1, 1, 1, 1, 1, 1, 2]
    LocalSnapshotFiles(tmp_path / "0", DyingFiles(7)).write(9, snapshot(9).to_json())


def test_of_two_writers_the_second_fails_and_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path, snapshot(1, silver_event=["first"]))
    with pytest.raises(JobFailed, match="another load has written snapshot 1 meanwhile; nothing has changed"):
        put(tmp_path, snapshot(1, silver_event=["second"]))
    assert LocalSnapshotFiles(tmp_path).numbers() == [1]
    assert [folder.name for folder in snapshots.as_of(LocalSnapshotFiles(tmp_path), "", None).folders(EVENT)] == [
        "first"
    ]


WRITER = """
import sys
from pathlib import Path
from koordinator.pipeline.snapshots import LocalSnapshotFiles, StoreSnapshot
files = LocalSnapshotFiles(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(1, 51):
    try:
        files.write(number, StoreSnapshot(number, sys.argv[2]).to_json())
        print(number, flush=True)
    except FileExistsError:
        pass
"""


def test_two_processes_never_write_the_same_snapshot(tmp_path: Path) -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = {name: subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], **pipes) for name in "ab"}
    for writer in writers.values():
        writer.stdin.write("\n")
        writer.stdin.flush()
    written = {name: [*map(int, writer.communicate(timeout=END_S)[0].split())] for name, writer in writers.items()}
    files = LocalSnapshotFiles(tmp_path)
    assert sorted(written["a"] + written["b"]) == files.numbers() == [*range(1, 51)]
    for name, numbers in written.items():
        assert {StoreSnapshot.from_json(files.read(number)).written_at for number in numbers} <= {name}


def test_spark_writes_the_snapshots_that_other_file_systems_have(spark: SparkSession, tmp_path: Path) -> None:
    files = SparkSnapshotFiles(spark, str(tmp_path))
    assert files.numbers() == []
    (tmp_path / "snapshots" / "2" / "_temporary").mkdir(parents=True)  # of a writer that was killed
    for number in (1, 2):
        snapshots.commit(files, snapshot(number, silver_event=["text-1-a"]), str(tmp_path))
    assert files.numbers() == LocalSnapshotFiles(tmp_path).numbers() == [1, 2]
    assert {StoreSnapshot.from_json(each.read(2)) == snapshot(2, silver_event=["text-1-a"])
            for each in (files, LocalSnapshotFiles(tmp_path))} == {True}  # fmt: skip
    with pytest.raises(JobFailed, match="another load has written snapshot 2 meanwhile"):
        snapshots.commit(files, snapshot(2), str(tmp_path))


def test_as_of_takes_a_number_or_a_time(tmp_path: Path) -> None:
    put(tmp_path, *map(snapshot, (1, 2, 5)))
    times = {"2026-11-21T14:30": 2, "2026-11-21T15:00+01:00": 2, "2026-11-22": 5, "2": 2}
    assert {when: as_of(tmp_path, when) for when in times} == times
    assert as_of(tmp_path) == 5
    for when, message in {
        "3": "has the snapshots 1 to 5",
        "2026-11-21": "the oldest snapshot of .* is of 2026-11-21T13:00:00",
        "yesterday": "--as-of yesterday: not a snapshot's number, and no time like",
    }.items():
        with pytest.raises(JobRefused, match=message):
            as_of(tmp_path, when)


def test_vacuum_removes_what_no_kept_snapshot_lists(tmp_path: Path) -> None:
    put(
        tmp_path,
        snapshot(1, silver_event=["1"], gold_rebalance=["1"]),
        snapshot(2, silver_event=["1", "2"], gold_rebalance=["2"]),
        snapshot(3, silver_event=["1", "2"], gold_rebalance=["3"]),
    )
    (tmp_path / EVENT / "cut-off").mkdir()
    # snapshot 2 was current until 15:00
    removed = snapshots.vacuum(tmp_path, [EVENT, "gold/rebalance"], BEGAN + timedelta(hours=2.5))
    assert removed == ["gold/rebalance/1", "silver/event/cut-off"]
    assert LocalSnapshotFiles(tmp_path).numbers() == [2, 3]
    result = CliRunner().invoke(jobs, ["vacuum", "--store", str(tmp_path), "--keep-hours", "0"], standalone_mode=False)
    assert (result.output, as_of(tmp_path)) == ("1 folders removed\n", 3)
    assert sorted(path.name for path in (tmp_path / EVENT).iterdir()) == ["1", "2"]


def test_vacuum_refuses_a_folder_that_is_no_store(tmp_path: Path) -> None:
    refused = CliRunner().invoke(jobs, ["vacuum", "--store", str(tmp_path)], standalone_mode=False).exception
    assert isinstance(refused, JobRefused)
