"""Groups out of a data directory, and into one, while no cluster uses it."""

from __future__ import annotations

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

from .offsets import NotDone
from .serve import log

if TYPE_CHECKING:
    from pathlib import Path

    from koordinator.emulator.core.groups.records import CoordinatorRecord


def read(path: Path) -> list[CoordinatorRecord]:
    """All records of `__consumer_offsets` there; what a crash has torn is cut off, as when a cluster is started on it.

    Raises click.UsageError for a directory that cannot be used, NotDone for a record that cannot be read.
    """
    if not path.is_dir():
        raise click.UsageError(f"data directory {path}: there is none")
    try:
        data_dir = DataDir(path, log)
    except DataDirRefused as error:
        raise click.UsageError(str(error)) from error
    records: list[CoordinatorRecord] = []
    try:
        for topic in data_dir.topics.by_id.values():
            for partition in range(len(topic.replicas) if topic.name == OFFSETS_TOPIC else 0):
                for _, batch in data_dir.batches(topic, partition):
                    records += records_of(read_records(batch))
    except DataDirRefused as error:
        raise click.UsageError(str(error)) from error
    except Malformed as error:
        raise NotDone(f"data directory {path}: {OFFSETS_TOPIC}: {error}") from error
    finally:
        data_dir.close()
    return records


def load(path: Path, records: list[CoordinatorRecord], now: int) -> None:
    """Write records to `__consumer_offsets` there, at this time in ms; a directory that is not there is made.

    Raises click.UsageError for a directory that cannot be used, NotDone if the disk does not take them.
    """
    try:
        parts = build(Options(data_dir=path), log)
    except DataDirRefused as error:
        raise click.UsageError(str(error)) from error
    try:
        parts.runtime.load_groups(now, records)
    except RefusedError as error:
        raise NotDone(f"data directory {path}: {error}") from error
    finally:
        parts.close()
