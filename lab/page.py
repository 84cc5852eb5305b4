"""The page of a matrix: one HTML file without references to others."""

from __future__ import annotations

import re
from dataclasses import fields
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from .advice import advice
from .cells import record_of
from .matrix import COLUMNS, by_situation, heading
from .schemes import SCHEMES
from .situations import SITUATIONS
from .sources import KIPS, SOURCES, users_of
from .timeline import PARTITIONS_MAX, picture, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .advice import Advice
    from .cells import CellResult
    from .load import Load

DEFAULT_FIGURE = "stopped_s"

ARTICLE_STEPS = {
    ("cooperative", "newcomer"): "A new consumer joins (cooperative): its share is given up, then taken",
    ("connect", "bounce"): "A worker bounces within the delay (connect): its tasks wait for it",
    ("connect", "leave"): "A worker leaves for good (connect): its tasks move after the delay",
}
"""The pictures of the article on incremental cooperative rebalancing."""

SWITCH = (
    '<label><input type="checkbox" id="others"> Show schemes that Kafka has left behind, and experiments: {}</label>'
)


def lab_page(results: Sequence[CellResult]) -> str:
    """Return the page: advice, a matrix for each figure, and for each situation charts and a timeline of every scheme.

    Schemes that no released Kafka has are behind a switch, if there are others.
    """
    grouped = by_situation(results)
    schemes = list(dict.fromkeys(each.cell.scheme for each in results))
    others = [each for each in schemes if SCHEMES[each].is_other]
    hidden = frozenset(others if len(others) < len(schemes) else ())
    options = "".join(
        f'<option value="{name}"{" selected" if name == DEFAULT_FIGURE else ""}>{escape(heading(name))}</option>'
        for name in COLUMNS
    )
    rows = advice(results)
    pictures = [each for each in results if _is_step(each)]
    parts = {
        "advice": "Advice for this load" if rows else "",
        "matrix": "All protocols in all situations",
        "steps": "Step by step" if pictures else "",
        "situations": "Situations",
        **{f"situation-{name}": f"{name}: {SITUATIONS[name].summary}" for name in grouped},
        "sources": "Sources",
    }
    return Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8")).substitute(
        load=escape(load_text(results[0].cell.load, len(results[0].figures))),
        contents="".join(f'<a href="#{id_}">{escape(text)}</a>' for id_, text in parts.items() if text),
        advice=_advice(rows) if rows else "",
        switch=SWITCH.format(escape(", ".join(others))) if hidden else "",
        options=options,
        meanings="".join(
            f'<p data-figure="{name}">{escape(heading(name).capitalize())}: {escape(column.meaning)}.</p>'
            for name, column in COLUMNS.items()
        ),
        steps=STEPS + "".join(map(_steps, pictures)) if pictures else "",
        matrices="".join(_matrix(name, grouped, hidden) for name in COLUMNS),
        situations="".join(_situation(name, of, hidden) for name, of in grouped.items()),
        sources=_sources(schemes, list(grouped)),
    )


