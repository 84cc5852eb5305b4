"""`koordinator-pipeline report`: what the tables say, as one page, and as a summary for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from koordinator.pipeline import schema
from koordinator.pipeline.report.facts import asked
from koordinator.pipeline.report.page import page, summary
from koordinator.pipeline.report.timelines import timelines, wanted
from koordinator.pipeline.session import opened
from koordinator.pipeline.session_options import session_options
from koordinator.pipeline.store import Store

FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command
@click.option("--store", "root", required=True, metavar="DIR", help="The folder that `run` has filled.")
@click.option(
    "--html",
    "html_path",
    type=FILE,
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="The page. Timelines of single traces go into a folder beside it, named like it.",
)
@click.option(
    "--markdown",
    "markdown_path",
    type=FILE,
    metavar="FILE",
    help="The summary for a pull request; - is stdout. Not written unless asked for.",
)
@click.option("--title", default="Rebalances", show_default=True, metavar="TEXT", help="What the page is called.")
@session_options
def report(root: str, html_path: Path, markdown_path: Path | None, title: str, **session: Any) -> None:  # noqa: ANN401 - as session_options gives them
    """Make one page of the tables: it opens offline, and can be printed.

    Prints where it is. The page has no script and loads nothing.
    """  # fmt: skip
    store = Store(root)
    with opened(**session) as spark:
        facts = asked(lambda table: store.read(spark, table))
        folder = html_path.with_name(f"{html_path.stem}-timelines")
        addresses = {}
        for trace_id, text in timelines(
            store.read(spark, schema.EVENT), store.read(spark, schema.TRACE), wanted(facts)
        ):
            folder.mkdir(exist_ok=True)
            (folder / f"{trace_id}.html").write_text(text, encoding="utf-8")
            addresses[trace_id] = f"{folder.name}/{trace_id}.html"
    html_path.write_text(page(facts, title=title, timelines=addresses), encoding="utf-8")
    if markdown_path is not None:
        with click.open_file(str(markdown_path), "w", encoding="utf-8") as file:
            file.write(summary(facts, title=title))
    click.echo(html_path)
