"""`make conformance`: play the scenarios to running brokers of Apache Kafka and to the emulator's core.

Every scenario that applies to a release is played to a broker of it, and to the core as that release. Both must satisfy
the scenario, and their answers must be equal to each other and to the golden ones (tests/golden). A scenario that
differs is played once more, without the others; what does not differ again is printed, but is no difference.
`--record` renews the golden answers. Exit status 1 means differences. Needs Java and Maven.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from brokers.kafka_releases import COMPARED
from scenarios.comparison import NOT_APPLICABLE, SLOW, WAITING, Report, conform
from scenarios.registry import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.progress import TaskID


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the scenarios and print the results; return the exit status."""
    scenarios = load()
    options = _options(arguments, list(scenarios))
    chosen = {number: each for number, each in scenarios.items() if number in (options.scenario or scenarios)}
    console = Console()
    if not console.is_terminal:
        console.width = 160
    reports: list[tuple[Report, float]] = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        for name in options.broker or COMPARED:
            began = time.monotonic()
            task = progress.add_task(f"Kafka {name}", total=None)
            report = conform(
                COMPARED[name],
                chosen,
                slow=options.slow,
                record=options.record,
                advanced=partial(_show, progress, task),
            )
            reports.append((report, time.monotonic() - began))
            for title, differences in (("", report.differing), (" (seen once)", report.seen_once)):
                for what, why in differences.items():
                    console.print(f"[bold]Kafka {name}, {what}{title}[/bold]", highlight=False)
                    console.print("\n".join(why), markup=False, highlight=False, soft_wrap=True)
    console.print(_table(reports))
    return int(any(report.differing for report, _ in reports))


def _show(progress: Progress, task: TaskID, done: int, of: int) -> None:
    progress.update(task, completed=done, total=of)


def _table(reports: Iterable[tuple[Report, float]]) -> Table:
    table = Table("broker", "Kafka", "applicable", "agreeing", "differing")
    for heading in ("seen once", "waiting", "slow, not played", NOT_APPLICABLE, "time"):
        table.add_column(heading)
    for report, seconds in reports:
        release, counts = report.release, report.counts
        found = (report.agreeing, len(report.differing), len(report.seen_once))
        numbers = (report.applicable, *found, counts[WAITING], counts[SLOW], counts[NOT_APPLICABLE])
        table.add_row(release.name, f"{release.version} {release.coordinator}", *map(str, numbers), f"{seconds:.0f} s")
    for column in table.columns[2:]:
        column.justify = "right"
    return table


def _options(arguments: Sequence[str] | None, numbers: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument("--broker", action="append", choices=COMPARED, help="only with this one; may be repeated")
    parser.add_argument("--scenario", action="append", choices=numbers, metavar="E-032", help="only this one; the same")
    parser.add_argument("--slow", action="store_true", help="those, too, that take Kafka's own minutes")
    parser.add_argument("--record", action="store_true", help="write the golden answers")
    return parser.parse_args(arguments)


def _end(number: int, _: object) -> NoReturn:
    """Exit as on an interrupt: brokers are stopped on the way out."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    sys.exit(main())
