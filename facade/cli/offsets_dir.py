"""Reading and writing the groups of a data directory that no cluster is using."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from koordinator.emulator.broker.offsets_log import records_of
from koordinator.emulator.config.options import Options
from koordinator.emulator.core.data.topic import OFFSETS_TOPIC
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.server.build import build
from koordinator.emulator.storage.data_dir import DataDir, DataDirRefused
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import read_records

from .offsets import CommandFailed
from .serve import log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from uuid import UUID

    from koordinator.emulator.core.groups.records import CoordinatorRecord


def read(path: Path) -> tuple[list[CoordinatorRecord], dict[str, UUID]]:
    """Return all records of `__consumer_offsets`, and the ids of topics.

    A torn batch at the end of a log is cut off, as at a restart. Raises click.UsageError for an unusable directory,
    CommandFailed for a record that cannot be decoded.
    """
    if not path.is_dir():
        raise click.UsageError(f"data directory {path}: does not exist")
    records: list[CoordinatorRecord] = []
    with _opened(path) as data_dir:
        for topic in data_dir.topics.by_id.values():
            for partition in range(len(topic.replicas) if topic.name == OFFSETS_TOPIC else 0):
                for _, batch in data_dir.batches(topic, partition):
                    records += records_of(read_records(batch))
        return records, _topic_ids(data_dir)


def topic_ids(path: Path) -> dict[str, UUID]:
    """Return the ids of the topics in a directory, none if it does not exist. Raises click.UsageError."""
    if not path.is_dir():
        return {}
    with _opened(path) as data_dir:
        return _topic_ids(data_dir)


def _topic_ids(data_dir: DataDir) -> dict[str, UUID]:
    return {topic.name: topic_id for topic_id, topic in data_dir.topics.by_id.items()}


def partition_counts(path: Path) -> dict[str, int]:
    """Return the partitions of the topics in a directory, none if it does not exist. Raises click.UsageError."""
    if not path.is_dir():
        return {}
    with _opened(path) as data_dir:
        return {topic.name: len(topic.replicas) for topic in data_dir.topics.by_id.values()}


@contextmanager
def _opened(path: Path) -> Iterator[DataDir]:
    try:
        with closing(DataDir(path, log)) as data_dir:
            yield data_dir
    except DataDirRefused as error:
        raise click.UsageError(str(error)) from error
    except Malformed as error:
        raise CommandFailed(f"data directory {path}: {OFFSETS_TOPIC}: {error}") from error


def load(path: Path, records: list[CoordinatorRecord], now: int) -> None:
    """Write records to `__consumer_offsets`, at the time `now` in ms; create a missing directory.

    Raises click.UsageError for an unusable directory, CommandFailed if the records cannot be written.
    """
    try:
        parts = build(Options(data_dir=path), log)
    except DataDirRefused as error:
        raise click.UsageError(str(error)) from error
    try:
        parts.runtime.load_groups(now, records)
    except RefusedError as error:
        raise CommandFailed(f"data directory {path}: {error}") from error
    finally:
        parts.close()
