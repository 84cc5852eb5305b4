"""`koordinator lab`: every rebalance protocol under the same load, side by side."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from koordinator.emulator.config.install_hint import install_hint
from koordinator.emulator.config.suggest import unknown
from koordinator.lab.advice import advice, needed
from koordinator.lab.claims import CLAIMS
from koordinator.lab.load import Load
from koordinator.lab.matrix import COLUMNS, aligned, by_situation, figure_table, plain, play_matrix, situation_table
from koordinator.lab.page import lab_page
from koordinator.lab.schemes import SCHEMES
from koordinator.lab.situations import SITUATIONS
from koordinator.lab.sources import SOURCES
from koordinator.lab.sweep import PARTITIONS_PER_MEMBER, arrow_schema, rows_of
from koordinator.lab.workers.backlog import Backlog
from koordinator.lab.workers.comparison import (
    BACKLOG,
    WORK_COLUMNS,
    WORK_LOAD,
    WORK_SCHEMES,
    WORK_SITUATIONS,
    play_work,
    work_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from koordinator.lab.cells import Cell, CellResult

HELP = {
    "members": "Members of the group.",
    "seed": "The first seed.",
    "session_timeout_s": "session.timeout.ms, in seconds.",
    "heartbeat_interval_s": "heartbeat.interval.ms, in seconds.",
    "rebalance_timeout_s": "max.poll.interval.ms, in seconds.",
    "max_delay_s": "scheduled.rebalance.max.delay.ms of Connect, in seconds.",
    "batch_s": "Mean time that a member is busy with fetched records.",
    "restart_s": "Downtime of a restarted process.",
    "commit_interval_s": "auto.commit.interval.ms, in seconds.",
    "records_per_s": "Records per second and partition.",
    "state_bytes": "State per partition.",
    "restore_bytes_per_s": "Speed at which a member restores state.",
}
"""The fields of `Load` that have a flag."""


def load_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the flags of a load."""
    defaults = {each.name: each.default for each in fields(Load)}
    for name, text in reversed(HELP.items()):
        default = defaults[name]
        flag = "--" + name.replace("_", "-")
        command = click.option(flag, type=type(default), default=default, show_default=True, help=text)(command)
    command = click.option(
        "--partitions", type=int, help=f"Partitions of the topic [default: {PARTITIONS_PER_MEMBER} per member]"
    )(command)
    command = click.option("--situation", "situations", multiple=True, help="A situation (repeatable) [default: all]")(
        command
    )
    command = click.option("--scheme", "schemes", multiple=True, help="A scheme (repeatable) [default: all]")(command)
    return click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Runs per cell.")(command)


@click.group()
def lab() -> None:
    """Play rebalance protocols side by side, in virtual time."""


@lab.command("list")
def list_() -> None:
    """List the schemes, situations, figures and sources."""
    for title, rows in (
        ("Schemes", [[name, each.summary, each.source] for name, each in SCHEMES.items()]),
        ("Situations", [[name, each.summary, each.source] for name, each in SITUATIONS.items()]),
        ("Figures", [[name, each.meaning, each.unit] for name, each in COLUMNS.items()]),
        ("Schemes of work", [[name, summary, ""] for name, summary in WORK_SCHEMES.items()]),
        ("Situations of work", [[name, each.summary, ""] for name, each in WORK_SITUATIONS.items()]),
        ("Figures of work", [[name, each.meaning, each.unit] for name, each in WORK_COLUMNS.items()]),
        ("Sources", [[name, title, ""] for name, title in SOURCES.items()]),
    ):
        width = max(len(row[0]) for row in rows)
        click.echo(f"{title}:")
        for name, text, more in rows:
            click.echo(f"  {name.ljust(width)}  {text}" + (f" ({more})" if more else ""))


@lab.command()
@load_options
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures as JSON.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write one page with charts and timelines."
)
@click.option(
    "--parquet", type=click.Path(dir_okay=False, path_type=Path), help="Write a row for each run (extra `spark`)."
)
def run(json_path: Path | None, html: Path | None, parquet: Path | None, **options: Any) -> None:  # noqa: ANN401 - Click's options
    """Play situations under schemes, and print a table for each situation."""
    if parquet is not None and find_spec("pyarrow") is None:
        raise click.UsageError(f"--parquet needs pyarrow: {install_hint('spark')}")
    results = _play(**options)
    for situation, of in by_situation(results).items():
        click.echo(aligned(situation_table(situation, of)) + "\n")
    for path, write in ((json_path, _write_json), (html, _write_page), (parquet, _write_parquet)):
        if path is not None:
            write(path, results)
            click.echo(str(path))


