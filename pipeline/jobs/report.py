"""`koordinator-pipeline report`: the tables as one HTML page, and a summary for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import schema
from ..job_errors import EXIT_FAILED, JobFailed, spark_errors_explained
from ..report.facts import STEPS, read_facts
from ..report.page import page, summary
from ..report.timelines import timelines, traces_to_show
from ..session import open_session
from ..session_options import FILE, session_options, store_option
from ..store import Store
from .run import absolute, progress

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command
@store_option
@click.option(
    "--html",
    "html_path",
    type=FILE,
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="Path of the page. A folder beside it, with the same name, gets timelines of single traces.",
)
@click.option(
    "--markdown",
    "markdown_path",
    type=FILE,
    metavar="FILE",
    help="Write a summary for a pull request; - is stdout.",
)
@click.option("--title", default="Rebalances", show_default=True, metavar="TEXT", help="Title of the page.")
@session_options
def report(
    root: str,
    as_of: str | None,
    html_path: Path,
    markdown_path: Path | None,
    title: str,
    **session: Any,  # noqa: ANN401 - the arguments of session_options
) -> int:
    """Write one HTML page of the tables, which opens offline and can be printed.

    Prints the path of the page. The page has no script and loads nothing.
    """
    store = Store(absolute(root))
    with open_session(**session) as spark, progress(STEPS) as report_progress:
        try:
            with spark_errors_explained(store.root):
                tables = store.open(spark, as_of)
                facts = read_facts(tables.read, report_progress)
                pages = list(timelines(tables.read(schema.EVENT), tables.read(schema.TRACE), traces_to_show(facts)))
        except JobFailed as error:
            click.echo(f"koordinator-pipeline report: {error}", err=True)
            return EXIT_FAILED
    try:
        addresses = _write_timelines(html_path, pages)
        html_path.write_text(page(facts, title=title, timelines=addresses), encoding="utf-8")
        if markdown_path is not None:
            with click.open_file(str(markdown_path), "w", encoding="utf-8") as file:
                file.write(summary(facts, title=title))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from error
    click.echo(html_path)
    return 0


def _write_timelines(html_path: Path, pages: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Write the timelines into a folder beside the page. Return their addresses relative to the page, by trace id."""
    folder = html_path.with_name(f"{html_path.stem}-timelines")
    folder.mkdir(parents=True, exist_ok=True)
    for trace_id, text in pages:
        (folder / f"{trace_id}.html").write_text(text, encoding="utf-8")
    return {trace_id: f"{folder.name}/{trace_id}.html" for trace_id, _ in pages}
