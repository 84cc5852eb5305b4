"""The snapshots of a store: the folders that hold the rows of each table.

A load writes new folders and never changes old ones. Its last write is a snapshot, which lists the folders of all
tables. So a reader sees one state of all tables, and a load that is cut off changes nothing. The snapshot with the
greatest number is the current one.

    STORE/snapshots/7/snapshot.json
    STORE/gold/rebalance/7-3fa9c1/part-….parquet
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from koordinator.emulator.storage.files import Files

from .job_errors import JobFailed, JobRefused
from .schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SNAPSHOTS = "snapshots"
"""The folder of the snapshots in a store."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Some rows of a table. `homes` has the homes of these rows; it is empty for a table without a column `home`."""

    name: str
    homes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """One state of all tables; `tables` has the folders of each table by `layer/name`, oldest first."""

    number: int = 0
    written_at: str = ""
    schema_version: int = SCHEMA_VERSION
    tables: dict[str, tuple[Folder, ...]] = field(default_factory=dict)

    def folders(self, table: str, homes: Iterable[str] | None = None) -> tuple[Folder, ...]:
        """Return the folders of a table; with `homes` only those with rows of one of them."""
        folders = self.tables.get(table, ())
        return folders if homes is None else tuple(each for each in folders if not set(each.homes).isdisjoint(homes))

    def with_folders(self, table: str, folders: Iterable[Folder]) -> StoreSnapshot:
        """Return this snapshot with other folders of a table."""
        return replace(self, tables={**self.tables, table: tuple(folders)})

    def paths(self) -> set[str]:
        """Return the paths of all folders in the store."""
        return {f"{table}/{folder.name}" for table, folders in self.tables.items() for folder in folders}

    def to_json(self) -> str:
        """Return the text of the snapshot's file."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> StoreSnapshot:
        """Parse the text of a snapshot's file."""
        fields = json.loads(text)
        tables = {
            table: tuple(Folder(each["name"], tuple(each["homes"])) for each in folders)
            for table, folders in fields["tables"].items()
        }
        return StoreSnapshot(fields["number"], fields["written_at"], fields["schema_version"], tables)


class SnapshotFiles(Protocol):
    """The files of a store's snapshots."""

    def numbers(self) -> list[int]:
        """Return the numbers of the snapshots, in order."""
        ...

    def read(self, number: int) -> str:
        """Return the text of a snapshot."""
        ...

    def write(self, number: int, text: str) -> None:
        """Write a snapshot in one step. Raises FileExistsError if there is one with that number."""
        ...


class LocalSnapshotFiles:
    """The snapshots of a store on this machine."""

    def __init__(self, root: Path, files: Files | None = None) -> None:
        self._root, self._files = root / SNAPSHOTS, files or Files()

    def numbers(self) -> list[int]:
        """Return the numbers of the snapshots, in order."""
        names = self._files.names(self._root) if self._root.is_dir() else []
        return sorted(int(name) for name in names if name.isdecimal())

    def read(self, number: int) -> str:
        """Return the text of a snapshot. A store from elsewhere has its file under another name."""
        (name,) = visible(self._files.names(self._root / str(number)))
        return self._files.read(self._root / str(number) / name).decode()

    def write(self, number: int, text: str) -> None:
        """Write a snapshot durably in one step: a folder cannot replace one that has files."""
        self._root.mkdir(parents=True, exist_ok=True)
        folder = self._root / f".{number}-{os.getpid()}"
        if folder.exists():
            self._files.remove_tree(folder)
        self._files.make_dir(folder)
        file = self._files.open(folder / "snapshot.json")
        try:
            file.write(0, text.encode())
            file.sync()
        finally:
            file.close()
        try:
            self._files.rename(folder, self._root / str(number))
        except OSError as error:
            self._files.remove_tree(folder)
            if number in self.numbers():
                raise FileExistsError(number) from error
            raise
        self._files.sync_dir(self._root)

    def remove(self, number: int) -> None:
        """Remove a snapshot in one step."""
        gone = self._root / f".{number}-removed"
        (self._root / str(number)).rename(gone)
        shutil.rmtree(gone)


