"""How the demo looks: headings, members, lanes, timeline, verdicts. Only printing; nothing is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bouncing import story
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bouncing.story import Fencing, GroupStory, Process, Refusal
    from bouncing.verdicts import Verdict

WIDTH = 120
"""Of the output, where it does not go to a terminal."""

LANE = 84
HOLDS, WAITS, AWAY = "█", "░", " "
DEMO, NO_REBALANCE, REBALANCE = "demo", "no rebalance", "rebalance"
STYLES = {HOLDS: "green", WAITS: "yellow", AWAY: "", DEMO: "bold", NO_REBALANCE: "green", REBALANCE: "yellow"}


def console() -> Console:
    """Where everything is printed."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=WIDTH)


def heading(to: Console, title: str, about: str) -> None:
    """The beginning of an act."""
    to.print()
    to.rule(f"[bold]{escape(title)}", align="left")
    to.print(escape(about) + "\n", style="dim")


def members(to: Console, seen: GroupStory) -> None:
    """The members and their bounces."""
    table = Table(title=f"The members of {seen.group_id!r}", title_justify="left")
    for name in ("member", "group.instance.id", "process", "ended by", "away", "partitions"):
        table.add_column(name)
    table.add_column("callbacks in the\n5 survivors", justify="right")
    static = {process.name: process.instance_id for process in seen.processes}
    for bounce in seen.bounces:
        leads = " ★" if bounce.name == seen.leader else ""
        revoked = sum(kind == "revoked" for _, kind in bounce.disturbed)
        table.add_row(
            bounce.name + leads,
            static[bounce.name] or "none",
            f"{bounce.pid_before} → {bounce.pid_after}",
            {"closed": "SIGTERM, closed", "killed": "SIGKILL"}[bounce.how],
            f"{bounce.away_s:.1f} s",
            f"{spans(bounce.partitions_before)} → {spans(bounce.partitions_after)}",
            f"{len(bounce.disturbed)} ({revoked} revoked)" if bounce.disturbed else "none",
        )
    to.print(table)
    to.print("★ led the group before the first bounce", style="dim")


def spans(partitions: Iterable[int]) -> str:
    """Partitions in short: 0-2, 5."""
    found: list[list[int]] = []
    for partition in sorted(partitions):
        if found and found[-1][1] == partition - 1:
            found[-1][1] = partition
        else:
            found.append([partition, partition])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found) or "none"


def lanes(to: Console, seen: GroupStory) -> None:
    """Who held partitions when, a line for each member, from the first bounce on."""
    table = Table.grid(padding=(0, 1))
    for name in sorted({process.name for process in seen.processes}, key=list(seen.before.partitions).index):
        own = [process for process in seen.processes if process.name == name]
        cells = lane(own, seen.bounced_from, seen.ended_at)
        table.add_row(name, Text.assemble(*((cell, STYLES[cell]) for cell in cells)))
    length_s = seen.ended_at - seen.bounced_from
    table.add_row("", f"0 s{f'{length_s:.1f} s':>{LANE - 3}}", style="dim")
    to.print()
    to.print(f"[green]{HOLDS}[/] holds its partitions  [yellow]{WAITS}[/] runs without  (blank) no process")
    to.print(table)


def lane(processes: Iterable[Process], start: float, end: float) -> str:
    """One member's time in cells. A cell shows the worst that happened in it: no process, else no partitions."""
    width_s = (end - start) / LANE
    alive = [(process.started_at, process.ended_at) for process in processes]
    holding = [interval for process in processes for interval in _holding(process)]
    cells = []
    for number in range(LANE):
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
        since = callback.at if callback.kind == "assigned" and callback.partitions else None
    if since is not None:
        intervals.append((since, process.ended_at))
    return intervals


def _covered(cell: tuple[float, float], intervals: Iterable[tuple[float, float]]) -> bool:
    return any(start <= cell[0] and cell[1] <= end for start, end in intervals)


def timeline(to: Console, seen: GroupStory) -> None:
    """The bounces, as the demo made them, and what the trace has of them."""
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
    """Who fenced whom."""
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
    """Who was refused."""
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
    """The claims, and whether they were true."""
    to.print()
    table = Table(title="Was it all true?", title_justify="left")
    table.add_column("")
    for name in ("act", "claim", "seen"):
        table.add_column(name)
    for each in found:
        mark = "[green]✓[/]" if each.is_true else "[bold red]✗[/]"
        table.add_row(mark, each.act, escape(each.claim), escape(each.evidence))
    to.print(table)
