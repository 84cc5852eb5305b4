"""The command `koordinator-pipeline`: one module in `jobs` for each of its commands."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, NoReturn

import click

import koordinator
from koordinator.cli import Commands, run
from koordinator.emulator.config.install_hint import install_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = (
    *("compact", "compare", "explore", "generate", "lab", "objective", "report"),
    *("run", "sql", "tables", "vacuum", "verify", "watch"),
)
HOMES = {name: f"koordinator.pipeline.jobs.{name}" for name in NAMES}
"""The module of each job."""


class Jobs(Commands):
    """The jobs. All of them need Spark."""

    modules: ClassVar[dict[str, str]] = HOMES

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the job of that name, or None. Raises UsageError if pyspark is missing."""
        if cmd_name in self.modules and find_spec("pyspark") is None:
            raise click.UsageError(f"pyspark is not installed: {install_hint('spark')} (Python 3.11-3.14)", ctx)
        return super().get_command(ctx, cmd_name)


@click.group(name="koordinator-pipeline", cls=Jobs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(koordinator.__version__, "--version", message="%(prog)s %(version)s")
def jobs() -> None:
    """Rebalance analytics over traces and logs, on Spark."""


def main(arguments: Sequence[str] | None = None, prog_name: str = "koordinator-pipeline") -> NoReturn:
    """Run a job and exit with its status, as `koordinator` does."""
    run(jobs, arguments, prog_name)