STEPS = (
    '<h2 id="steps">Step by step</h2><p>The partitions of each member before the situation, and after each change.</p>'
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


def _advice(rows: Sequence[Advice]) -> str:
    head = "<tr><th>If \u2026</th><th>then</th><th>because</th></tr>"
    body = "".join(
        f"<tr>{''.join(f'<td>{_code(text)}</td>' for text in (row.condition, row.choice, row.figures))}</tr>"
        for row in rows
    )
    return (
        '<h2 id="advice">Advice for this load</h2><p>It follows from the figures below, and changes with the load.</p>'
        f'<div class="scroll"><table class="texts">{head}{body}</table></div>'
    )


def _code(text: str) -> str:
    """Return Markdown with code spans as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _sources(schemes: Sequence[str], situations: Sequence[str]) -> str:
    rows = []
    for name, title in SOURCES.items():
        users = users_of(name, schemes, situations)
        if users:
            rows.append(f"<dt>{escape(name)}</dt><dd>{escape(title)}<br><small>{', '.join(users)}</small></dd>")
    return f"<dl>{''.join(rows)}</dl><p>The KIPs are Kafka's improvement proposals: <code>{KIPS}</code></p>"


def _parts(name: str, results: Sequence[CellResult], hidden: frozenset[str]) -> list[str]:
    """Return the styles of figures as parts of the greatest: of those that are shown first, and of all."""
    numbers = [each.mean(name) for each in results]
    shown = max(
        (number or 0 for number, of in zip(numbers, results, strict=True) if of.cell.scheme not in hidden), default=0
    )
    most = max((number or 0 for number in numbers), default=0)
    return [f"--part: {_part(number, shown):.2f}; --part-of-all: {_part(number, most):.2f}" for number in numbers]


def _part(number: float | None, most: float) -> float:
    """Return a number as a part of the greatest; none is the worst."""
    return 1.0 if number is None else min(1.0, number / most) if most else 0.0


def _class(scheme: str, hidden: frozenset[str], *more: str) -> str:
    """Return the attribute of an element's classes; empty without one."""
    names = [*more, *(("other",) if scheme in hidden else ())]
    return f' class="{" ".join(names)}"' if names else ""


def _matrix(name: str, grouped: dict[str, list[CellResult]], hidden: frozenset[str]) -> str:
    schemes = dict.fromkeys(each.cell.scheme for of in grouped.values() for each in of)
    head = "".join(
        f'<th{_class(each, hidden)} title="{escape(SCHEMES[each].summary)}">{escape(each)}</th>' for each in schemes
    )
    rows = []
    for situation, of in grouped.items():
        styles = _parts(name, of, hidden)
        cells = "".join(_cell(each, name, style, hidden) for each, style in zip(of, styles, strict=True))
        summary = escape(SITUATIONS[situation].summary)
        rows.append(f"<tr><td>{escape(situation)}<small>{summary}</small></td>{cells}</tr>")
    return (
        f'<section data-figure="{name}" class="scroll"><table><tr><th></th>{head}</tr>{"".join(rows)}</table></section>'
    )


def _cell(result: CellResult, name: str, style: str, hidden: frozenset[str]) -> str:
    link = f'<a href="#{_anchor(result)}">{COLUMNS[name].text(result.mean(name))}</a>'
    return f'<td{_class(result.cell.scheme, hidden, "cell")} style="{style}">{link}</td>'


def _anchor(result: CellResult) -> str:
    return f"{result.cell.situation}.{result.cell.scheme}"


def _situation(name: str, results: list[CellResult], hidden: frozenset[str]) -> str:
    situation = SITUATIONS[name]
    charts = "".join(_chart(figure, results, hidden) for figure in COLUMNS)
    pictures = "".join(_timeline(each, hidden) for each in results)
    title = f"{escape(name)}: {escape(situation.summary)} ({escape(situation.source)})"
    return f'<h3 id="situation-{name}">{title}</h3>{charts}{pictures}'


def _chart(name: str, results: list[CellResult], hidden: frozenset[str]) -> str:
    rows = []
    for each, style in zip(results, _parts(name, results, hidden), strict=True):
        number = each.mean(name)
        bar = "" if number is None else f'<span class="bar" style="{style}"></span>'
        rows.append(
            f"<tr{_class(each.cell.scheme, hidden)}><td>{escape(each.cell.scheme)}</td>"
            f"<td>{COLUMNS[name].text(number)}</td><td>{bar}</td></tr>"
        )
    return f'<section data-figure="{name}"><table class="bars">{"".join(rows)}</table></section>'


def _timeline(result: CellResult, hidden: frozenset[str]) -> str:
    svg = picture(*record_of(result.cell))
    scheme = SCHEMES[result.cell.scheme]
    text = escape(f"{result.cell.scheme}: {scheme.summary} ({scheme.source})")
    attributes = f'id="{_anchor(result)}"{_class(result.cell.scheme, hidden)} open'
    return f"<details {attributes}><summary>{text}</summary>{svg}</details>"
