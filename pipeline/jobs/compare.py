"""`koordinator-pipeline compare`: what rebalances cost in one cohort, and in another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from .. import schema
from ..marts.cohort import BY, compared, measured
from ..session import opened
from ..session_options import session_options
from ..store import Store
from ..troubles import Refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = click.Path(dir_okay=False, writable=True, path_type=Path)

TAKES = (schema.REBALANCE, schema.MEMBER_DOWNTIME, schema.MEMBER, schema.TRACE)


@click.command
@click.option("--store", "root", required=True, metavar="DIR", help="The folder that `run` has filled.")
@click.option("--by", type=click.Choice(BY), required=True, help="What the traces of a cohort have in common.")
@click.option(
    "--baseline",
    metavar="COHORT",
    help="The cohort that the others are compared with. [default: dynamic members; else the one that was seen first]",
)
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="The same as JSON.")
@session_options
def compare(root: str, by: str, baseline: str | None, json_path: Path | None, **session: Any) -> None:  # noqa: ANN401 - as session_options gives them
    """Compare cohorts: n, mean, median, 95th percentile, and the 95 % interval of the difference of means.

    An interval without 0 in it is in bold: there the cohorts differ, and not by chance.
    """  # fmt: skip
    store = Store(root)
    with opened(**session) as spark:
        store.require(spark)
        values = measured(by, *(store.read(spark, table) for table in TAKES)).cache()
        cohorts = _cohorts(values)
        chosen = baseline or ("dynamic" if by == "membership" and "dynamic" in cohorts else next(iter(cohorts), ""))
        if cohorts and chosen not in cohorts:
            raise Refused(f"--baseline {chosen}: there is no such cohort; there are: {', '.join(cohorts)}")
        rows = [row.asDict() for row in compared(values, chosen).collect()]
    if not rows:
        raise Refused(f"{root}: there is no group in it to be compared; give `run` traces of some")
    _show(rows, by, chosen)
    if json_path is not None:
        json_path.write_text(json.dumps({"by": by, "baseline": chosen, "metrics": rows}, indent=2), encoding="utf-8")


def _cohorts(values: DataFrame) -> list[str]:
    """The cohorts, the one that was seen first first."""
    first = values.groupBy("cohort").agg({"started_us": "min"}).withColumnRenamed("min(started_us)", "first_us")
    return [row.cohort for row in first.orderBy("first_us", "cohort").collect()]


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
    said = f"{low:,.2f} … {high:,.2f}"
    return said if low <= 0 <= high else f"[bold]{said}[/bold]"
