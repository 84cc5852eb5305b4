"""The charts of the report, drawn by matplotlib: each is an SVG embedded in the page.

Text stays text (`svg.fonttype` none), so it is searchable and needs no embedded font. The ids of each chart are unique,
because all charts are in one document. Each has a second drawing for narrow screens, with text of the same size.
"""

from __future__ import annotations

import io
import re
import warnings
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from matplotlib import colormaps, rc_context, rcParams
from matplotlib.colors import BoundaryNorm
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .facts import PER_DECADE, STATES
from .texts import NONE, milliseconds, seconds, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.axes import Axes

    from ..views import Rows
    from .facts import Facts

INK, MUTED, LINE, ACCENT, PAPER = "#1d2430", "#5b6572", "#e3e7ec", "#2a5f9e", "#ffffff"

VARIABLES = {INK: "--ink", MUTED: "--muted", LINE: "--line", ACCENT: "--link", PAPER: "--paper"}
"""The colours that the page's style replaces in the dark, with its variables."""

CAUSES = {
    "member_join": "#4c86c6",
    "member_rejoin": "#9dc3ec",
    "leader_rejoin": "#7a5fb5",
    "metadata_change": "#bda9e2",
    "member_leave": "#e3a32c",
    "session_expired": "#c62f26",
    "join_timeout": "#7f1d1d",
    "pending_expired": "#e98a83",
    "sync_timeout": "#b0563f",
    "protocol_change": "#2f8f83",
    "forced": "#6b7280",
}
"""The colours of common causes; all others share one."""

OTHERS = "#b3bac4"

COHORT = {
    "static": "#23834a",
    "dynamic": "#d9822b",
    "cooperative": "#2a6fc0",
    "consumer": "#0f8b8d",
    "mixed": "#8a6fb8",
}

STATE = {
    "Stable": "#b9dfc4",
    "PreparingRebalance": "#e3a32c",
    "CompletingRebalance": "#8fb8ea",
    "Empty": "#dfe3e8",
    "Dead": "#9aa3ad",
}
"""The colours of states, as in the timelines."""

