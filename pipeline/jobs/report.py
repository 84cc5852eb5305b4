"""`koordinator-pipeline report`: the tables as one HTML page, and a summary for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..console import absolute, progress
from ..report.facts import STEPS
from ..report.files import ReportContents
from ..session_options import report_options, session_options, store_option
from ..views import open_query


@click.command
@store_option
@report_options(Path("report.html"), "Path of the page.")
@session_options
def report(
    root: str,
    as_of: str | None,
    html_path: Path,
    markdown_path: Path | None,
    title: str,
    **session: Any,  # noqa: ANN401 - the arguments of session_options
) -> None:
    """Write one HTML page of the tables, which opens offline and can be printed.

    Prints the path of the page. The page has no script and loads nothing.
    """
    with open_query(absolute(root), as_of, **session) as query, progress(STEPS) as report_progress:
        result = ReportContents.read(query, report_progress)
    result.write(html_path, markdown_path, title)
