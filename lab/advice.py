"""Advice for a load: which protocol costs least in a situation, and what its timeouts do, from the figures of its runs.

A wish names a situation and the figure that matters. The answer is the consumer protocol with the least figure under
the load that was played; nothing is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .matrix import COLUMNS, heading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .cells import CellResult
    from .load import Load

CHOICES: Mapping[str, str] = {
    "eager": "`range`, dynamic members",
    "static": "`range` with `group.instance.id`",
    "cooperative": "`cooperative-sticky`, dynamic members",
    "static-cooperative": "`cooperative-sticky` with `group.instance.id`",
    "consumer": "`group.protocol=consumer`",
}
"""The schemes that a consumer of a released Kafka can choose, and their settings."""

ANY = "any: there is no difference"


@dataclass(frozen=True, slots=True)
class Wish:
    """A figure that a user wants to be low, in a situation."""

    text: str
    situation: str
    figure: str


WISHES = (
    Wish("all members restart one by one, and moves are expensive (state, caches)", "rolling", "moved"),
    Wish("all members restart one by one, and partitions must not wait", "rolling", "idle_s"),
    Wish("a single member restarts, and its partitions must not wait", "bounce", "idle_s"),
    Wish("a newcomer must not stop the other members", "newcomer", "stopped_s"),
    Wish("a newcomer must get its partitions soon", "newcomer", "idle_s"),
    Wish("a newcomer must get them soon, although a member is busy for a minute", "slow-processing", "idle_s"),
    Wish("many members start at once, and the others must go on", "scale-out", "stopped_s"),
    Wish("the partitions of a crashed member must not wait", "crash", "idle_s"),
    Wish("a member leaves for good, and its partitions must not wait", "leave", "idle_s"),
)

LEAVE_GROUP = "; remove a static member that will not return (`koordinator groups`, Kafka's admin tools)"


@dataclass(frozen=True, slots=True)
class Advice:
    """A row of advice in Markdown: a condition, the choice, and the figures behind it."""

    condition: str
    choice: str
    figures: str


Cells = dict[tuple[str, str], "CellResult"]


def advice(results: Iterable[CellResult]) -> list[Advice]:
    """Return the advice that follows from a matrix of one load: rows without their cells are left out."""
    cells: Cells = {(each.cell.situation, each.cell.scheme): each for each in results}
    rows = [_answer(wish, cells) for wish in WISHES]
    return [*(row for row in rows if row is not None), *_timeouts(cells)]


def needed() -> tuple[list[str], list[str]]:
    """Return the schemes and the situations that all advice needs."""
    return [*CHOICES, "connect"], list(dict.fromkeys(wish.situation for wish in WISHES))


def _answer(wish: Wish, cells: Cells) -> Advice | None:
    played = {scheme: cell for scheme in CHOICES if (cell := cells.get((wish.situation, scheme)))}
    figures = {scheme: number for scheme, cell in played.items() if (number := cell.mean(wish.figure)) is not None}
    if len(figures) < 2:  # noqa: PLR2004 - nothing to choose from
        return None
    column = COLUMNS[wish.figure]
    by_text: dict[str, list[str]] = {}
    for scheme, number in sorted(figures.items(), key=lambda each: each[1]):
        by_text.setdefault(column.text(number), []).append(scheme)
    texts = [f"{text} with {', '.join(f'`{each}`' for each in names)}" for text, names in by_text.items()]
    best = next(iter(by_text.values()))
    choice = ANY if len(by_text) == 1 else "; or ".join(CHOICES[each] for each in best)
    if wish.situation == "leave" and len(by_text) > 1:
        choice += LEAVE_GROUP
    return Advice(wish.text, choice, f"{heading(wish.figure)}: {'; '.join(texts)}")


def _timeouts(cells: Cells) -> Iterator[Advice]:
    """Yield advice about timeouts, as far as its cells were played."""
    static, crash, worker = (
        cells.get(key) for key in (("bounce", "static"), ("crash", "eager"), ("bounce", "connect"))
    )
    if static is not None:
        yield _static_session(static, static.cell.load)
    if crash is not None:
        session_s = crash.cell.load.session_timeout_s
        yield Advice(
            "crashes must be noticed sooner",
            "a shorter session timeout, whatever `max.poll.interval.ms` is",
            f"with {session_s:g} s, others own the partitions after {_seconds(crash, 'balance_s')} (`eager`)",
        )
    if worker is not None:
        load = worker.cell.load
        yield Advice(
            f"Connect workers restart within {load.restart_s:g} s",
            "a `scheduled.rebalance.max.delay.ms` little above the restart",
            f"with {load.max_delay_s:g} s, a worker that is back has its tasks after {_seconds(worker, 'balance_s')}",
        )


def _static_session(static: CellResult, load: Load) -> Advice:
    rebalances = f"rebalances of a restart with `static`: {COLUMNS['rebalances'].text(static.mean('rebalances'))}"
    times = f"a restart takes {load.restart_s:g} s, a session lasts {load.session_timeout_s:g} s"
    if load.restart_s < load.session_timeout_s:
        choice = "the session timeout is long enough: it exceeds a restart"
    else:
        choice = f"a session timeout above the restart, {load.restart_s:g} s: a shorter one makes them dynamic"
    return Advice("members are static", choice, f"{times}; {rebalances}")


def _seconds(result: CellResult, name: str) -> str:
    number = result.mean(name)
    return "never" if number is None else f"{COLUMNS[name].text(number)} s"
