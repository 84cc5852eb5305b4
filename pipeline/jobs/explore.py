"""`koordinator-pipeline explore`: random schedules of a group on many cores, checked against invariants.

Every executor plays and shrinks its own seeds; only failures return.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from koordinator.lab.explore import ALL, PROPERTIES
from koordinator.lab.explore import explore as explore_seed

from ..job_errors import EXIT_FAILED
from ..session import open_session
from ..session_options import session_options

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pyspark.sql import SparkSession

SCHEMA = "seed bigint, violations string, test string"
ARROW = pa.schema([("seed", pa.int64()), ("violations", pa.string()), ("test", pa.string())])

SEEDS_PER_TASK = 500
"""Seeds in one task: some ten seconds."""


def _properties(_: click.Context, __: click.Parameter, text: str) -> frozenset[str]:
    """Return the properties of a comma-separated list. Raises BadParameter for an unknown one."""
    names = frozenset(text.split(","))
    if unknown := sorted(names - ALL):
        raise click.BadParameter(f"{', '.join(unknown)}: must be of {', '.join(PROPERTIES)}")
    return names


@click.command
@click.option("--seeds", type=click.IntRange(1), default=10_000, show_default=True, help="Number of schedules.")
@click.option("--first", type=int, default=0, show_default=True, help="The first seed.")
@click.option(
    "--properties",
    callback=_properties,
    default=",".join(PROPERTIES),
    show_default=True,
    help="The invariants to check, separated by commas.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the tests of failures. [default: print them]",
)
@session_options
def explore(seeds: int, first: int, properties: Collection[str], output: Path | None, **session: Any) -> int:  # noqa: ANN401 - session_options
    """Play random schedules of group members in parallel, and report violated invariants as tests.

    The exit status is 1 if a schedule violates an invariant.
    """
    with open_session(**session) as spark:
        failures = failures_of(spark, first, seeds, properties)
    for seed, violations, test in failures:
        click.echo(f"seed {seed}: {violations}")
        if output is None:
            click.echo(test)
        else:
            output.mkdir(parents=True, exist_ok=True)
            (output / f"test_seed_{seed}.py").write_text(test, encoding="utf-8")
    click.echo(f"{seeds:,} schedules from seed {first}, {len(failures):,} violate an invariant")
    return EXIT_FAILED if failures else 0


def failures_of(
    spark: SparkSession, first: int, seeds: int, properties: Collection[str] = ALL
) -> list[tuple[int, str, str]]:
    """Return seed, violations and test of each schedule that fails, by seed."""
    tasks = -(-seeds // SEEDS_PER_TASK)
    rows = spark.range(first, first + seeds, 1, tasks).mapInArrow(partial(_failures, properties), SCHEMA).collect()
    return sorted((row.seed, row.violations, row.test) for row in rows)


def _failures(properties: Collection[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = filter(None, (explore_seed(seed, properties) for seed in batch.column("id").to_pylist()))
        rows = [{"seed": each.seed, "violations": "; ".join(each.violations), "test": each.as_test()} for each in found]
        yield pa.RecordBatch.from_pylist(rows, ARROW)