STYLE: Any = {
    "svg.fonttype": "none",
    # topic names may contain dollar signs
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": LINE,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}

WIDE, NARROW, ROW, HEAD = 9.6, 5.2, 0.26, 0.75
"""Sizes in inches: widths of a chart, height of a row, and height of the axis with its label."""

LABEL_MAX = 30
"""Maximum length of the label of a row in a narrow chart."""

NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""Omit metadata: it contains URLs and the time of day."""


def draw_charts(facts: Facts) -> dict[str, str]:
    """Draw every chart that has data, wide and narrow; keys are chart names."""
    charts = {
        "by_time": (facts.by_time, lambda: by_time(facts.by_time, facts.interval_s)),
        "join_times": (facts.join_times, lambda: join_times(facts.join_times)),
        "stopped_groups": (facts.stopped_groups, lambda: stopped_time(facts.stopped_groups, "group_id")),
        "stopped_members": (facts.stopped_members, lambda: stopped_time(facts.stopped_members, "member")),
        "state_times": (facts.state_times, lambda: state_times(facts.state_times)),
        "moves": (facts.moves, lambda: moves(facts.moves, facts.interval_s)),
        "cohorts": (facts.cohorts, lambda: cohorts(facts.cohorts)),
    }
    return {name: _svg(name, draw, WIDE) + _svg(name, draw, NARROW) for name, (rows, draw) in charts.items() if rows}


def by_time(rows: Rows, interval_s: int) -> Figure:
    """Draw stacked bars: the number of rebalances that began, by cause."""
    figure, axes = _figure(2.9)
    heights = _stack(axes, rows, "at_s", "cause", CAUSES, interval_s / 86_400, _day)
    _over_time(axes, min(heights), max(heights) + interval_s)
    axes.set_ylabel(f"rebalances in {seconds(interval_s)}")
    return figure


def join_times(rows: Rows) -> Figure:
    """Draw stacked bars on a logarithmic scale: durations of join barriers, by cohort."""
    figure, axes = _figure(2.7)
    heights = _stack(axes, rows, "bar", "cohort", COHORT, 1, float)
    first, last = min(heights), max(heights) + 1
    decades = [bar for bar in range(first, last + 1) if bar % (PER_DECADE if last - first > PER_DECADE else 1) == 0]
    axes.set_xticks(decades, [milliseconds(10 ** (bar / PER_DECADE)) for bar in decades])
    axes.set_xlim(first, last)
    axes.set_xlabel("join barrier")
    axes.set_ylabel("rebalances")
    return figure


def _stack(  # noqa: PLR0913, PLR0917 - the two columns and their scales
    axes: Axes,
    rows: Rows,
    at: str,
    by: str,
    colours: dict[str, str],
    width: float,
    x_of: Callable[[int], float],
) -> dict[int, int]:
    """Draw a stack of bars for each value of `at`, one bar for each value of `by`. Return the heights of the stacks."""
    heights: dict[int, int] = {}
    for name in _in_order(rows, by, colours):
        counts = {row[at]: row["n"] for row in rows if row[by] == name}
        places = sorted(counts)
        axes.bar(
            [x_of(place) for place in places],
            [counts[place] for place in places],
            bottom=[heights.get(place, 0) for place in places],
            width=width,
            align="edge",
            color=colours.get(name, OTHERS),
            edgecolor=PAPER,
            linewidth=0.5,
            label=name,
        )
        heights |= {place: heights.get(place, 0) + counts[place] for place in places}
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")
    _legend(axes)
    return heights


def stopped_time(rows: Rows, of: str) -> Figure:
    """Draw horizontal bars: total seconds for which members were stopped."""
    figure, axes = _figure(HEAD + ROW * len(rows))
    values = [row["stopped_s"] or 0.0 for row in rows]
    places = range(len(rows))
    axes.barh(places, values, color=ACCENT, height=0.72)
    for place, row, value in zip(places, rows, values, strict=True):
        text = f"{seconds(value)} in {row['rebalances']:,}"
        axes.annotate(text, (value, place), (4, 0), textcoords="offset points", va="center", color=MUTED, fontsize=8.5)
    axes.set_yticks(places, _names(rows, of))
    axes.set_xlim(0, max(*values, 0.001) * 1.22)
    axes.set_xlabel("stopped, all members and rebalances together" if of == "group_id" else "stopped, all rebalances")
    _rows_down(axes, len(rows))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value)))
    return figure


def state_times(rows: Rows) -> Figure:
    """Draw horizontal bars: the share of time in each state."""
    figure, axes = _figure(HEAD + 0.3 + ROW * len(rows))
    places = range(len(rows))
    whole = [sum(row[state] for state in STATES) or 1.0 for row in rows]
    floor = [0.0] * len(rows)
    for state in STATES:
        shares = [row[state] / all_ms for row, all_ms in zip(rows, whole, strict=True)]
        if any(shares):
            axes.barh(places, shares, left=floor, color=STATE[state], height=0.72, label=state)
            floor = [before + share for before, share in zip(floor, shares, strict=True)]
    axes.set_yticks(places, _names(rows, "group_id"))
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    for place, all_ms in zip(places, whole, strict=True):
        axes.text(1.008, place, milliseconds(all_ms), va="center", color=MUTED, fontsize=8.5)
    _rows_down(axes, len(rows))
    _legend(axes)
    return figure


SHADES = 8
"""Maximum number of shades of the heat map, besides the one for no move."""


def moves(rows: Rows, interval_s: int) -> Figure:
    """Draw a heat map of partitions over time: darker cells have more moves."""
    named = _partitions(rows)
    first, last = min(row["at_s"] for row in rows), max(row["at_s"] for row in rows)
    columns = (last - first) // interval_s + 1
    cells = [[0] * columns for _ in named]
    for row in rows:
        cells[named[_key(row)][0]][(row["at_s"] - first) // interval_s] = row["n"]
    figure, axes = _figure(HEAD + 0.2 * len(named) + 0.1)
    edges = [_day(first + column * interval_s) for column in range(columns + 1)]
    most = max(row["n"] for row in rows)
    bounds = [0, *range(1, most + 1, most // SHADES + 1), most + 1]
    norm = BoundaryNorm(bounds, colormaps["Oranges"].N)
    mesh = axes.pcolormesh(
        edges, range(len(named) + 1), cells, cmap="Oranges", norm=norm, edgecolors=PAPER, linewidth=0.6
    )
    bar = figure.colorbar(mesh, ax=axes, pad=0.015, aspect=max(8, len(named)), spacing="uniform")
    bar.set_ticks([(low + high) / 2 for low, high in pairwise(bounds)])
    bar.set_ticklabels([_range_text(low, high - 1) for low, high in pairwise(bounds)])
    bar.set_label("moves")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    axes.set_yticks([place + 0.5 for place, _ in named.values()], [name for _, name in named.values()], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(named), 0)
    _over_time(axes, first, last + interval_s)
    return figure


def _range_text(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first} to {last}"


MEASURES: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("per_hour", "rebalances per\ngroup and hour", lambda value: f"{value:,.1f}"),
    ("p95", "rebalance,\n95th percentile", milliseconds),
    ("stopped_ms", "stopped, per member\nand rebalance", milliseconds),
    ("moved_share", "partitions moved\nper rebalance", lambda value: f"{value:.0%}"),
)
"""The measures of the comparison: column, name, and formatter."""


def cohorts(rows: Rows) -> Figure:
    """Draw small bar charts side by side: each measure by cohort."""
    figure = Figure(figsize=(_width(), 2.2), layout="constrained")
    order = _in_order(rows, "cohort", COHORT)
    of = {row["cohort"]: row for row in rows}
    for axes, (column, name, write) in zip(figure.subplots(1, len(MEASURES)), MEASURES, strict=True):
        values = [_measure(of[cohort], column) for cohort in order]
        axes.bar(
            range(len(order)), [value or 0 for value in values], color=[COHORT.get(cohort, OTHERS) for cohort in order]
        )
        for place, value in enumerate(values):
            text = NONE if value is None else write(value)
            axes.text(place, value or 0, text, ha="center", va="bottom", fontsize=8.5)
        axes.set_title(name, fontsize=9, color=MUTED)
        axes.set_xticks(range(len(order)), order, fontsize=8.5, rotation=0 if _width() == WIDE else 40)
        axes.set_yticks([])
        axes.margins(y=0.18)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="x", length=0)
    return figure


def _measure(row: dict[str, float | None], column: str) -> float | None:
    if column == "moved_share":
        moved, partitions = row["moved"], row["partitions"]
        return None if moved is None or not partitions else moved / partitions
    return row[column]


def _figure(inches: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_width(), inches), layout="constrained")
    return figure, figure.add_subplot()


def _width() -> float:
    width: float = rcParams["figure.figsize"][0]
    return width


def _svg(name: str, draw: Callable[[], Figure], width: float) -> str:
    """Return the SVG element without the XML header; its ids start with the chart's name."""
    out, title = io.StringIO(), name
    name, extent = (name, "wide") if width == WIDE else (f"{name}-narrow", "narrow")
    style = {**STYLE, "svg.hashsalt": name, "figure.figsize": (width, HEAD)}
    with rc_context(style), warnings.catch_warnings():
        # no reader of a report can act on them: the browser has the glyphs that matplotlib's font lacks
        warnings.simplefilter("ignore")
        draw().savefig(out, format="svg", metadata=NO_METADATA, transparent=True)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"| (width|height)="[\d.]+pt"', "", text)
    text = re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda colour: _themed(colour[0]), text)
    text = re.sub(r'(?<= id=")|(?<=href="#)|(?<=url\(#)', f"{name}-", text)
    return text.replace("<svg", f'<svg class="chart {extent}" role="img" aria-labelledby="title-{title}"', 1).strip()


