"""`koordinator-pipeline tables`: the tables of a store, for people and for other engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table as Grid

from .. import snapshots
from ..console import absolute, escaped
from ..schema import TABLES
from ..schema.kinds import text
from ..session_options import store_option
from ..snapshots import LocalSnapshotFiles

if TYPE_CHECKING:
    from ..schema import Table


@click.command
@store_option
@click.option("--spark", "as_views", is_flag=True, help="Print statements that create views in Spark SQL.")
def tables(root: str, as_of: str | None, *, as_views: bool) -> None:
    """List the tables of a local store, each with the number of its folders and the newest one."""
    folder = Path(absolute(root))
    snapshot = snapshots.as_of(LocalSnapshotFiles(folder), root, as_of)
    if as_views:
        for path, table in TABLES.items():
            click.echo(view(table, folder, [each.name for each in snapshot.folders(path)]))
        return
    click.echo(f"snapshot {snapshot.number} of {snapshot.written_at}")
    grid = Grid()
    for name in ("table", "folders", "newest"):
        grid.add_column(name, justify="right" if name == "folders" else "left", overflow="fold")
    for path in TABLES:
        folders = snapshot.folders(path)
        grid.add_row(path, str(len(folders)), folders[-1].name if folders else "")
    Console().print(grid)


def view(table: Table, root: Path, folders: list[str]) -> str:
    """Return the statement that creates the view of a table: gold/rebalance is `gold_rebalance`."""
    begin = f"CREATE OR REPLACE TEMPORARY VIEW {table.path.replace('/', '_')}"
    columns = [(f"`{each.name}`", text(each.kind)) for each in table.stored]
    if not folders:
        nothing = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns)
        return f"{begin} AS SELECT {nothing} WHERE false;"
    (path,) = escaped([str(root / table.path)])
    pattern = f"{path}/{{{','.join(folders)}}}".replace("\\", "\\\\").replace("'", "\\'")
    return f"{begin} ({', '.join(map(' '.join, columns))}) USING parquet OPTIONS (path '{pattern}');"
