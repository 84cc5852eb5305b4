"""`koordinator-pipeline report`: what the tables say, as one page, and as a summary for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import schema
from ..report.facts import STEPS, asked
from ..report.page import page, summary
from ..report.timelines import timelines, wanted
from ..session import opened
from ..session_options import session_options
from ..store import Store
from ..troubles import NOT_DONE, Failed, told_plainly
from .run import absolute, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

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
def report(root: str, html_path: Path, markdown_path: Path | None, title: str, **session: Any) -> int:  # noqa: ANN401 - as session_options gives them
    """Make one page of the tables: it opens offline, and can be printed.

    Prints where it is. The page has no script and loads nothing.
    """  # fmt: skip
    store = Store(absolute(root))
    with opened(**session) as spark, progress(STEPS) as tell:
        try:
            with told_plainly(store.root):
                store.require(spark)
                facts = asked(lambda table: store.read(spark, table), tell)
                pages = list(timelines(store.read(spark, schema.EVENT), store.read(spark, schema.TRACE), wanted(facts)))
        except Failed as error:
            click.echo(f"koordinator-pipeline report: {error}", err=True)
            return NOT_DONE
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
    """Write them into the folder beside the page; the address of each, as the page has it."""
    folder = html_path.with_name(f"{html_path.stem}-timelines")
    folder.mkdir(parents=True, exist_ok=True)
    for trace_id, text in pages:
        (folder / f"{trace_id}.html").write_text(text, encoding="utf-8")
    return {trace_id: f"{folder.name}/{trace_id}.html" for trace_id, _ in pages}
