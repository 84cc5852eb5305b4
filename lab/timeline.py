"""The partitions' owners in the course of a run, from its record: segments, a picture of them, and a table of steps."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil
from typing import TYPE_CHECKING

from .record import FactKind

if TYPE_CHECKING:
    from .record import RunRecord

WIDTH, ROW, LEFT, BELOW, RIGHT = 720, 12, 30, 22, 16
"""Sizes of a picture, in pixels: the time axis, a partition, the partition's number, the labels of the axis, and the
half of a label beyond its end.
"""

BEFORE_MS, TAIL_MS = 2_000, 5_000
"""The time that a picture shows before the situation, and after the last change."""

PARTITIONS_MAX = 40
"""The most partitions in a picture."""

LEGEND_MAX = 12
"""The most members in the legend."""

TICKS_MAX = 8
STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
"""The distances of ticks; longer ones are hours."""

GOLDEN_ANGLE = 137.5
"""Hues at this distance differ for any number of members."""


@dataclass(frozen=True, slots=True)
class TimelineSegment:
    """A member processes a partition from `begin_ms` to `end_ms`."""

    partition: int
    member: str
    begin_ms: int
    end_ms: int


def segments_of(record: RunRecord, end_ms: int) -> list[TimelineSegment]:
    """Return the segments of a run, without those that took no time. A paused member processes nothing."""
    segments: list[TimelineSegment] = []
    held: dict[str, frozenset[int]] = {}
    active: dict[tuple[int, str], int] = {}
    paused: set[str] = set()

    def end(name: str, now_ms: int) -> None:
        for key in [key for key in active if key[1] == name and key[0] not in current(name)]:
            begin_ms = active.pop(key)
            if now_ms > begin_ms:
                segments.append(TimelineSegment(key[0], name, begin_ms, now_ms))

    def current(name: str) -> frozenset[int]:
        return frozenset() if name in paused else held.get(name, frozenset())

    for fact in record.facts:
        match fact.kind:
            case FactKind.HOLDS:
                held[fact.member] = fact.partitions
            case FactKind.UP | FactKind.DOWN:
                held[fact.member] = frozenset()
                paused.discard(fact.member)
            case FactKind.PAUSED:
                paused.add(fact.member)
            case FactKind.RESUMED:
                paused.discard(fact.member)
            case _:
                continue
        end(fact.member, fact.at_ms)
        for partition in current(fact.member):
            active.setdefault((partition, fact.member), fact.at_ms)
    held.clear()
    for name in sorted({name for _, name in active}):
        end(name, end_ms)
    return sorted(segments, key=lambda each: (each.partition, each.begin_ms, each.member))


def picture(record: RunRecord, end_ms: int) -> str:
    """Return an SVG with its legend: a row for each partition, in the colour of its owner; a gap is idle.

    Empty for more than PARTITIONS_MAX partitions.
    """
    segments = segments_of(record, end_ms)
    partitions = max((each.partition for each in segments), default=-1) + 1
    if partitions > PARTITIONS_MAX or not partitions:
        return ""
    begin_ms = record.begin_ms - BEFORE_MS
    last_ms = max((fact.at_ms for fact in record.facts[record.first :]), default=begin_ms)
    until_ms = min(end_ms, max(last_ms, record.begin_ms) + TAIL_MS)
    scale = WIDTH / (until_ms - begin_ms)
    members = sorted({each.member for each in segments})
    parts = []
    for each in segments:
        x, right = max(each.begin_ms, begin_ms), min(each.end_ms, until_ms)
        if right > x:
            span = f"{(x - record.begin_ms) / 1000:g} s to {(right - record.begin_ms) / 1000:g} s"
            parts.append(
                f'<rect x="{LEFT + (x - begin_ms) * scale:.1f}" y="{each.partition * ROW}" height="{ROW - 2}" '
                f'width="{(right - x) * scale:.1f}" fill="{_colour(members, each.member)}">'
                f"<title>P{each.partition} {escape(each.member)}, {span}</title></rect>"
            )
    height = partitions * ROW
    zero = LEFT + BEFORE_MS * scale
    parts.append(f'<path d="M{zero:.1f} 0V{height}" stroke="currentColor" stroke-dasharray="2 2"/>')
    parts += [f'<text x="0" y="{number * ROW + ROW - 3}">P{number}</text>' for number in range(partitions)]
    for second in ticks((until_ms - record.begin_ms) / 1000):
        at = zero + second * 1000 * scale
        parts.append(f'<path d="M{at:.1f} {height}v4" stroke="currentColor"/>')
        parts.append(f'<text x="{at:.1f}" y="{height + 14}" text-anchor="middle">{second:,} s</text>')
    legend = "".join(
        f'<span><i style="background: {_colour(members, name)}"></i>{escape(name)}</span>'
        for name in members[:LEGEND_MAX]
    )
    return (
        f'<div class="scroll"><svg viewBox="0 0 {LEFT + WIDTH + RIGHT} {height + BELOW}" role="img" '
        f'aria-label="owners of the partitions">{"".join(parts)}</svg></div>'
        f'<p class="legend">{legend}{" …" if len(members) > LEGEND_MAX else ""}</p>'
    )


def ticks(until_s: float) -> range:
    """Return the seconds of an axis that have a label: multiples of a round number, TICKS_MAX at most besides 0."""
    step = next((each for each in STEPS_S if until_s / each <= TICKS_MAX), None)
    if step is None:
        step = 3600 * ceil(until_s / 3600 / TICKS_MAX)
    return range(0, int(until_s) + 1, step)


def _colour(members: list[str], name: str) -> str:
    return f"hsl({round(members.index(name) * GOLDEN_ANGLE % 360)} 55% 55%)"


def steps(record: RunRecord) -> str:
    """Return a table like the pictures of the article: the partitions of each member before, and after each change."""
    owned: dict[str, frozenset[int]] = {}
    columns: list[tuple[int, dict[str, frozenset[int]]]] = []
    for number, fact in enumerate(record.facts):
        before = dict(owned)
        if fact.kind is FactKind.DOWN:
            owned.pop(fact.member, None)
        elif fact.kind in (FactKind.UP, FactKind.HOLDS):
            owned[fact.member] = fact.partitions
        if number < record.first or not columns:
            columns = [(record.begin_ms, dict(owned if number < record.first else before))]
        if number >= record.first and owned != before:
            if columns[-1][0] == fact.at_ms and len(columns) > 1:
                columns.pop()
            columns.append((fact.at_ms, dict(owned)))
    head = "".join(f"<th>{(at_ms - record.begin_ms) / 1000:g} s</th>" for at_ms, _ in columns[1:])
    rows = []
    for name in sorted({name for _, each in columns for name in each}):
        cells = "".join(f"<td>{_boxes(each.get(name))}</td>" for _, each in columns)
        rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    return (
        f'<div class="scroll"><table class="steps"><tr><th></th><th>before</th>{head}</tr>{"".join(rows)}</table></div>'
    )


def _boxes(partitions: frozenset[int] | None) -> str:
    if partitions is None:
        return "down"
    return "".join(f"<b>{each}</b>" for each in sorted(partitions)) or "none"
