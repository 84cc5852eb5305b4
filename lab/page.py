"""The page of a matrix: one HTML file without references to others."""

from __future__ import annotations

from dataclasses import fields
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from .cells import record_of
from .matrix import COLUMNS, by_situation, heading
from .schemes import SCHEMES
from .situations import SITUATIONS
from .timeline import PARTITIONS_MAX, picture, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cells import CellResult
    from .load import Load

DEFAULT_FIGURE = "stopped_s"
BAR_MAX = 100
"""The width of the longest bar, in percent of its column."""

ARTICLE_STEPS = {
    ("cooperative", "newcomer"): "A new consumer joins (cooperative): its share is given up, then taken",
    ("connect", "bounce"): "A worker bounces within the delay (connect): its tasks wait for it",
    ("connect", "leave"): "A worker leaves for good (connect): its tasks move after the delay",
}
"""The pictures of the article on incremental cooperative rebalancing."""


def lab_page(results: Sequence[CellResult]) -> str:
    """Return the page: a matrix for each figure, and for each situation charts and a timeline of every scheme."""
    grouped = by_situation(results)
    options = "".join(
        f'<option value="{name}"{" selected" if name == DEFAULT_FIGURE else ""}>{escape(heading(name))}</option>'
        for name in COLUMNS
    )
    return Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8")).substitute(
        load=escape(load_text(results[0].cell.load, len(results[0].figures))),
        options=options,
        meanings="".join(
            f'<p data-figure="{name}">{escape(heading(name).capitalize())}: {escape(column.meaning)}.</p>'
            for name, column in COLUMNS.items()
        ),
        steps="".join(map(_steps, filter(_is_step, results))),
        matrices="".join(_matrix(name, grouped) for name in COLUMNS),
        situations="".join(_situation(name, of) for name, of in grouped.items()),
    )


def load_text(load: Load, seeds: int) -> str:
    """Return the parameters of a run in one line."""
    values = ", ".join(
        f"{name.replace('_', ' ')} {value:,} {unit}".strip() if isinstance(value, int | float) else f"{name} {value}"
        for name, unit, value in ((*_name_and_unit(each.name), getattr(load, each.name)) for each in fields(load))
        if value not in (None, ())
    )
    return f"{values}; mean of {seeds} seeds" if seeds > 1 else values


def _name_and_unit(name: str) -> tuple[str, str]:
    """Return the name of a parameter without its unit, and the unit."""
    return (name.removesuffix("_s"), "s") if name.endswith("_s") and not name.endswith("_per_s") else (name, "")


def _is_step(result: CellResult) -> bool:
    is_small = result.cell.load.partitions <= PARTITIONS_MAX
    return is_small and (result.cell.scheme, result.cell.situation) in ARTICLE_STEPS


def _steps(result: CellResult) -> str:
    text = ARTICLE_STEPS[result.cell.scheme, result.cell.situation]
    return f"<h3>{escape(text)}</h3>{steps(record_of(result.cell)[0])}"


def _matrix(name: str, grouped: dict[str, list[CellResult]]) -> str:
    schemes = dict.fromkeys(each.cell.scheme for of in grouped.values() for each in of)
    head = "".join(f'<th title="{escape(SCHEMES[each].summary)}">{escape(each)}</th>' for each in schemes)
    rows = []
    for situation, of in grouped.items():
        most = max((each.mean(name) or 0 for each in of), default=0)
        cells = "".join(_cell(each, name, most) for each in of)
        summary = escape(SITUATIONS[situation].summary)
        rows.append(f"<tr><td>{escape(situation)}<small>{summary}</small></td>{cells}</tr>")
    return (
        f'<section data-figure="{name}" class="scroll"><table><tr><th></th>{head}</tr>{"".join(rows)}</table></section>'
    )


def _cell(result: CellResult, name: str, most: float) -> str:
    number = result.mean(name)
    heat = 0.6 * number / most if most and number is not None else 0.6 * (number is None)
    link = f'<a href="#{_anchor(result)}">{COLUMNS[name].text(number)}</a>'
    return f'<td style="background: rgb(var(--heat) / {heat:.2f})">{link}</td>'


def _anchor(result: CellResult) -> str:
    return f"{result.cell.situation}.{result.cell.scheme}"


def _situation(name: str, results: list[CellResult]) -> str:
    situation = SITUATIONS[name]
    charts = "".join(_chart(figure, results) for figure in COLUMNS)
    pictures = "".join(_timeline(each) for each in results)
    return f"<h3>{escape(name)}: {escape(situation.summary)} ({escape(situation.source)})</h3>{charts}{pictures}"


def _chart(name: str, results: list[CellResult]) -> str:
    most = max((each.mean(name) or 0 for each in results), default=0)
    rows = []
    for each in results:
        number = each.mean(name)
        width = BAR_MAX * (number or 0) / most if most else 0
        bar = f'<span class="bar" style="width: {width:.0f}%"></span>'
        rows.append(f"<tr><td>{escape(each.cell.scheme)}</td><td>{COLUMNS[name].text(number)}</td><td>{bar}</td></tr>")
    return f'<section data-figure="{name}"><table class="bars">{"".join(rows)}</table></section>'


def _timeline(result: CellResult) -> str:
    svg = picture(*record_of(result.cell))
    heading_text = f"{result.cell.scheme}: {SCHEMES[result.cell.scheme].summary}"
    return f'<details id="{_anchor(result)}" open><summary>{escape(heading_text)}</summary>{svg}</details>'
