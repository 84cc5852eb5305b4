"""The way of records and of metadata changes into effect: with a data directory they are in its files first.

So no reader sees, and no response speaks of, what a failing disk has refused. Kafka writes in the same order, and syncs
later (`log.flush.interval.messages`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from koordinator.wire.errors import Error
from koordinator.wire.records import read_header, rebase
from koordinator.wire.values import value

from ..refusal import Refusal, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from koordinator.wire.records import BatchHeader

    from .log import PartitionLog
    from .metadata_changes import Change
    from .topic import TopicState


@value
class LogBatches:
    """Encoded record batches of a partition; the topic id tells topics of the same name apart."""

    topic: str
    topic_id: UUID
    partition: int
    batches: bytes


class LogStore(Protocol):
    """The files of a data directory."""

    def append(self, appends: Iterable[LogBatches]) -> None:
        """Append batches to their logs, all or none: OSError."""

    def replace(self, content: LogBatches) -> None:
        """Replace the content of a log; the old content stays if the disk fails: OSError."""

    def journal(self, changes: Sequence[Change]) -> None:
        """Write changes of metadata, all or none: OSError."""


JOURNAL_FAILED = Refusal(Error.KAFKA_STORAGE_ERROR, "Disk error when trying to access the metadata log on the disk.")


class Storage:
    """The logs and the metadata of a cluster: in memory, and in a `store` if there is one.

    `apply` brings changes of metadata into effect.
    """

    def __init__(self, apply: Callable[[Iterable[Change]], None]) -> None:
        self._apply = apply
        self.store: LogStore | None = None

    def propose(self, *changes: Change) -> None:
        """Write and apply changes, all or none. Raises RefusedError with KAFKA_STORAGE_ERROR if the disk fails."""
        if self.store is not None and changes:
            try:
                self.store.journal(changes)
            except OSError as error:
                raise RefusedError(JOURNAL_FAILED, _reason(error)) from error
        self._apply(changes)

    def led(self, changes: Sequence[Change]) -> None:
        """Write changes of leaders. They are in effect already: at worst an epoch is used again after a restart."""
        if self.store is not None and changes:
            # the store reports its errors
            with suppress(OSError):
                self.store.journal(changes)

    def append(self, topic: TopicState, partition: int, header: BatchHeader, batch: bytes) -> int:
        """Append a batch of magic 2; return the offset of its first record.

        Raises RefusedError with KAFKA_STORAGE_ERROR if the disk fails.
        """
        log, epoch = topic.logs[partition], topic.epochs[partition]
        if self.store is not None:
            stored = rebase(batch, log.end, epoch)
            self._write([LogBatches(topic.name, topic.topic_id, partition, stored)])
        return _append(log, epoch, header, batch)

    def append_all(self, topic: TopicState, batches: Iterable[tuple[int, bytes]]) -> None:
        """Append batches of magic 2 to partitions of a topic, all or none.

        Raises RefusedError with KAFKA_STORAGE_ERROR if the disk fails.
        """
        placed = [(partition, read_header(batch), batch) for partition, batch in batches]
        if self.store is not None:
            ends = [log.end for log in topic.logs]
            writes = []
            for partition, header, batch in placed:
                stored = rebase(batch, ends[partition], topic.epochs[partition])
                writes.append(LogBatches(topic.name, topic.topic_id, partition, stored))
                ends[partition] += header.last_offset_delta + 1
            self._write(writes)
        for partition, header, batch in placed:
            _append(topic.logs[partition], topic.epochs[partition], header, batch)

    def compacted(self, topic: TopicState, partition: int) -> None:
        """Write the content of a log that was compacted; if the disk fails, a restart compacts it again."""
        # the store reports its errors
        with suppress(OSError):
            self._replace(topic, partition, topic.logs[partition])

    def truncate(self, topic: TopicState, partition: int, offset: int) -> None:
        """Delete the batches of a log that reach `offset`. Raises RefusedError if the disk fails."""
        rest = topic.logs[partition].truncated(offset)
        try:
            self._replace(topic, partition, rest)
        except OSError as error:
            raise RefusedError(Refusal(Error.KAFKA_STORAGE_ERROR, _reason(error))) from error
        topic.logs[partition] = rest

    def _replace(self, topic: TopicState, partition: int, log: PartitionLog) -> None:
        if self.store is not None:
            self.store.replace(LogBatches(topic.name, topic.topic_id, partition, log.content))

    def _write(self, appends: Sequence[LogBatches]) -> None:
        assert self.store is not None
        try:
            self.store.append(appends)
        except OSError as error:
            raise RefusedError(Refusal(Error.KAFKA_STORAGE_ERROR, _reason(error))) from error


def _reason(error: OSError) -> str:
    return f"Disk error: {error.strerror or error}"


def _append(log: PartitionLog, epoch: int, header: BatchHeader, batch: bytes) -> int:
    base_offset = log.append(header, batch, epoch)
    if header.producer_id >= 0:
        log.producers.appended(header, base_offset, batch)
    return base_offset