def local_folder(root: str) -> Path | None:
    """Return the folder of a store, unless it is on another file system."""
    path = root.removeprefix("file:")
    return None if "://" in path else Path(path)


def current(files: SnapshotFiles, root: str) -> StoreSnapshot | None:
    """Return the current snapshot, or None if there is none. Raises JobRefused if its schema version is another."""
    numbers = files.numbers()
    return _read(files, root, numbers[-1]) if numbers else None


def as_of(files: SnapshotFiles, root: str, when: str | None) -> StoreSnapshot:
    """Return the snapshot with the number `when`, or the last one written until the time `when`; by default the newest.

    Raises JobRefused if there is none, or if its schema version is another.
    """
    numbers = files.numbers()
    if not numbers:
        raise JobRefused(
            f"{root}: not a store of koordinator-pipeline; create one with `koordinator-pipeline run --output`"
        )
    if when is None:
        return _read(files, root, numbers[-1])
    if when.isdecimal():
        if int(when) in numbers:
            return _read(files, root, int(when))
        raise JobRefused(f"--as-of {when}: {root} has the snapshots {numbers[0]} to {numbers[-1]}")
    until = _time(when)
    snapshots = (_read(files, root, number) for number in reversed(numbers))
    found = next((each for each in snapshots if datetime.fromisoformat(each.written_at) <= until), None)
    if found is None:
        oldest = _read(files, root, numbers[0]).written_at
        raise JobRefused(f"--as-of {when}: the oldest snapshot of {root} is of {oldest}")
    return found


def commit(files: SnapshotFiles, snapshot: StoreSnapshot, root: str) -> None:
    """Write a snapshot. Raises JobFailed if another load has written one with its number meanwhile."""
    try:
        files.write(snapshot.number, snapshot.to_json())
    except FileExistsError as error:
        raise JobFailed(
            f"{root}: another load has written snapshot {snapshot.number} meanwhile; nothing has changed."
            " Run the command again"
        ) from error


def vacuum(root: Path, tables: Iterable[str], keep_since: datetime) -> list[str]:
    """Remove snapshots that were replaced before a time, and the folders that no remaining snapshot lists.

    Returns the removed folders. The current snapshot remains.
    """
    files = LocalSnapshotFiles(root)
    snapshots = [_read(files, str(root), number) for number in files.numbers()]
    kept = [
        each
        for each, later in zip(snapshots, [*snapshots[1:], None], strict=True)
        if later is None or datetime.fromisoformat(later.written_at) >= keep_since
    ]
    for snapshot in snapshots:
        if snapshot not in kept:
            files.remove(snapshot.number)
    listed = set().union(*(snapshot.paths() for snapshot in kept))
    garbage = sorted(path for path in _folders(root, tables) if path not in listed)
    for path in garbage:
        shutil.rmtree(root / path)
    return garbage


def parquet_files(root: Path, table: str, snapshot: StoreSnapshot | None = None) -> list[Path]:
    """Return the files of a table, `layer/name`, in a store on this machine; by default as of the current snapshot."""
    snapshot = snapshot or as_of(LocalSnapshotFiles(root), str(root), None)
    folders = [root / table / folder.name for folder in snapshot.folders(table)]
    return [folder / name for folder in folders for name in sorted(visible(path.name for path in folder.iterdir()))]


def visible(names: Iterable[str]) -> list[str]:
    """Return the names that are not hidden: Spark's temporary files and its marks are."""
    return [name for name in names if not name.startswith((".", "_"))]


def _read(files: SnapshotFiles, root: str, number: int) -> StoreSnapshot:
    snapshot = StoreSnapshot.from_json(files.read(number))
    if snapshot.schema_version != SCHEMA_VERSION:
        raise JobRefused(
            f"{root}: its tables have version {snapshot.schema_version}, and this koordinator has version"
            f" {SCHEMA_VERSION}: load the inputs into a new store"
        )
    return snapshot


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise JobRefused(f"--as-of {text}: not a snapshot's number, and no time like 2026-11-21T17:00") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _folders(root: Path, tables: Iterable[str]) -> Iterator[str]:
    for table in tables:
        if (root / table).is_dir():
            yield from (f"{table}/{folder.name}" for folder in (root / table).iterdir())
