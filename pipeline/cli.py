"""The command `koordinator-pipeline`: one module in `jobs` for each of its commands."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import click

import koordinator
from koordinator.cli import Commands, run
from koordinator.emulator.config.install_hint import install_hint

from .job_errors import EXIT_FAILED, JobFailed, spark_errors_explained

if TYPE_CHECKING:
    from collections.abc import Sequence

SUMMARIES = {
    "compact": "Merge the folders of each table into one, as a new snapshot with the same rows.",
    "compare": "Compare cohorts: n, mean, median, 95th percentile, and the 95 % interval of the difference of means.",
    "completion": "Print the completion script of SHELL.",
    "explore": "Play random schedules of group members in parallel, and report violated invariants as tests.",
    "generate": "Write synthetic traces of groups whose members start, bounce, crash and commit.",
    "lab": "Play a grid of rebalance cells in parallel, and append their figures to a table.",
    "objective": "List the groups of a local store that rebalance for too large a share of their time.",
    "report": "Write one HTML page of the tables, which opens offline and can be printed.",
    "run": "Load new traces and logs, and rebuild all tables that depend on them.",
    "sql": "Query the tables of a local store with DuckDB; gold/rebalance is gold.rebalance.",
    "tables": "List the tables of a local store, each with the number of its folders and the newest one.",
    "vacuum": "Remove old snapshots of a local store, and the folders that no other snapshot lists.",
    "verify": "Check the coordinator, its clients and transactions in every trace: S01 to S16, C01 to C14, T01 to T03.",
    "watch": "Load files as they appear, and the complete lines that plain text files gain, until interrupted.",
}
"""The line of each job in lists, which is the first sentence of its own help."""

WITHOUT_SPARK = ("completion", "objective", "sql", "tables")
"""The commands that do not import PySpark."""


class Jobs(Commands):
    """The jobs; most of them need Spark."""

    modules: ClassVar[dict[str, str]] = {name: f"koordinator.pipeline.jobs.{name}" for name in SUMMARIES}
    summaries: ClassVar[dict[str, str]] = SUMMARIES

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the job of that name, or None. Raises UsageError if it needs PySpark and that is missing."""
        if cmd_name in self.modules and cmd_name not in WITHOUT_SPARK and find_spec("pyspark") is None:
            raise click.UsageError(f"pyspark is not installed: {install_hint('spark')} (Python 3.11-3.14)", ctx)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the result of a job
        """Run a job. Of one that fails, print the reason in one line, and return its exit status."""
        try:
            with spark_errors_explained():
                return super().invoke(ctx)
        except JobFailed as error:
            click.echo(f"{ctx.command_path} {ctx.invoked_subcommand}: {error}", err=True)
            return EXIT_FAILED


@click.group(name="koordinator-pipeline", cls=Jobs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(koordinator.__version__, "--version", message="%(prog)s %(version)s")
def jobs() -> None:
    """Rebalance analytics over traces and logs, on Spark."""


def main(arguments: Sequence[str] | None = None, prog_name: str = "koordinator-pipeline") -> NoReturn:
    """Run a job and exit with its status, as `koordinator` does."""
    run(jobs, arguments, prog_name)
