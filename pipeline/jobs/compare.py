"""`koordinator-pipeline compare`: the costs of rebalances, compared between cohorts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from ..cohorts import BY, cohort_names, compare_cohorts
from ..console import absolute
from ..job_errors import JobRefused
from ..session_options import FILE, session_options, store_option
from ..views import open_query

if TYPE_CHECKING:
    from pathlib import Path


@click.command
@store_option
@click.option("--by", type=click.Choice(BY), required=True, help="Property that defines the cohorts.")
@click.option(
    "--baseline",
    metavar="COHORT",
    help="Cohort to compare the others with. [default: dynamic members, else the first cohort in time]",
)
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write the comparison as JSON.")
@session_options
def compare(
    root: str,
    as_of: str | None,
    by: str,
    baseline: str | None,
    json_path: Path | None,
    **session: Any,  # noqa: ANN401 - the arguments of session_options
) -> None:
    """Compare cohorts: n, mean, median, 95th percentile, and the 95 % interval of the difference of means.

    An interval without 0 is in bold: the difference between these cohorts is not due to chance.
    """
    with open_query(absolute(root), as_of, **session) as query:
        cohorts = cohort_names(query, by)
        chosen = baseline or ("dynamic" if by == "membership" and "dynamic" in cohorts else next(iter(cohorts), ""))
        if cohorts and chosen not in cohorts:
            raise JobRefused(f"--baseline {chosen}: no such cohort; choose one of: {', '.join(cohorts)}")
        rows = compare_cohorts(query, by, chosen)
    if not rows:
        raise JobRefused(f"{root}: no group to compare; load traces with `koordinator-pipeline run` first")
    _show(rows, by, chosen)
    if json_path is not None:
        json_path.write_text(json.dumps({"by": by, "baseline": chosen, "metrics": rows}, indent=2), encoding="utf-8")


def _show(rows: list[dict[str, Any]], by: str, baseline: str) -> None:
    table = Table(title=f"by {by}, against {baseline}")
    for name in ("metric", "cohort"):
        table.add_column(name)
    for name in ("n", "mean", "median", "p95", "difference", "95 % interval"):
        table.add_column(name, justify="right")
    before = ""
    for row in rows:
        if before not in ("", row["metric"]):
            table.add_section()
        metric, before = row["metric"] if row["metric"] != before else "", row["metric"]
        numbers = [_number(row[name]) for name in ("mean", "median", "p95", "difference")]
        table.add_row(metric, row["cohort"], str(row["n"]), *numbers, _interval(row["low"], row["high"]))
    Console().print(table)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    interval = f"{low:,.2f} … {high:,.2f}"
    return interval if low <= 0 <= high else f"[bold]{interval}[/bold]"
