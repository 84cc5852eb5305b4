"""Reading and writing the groups of a data directory that no cluster is using."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from koordinator.emulator.broker.offsets_log import records_of
from koordinator.emulator.broker.steps import run
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
    from pathlib import Path

    from koordinator.emulator.core.groups.records import CoordinatorRecord


def read(path: Path) -> list[CoordinatorRecord]:
    """Return all records of `__consumer_offsets`. A torn batch at the end of a log is cut off, as at a restart.

    Raises click.UsageError for an unusable directory, CommandFailed for a record that cannot be decoded.
    """
    if not path.is_dir():
        raise click.UsageError(f"data directory {path}: does not exist")
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
        raise CommandFailed(f"data directory {path}: {OFFSETS_TOPIC}: {error}") from error
    finally:
        data_dir.close()
    return records


def load(path: Path, records: list[CoordinatorRecord], now: int) -> None:
    """Write records to `__consumer_offsets`, at the time `now` in ms; create a missing directory.

    Raises click.UsageError for an unusable directory, CommandFailed if the records cannot be written.
    """
    try:
        parts = build(Options(data_dir=path), log)
    except DataDirRefused as error:
        raise click.UsageError(str(error)) from error
    try:
        run(parts.runtime.load_groups(records), now, partial(parts.runtime.settle, now))
    except RefusedError as error:
        raise CommandFailed(f"data directory {path}: {error}") from error
    finally:
        parts.close()
