"""An in-memory file system for a data directory, with injected failures and crashes.

After a crash, unsynced writes of a file survive fully, partly or not at all. The last surviving write may be torn at
any byte, and earlier writes may lack blocks. Of the unsynced steps in a directory (create, rename, remove) a prefix
survives.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

BLOCK_BYTES = 32
"""Size of the blocks in which a write reaches the disk; small, because the tests' writes are small."""


class Crash(BaseException):
    """The end of the process; no code of the emulator may catch it."""


@dataclass(eq=False)
class Inode:
    """A file: its durable bytes, the unsynced steps since then, and the content that the process sees."""

    durable: bytes = b""
    steps: list[tuple[int, bytes | None]] = field(default_factory=list)
    content: bytearray = field(default_factory=bytearray)
    locked: bool = False

    def do(self, at: int, data: bytes | None) -> None:
        """Write data at a position, or truncate there (None)."""
        self.steps.append((at, data))
        _apply(self.content, at, data)

    def survive(self, chance: random.Random) -> bytes:
        """Return a possible content after a crash."""
        content = bytearray(self.durable)
        steps = self.steps[: chance.randint(0, len(self.steps))]
        for number, (at, data) in enumerate(steps, start=1):
            if data is None:
                _apply(content, at, None)
                continue
            whole = data[: chance.randint(0, len(data))] if number == len(steps) else data
            _apply(content, at + len(whole), b"")
            lossy = chance.random() < 0.5
            for start in range(0, len(whole), BLOCK_BYTES):
                if not (lossy and chance.random() < 0.3):
                    _apply(content, at + start, whole[start : start + BLOCK_BYTES])
        return bytes(content)


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    if data is None:
        del content[at:]
    else:
        content[at : at + len(data)] = data


@dataclass(eq=False)
class Directory:
    """A directory: its durable entries, the unsynced steps since then, and the entries that the process sees."""

    durable: dict[str, Inode | Directory] = field(default_factory=dict)
    steps: list[Callable[[dict[str, Inode | Directory]], object]] = field(default_factory=list)
    entries: dict[str, Inode | Directory] = field(default_factory=dict)

    def do(self, step: Callable[[dict[str, Inode | Directory]], object]) -> None:
        self.steps.append(step)
        step(self.entries)

    def sync(self) -> None:
        self.durable = dict(self.entries)
        self.steps.clear()

    def unlock(self) -> None:
        for entry in self.entries.values():
            if isinstance(entry, Directory):
                entry.unlock()
            else:
                entry.locked = False

    def survive(self, chance: random.Random) -> Directory:
        entries = dict(self.durable)
        for step in self.steps[: chance.randint(0, len(self.steps))]:
            step(entries)
        left: dict[str, Inode | Directory] = {}
        for name, entry in entries.items():
            if isinstance(entry, Directory):
                left[name] = entry.survive(chance)
            else:
                content = entry.survive(chance)
                left[name] = Inode(content, [], bytearray(content))
        return Directory(left, [], dict(left))


class CrashingFiles:
    """Stands in for `Files` (emulator.storage), with paths relative to one existing directory.

    `crash_at` is the number of the step before which the process crashes; the steps in `errors` fail. `room` is the
    size of the disk in bytes, None for an unlimited one.
    """

    def __init__(self, root: Directory | None = None) -> None:
        self.root = root or Directory()
        self.steps = 0
        self.crash_at: int | None = None
        self.errors: set[int] = set()
        self.room: int | None = None

    def after_crash(self, chance: random.Random) -> CrashingFiles:
        """Return a possible file system after a crash of the machine."""
        return CrashingFiles(self.root.survive(chance))

    def after_kill(self) -> CrashingFiles:
        """Return the file system after the end of the process: nothing is lost, and nothing is synced."""
        self.root.unlock()
        return CrashingFiles(self.root)

    def step(self) -> None:
        if self.steps == self.crash_at:
            raise Crash
        self.steps += 1
        if self.steps - 1 in self.errors:
            raise OSError(errno.EIO, "Input/output error")

    def used(self, directory: Directory | None = None) -> int:
        """Return the total size of all files in bytes."""
        entries = (self.root if directory is None else directory).entries.values()
        return sum(self.used(each) if isinstance(each, Directory) else len(each.content) for each in entries)

    # -- operations of `Files` --------------------------------------------------------------------------

    def names(self, path: Path) -> list[str]:
        return list(self._directory(path).entries)

    def make_dir(self, path: Path) -> None:
        self.step()
        made, directory = Directory(), self._directory(path.parent)
        assert path.name not in directory.entries
        directory.do(lambda entries: entries.__setitem__(path.name, made))

    def read(self, path: Path) -> bytes:
        entry = self._directory(path.parent).entries.get(path.name)
        if not isinstance(entry, Inode):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return bytes(entry.content)

    def open(self, path: Path) -> CrashingFile:
        self.step()
        directory, name = self._directory(path.parent), path.name
        if name not in directory.entries:
            made = Inode()
            directory.do(lambda entries: entries.__setitem__(name, made))
        entry = directory.entries[name]
        assert isinstance(entry, Inode)
        return CrashingFile(self, entry)

    def rename(self, path: Path, target: Path) -> None:
        self.step()
        assert path.parent == target.parent
        self._directory(path.parent).do(lambda entries: entries.__setitem__(target.name, entries.pop(path.name)))

    def remove_tree(self, path: Path) -> None:
        directory = self._directory(path)
        for name in list(directory.entries):
            self.step()
            directory.do(lambda entries, name=name: entries.pop(name))  # type: ignore[misc]
        self.step()
        self._directory(path.parent).do(lambda entries: entries.pop(path.name))

    def sync_dir(self, path: Path) -> None:
        self.step()
        self._directory(path).sync()

    def _directory(self, path: Path) -> Directory:
        directory = self.root
        for name in path.parts:
            entry = directory.entries.get(name)
            if not isinstance(entry, Directory):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
            directory = entry
        return directory


class CrashingFile:
    """Stands in for `storage.files.File`."""

    def __init__(self, files: CrashingFiles, inode: Inode) -> None:
        self._files = files
        self._inode = inode

    def size(self) -> int:
        return len(self._inode.content)

    def is_at(self, path: Path) -> bool:
        try:
            return self._files._directory(path.parent).entries.get(path.name) is self._inode
        except FileNotFoundError:
            return False

    def truncate(self, size: int) -> None:
        self._files.step()
        self._inode.do(size, None)

    def write(self, at: int, data: bytes) -> None:
        self._files.step()
        room = self._files.room
        if room is not None and self._files.used() + len(data) > room:
            # a full disk takes the bytes that fit
            self._inode.do(at, data[: max(0, room - self._files.used())])
            raise OSError(errno.ENOSPC, "No space left on device")
        self._inode.do(at, data)

    def sync(self) -> None:
        self._files.step()
        self._inode.durable = bytes(self._inode.content)
        self._inode.steps.clear()

    def lock(self) -> None:
        if self._inode.locked:
            raise BlockingIOError(errno.EWOULDBLOCK, "Resource temporarily unavailable")
        self._inode.locked = True

    def close(self) -> None:
        self._inode.locked = False
