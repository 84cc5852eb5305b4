"""The directory behind `--data-dir` and `Emulator(data_dir=…)`: what outlives the process.

    DIR/koordinator.json              the version of this format, the id of the cluster, how often it was started
    DIR/.lock                         held by the process that uses it
    DIR/topics.jsonl                  topics: a line for each change, with its checksum (`topic_journal`)
    DIR/TOPIC-N/partition.metadata    which topic of that name, as in Kafka
    DIR/TOPIC-N/0000….log             the record batches of its partition N, as in Kafka

Nothing is left to the file system's good will: what was reported as written is on disk. What a crash leaves behind that
was not, is cut off when the directory is opened.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from koordinator.wire.errors import Error

from ..core.data.metadata_changes import TopicDeleted
from ..core.refusal import Refusal, RefusedError
from .files import Files
from .log_recovery import read_log
from .metadata_journal import Damaged, line_of, read_journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from uuid import UUID

    from koordinator.wire.records import BatchHeader

    from ..core.data.metadata_changes import Change
    from .files import File
    from .metadata_journal import JournaledTopic

FORMAT = 1
"""What this version writes, and the newest it reads."""

META, LOCK, JOURNAL = "koordinator.json", ".lock", "topics.jsonl"
LOG, IDENTITY = "00000000000000000000.log", "partition.metadata"
BESIDE = ".new"
"""The end of the name of a file that is written to take the place of another."""

_PARTITION_DIR = re.compile(r"(.+)-(\d+)")


class DataDirRefused(ValueError):
    """The directory cannot be used; nothing was written to it."""


class _Log(NamedTuple):
    name: str
    topic_id: UUID
    partition: int


@dataclass(slots=True)
class _Write:
    log: _Log
    data: bytes
    at: int = 0
    file: File | None = None


class DataDir:
    """A directory that is ours from `__init__` to `close`; nothing is written to it before `begin`.

    `warn` gets a line for what is cut off, and when writing begins to fail and when it works again. Raises
    DataDirRefused for a directory that is somebody else's, in use, newer, damaged, or cannot be used.
    """

    def __init__(self, path: Path, warn: Callable[[str], None], files: Files | None = None) -> None:
        self._path = path
        self._warn = warn
        self._files = files or Files()
        self._lock: File | None = None
        self._lengths: dict[_Log, int] = {}
        self._appended: dict[_Log, _Write] = {}
        self._unsynced: dict[Path, None] = {}
        self._fails = False
        try:
            self.cluster_id, self.starts = self._take()
            """No id: the directory is new. `starts`: how often a cluster was started on it."""
            journal = self._read(path / JOURNAL)
            self.topics, torn = read_journal(journal)
            self._journal_bytes = len(journal) - torn
        except Damaged as error:
            self.close()
            raise DataDirRefused(f"data directory {path}: {JOURNAL}: {error}") from error
        except OSError as error:
            self.close()
            raise DataDirRefused(f"data directory {path}: {error.strerror or error}") from error
        if torn:
            warn(f"data directory {path}: {JOURNAL}: the last write is torn: {torn} bytes are cut off")

    # -- opening ---------------------------------------------------------------------------------------------

    def _take(self) -> tuple[str | None, int]:
        """Lock the directory; what META says."""
        try:
            names = self._files.names(self._path)
        except FileNotFoundError:
            self._make_dirs(self._path)
            names = []
        self._refuse_strangers(names)
        self._meta()
        self._lock = self._files.open(self._path / LOCK)
        try:
            self._lock.lock()
        except OSError as error:
            raise DataDirRefused(f"data directory {self._path}: in use by another process") from error
        # again, since who had it until now may have written
        return self._meta()

    def _make_dirs(self, path: Path) -> None:
        try:
            self._files.names(path.parent)
        except FileNotFoundError:
            self._make_dirs(path.parent)
        self._files.make_dir(path)
        self._files.sync_dir(path.parent)

    def _refuse_strangers(self, names: list[str]) -> None:
        if META in names or not set(names) - {LOCK, META + BESIDE}:
            return
        whose = "Apache Kafka" if "meta.properties" in names else "somebody else"
        raise DataDirRefused(f"data directory {self._path}: not empty, and {whose}'s: there is no {META}")

    def _meta(self) -> tuple[str | None, int]:
        data = self._read(self._path / META)
        if not data:
            return None, 0
        try:
            meta = json.loads(data)
            version = int(meta["format"])
            if version <= FORMAT:
                return str(meta["cluster_id"]), int(meta["starts"])
        except (ValueError, TypeError, LookupError) as error:
            raise DataDirRefused(f"data directory {self._path}: {META} is not one of ours") from error
        raise DataDirRefused(
            f"data directory {self._path}: of format {version}, and this koordinator knows up to {FORMAT}: "
            "a newer one has written it"
        )

    def _read(self, path: Path) -> bytes:
        try:
            return self._files.read(path)
        except FileNotFoundError:
            return b""

    def begin(self, cluster_id: str) -> None:
        """A cluster of this id is started on the directory. DataDirRefused if it cannot be written."""
        meta = {"format": FORMAT, "cluster_id": cluster_id, "starts": self.starts + 1}
        journal = b"".join(map(line_of, self.topics.changes()))
        if self.starts == 0:
            # somebody has made it, perhaps just before the machine went down
            self._unsynced[self._path.parent] = None
        try:
            # META first: a directory without it is a stranger's
            self._replace(self._path / META, json.dumps(meta).encode() + b"\n")
            self._replace(self._path / JOURNAL, journal)
            self._sync_dirs()
        except OSError as error:
            raise DataDirRefused(f"data directory {self._path}: {error.strerror or error}") from error
        self._journal_bytes = len(journal)
        self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        """Partitions of topics that were deleted."""
        there = {f"{t.name}-{p}" for t in self.topics.by_id.values() for p in range(len(t.replicas))}
        for name in self._files.names(self._path):
            if name not in there and _PARTITION_DIR.fullmatch(name):
                with suppress(OSError):
                    if set(self._files.names(self._path / name)) <= {IDENTITY, LOG, LOG + BESIDE}:
                        self._files.remove_tree(self._path / name)

    def batches(self, topic: JournaledTopic, partition: int) -> list[tuple[BatchHeader, bytes]]:
        """What is in a partition. What a crash has left of the last write, or damaged, is cut off.

        DataDirRefused if that cannot be.
        """
        log = _Log(topic.name, topic.topic_id, partition)
        directory = self._directory(log)
        if self._read(directory / IDENTITY) != _identity(topic.topic_id):
            # nothing was ever written, or a crash came before the end of the first write; or it is another topic's
            return []
        found = read_log(self._read(directory / LOG))
        if found.damage:
            self._warn(f"data directory {self._path}: {directory.name}: {found.damage}")
        if not found.batches:
            return []
        try:
            self._settle(directory, found.end)
        except OSError as error:
            raise DataDirRefused(f"data directory {self._path}: {error.strerror or error}") from error
        self._lengths[log] = found.end
        return found.batches

    def _settle(self, directory: Path, size: int) -> None:
        """What was read is on disk from now on, even if who wrote it was killed before it had seen to that."""
        file = self._files.open(directory / LOG)
        try:
            if file.size() != size:
                file.truncate(size)
            file.sync()
        finally:
            file.close()
        self._files.sync_dir(directory)

    # -- topics ----------------------------------------------------------------------------------------------

    def journal(self, *changes: Change) -> None:
        """Keep changes; RefusedError (KAFKA_STORAGE_ERROR) if that cannot be."""
        line = line_of(*changes)
        try:
            self._write_line(line)
        except OSError as error:
            self._failed(error)
            raise RefusedError(Refusal(Error.KAFKA_STORAGE_ERROR, f"Disk error: {error.strerror or error}")) from error
        self._works()
        self._journal_bytes += len(line)
        for change in changes:
            gone = self.topics.by_id.get(change.topic_id) if isinstance(change, TopicDeleted) else None
            self.topics.apply(change)
            if gone is not None:
                self._remove(gone)

    def _write_line(self, line: bytes) -> None:
        file = self._files.open(self._path / JOURNAL)
        at = self._journal_bytes
        try:
            if file.size() != at:
                file.truncate(at)
            try:
                file.write(at, line)
                file.sync()
            except OSError:
                with suppress(OSError):
                    file.truncate(at)
                raise
        finally:
            file.close()

    def _remove(self, topic: JournaledTopic) -> None:
        """What cannot be removed is when the directory is opened again: nobody asks for this topic any more."""
        for partition in range(len(topic.replicas)):
            log = _Log(topic.name, topic.topic_id, partition)
            self._unsynced.pop(self._directory(log), None)
            if self._lengths.pop(log, None) is not None:
                with suppress(OSError):
                    self._files.remove_tree(self._directory(log))

    # -- records ---------------------------------------------------------------------------------------------

    def append(self, name: str, topic_id: UUID, partition: int, batches: bytes) -> None:
        """Have batches written behind those the partition has; nothing is done before `sync`."""
        log = _Log(name, topic_id, partition)
        before = self._appended.get(log)
        self._appended[log] = _Write(log, batches if before is None else before.data + batches)

    def sync(self) -> None:
        """Write all that was appended, and wait until it is on disk. OSError: then nothing of it is there."""
        writes, self._appended = list(self._appended.values()), {}
        try:
            for write in writes:
                self._write(write)
            for write in writes:
                if write.file is not None:
                    write.file.sync()
            self._sync_dirs()
        except OSError as error:
            for write in writes:
                if write.file is not None:
                    # what is left is cut off before the next write, too
                    with suppress(OSError):
                        write.file.truncate(write.at)
            self._failed(error)
            raise
        finally:
            for write in writes:
                if write.file is not None:
                    write.file.close()
        for write in writes:
            self._lengths[write.log] = write.at + len(write.data)
        self._works()

    def _write(self, write: _Write) -> None:
        directory = self._directory(write.log)
        if write.log not in self._lengths:
            self._make(directory, write.log.topic_id)
        write.at = self._lengths.get(write.log, 0)
        write.file = self._files.open(directory / LOG)
        if write.file.size() != write.at:
            write.file.truncate(write.at)
        write.file.write(write.at, write.data)

    def _make(self, directory: Path, topic_id: UUID) -> None:
        """A partition's directory, anew: what is there is of a topic that was deleted, or of a write that failed."""
        self._unsynced.pop(directory, None)
        with suppress(FileNotFoundError):
            self._files.remove_tree(directory)
        self._files.make_dir(directory)
        self._unsynced[self._path] = self._unsynced[directory] = None
        identity = self._files.open(directory / IDENTITY)
        try:
            identity.write(0, _identity(topic_id))
            identity.sync()
        finally:
            identity.close()

    def rewrite(self, name: str, topic_id: UUID, partition: int, batches: bytes) -> None:
        """Put these batches in the place of all that the partition has. What fails leaves that as it is."""
        log = _Log(name, topic_id, partition)
        try:
            self._replace(self._directory(log) / LOG, batches)
            self._lengths[log] = len(batches)
            self._sync_dirs()
        except OSError as error:
            self._failed(error)

    # -- all of them -----------------------------------------------------------------------------------------

    def _directory(self, log: _Log) -> Path:
        return self._path / f"{log.name}-{log.partition}"

    def _replace(self, path: Path, data: bytes) -> None:
        """Give a file other content. A crash leaves the one or the other; which, is settled by `_sync_dirs`."""
        beside = path.with_name(path.name + BESIDE)
        file = self._files.open(beside)
        try:
            file.truncate(0)
            file.write(0, data)
            file.sync()
        except OSError:
            with suppress(OSError):
                # a full disk has better use for the room
                file.truncate(0)
            raise
        finally:
            file.close()
        self._files.rename(beside, path)
        self._unsynced[path.parent] = None

    def _sync_dirs(self) -> None:
        """What was made or renamed is there after a crash, too. What fails is done before the next write counts."""
        for directory in list(self._unsynced):
            self._files.sync_dir(directory)
            del self._unsynced[directory]

    def _failed(self, error: OSError) -> None:
        if not self._fails:
            reason = error.strerror or error
            self._warn(f"data directory {self._path}: {reason}; serving goes on, what cannot be written is refused")
        self._fails = True

    def _works(self) -> None:
        if self._fails:
            self._warn(f"data directory {self._path}: can be written again")
        self._fails = False

    def close(self) -> None:
        """Let others have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _identity(topic_id: UUID) -> bytes:
    text = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    return f"version: 0\ntopic_id: {text}\n".encode()
