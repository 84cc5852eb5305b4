"""`koordinator-pipeline compact`: merge the small files that many loads leave."""

from __future__ import annotations

from typing import Any

import click

from ..console import absolute, progress
from ..lock import locked
from ..schema import TABLES
from ..session import open_session
from ..session_options import session_options, writable_store_option
from ..store import Store


@click.command
@writable_store_option
@session_options
def compact(root: str, **session: Any) -> None:  # noqa: ANN401 - the arguments of session_options
    """Merge the folders of each table into one, as a new snapshot with the same rows.

    The old folders remain for earlier snapshots, until `vacuum` removes them.
    """
    store = Store(absolute(root))
    with (
        open_session(**session, big=True) as spark,
        progress(len(TABLES)) as report_progress,
        locked(store.local),
    ):
        store.open(spark)
        draft = store.begin(spark)
        for table in TABLES.values():
            report_progress(table.path)
            if len(draft.snapshot.folders(table.path)) > 1:
                draft.compact(table)
        number = draft.commit().number
    click.echo(f"snapshot {number} of {store.root}")
