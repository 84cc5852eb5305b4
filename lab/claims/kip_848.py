"""The claims of KIP-848, the consumer protocol, beside the protocols before it."""

from __future__ import annotations

from ..cells import AFTER_S
from ..load import Load
from ..record import FactKind
from ..schemes.on_core import CoreScheme, Members
from ..situations import SLOW_S, name_of
from .claim import CONDITIONS, KIP_848, Finding, begin, claim, measure, record

SCHEMES = ("eager", "cooperative", "consumer")


def _side_by_side(numbers: list[float] | list[int]) -> str:
    return ", ".join(f"{number:g} {scheme}" for number, scheme in zip(numbers, SCHEMES, strict=True))


@claim(f"{KIP_848}, motivation", "Members keep their partitions in a rebalance: none stops.")
def consumer_members_do_not_stop() -> Finding:
    """Compare member-seconds for a newcomer beside a slow member."""
    stopped = [measure(each, "slow-processing").stopped_s for each in SCHEMES]
    return Finding(f"stopped member-s: {_side_by_side(stopped)}", stopped[2] == 0 < stopped[0])


def _first_partition_s(scheme: str) -> float:
    of = record(scheme, "slow-processing")
    newcomer = name_of(Load().members)
    taken = (
        fact.at_ms for fact in of.facts if fact.member == newcomer and fact.kind is FactKind.HOLDS and fact.partitions
    )
    return (next(taken) - of.begin_ms) / 1000


@claim(f"{KIP_848}, motivation", "There is no barrier: a newcomer gets its first partition while a member is busy.")
def a_busy_member_holds_up_nobody_else() -> Finding:
    """Compare the time until a newcomer processes a partition, beside a member with a batch of 60 s."""
    taken = [_first_partition_s(each) for each in SCHEMES]
    return Finding(f"seconds until the first partition: {_side_by_side(taken)}", taken[2] < SLOW_S / 10 < taken[1])


@claim(f"{KIP_848}, rebalance process", "A newcomer takes one rebalance, and only its share moves.")
def a_newcomer_takes_one_rebalance() -> Finding:
    """Count rebalances and moves."""
    figures = [measure(each, "newcomer") for each in SCHEMES]
    text = f"rebalances: {_side_by_side([each.rebalances for each in figures])}"
    new = figures[2]
    moves = f"{new.moved} moves of at least {new.moved_least}"
    return Finding(f"{text}; {moves}", new.rebalances == 1 and new.moved == new.moved_least)


@claim(f"{KIP_848}, rebalance process", "A partition that moves waits for heartbeats, not for the group.")
def moving_partitions_wait_for_heartbeats() -> Finding:
    """Compare idle time for a newcomer, and its mean for each moved partition with the heartbeat interval."""
    figures = [measure(each, "newcomer") for each in SCHEMES]
    idle = [each.idle_s for each in figures]
    limit = 2 * Load().heartbeat_interval_s * figures[2].moved
    return Finding(f"idle partition-s: {_side_by_side(idle)}", idle[2] < min(idle[:2]) and idle[2] <= limit)


@claim(f"{KIP_848}, rebalance process", "The coordinator notices new partitions itself, even while no member runs.")
def the_coordinator_watches_topics() -> Finding:
    """Add a partition while all members are down: static members of both protocols return."""
    idle = [_idle_after_growth(each) for each in (Members(("range",), is_static=True), CONSUMER)]
    text = f"partitions without an owner: {idle[0]} static, {idle[1]} consumer"
    return Finding(text, idle[1] == 0 < idle[0])


CONSUMER = Members(("uniform",), is_static=True, group_protocol="consumer")


def _idle_after_growth(members: Members) -> int:
    with CoreScheme(Load(members=1), members) as scheme:
        begin(scheme)
        scheme.close(name_of(0))
        scheme.grow(1)
        scheme.start(name_of(0))
        scheme.pass_time(AFTER_S)
        held = scheme.group.puppets[name_of(0)].assignment
        return scheme.partitions - sum(map(len, held.values()))


@claim(
    f"{KIP_848}, motivation",
    "A client that restarts in a loop does not disturb the others.",
    CONDITIONS,
    "the others never stop; the partitions that it was given wait for its sessions to expire",
)
def a_runaway_client_stops_nobody() -> Finding:
    """Compare what a client costs that dies thirty times."""
    figures = [measure(each, "runaway") for each in SCHEMES]
    stopped, idle = ([getattr(each, name) for each in figures] for name in ("stopped_s", "idle_s"))
    text = f"stopped member-s: {_side_by_side(stopped)}; idle partition-s: {_side_by_side(idle)}"
    return Finding(text, stopped[2] == idle[2] == 0, stopped[2] == 0 < stopped[0])


@claim(f"{KIP_848}, group configuration", "The group has the session timeout: it decides when a crash is noticed.")
def the_group_has_the_session_timeout() -> Finding:
    """Compare settings of the group."""
    times = {each: measure("consumer", "crash", session_timeout_s=each).balance_s or 0 for each in (10, 45)}
    text = ", ".join(f"{taken:g} s with {session} s" for session, taken in times.items())
    return Finding(text, all(session - 3 <= taken <= session + 6 for session, taken in times.items()))
