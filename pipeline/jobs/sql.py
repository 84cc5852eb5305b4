"""`koordinator-pipeline sql`: query a store with DuckDB, without Spark."""

from __future__ import annotations

import click

from ..job_errors import EXIT_FAILED
from ..session_options import store_option
from ..views import open_views


@click.command
@store_option
@click.option("-c", "--command", "query", metavar="QUERY", help="Run a query and end. [default: a prompt]")
def sql(root: str, as_of: str | None, query: str | None) -> int:
    """Query the tables of a local store with DuckDB; gold/rebalance is gold.rebalance.

    At the prompt a query ends with a semicolon, and Ctrl-D ends the command.
    """

    def run(query: str) -> int:
        import duckdb  # noqa: PLC0415 - an optional dependency, which the views need, too

        try:
            result = connection.sql(query)
        except duckdb.Error as error:
            click.echo(f"koordinator-pipeline sql: {error}", err=True)
            return EXIT_FAILED
        if result is not None:
            click.echo(str(result).rstrip())
        return 0

    with open_views(root, as_of) as connection:
        if query is not None:
            return run(query)
        lines: list[str] = []
        for line in iter(lambda: _read_line("sql> " if not lines else "...> "), None):
            lines.append(line)
            if line.rstrip().endswith(";"):
                run("\n".join(lines))
                lines.clear()
    return 0


def _read_line(prompt: str) -> str | None:
    """Return a line of the terminal, or None at its end."""
    try:
        return input(prompt)
    except EOFError:
        click.echo()
        return None
