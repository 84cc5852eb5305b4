"""The files of a report: the page, the timelines beside it, and the summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from .facts import read_facts
from .page import page, summary
from .timelines import timelines, traces_to_show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ..views import Query
    from .facts import Facts


@dataclass(frozen=True, slots=True)
class ReportContents:
    """What the files of a report say. `pages` are the timelines with their trace ids."""

    facts: Facts
    pages: Sequence[tuple[str, str]]

    @classmethod
    def read(cls, query: Query, report_progress: Callable[[str], None]) -> ReportContents:
        """Query the tables; `report_progress` is called as by `read_facts`."""
        facts = read_facts(query, report_progress)
        return cls(facts, [*timelines(query, traces_to_show(facts))])

    def write(self, html_path: Path, markdown_path: Path | None, title: str) -> None:
        """Write the page and its timelines, the summary if it has a path, and print the path of the page.

        Raises ClickException if a file cannot be written.
        """
        try:
            text = page(self.facts, title=title, timelines=self._write_timelines(html_path))
            html_path.write_text(text, encoding="utf-8")
            if markdown_path is not None:
                with click.open_file(str(markdown_path), "w", encoding="utf-8") as file:
                    file.write(summary(self.facts, title=title))
        except OSError as error:
            raise click.ClickException(f"{error.filename}: {error.strerror}") from error
        click.echo(html_path)

    def _write_timelines(self, html_path: Path) -> dict[str, str]:
        """Write the timelines. Return their addresses relative to the page, by trace id."""
        folder = html_path.with_name(f"{html_path.stem}-timelines")
        folder.mkdir(parents=True, exist_ok=True)
        for trace_id, text in self.pages:
            (folder / f"{trace_id}.html").write_text(text, encoding="utf-8")
        return {trace_id: f"{folder.name}/{trace_id}.html" for trace_id, _ in self.pages}