def _themed(colour: str) -> str:
    return f"var({VARIABLES[colour]})" if colour in VARIABLES else colour


def _over_time(axes: Axes, first_s: int, end_s: int) -> None:
    locator = AutoDateLocator(minticks=3, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_xlim(_day(first_s), _day(end_s))
    axes.set_xlabel("time (UTC)")


def _day(epoch_s: int) -> float:
    day: float = date2num(datetime.fromtimestamp(epoch_s, UTC))
    return day


def _rows_down(axes: Axes, rows: int) -> None:
    axes.set_ylim(rows - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def _legend(axes: Axes) -> None:
    if not axes.get_legend_handles_labels()[0]:
        return
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=6 if _width() == WIDE else 3, borderaxespad=0.2, handlelength=1.1
    )


def _in_order(rows: Rows, column: str, first: Iterable[str]) -> list[str]:
    """Return the values of a column: the known ones in their own order, then the others."""
    return sorted({row[column] for row in rows}, key=lambda value: ([*first, value].index(value), value))


def _names(rows: Rows, of: str) -> list[str]:
    """Return the labels of rows, with group and scope only where they differ."""
    columns = [name for name in (of, "group_id", "scope") if len({row[name] for row in rows}) > 1 or name == of]
    return [_label(dict.fromkeys(short(row[column]) for column in columns)) for row in rows]


def _label(names: Iterable[str]) -> str:
    label = " · ".join(names)
    return label if _width() == WIDE or len(label) <= LABEL_MAX else f"{label[: LABEL_MAX - 1]}…"


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[column] for column in ("scope", "group_id", "topic", "partition"))


def _partitions(rows: Rows) -> dict[tuple[object, ...], tuple[int, str]]:
    """Return each partition with its row number and label."""
    partitions: dict[tuple[object, ...], tuple[int, str]] = {}
    columns = [name for name in ("group_id", "scope") if len({row[name] for row in rows}) > 1]
    for row in rows:
        name = _label([f"{row['topic']}-{row['partition']}", *(short(row[column]) for column in columns)])
        partitions.setdefault(_key(row), (len(partitions), name))
    return partitions
