"""The directory of `--data-dir` and `Emulator(data_dir=…)`: the state that outlives the process.

    DIR/koordinator.json              the format version, the cluster id, and the number of starts
    DIR/.lock                         locked by the process that uses the directory
    DIR/topics.jsonl                  metadata changes, a line each, with checksums (`metadata_journal`)
    DIR/TOPIC-N/partition.metadata    the topic id, as in Kafka
    DIR/TOPIC-N/0000….log             the record batches of partition N, as in Kafka

A write that was reported as done outlives the process: the operating system has it. It is on disk as well, synced, if
`flush_messages` says so, and always if it created a topic or another file. Opening the directory cuts off partial
writes that a crash has left.

The lock belongs to the file, and other processes look for it by its path. So nothing is written unless the path still
leads to the locked file: a directory that was removed or replaced is another one, and another process may own it.
"""

from __future__ import annotations

import base64
import errno
import json
import re
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from koordinator.wire.records import read_batches
from koordinator.wire.values import mutable

from ..config.value_rules import LONG_MAX
from ..core.data.metadata_changes import TopicDeleted
from .files import Files
from .log_recovery import read_log
from .metadata_journal import DamagedJournal, line_of, read_journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from uuid import UUID

    from koordinator.wire.records import BatchHeader

    from ..core.data.metadata_changes import Change
    from ..core.data.storage import LogBatches
    from .files import File
    from .metadata_journal import JournaledTopic

FORMAT = 1
"""The format this version writes, and the newest one it reads."""

META, LOCK, JOURNAL = "koordinator.json", ".lock", "topics.jsonl"
LOG, IDENTITY = "00000000000000000000.log", "partition.metadata"
REPLACEMENT = ".new"
"""The suffix of a file that is written to replace another one."""

REPLACED = f"removed or replaced since this process locked its {LOCK}; restore it, or start again on an existing one"

_PARTITION_DIR = re.compile(r"(.+)-(\d+)")


class DataDirRefused(ValueError):
    """The directory cannot be used; it was not changed."""


@mutable
class _Log:
    """The log of a partition: its directory and file, the bytes of the file, and its records that are not synced."""

    directory: Path
    file: Path
    size: int = 0
    unsynced: int = 0


class _Append(NamedTuple):
    """Data to write at the end of an open file of a known size; `is_synced`: it is on disk afterwards."""

    file: File
    size: int
    data: bytes
    is_synced: bool

    def write(self) -> None:
        """Write the data, in place of what a failed write has left."""
        if self.file.size() != self.size:
            self.file.truncate(self.size)
        self.file.write(self.size, self.data)
        if self.is_synced:
            self.file.sync()


