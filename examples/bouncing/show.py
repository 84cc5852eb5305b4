"""The output of the demo: headings, members, lanes, timeline, verdicts. This module prints and decides nothing."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from bouncing import story
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bouncing.story import Fencing, GroupStory, Process, Refusal
    from bouncing.verdicts import Verdict

WIDTH = 120
"""The width of output that does not go to a terminal."""

NAME_WIDTH = len("confluent-kafka-1 ★")
LANE_MAX = 84
LEADS = " ★"
HOLDS, WAITS, AWAY = "█", "░", " "
DEMO, NO_REBALANCE, REBALANCE = "demo", "no rebalance", "rebalance"
STYLES = {HOLDS: "green", WAITS: "yellow", AWAY: "", DEMO: "bold", NO_REBALANCE: "green", REBALANCE: "yellow"}


def console() -> Console:
    """Return the console for all output."""
    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=WIDTH)


def heading(to: Console, title: str, about: str) -> None:
    """Print the heading of an act."""
    to.print()
    to.rule(f"[bold]{escape(title)}", align="left")
    to.print(escape(about) + "\n", style="dim")


def members(to: Console, seen: GroupStory) -> None:
    """Print the members and their bounces."""
    static = any(process.instance_id for process in seen.processes)
    kind = "group.instance.id" if static else "client.id; they have no group.instance.id"
    table = Table(title=f"The members of {seen.group_id!r}, by {kind}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("member", no_wrap=True)
    for name in ("process", "ended by", "away", "partitions"):
        table.add_column(name)
    table.add_column("callbacks in\n5 survivors", justify="right")
    for bounce in seen.bounces:
        revoked = sum(kind == "revoked" for _, kind in bounce.disturbed)
        table.add_row(
            bounce.name + (LEADS if bounce.name == seen.leader else ""),
            f"{bounce.pid_before} → {bounce.pid_after}",
            {"closed": "SIGTERM", "killed": "SIGKILL"}[bounce.how],
            f"{bounce.away_s:.1f} s",
            f"{spans(bounce.partitions_before)} → {spans(bounce.partitions_after)}",
            f"{len(bounce.disturbed)} ({revoked} revoked)" if bounce.disturbed else "none",
        )
    to.print(table)
    to.print(f"{LEADS.strip()} led the group before the first bounce", style="dim")


def spans(partitions: Iterable[int]) -> str:
    """Abbreviate partitions: 0-2, 5."""
    found: list[list[int]] = []
    for partition in sorted(partitions):
        if found and found[-1][1] == partition - 1:
            found[-1][1] = partition
        else:
            found.append([partition, partition])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found) or "none"


def lanes(to: Console, processes: Sequence[Process], start: float, end: float) -> None:
    """Print the owners of partitions over time, a line per member."""
    to.print()
    to.print(f"[green]{HOLDS}[/] holds partitions  [yellow]{WAITS}[/] runs without  (blank) no process")
    length = min(LANE_MAX, to.width - NAME_WIDTH)
    for name in sorted({process.name for process in processes}):
        own = [process for process in processes if process.name == name]
        cells = groupby(lane(own, start, end, length))
        to.print(Text.assemble(f"{name:<{NAME_WIDTH}}", *(("".join(run), STYLES[cell]) for cell, run in cells)))
    duration = f"{end - start:.1f} s"
    to.print(f"{'':{NAME_WIDTH}}0 s{duration:>{length - 3}}", style="dim")


def lane(processes: Iterable[Process], start: float, end: float, length: int) -> str:
    """Render one member's time as cells. A cell shows the worst within it: no process, else no partitions."""
    width_s = (end - start) / length
    alive = [(process.started_at, process.ended_at) for process in processes]
    holding = [interval for process in processes for interval in _holding(process)]
    cells = []
    for number in range(length):
        cell = (start + number * width_s, start + (number + 1) * width_s)
        if not _covered(cell, alive):
            cells.append(AWAY)
        else:
            cells.append(HOLDS if _covered(cell, holding) else WAITS)
    return "".join(cells)


def _holding(process: Process) -> list[tuple[float, float]]:
    intervals = []
    since: float | None = None
    for callback in process.callbacks:
        if since is not None:
            intervals.append((since, callback.at))
        since = callback.at if callback.held else None
    if since is not None:
        intervals.append((since, process.ended_at))
    return intervals


def _covered(cell: tuple[float, float], intervals: Iterable[tuple[float, float]]) -> bool:
    return any(start <= cell[0] and cell[1] <= end for start, end in intervals)


def timeline(to: Console, seen: GroupStory) -> None:
    """Print the bounces as the demo made them, with the matching trace events."""
    lines: list[tuple[float, str, str]] = []
    for bounce in seen.bounces:
        lines.append((bounce.stopped_at, DEMO, f"{bounce.name}: process {bounce.pid_before} is {bounce.how}"))
        lines.append((bounce.back_at, DEMO, f"{bounce.name}: process {bounce.pid_after} has its partitions"))
    lines += [
        (event["wall_ts"] / 1e6, NO_REBALANCE, f"{event['instance_id']}: {event['reason']}")
        for event in story.avoided(seen.events)
    ]
    lines += [
        (
            each.started_us / 1e6,
            REBALANCE,
            f"generation {each.generation_before} → {each.generation_after} in {each.took_s:.2f} s: {each.reason}",
        )
        for each in story.rebalances(seen.events)
    ]
    to.print()
    for at, who, what in sorted(lines):
        after = f"{at - seen.bounced_from:7.2f} s  "
        line = Text.assemble(after, Text(f"{who:<14}", STYLES[who]), what)
        to.print(line, no_wrap=True, overflow="ellipsis")


def fenced(to: Console, seen: Sequence[Fencing]) -> None:
    """Print which process fenced which."""
    table = Table(title="The older of two processes with one group.instance.id", title_justify="left")
    for name in ("older process", "its client's own error", "newer process"):
        table.add_column(name)
    for each in seen:
        table.add_row(
            f"{each.client}, process {each.pid}",
            escape(_error(each)),
            f"{each.by_client}, process {each.by_pid}: partitions {spans(each.taken_over)}",
        )
    to.print(table)


def refused(to: Console, seen: Sequence[Refusal]) -> None:
    """Print the rejected processes."""
    table = Table(title="One more member than group.max.size", title_justify="left")
    for name in ("process", "its client's own error", "the group"):
        table.add_column(name)
    for each in seen:
        table.add_row(
            f"{each.client}, process {each.pid}",
            escape(_error(each)),
            f"{each.members_after} members, group.max.size={each.group_max_size}",
        )
    to.print(table)


def _error(seen: Fencing | Refusal) -> str:
    return f"{seen.error}: {seen.text}" if seen.error else f"none (exit status {seen.status})"


def verdicts(to: Console, found: Sequence[Verdict]) -> None:
    """Print the claims and their results."""
    to.print()
    table = Table(title="Was it all true?", title_justify="left")
    table.add_column("")
    for name in ("act", "claim", "seen"):
        table.add_column(name)
    for each in found:
        mark = "[green]✓[/]" if each.is_true else "[bold red]✗[/]"
        table.add_row(mark, each.act, escape(each.claim), escape(each.evidence))
    to.print(table)
