"""The partitions' owners in the course of a run, from its record: segments, and a picture of them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from .record import Kind

if TYPE_CHECKING:
    from .record import Record

WIDTH, ROW, LEFT, BELOW = 720, 12, 30, 22
"""Sizes of a picture, in pixels: the time axis, a partition, the partition's number, and the labels of the axis."""

BEFORE_MS, TAIL_MS = 2_000, 5_000
"""The time that a picture shows before the situation, and after the last change."""

PARTITIONS_MAX = 40
"""The most partitions in a picture."""

TICKS = 6
GOLDEN_ANGLE = 137.5
"""Hues at this distance differ for any number of members."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A member processes a partition from `begin_ms` to `end_ms`."""

    partition: int
    member: str
    begin_ms: int
    end_ms: int


def segments_of(record: Record, end_ms: int) -> list[Segment]:
    """Return the segments of a run, without those that took no time. A paused member processes nothing."""
    segments: list[Segment] = []
    held: dict[str, frozenset[int]] = {}
    active: dict[tuple[int, str], int] = {}
    paused: set[str] = set()

    def end(name: str, now_ms: int) -> None:
        for key in [key for key in active if key[1] == name and key[0] not in current(name)]:
            begin_ms = active.pop(key)
            if now_ms > begin_ms:
                segments.append(Segment(key[0], name, begin_ms, now_ms))

    def current(name: str) -> frozenset[int]:
        return frozenset() if name in paused else held.get(name, frozenset())

    for fact in record.facts:
        match fact.kind:
            case Kind.HOLDS:
                held[fact.member] = fact.partitions
            case Kind.UP | Kind.DOWN:
                held[fact.member] = frozenset()
                paused.discard(fact.member)
            case Kind.PAUSED:
                paused.add(fact.member)
            case Kind.RESUMED:
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


def picture(record: Record, end_ms: int) -> str:
    """Return an SVG: a row for each partition, in the colour of its owner; white is idle.

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
            hue = round(members.index(each.member) * GOLDEN_ANGLE % 360)
            span = f"{(x - record.begin_ms) / 1000:g} s to {(right - record.begin_ms) / 1000:g} s"
            parts.append(
                f'<rect x="{LEFT + (x - begin_ms) * scale:.1f}" y="{each.partition * ROW}" height="{ROW - 2}" '
                f'width="{(right - x) * scale:.1f}" fill="hsl({hue} 55% 55%)">'
                f"<title>P{each.partition} {escape(each.member)}, {span}</title></rect>"
            )
    height = partitions * ROW
    parts += [f'<text x="0" y="{number * ROW + ROW - 3}">P{number}</text>' for number in range(partitions)]
    step_ms = (until_ms - record.begin_ms) / TICKS
    for tick in range(TICKS + 1):
        at = LEFT + (BEFORE_MS + tick * step_ms) * scale
        parts.append(f'<text x="{at:.1f}" y="{height + 14}" text-anchor="end">{tick * step_ms / 1000:.0f} s</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH + LEFT} {height + BELOW}" role="img" aria-label="owners of the partitions">'
        f"{''.join(parts)}</svg>"
    )