class DataDir:
    """An exclusively locked data directory; it is read-only before `begin`.

    `warn` gets a line for each cut-off tail, when writes start to fail, and when they work again. Raises DataDirRefused
    for a directory that is foreign, in use, of a newer format, damaged, or not accessible. A log is synced when it has
    `flush_messages` new records (`log.flush.interval.messages`), and at the end.
    """

    def __init__(
        self,
        path: Path,
        warn: Callable[[str], None],
        files: Files | None = None,
        *,
        flush_messages: int = LONG_MAX,
    ) -> None:
        self._path = path
        self._warn = warn
        self._files = files or Files()
        self._lock_file: File | None = None
        self._lock = path / LOCK
        self._logs: dict[tuple[int, int], _Log] = {}
        """The logs that have files, by topic id and partition."""
        self._unsynced: dict[Path, None] = {}
        """Directories with new names."""
        self._flush_messages = flush_messages
        self._failure = ""
        try:
            self.cluster_id, self.starts = self._lock_and_read_meta()
            """The cluster id is None in a new directory. `starts`: the number of clusters started on it so far."""
            journal = self._read(path / JOURNAL)
            self.topics, torn = read_journal(journal)
            self._journal_bytes = len(journal) - torn
        except DamagedJournal as error:
            self.close()
            raise DataDirRefused(f"data directory {path}: {JOURNAL}: {error}") from error
        except OSError as error:
            self.close()
            raise DataDirRefused(f"data directory {path}: {error.strerror or error}") from error
        if torn:
            warn(f"data directory {path}: {JOURNAL}: the last write is torn: {torn} bytes are cut off")

    # -- opening ---------------------------------------------------------------------------------------------

    def _lock_and_read_meta(self) -> tuple[str | None, int]:
        try:
            names = self._files.names(self._path)
        except FileNotFoundError:
            self._make_dirs(self._path)
            names = []
        self._refuse_foreign(names)
        self._read_meta()
        self._lock_file = self._files.open(self._lock)
        try:
            self._lock_file.lock()
        except OSError as error:
            raise DataDirRefused(f"data directory {self._path}: in use by another process") from error
        self._check_in_place()
        # the previous owner may have written before it released the lock
        return self._read_meta()

    def _make_dirs(self, path: Path) -> None:
        try:
            self._files.names(path.parent)
        except FileNotFoundError:
            self._make_dirs(path.parent)
        self._files.make_dir(path)
        self._files.sync_dir(path.parent)

    def _refuse_foreign(self, names: list[str]) -> None:
        if META in names or not set(names) - {LOCK, META + REPLACEMENT}:
            return
        owner = "Apache Kafka" if "meta.properties" in names else "another program"
        raise DataDirRefused(
            f"data directory {self._path}: not empty, and without {META}: it belongs to {owner}; use an empty one"
        )

    def _read_meta(self) -> tuple[str | None, int]:
        data = self._read(self._path / META)
        if not data:
            return None, 0
        try:
            meta = json.loads(data)
            version = int(meta["format"])
            if version <= FORMAT:
                return str(meta["cluster_id"]), int(meta["starts"])
        except (ValueError, TypeError, LookupError) as error:
            raise DataDirRefused(f"data directory {self._path}: {META} is invalid") from error
        raise DataDirRefused(
            f"data directory {self._path}: format {version} is newer than the supported format {FORMAT}; "
            "use the koordinator that wrote it"
        )

    def _check_in_place(self) -> None:
        """Raise OSError if the directory is not the locked one any more."""
        if self._lock_file is not None and not self._lock_file.is_at(self._lock):
            raise OSError(errno.ESTALE, REPLACED)

    def _read(self, path: Path) -> bytes:
        try:
            return self._files.read(path)
        except FileNotFoundError:
            return b""

    def begin(self, cluster_id: str) -> None:
        """Start a cluster of this id on the directory; DataDirRefused if the directory cannot be written."""
        meta = {"format": FORMAT, "cluster_id": cluster_id, "starts": self.starts + 1}
        journal = b"".join(map(line_of, self.topics.changes()))
        if self.starts == 0:
            # the directory itself may have been created just before a crash
            self._unsynced[self._path.parent] = None
        try:
            self._check_in_place()
            # META first: a directory without it counts as foreign
            self._replace(self._path / META, json.dumps(meta).encode() + b"\n")
            self._replace(self._path / JOURNAL, journal)
            self._sync_dirs()
        except OSError as error:
            raise DataDirRefused(f"data directory {self._path}: {error.strerror or error}") from error
        self._journal_bytes = len(journal)
        self._remove_deleted_topics()

    def _remove_deleted_topics(self) -> None:
        known = {f"{t.name}-{p}" for t in self.topics.by_id.values() for p in range(len(t.replicas))}
        for name in self._files.names(self._path):
            if name not in known and _PARTITION_DIR.fullmatch(name):
                with suppress(OSError):
                    if set(self._files.names(self._path / name)) <= {IDENTITY, LOG, LOG + REPLACEMENT}:
                        self._files.remove_tree(self._path / name)

    def batches(self, topic: JournaledTopic, partition: int) -> list[tuple[BatchHeader, bytes]]:
        """Return the batches of a partition, and cut off a torn or damaged tail; DataDirRefused if that fails."""
        log = self._log(topic.name, partition)
        directory = log.directory
        if self._read(directory / IDENTITY) != _identity(topic.topic_id):
            # never written, torn within its first write, or left by a deleted topic of the same name
            return []
        recovered = read_log(self._read(log.file))
        if recovered.damage:
            self._warn(f"data directory {self._path}: {directory.name}: {recovered.damage}")
        if not recovered.batches:
            return []
        try:
            self._settle(log, recovered.end)
        except OSError as error:
            raise DataDirRefused(f"data directory {self._path}: {error.strerror or error}") from error
        log.size = recovered.end
        self._logs[topic.topic_id.int, partition] = log
        return recovered.batches

    def _settle(self, log: _Log, size: int) -> None:
        """Make the recovered batches durable; the process that wrote them may have died before its sync."""
        with closing(self._files.open(log.file)) as file:
            self._check_in_place()
            if file.size() != size:
                file.truncate(size)
            file.sync()
        self._files.sync_dir(log.directory)

    # -- writes ----------------------------------------------------------------------------------------------

    def append(self, appends: Iterable[LogBatches]) -> None:
        """Append batches to their logs, so that they outlive the process; or write nothing: OSError."""
        writes: dict[tuple[int, int], bytes] = {}
        logs: dict[tuple[int, int], tuple[_Log, int]] = {}
        with self._writing() as opened:
            for each in appends:
                key = each.topic_id.int, each.partition
                if key not in writes:
                    log = self._logs.get(key)
                    if log is None:
                        log = self._log(each.topic, each.partition)
                        self._make_log(log.directory, each.topic_id)
                    logs[key] = log, log.unsynced
                writes[key] = writes.get(key, b"") + each.batches
            for key, data in writes.items():
                log, unsynced = logs[key]
                unsynced += self._count(data)
                is_due = unsynced >= self._flush_messages
                logs[key] = log, 0 if is_due else unsynced
                self._open(opened, log.file, log.size, data, is_synced=is_due)
        for key, (log, unsynced) in logs.items():
            log.unsynced = unsynced
            log.size += len(writes[key])
            self._logs[key] = log

    def journal(self, changes: Sequence[Change]) -> None:
        """Write metadata changes as one line of the journal, which is synced; or nothing: OSError."""
        line = line_of(*changes)
        with self._writing() as opened:
            self._open(opened, self._path / JOURNAL, self._journal_bytes, line, is_synced=True)
        self._journal_bytes += len(line)
        for change in changes:
            topic = self.topics.by_id[change.topic_id] if isinstance(change, TopicDeleted) else None
            self.topics.apply(change)
            if topic is not None:
                self._remove(topic)

    @contextmanager
    def _writing(self) -> Iterator[list[_Append]]:
        """Write what the block opens: all of it, or nothing if it raises OSError."""
        opened: list[_Append] = []
        touched: list[_Append] = []
        try:
            self._check_in_place()
            yield opened
            # the files that are open now are those of the locked directory, whatever happens to its path
            self._check_in_place()
            for append in opened:
                touched.append(append)
                append.write()
            self._sync_dirs()
        except OSError as error:
            for append in touched:
                # if this fails too, the next write truncates the file
                with suppress(OSError):
                    append.file.truncate(append.size)
            self._note_failure(error)
            raise
        finally:
            for append in opened:
                append.file.close()
        if opened:
            self._note_success()

    def _count(self, batches: bytes) -> int:
        """Return the number of records in batches; 1 where the number does not matter."""
        if self._flush_messages in (1, LONG_MAX):
            return 1
        return sum(header.record_count for header, _ in read_batches(batches))

    def _open(self, opened: list[_Append], path: Path, size: int, data: bytes, *, is_synced: bool) -> None:
        """Open a file of a known size to append data to it; OSError if it has lost some of its content."""
        append = _Append(self._files.open(path), size, data, is_synced)
        opened.append(append)
        if append.file.size() < size:
            raise OSError(errno.ESTALE, f"{path.relative_to(self._path)}: shortened by others; restart the server")

    def _remove(self, topic: JournaledTopic) -> None:
        """Remove the logs of a deleted topic; `begin` removes those that cannot be removed now."""
        for partition in range(len(topic.replicas)):
            self._unsynced.pop(self._log(topic.name, partition).directory, None)
            log = self._logs.pop((topic.topic_id.int, partition), None)
            if log is not None:
                with suppress(OSError):
                    self._files.remove_tree(log.directory)

    def _make_log(self, directory: Path, topic_id: UUID) -> None:
        """Make a partition's directory in place of one left by a deleted topic or by a failed write."""
        self._unsynced.pop(directory, None)
        with suppress(FileNotFoundError):
            self._files.remove_tree(directory)
        self._files.make_dir(directory)
        self._unsynced[self._path] = self._unsynced[directory] = None
        with closing(self._files.open(directory / IDENTITY)) as identity:
            identity.write(0, _identity(topic_id))
            identity.sync()

    def replace(self, content: LogBatches) -> None:
        """Replace the content of a log, after compaction; the old content stays if the disk fails: OSError."""
        log = self._logs.get((content.topic_id.int, content.partition))
        if log is None:
            return
        try:
            self._check_in_place()
            self._replace(log.file, content.batches)
            log.size, log.unsynced = len(content.batches), 0
            self._sync_dirs()
        except OSError as error:
            self._note_failure(error)
            raise

    # -- files -----------------------------------------------------------------------------------------------

    def _log(self, topic: str, partition: int) -> _Log:
        directory = self._path / f"{topic}-{partition}"
        return _Log(directory, directory / LOG)

    def _replace(self, path: Path, data: bytes) -> None:
        """Replace the content of a file; before `_sync_dirs` a crash may leave either content."""
        replacement = path.with_name(path.name + REPLACEMENT)
        with closing(self._files.open(replacement)) as file:
            try:
                file.truncate(0)
                file.write(0, data)
                file.sync()
            except OSError:
                with suppress(OSError):
                    # free the space of a full disk
                    file.truncate(0)
                raise
        self._files.rename(replacement, path)
        self._unsynced[path.parent] = None

    def _sync_dirs(self) -> None:
        """Sync the directories with new or renamed files; the next write retries those that fail."""
        for directory in list(self._unsynced):
            self._files.sync_dir(directory)
            del self._unsynced[directory]

    def _note_failure(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        if reason != self._failure:
            self._warn(f"data directory {self._path}: {reason}; serving continues, and failed writes are refused")
        self._failure = reason

    def _note_success(self) -> None:
        if self._failure:
            self._warn(f"data directory {self._path}: writable again")
        self._failure = ""

    def flush(self) -> None:
        """Sync all logs, as a broker does that is shut down; the operating system keeps what cannot be synced."""
        for log in self._logs.values():
            if not log.unsynced:
                continue
            with suppress(OSError):
                # first: to open a file creates it, maybe in the directory of a new owner
                self._check_in_place()
                with closing(self._files.open(log.file)) as file:
                    file.sync()
            log.unsynced = 0

    def close(self) -> None:
        """Sync all logs, and release the lock."""
        self.flush()
        if self._lock_file is not None:
            self._lock_file.close()
            self._lock_file = None


def _identity(topic_id: UUID) -> bytes:
    text = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    return f"version: 0\ntopic_id: {text}\n".encode()
