"""`koordinator-pipeline vacuum`: remove old snapshots, and the folders that none lists."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from .. import snapshots
from ..console import absolute
from ..job_errors import JobRefused
from ..lock import locked
from ..schema import TABLES
from ..session_options import writable_store_option
from ..snapshots import LocalSnapshotFiles
from ..store import Store


@click.command
@writable_store_option
@click.option("--keep-hours", type=click.FloatRange(min=0), default=168, show_default=True, metavar="HOURS",
              help="Keep the snapshots that were current in this time, for --as-of and running readers.")  # fmt: skip
def vacuum(root: str, keep_hours: float) -> None:
    """Remove old snapshots of a local store, and the folders that no other snapshot lists.

    It also removes the folders of loads that were cut off. The current tables remain.
    """
    store = Store(absolute(root))
    folder = store.local
    if folder is None:
        raise JobRefused(f"{root}: vacuum removes files on this machine only")
    with locked(folder):
        snapshots.as_of(LocalSnapshotFiles(folder), root, None)
        removed = snapshots.vacuum(folder, TABLES, datetime.now(UTC) - timedelta(hours=keep_hours))
    click.echo(f"{len(removed):,} folders removed")
