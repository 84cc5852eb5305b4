"""`koordinator-pipeline objective`: the share of time that each group spends in rebalances, against an objective."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from ..job_errors import EXIT_FAILED, JobRefused
from ..session_options import FILE, store_option
from ..views import open_query

if TYPE_CHECKING:
    from pathlib import Path

SHARES = """
    SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id,
           100 * coalesce(sum(ms) FILTER (state != 'Stable'), 0) / sum(ms) AS share,
           sum(ms) / 3600000 AS hours
    FROM gold.state_time
    WHERE state IN ('Stable', 'PreparingRebalance', 'CompletingRebalance')
    GROUP BY ALL
    HAVING sum(ms) > 0
    ORDER BY share DESC, scope, group_id
"""


@click.command
@store_option
@click.option("--max-share", type=click.FloatRange(0, 100), default=1.0, show_default=True, metavar="PERCENT",
              help="Greatest share of the time with members that a group may spend in rebalances.")  # fmt: skip
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write all groups as JSON.")
def objective(root: str, as_of: str | None, max_share: float, json_path: Path | None) -> int:
    """List the groups of a local store that rebalance for too large a share of their time. Needs no Spark.

    Exit status 1 if there is one.
    """
    with open_query(root, as_of) as query:
        rows = query(SHARES)
    if not rows:
        raise JobRefused(f"{root}: no group with members; load traces or broker logs with `koordinator-pipeline run`")
    missed = [row for row in rows if row["share"] > max_share]
    table = Table()
    for name in ("where", "group"):
        table.add_column(name)
    for name in ("rebalancing", "hours with members"):
        table.add_column(name, justify="right")
    for row in missed:
        table.add_row(row["scope"], row["group_id"], f"{row['share']:.2f} %", f"{row['hours']:,.1f}")
    if missed:
        Console().print(table)
    click.echo(f"{len(missed)} of {len(rows)} groups spend more than {max_share:g} % of their time in rebalances")
    if json_path is not None:
        json_path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return EXIT_FAILED if missed else 0
