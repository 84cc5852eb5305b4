"""The situations: each begins with a balanced group, and acts on its members through the interface of schemes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .schemes.scheme import Scheme

SLOW_S = 60
"""The batch of a slow member: longer than the default session timeout."""

BEYOND_S = 15
"""The time by which a pause or a loss of the network exceeds the session timeout."""

PAUSE_BETWEEN_S = 30
"""The time between the restarts of a rolling deployment."""

STEPS_MAX = 20
"""The most steps of a rolling deployment: larger groups restart several members at once."""

RESTARTS = 30
"""The restarts of a runaway client, one each second."""

IMPATIENT_JOINS, PATIENCE_S = 6, 5
"""The abandoned joins of a client whose request timeout is too short, and that timeout."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A situation: its summary, its place in the sources, its acts, and whether a member is slow from the start."""

    summary: str
    source: str
    play: Callable[[Scheme], None]
    has_slow_member: bool = False
    begins_empty: bool = False


def name_of(number: int) -> str:
    """Return the name of a member; names sort by number."""
    return f"c{number:04}"


def names_of(count: int) -> list[str]:
    """Return the names of the first members."""
    return list(map(name_of, range(count)))


def victim(scheme: Scheme) -> str:
    """Return the member that most situations act on: in the middle of the group, and not its leader."""
    return name_of(scheme.load.members // 2)


def newcomer(scheme: Scheme) -> None:
    """Start one more member."""
    scheme.announce(names_of(scheme.load.members + 1))
    scheme.start(name_of(scheme.load.members))


def bounce(scheme: Scheme) -> None:
    """Restart a member, within its session timeout and within Connect's delay."""
    _restart(scheme, scheme.load.restart_s)


def late_bounce(scheme: Scheme) -> None:
    """Restart a member after its session timeout and after Connect's delay."""
    _restart(scheme, max(scheme.load.session_timeout_s, scheme.load.max_delay_s) + BEYOND_S)


def _restart(scheme: Scheme, downtime_s: float) -> None:
    scheme.close(victim(scheme))
    scheme.pass_time(downtime_s)
    scheme.start(victim(scheme))


def leave(scheme: Scheme) -> None:
    """Close a member for good."""
    scheme.announce([name for name in names_of(scheme.load.members) if name != victim(scheme)])
    scheme.close(victim(scheme))


def scale_out(scheme: Scheme) -> None:
    """Start half as many members again, within a second."""
    count = scheme.load.members
    names = names_of(count + (count + 1) // 2)
    scheme.announce(names)
    for name in names[count:]:
        scheme.start(name)
        scheme.pass_time(1 / count)


def scale_in(scheme: Scheme) -> None:
    """Close half of the members, within a second."""
    count = scheme.load.members
    names = names_of(count)
    scheme.announce(names[: (count + 1) // 2])
    for name in names[(count + 1) // 2 :]:
        scheme.close(name)
        scheme.pass_time(1 / count)


def rolling(scheme: Scheme) -> None:
    """Restart all members, one after the other."""
    count = scheme.load.members
    step = -(-count // STEPS_MAX) if count > STEPS_MAX else 1
    for first in range(0, count, step):
        names = [name_of(number) for number in range(first, min(first + step, count))]
        for name in names:
            scheme.close(name)
        scheme.pass_time(scheme.load.restart_s)
        for name in names:
            scheme.start(name)
        scheme.pass_time(PAUSE_BETWEEN_S)


def herd(scheme: Scheme) -> None:
    """Start all members of an empty group within a second."""
    for name in names_of(scheme.load.members):
        scheme.start(name)
        scheme.pass_time(1 / scheme.load.members)


def long_pause(scheme: Scheme) -> None:
    """Pause a member for longer than its session timeout, as a long collection of garbage does."""
    scheme.pause(victim(scheme))
    scheme.pass_time(scheme.load.session_timeout_s + BEYOND_S)
    scheme.resume(victim(scheme))


def crash(scheme: Scheme) -> None:
    """Kill a member."""
    scheme.kill(victim(scheme))


def broker_restart(scheme: Scheme) -> None:
    """Restart the coordinator's broker."""
    scheme.stop_broker()
    scheme.pass_time(scheme.load.restart_s)
    scheme.start_broker()


def growth(scheme: Scheme) -> None:
    """Add as many partitions as there are members."""
    scheme.grow(scheme.load.members)


def lost_network(scheme: Scheme) -> None:
    """Cut a member off from its coordinator for longer than its session timeout."""
    scheme.cut_off(victim(scheme))
    scheme.pass_time(scheme.load.session_timeout_s + BEYOND_S)
    scheme.reconnect(victim(scheme))


def runaway(scheme: Scheme) -> None:
    """Restart a client in a loop that never leaves the group."""
    name = name_of(scheme.load.members)
    for _ in range(RESTARTS):
        scheme.start(name)
        scheme.pass_time(1)
        scheme.kill(name)


def impatient_joiner(scheme: Scheme) -> None:
    """Start a client that abandons its join and tries again while the group waits for a slow member."""
    name = name_of(scheme.load.members)
    for _ in range(IMPATIENT_JOINS):
        scheme.start(name)
        scheme.pass_time(PATIENCE_S)
        scheme.kill(name)
    scheme.start(name)


ARTICLE, KIP_62, KIP_345 = "the article", "KIP-62", "KIP-345"

SITUATIONS: Mapping[str, Situation] = {
    "newcomer": Situation("a member joins", ARTICLE, newcomer),
    "bounce": Situation("a member restarts in time", ARTICLE, bounce),
    "late-bounce": Situation("a member restarts too late", ARTICLE, late_bounce),
    "leave": Situation("a member closes for good", ARTICLE, leave),
    "scale-out": Situation("half as many members join", KIP_345, scale_out),
    "scale-in": Situation("half of the members close", KIP_345, scale_in),
    "rolling": Situation("all members restart, one by one", KIP_345, rolling),
    "herd": Situation("all members start at once", ARTICLE, herd, begins_empty=True),
    "long-pause": Situation("a member pauses beyond its session", ARTICLE, long_pause),
    "slow-processing": Situation("a member joins, another is busy", KIP_62, newcomer, has_slow_member=True),
    "crash": Situation("a member is killed", KIP_62, crash),
    "broker-restart": Situation("the coordinator's broker restarts", ARTICLE, broker_restart),
    "growth": Situation("the topic gets more partitions", ARTICLE, growth),
    "lost-network": Situation("a member loses its network", "KIP-394", lost_network),
    "runaway": Situation("a client restarts in a loop", "KIP-389", runaway),
    "impatient-joiner": Situation("a client abandons its joins", "KIP-394", impatient_joiner, has_slow_member=True),
}