@lab.command()
@load_options
@click.option("--figure", "names", multiple=True, default=("stopped_s", "idle_s"), help="A figure (repeatable).")
def compare(names: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401 - Click's options
    """Print one figure of all situations and schemes as a matrix."""
    _check("figure", names, COLUMNS)
    results = _play(**options)
    click.echo("\n\n".join(aligned(figure_table(name, results)) for name in names))


@lab.command()
@load_options
def advise(**options: Any) -> None:  # noqa: ANN401 - Click's options
    """Print which protocol and timeouts suit a load, with the figures that decide."""
    schemes, situations = needed()
    results = _play(
        **options | {"schemes": options["schemes"] or schemes, "situations": options["situations"] or situations}
    )
    rows = advice(results)
    if not rows:
        raise click.UsageError("no advice follows from these schemes and situations: leave out --scheme or --situation")
    for row in rows:
        click.echo(f"If {row.condition}:\n  {row.choice.replace('`', '')}\n  {row.figures.replace('`', '')}\n")


@lab.command()
@click.option("--members", type=int, default=WORK_LOAD.members, show_default=True, help="Members of the group.")
@click.option(
    "--partitions", type=int, default=WORK_LOAD.partitions, show_default=True, help="Partitions of the topic."
)
@click.option("--records", type=int, default=BACKLOG.records, show_default=True, help="Records per partition.")
@click.option("--record-s", type=float, default=BACKLOG.record_s, show_default=True, help="Seconds for a record.")
@click.option(
    "--slow-record-s", type=float, default=BACKLOG.slow_record_s, show_default=True, help="Those of a slow member."
)
@click.option("--scheme", "schemes", multiple=True, help="A scheme (repeatable) [default: all]")
@click.option("--situation", "situations", multiple=True, help="A situation (repeatable) [default: all]")
def work(  # noqa: PLR0913 - Click's options
    *,
    members: int,
    partitions: int,
    records: int,
    record_s: float,
    slow_record_s: float,
    schemes: tuple[str, ...],
    situations: tuple[str, ...],
) -> None:
    """Let a share group and groups with an owner for each partition work on the same backlog."""
    _check("scheme", schemes, WORK_SCHEMES)
    _check("situation", situations, WORK_SITUATIONS)
    try:
        load, backlog = Load(members=members, partitions=partitions), Backlog(records, record_s, slow_record_s)
        chosen = schemes or tuple(WORK_SCHEMES)
        for situation in situations or WORK_SITUATIONS:
            figures = [play_work(scheme, situation, load, backlog) for scheme in chosen]
            click.echo(aligned(work_table(situation, chosen, figures)) + "\n")
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@lab.command()
@click.option("--claim", "names", multiple=True, help="A claim (repeatable) [default: all]")
def claims(names: tuple[str, ...]) -> int:
    """Check claims of the article and the KIPs. Exit with 1 if a verdict differs from the documented one."""
    _check("claim", names, CLAIMS)
    status = 0
    for name in names or CLAIMS:
        each = CLAIMS[name]
        finding = each.check()
        differs = f", not {each.verdict!r}" if finding.verdict != each.verdict else ""
        condition = f" (if {each.condition})" if each.condition else ""
        click.echo(f"{name}: {finding.verdict}{differs}{condition}\n  {each.text} [{each.place}]\n  {finding.figures}")
        status = 1 if differs else status
    return status


def _write_json(path: Path, results: list[CellResult]) -> None:
    path.write_text(json.dumps(plain(results), indent=1) + "\n", encoding="utf-8")


def _write_page(path: Path, results: list[CellResult]) -> None:
    path.write_text(lab_page(results), encoding="utf-8")


def _write_parquet(path: Path, results: list[CellResult]) -> None:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency
    from pyarrow import parquet  # noqa: PLC0415

    parquet.write_table(pa.Table.from_pylist(list(rows_of(results)), arrow_schema()), path)


def _play(
    *,
    schemes: Sequence[str],
    situations: Sequence[str],
    partitions: int | None,
    seeds: int,
    **options: Any,  # noqa: ANN401 - the fields of Load
) -> list[CellResult]:
    _check("scheme", schemes, SCHEMES)
    _check("situation", situations, SITUATIONS)
    count = PARTITIONS_PER_MEMBER * options["members"] if partitions is None else partitions
    try:
        load = Load(partitions=count, **options)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    chosen = schemes or tuple(SCHEMES), situations or tuple(SITUATIONS)
    total = len(chosen[0]) * len(chosen[1])
    played = 0

    def show(cell: Cell) -> None:
        nonlocal played
        played += 1
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{played}/{total} {cell.scheme} {cell.situation}", err=True, nl=played == total)

    return list(play_matrix(*chosen, load, seeds, show))


def _check(kind: str, names: Sequence[str], known: Mapping[str, object]) -> None:
    for name in names:
        if name not in known:
            raise click.UsageError(unknown(kind, name, known))
