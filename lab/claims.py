"""Claims of the article and of four KIPs, each with a check that plays it: `make lab` prints the verdicts.

A claim's text is ours; its place names the section of the source. A check plays runs and returns their figures. A claim
with a condition is checked without it and with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from .cells import AFTER_S, SETTLE_S, Cell, play, record_of
from .load import Load
from .record import Kind
from .schemes.on_core import CoreScheme, Members
from .schemes.zookeeper import ZookeeperScheme
from .situations import SLOW_S, name_of, newcomer

if TYPE_CHECKING:
    from collections.abc import Callable

    from .figures import Figures
    from .record import Record
    from .schemes.scheme import Scheme

HOLDS, CONDITIONS, FAILS = "holds", "holds with conditions", "does not hold"

ARTICLE, KIP_62, KIP_345, KIP_389, KIP_394 = "article", "KIP-62", "KIP-345", "KIP-389", "KIP-394"

JOIN_V3, JOIN_V4 = 3, 4
"""JoinGroup before and since KIP-394."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a check: the figures as text, whether the claim holds, and whether it does under its condition."""

    figures: str
    holds: bool
    holds_if: bool = False

    @property
    def verdict(self) -> str:
        """HOLDS, CONDITIONS or FAILS."""
        return HOLDS if self.holds else CONDITIONS if self.holds_if else FAILS


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with its place in a source, the expected verdict, and its check. `condition` limits the claim."""

    name: str
    place: str
    text: str
    verdict: str
    check: Callable[[], Finding]
    condition: str = ""


CLAIMS: dict[str, Claim] = {}


def claim(
    place: str, text: str, verdict: str = HOLDS, condition: str = ""
) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
    """Register a check as a claim, under the function's name."""

    def register(check: Callable[[], Finding]) -> Callable[[], Finding]:
        name = check.__name__.replace("_", "-")
        CLAIMS[name] = Claim(name, place, text, verdict, check, condition)
        return check

    return register


def measure(scheme: str, situation: str, **load: float) -> Figures:
    """Play a cell; equal cells are played once."""
    return _measured(Cell(scheme, situation, Load(**load)))  # type: ignore[arg-type]


@cache
def _measured(cell: Cell) -> Figures:
    return play(cell)


def record(scheme: str, situation: str, **load: float) -> Record:
    """Play a cell and return its record."""
    return record_of(Cell(scheme, situation, Load(**load)))[0]  # type: ignore[arg-type]


def fenced(of: Record) -> int:
    """Return the number of members that the group removed while they ran."""
    return sum(fact.kind is Kind.FENCED for fact in of.facts[of.first :])


def begin(scheme: Scheme) -> None:
    """Start the members of the load, let them balance, and begin to count."""
    for number in range(scheme.load.members):
        scheme.start(name_of(number))
    scheme.pass_time(SETTLE_S)
    scheme.record.begin(scheme.now_ms)


# -- the article: ZooKeeper ----------------------------------------------------------------------------------


@claim(f"{ARTICLE}, first scheme", "One change of the members notifies every consumer of the group.")
def one_change_notifies_all() -> Finding:
    """Compare the notifications of one newcomer with the members before it."""
    told = {count: measure("zookeeper", "newcomer", members=count, partitions=4 * count) for count in (10, 40)}
    text = ", ".join(f"{each.notifications} notifications for {count} members" for count, each in told.items())
    return Finding(text, all(each.notifications >= count for count, each in told.items()))


@claim(
    f"{ARTICLE}, first scheme", "Many consumers load ZooKeeper with notifications: a start grows faster than its size."
)
def the_herd_grows_with_the_square() -> Finding:
    """Compare the notifications per member of herds."""
    told = {
        count: measure("zookeeper", "herd", members=count, partitions=4 * count).notifications for count in (10, 40)
    }
    text = ", ".join(f"{number / count:.1f} per member with {count}" for count, number in told.items())
    return Finding(f"notifications: {text}", told[40] / 40 > 2 * told[10] / 10)


def _attempts(lag_ms: tuple[int, int]) -> int:
    total = 0
    for seed in range(1, 11):
        with ZookeeperScheme(Load(members=8, partitions=32, seed=seed), lag_ms=lag_ms) as scheme:
            begin(scheme)
            newcomer(scheme)
            scheme.pass_time(AFTER_S)
            total += scheme.record.rebalances.total()
    return total


@claim(f"{ARTICLE}, first scheme", "Consumers that see different states of ZooKeeper rebalance more often than needed.")
def views_that_differ_cost_rebalances() -> Finding:
    """Compare attempts with servers that agree and with servers that lag, over ten seeds."""
    agreeing, lagging = _attempts((1, 1)), _attempts((1, 2_000))
    return Finding(f"attempts for 10 newcomers: {agreeing} without lag, {lagging} with lag", lagging > agreeing)


@claim(f"{ARTICLE}, first scheme", "A broker's restart makes all consumers rebalance, although most need not care.")
def a_broker_restart_rebalances_all() -> Finding:
    """Compare with schemes that have a coordinator."""
    watched, coordinated = (measure(scheme, "broker-restart") for scheme in ("zookeeper", "eager"))
    text = f"rebalances: {watched.rebalances} with watches on brokers, {coordinated.rebalances} with a coordinator"
    return Finding(text, watched.rebalances > 0 == coordinated.rebalances)


# -- the article: the coordinator ----------------------------------------------------------------------------


@claim(
    f"{ARTICLE}, second scheme",
    "With a coordinator only its own group hears of a change, and ZooKeeper gets one write.",
)
def one_write_per_rebalance() -> Finding:
    """Count the writes of the mapping."""
    of = record("coordinator-assigns", "rolling")
    text = f"{of.requests['setData']} writes for {of.rebalances['']} rebalances"
    return Finding(text, of.requests["setData"] == of.rebalances[""] > 0)


@claim(f"{ARTICLE}, second scheme", "A coordinator saves notifications when many members start together.")
def a_coordinator_calms_the_herd() -> Finding:
    """Compare notifications of a herd."""
    told = [
        measure(each, "herd", members=40, partitions=160).notifications for each in ("zookeeper", "coordinator-assigns")
    ]
    return Finding(f"notifications: {told[0]} with ZooKeeper, {told[1]} with a coordinator", told[1] < told[0] / 10)


@claim(f"{ARTICLE}, stop the world", "An eager rebalance stops every member.")
def eager_stops_all() -> Finding:
    """Count members that give up everything for a newcomer."""
    of = record("eager", "newcomer", members=10, partitions=40)
    stopped = {fact.member for fact in of.facts[of.first :] if fact.kind is Kind.HOLDS and not fact.partitions}
    return Finding(f"{len(stopped)} of 10 members stop", len(stopped) == 10)


@claim(f"{ARTICLE}, stop the world", "Each deployment of one dynamic member costs two rebalances.")
def a_deployment_costs_two_rebalances() -> Finding:
    """Count the rebalances of a restart."""
    count = measure("eager", "bounce").rebalances
    return Finding(f"{count} rebalances", count == 2)


@claim(
    f"{ARTICLE}, stop the world",
    "A long pause of a process starts a rebalance.",
    CONDITIONS,
    "the pause is longer than the session timeout",
)
def a_long_pause_rebalances() -> Finding:
    """Pause a member within its session, and beyond sessions of 45 s and 120 s."""
    short, long = (measure("eager", "long-pause", session_timeout_s=each).rebalances for each in (45, 120))
    within = _pause_within_session()
    text = f"rebalances: {within} for 40 s of 45 s, {short} and {long} beyond sessions of 45 s and 120 s"
    return Finding(text, holds=within > 0, holds_if=min(short, long) > 0 == within)


def _pause_within_session() -> int:
    with CoreScheme(Load(), Members(("range",))) as scheme:
        begin(scheme)
        scheme.pause(name_of(1))
        scheme.pass_time(40)
        scheme.resume(name_of(1))
        scheme.pass_time(AFTER_S)
        return scheme.record.rebalances[""]


# -- static membership ---------------------------------------------------------------------------------------


@claim(f"{KIP_345}, motivation", "A rolling restart of static members costs no rebalance, that of the leader included.")
def a_static_rolling_restart_is_quiet() -> Finding:
    """Restart 5, 10 and 20 static members, one by one."""
    counts = [measure("static", "rolling", members=each, partitions=4 * each).rebalances for each in (5, 10, 20)]
    return Finding(f"{counts} rebalances for 5, 10 and 20 members", not any(counts))


@claim(f"{KIP_345}, motivation", "A rolling restart of dynamic members costs a rebalance for each restart, or more.")
def a_dynamic_rolling_restart_is_not() -> Finding:
    """Restart 5, 10 and 20 dynamic members, one by one."""
    counts = [measure("eager", "rolling", members=each, partitions=4 * each).rebalances for each in (5, 10, 20)]
    return Finding(f"{counts} rebalances for 5, 10 and 20 members", counts == [10, 20, 40])


@claim(f"{KIP_345}, motivation", "Static members keep their state in a rolling restart; dynamic ones shuffle it.")
def static_members_keep_their_state() -> Finding:
    """Compare the restored state of rolling restarts."""
    static, dynamic = (measure(each, "rolling").restored_bytes / 1e9 for each in ("static", "eager"))
    return Finding(f"restored: {static:.0f} GB static, {dynamic:.0f} GB dynamic", static == 0 < dynamic)


@claim(
    f"{KIP_345}, background and update 2/12",
    "The leader's return starts a rebalance.",
    CONDITIONS,
    "it rejoins with its member id, and has not restarted",
)
def the_leaders_return_rebalances() -> Finding:
    """Restart the static leader, then let it rejoin as a member."""
    with CoreScheme(Load(), Members(("range",), is_static=True)) as scheme:
        begin(scheme)
        leader = next(name for name, puppet in scheme.group.puppets.items() if puppet.is_leader)
        scheme.close(leader)
        scheme.pass_time(scheme.load.restart_s)
        scheme.start(leader)
        scheme.pass_time(SETTLE_S)
        restarted = scheme.record.rebalances[""]
        other = next(name for name in scheme.group.puppets if name != leader)
        scheme.group.puppets[other].join()
        scheme.pass_time(SETTLE_S)
        follower = scheme.record.rebalances[""] - restarted
        scheme.group.puppets[leader].join()
        scheme.pass_time(SETTLE_S)
        rejoined = scheme.record.rebalances[""] - restarted - follower
    text = f"rebalances: {restarted} for its restart, {rejoined} for its rejoin, {follower} for a follower's rejoin"
    return Finding(text, holds=restarted > 0, holds_if=rejoined > 0)


@claim(f"{KIP_345}, rolling bounce", "A static member that stays away beyond its session costs rebalances.")
def a_late_static_member_rebalances() -> Finding:
    """Compare a restart in time with one that is too late."""
    late, early = (measure("static", each).rebalances for each in ("late-bounce", "bounce"))
    return Finding(f"rebalances: {early} in time, {late} too late", early == 0 < late)


@claim(f"{KIP_345}, client behaviour", "Static membership prefers state to liveness: partitions wait for the restart.")
def static_members_wait() -> Finding:
    """Compare idle time of a restart."""
    static, dynamic = (measure(each, "bounce", restart_s=40).idle_s for each in ("static", "eager"))
    return Finding(f"idle for a restart of 40 s: {static:g} partition-s static, {dynamic:g} dynamic", static > dynamic)


@claim(f"{KIP_345}, scale down", "A static member that leaves for good is missed only after its session.")
def static_scale_in_waits_for_the_session() -> Finding:
    """Compare the times until the others own everything."""
    times = {each: measure("static", "leave", session_timeout_s=each).balance_s or 0 for each in (10, 45, 120)}
    text = ", ".join(f"{taken:g} s with {session} s" for session, taken in times.items())
    return Finding(text, all(session - 3 <= taken <= session + 6 for session, taken in times.items()))


@claim(f"{KIP_345}, scale down", "Removing a static member with LeaveGroup rebalances at once.")
def removing_a_static_member_is_quick() -> Finding:
    """Let a static member send LeaveGroup, as the admin tool does for it."""
    with CoreScheme(Load(), Members(("range",), is_static=True)) as scheme:
        begin(scheme)
        scheme.group.puppets[name_of(1)].leave()
        scheme.pass_time(scheme.load.heartbeat_interval_s + 2)
        count = scheme.record.rebalances[""]
    return Finding(f"{count} rebalance within 5 s", count == 1)


# -- incremental cooperative rebalancing ---------------------------------------------------------------------


@claim(f"{ARTICLE}, cooperative", "A cooperative rebalance stops no member.")
def cooperative_stops_none() -> Finding:
    """Compare member-seconds for a newcomer."""
    eager, cooperative = (
        measure(each, "newcomer", members=10, partitions=40).stopped_s for each in ("eager", "cooperative")
    )
    return Finding(f"stopped: {eager:g} member-s eager, {cooperative:g} cooperative", cooperative == 0 < eager)


@claim(
    f"{ARTICLE}, a new consumer joins",
    "A newcomer gets its partitions in the second of two rounds, and no other moves.",
)
def a_newcomer_takes_two_rounds() -> Finding:
    """Count rounds and moves."""
    figures = measure("cooperative", "newcomer")
    text = f"{figures.rebalances} rounds, {figures.moved} moves of at least {figures.moved_least}"
    return Finding(text, figures.rebalances == 2 and figures.moved == figures.moved_least)


@claim(
    f"{ARTICLE}, cooperative",
    "Cooperative rebalancing shortens the time in which partitions have no owner.",
    CONDITIONS,
    "a member is slow; with quick members the second round costs more than it saves",
)
def cooperative_leaves_fewer_partitions_idle() -> Finding:
    """Compare idle time for a newcomer, with quick members and with a slow one."""
    quick = [measure(each, "newcomer").idle_s for each in ("eager", "cooperative")]
    slow = [measure(each, "slow-processing").idle_s for each in ("eager", "cooperative")]
    text = f"idle partition-s, eager and cooperative: {quick} with quick members, {slow} with a slow one"
    return Finding(text, quick[1] < quick[0], slow[1] < slow[0])


@claim(
    f"{ARTICLE}, an existing consumer bounces",
    "A worker that returns within the delay gets its tasks back in round three.",
)
def a_bounced_worker_gets_its_tasks_back() -> Finding:
    """Count rounds and moves of a restart."""
    figures = measure("connect", "bounce")
    text = f"{figures.rebalances} rounds, {figures.moved} moves, stopped {figures.stopped_s:g} member-s"
    return Finding(text, (figures.rebalances, figures.moved, figures.stopped_s) == (3, 0, 0))


@claim(
    f"{ARTICLE}, an existing worker leaves",
    "Tasks of a worker that does not return move after the delay, in round two.",
)
def tasks_move_after_the_delay() -> Finding:
    """Compare the time of the last move with the delay."""
    times = {each: measure("connect", "leave", max_delay_s=each) for each in (60, 300)}
    text = ", ".join(f"{each.balance_s:g} s with {delay} s" for delay, each in times.items())
    in_time = all(delay <= (each.balance_s or 0) <= delay + 6 for delay, each in times.items())
    return Finding(text, in_time and {each.rebalances for each in times.values()} == {2})


# -- KIP-62 --------------------------------------------------------------------------------------------------


@claim(f"{KIP_62}, decoupling the rebalance timeout", "A member busy for longer than its session stays in a rebalance.")
def busy_members_stay() -> Finding:
    """Rebalance with a batch of 60 s and a session of 10 s: with a timeout of its own, and with the session's."""
    apart, same = (
        fenced(record("eager", "slow-processing", session_timeout_s=10, rebalance_timeout_s=each)) for each in (300, 10)
    )
    return Finding(f"removed members: {apart} with a timeout of its own, {same} with the session's", apart == 0 < same)


@claim(
    f"{KIP_62}, decoupling the processing timeout",
    "A crash is noticed after the session, whatever processing may take.",
)
def a_crash_is_noticed_after_the_session() -> Finding:
    """Compare sessions and processing limits."""
    times = {
        (session, limit): measure("eager", "crash", session_timeout_s=session, rebalance_timeout_s=limit).balance_s or 0
        for session in (10, 45)
        for limit in (60, 600)
    }
    text = ", ".join(f"{taken:g} s with {session} s and {limit} s" for (session, limit), taken in times.items())
    return Finding(text, all(session - 3 <= taken <= session + 6 for (session, _), taken in times.items()))


@claim(
    f"{KIP_62}, decoupling the rebalance timeout", "A rebalance lasts at most as long as the slowest member processes."
)
def processing_bounds_the_rebalance() -> Finding:
    """Compare the time to balance with the batch of the slow member."""
    taken = measure("eager", "slow-processing").balance_s or 0
    return Finding(f"{taken:g} s with a batch of {SLOW_S} s", SLOW_S <= taken <= SLOW_S + 6)


@claim(
    f"{KIP_62}, decoupling the rebalance timeout",
    "A lower limit on processing ends rebalances sooner, and costs commits.",
)
def a_low_processing_limit_costs_commits() -> Finding:
    """Compare limits of 300 s and 20 s, with a batch of 60 s."""
    high, low = (measure("eager", "slow-processing", rebalance_timeout_s=each) for each in (300, 20))
    text = (
        f"stopped {high.stopped_s:g} and {low.stopped_s:g} member-s, "
        f"reprocessed {high.reprocessed} and {low.reprocessed} records, with 300 s and 20 s"
    )
    return Finding(text, low.stopped_s < high.stopped_s and high.reprocessed == 0 < low.reprocessed)


# -- KIP-389 and KIP-394 -------------------------------------------------------------------------------------


def _runaway(clients: int, config: tuple[tuple[str, object], ...] = ()) -> CoreScheme:
    scheme = CoreScheme(Load(config=config), Members(("range",)))
    begin(scheme)
    for number in range(clients):
        scheme.start(name_of(scheme.load.members + number))
    scheme.pass_time(60)
    scheme.end()
    return scheme


@claim(f"{KIP_389}, motivation", "Faulty clients make a group grow without a limit.")
def runaway_groups_grow() -> Finding:
    """Start 50 and 100 clients too many."""
    found = {each: _runaway(each).record for each in (50, 100)}
    text = ", ".join(f"{of.peak_members} members and {of.peak_bytes} B with {each}" for each, of in found.items())
    return Finding(text, all(of.peak_members == each + 3 for each, of in found.items()))


@claim(
    f"{KIP_389}, proposed changes",
    "`group.max.size` bounds the members, and so the memory.",
    CONDITIONS,
    "during a rebalance the limit counts the joins that wait; members that have not rejoined come on top",
)
def the_limit_bounds_memory() -> Finding:
    """Start 50 and 100 clients too many for a group of at most five."""
    found = {each: _runaway(each, (("group.max.size", 5),)) for each in (50, 100)}
    text = ", ".join(f"{of.record.peak_bytes} B with {each}" for each, of in found.items())
    most = {of.record.peak_members for of in found.values()}
    return Finding(f"{text}; at most {max(most)} members", max(most) <= 5, len(most) == 1)


@claim(f"{KIP_389}, motivation", "The more members, the longer a rebalance: the slowest one decides.")
def more_members_wait_longer() -> Finding:
    """Compare the mean over five seeds of the time to balance, with random batches."""
    mean = {
        count: sum(
            measure("eager", "newcomer", members=count, partitions=count, seed=seed).balance_s or 0 for seed in range(5)
        )
        / 5
        for count in (3, 30)
    }
    return Finding(f"{mean[3]:.2f} s with 3 members, {mean[30]:.2f} s with 30", mean[30] > mean[3])


def _abandoned(version: int, joins: int) -> Record:
    with CoreScheme(Load(), Members(("range",))) as scheme:
        begin(scheme)
        for _ in range(joins):
            scheme.abandon_join(version)
            scheme.pass_time(0.1)
        return scheme.record


@claim(f"{KIP_394}, motivation", "Joins whose responses get lost leave members behind, each with its subscription.")
def abandoned_joins_leave_members() -> Finding:
    """Abandon 100 joins of the version before the KIP."""
    of = _abandoned(JOIN_V3, 100)
    return Finding(f"{of.peak_members} members, {of.peak_bytes} B", of.peak_members == 103)


@claim(f"{KIP_394}, proposed changes", "With the KIP only an id stays, and the group does not rebalance for it.")
def abandoned_joins_leave_ids() -> Finding:
    """Compare the versions before and since the KIP."""
    before, since = _abandoned(JOIN_V3, 100), _abandoned(JOIN_V4, 100)
    text = (
        f"memory {before.peak_bytes} and {since.peak_bytes} B, "
        f"notifications {before.notifications} and {since.notifications}, before and since"
    )
    return Finding(text, since.notifications == 0 < before.notifications)


@claim(
    f"{KIP_394}, motivation",
    "With the KIP a client that gives up joining leaves no member behind.",
    CONDITIONS,
    "it gives up before it has its id",
)
def giving_up_leaves_no_member() -> Finding:
    """Give up before and after the id has arrived."""
    before_id = _abandoned(JOIN_V4, 6).rebalances[""]
    after_id = measure("eager", "impatient-joiner").peak_members
    text = f"{before_id} rebalances if the id is lost; {after_id} members at most if the second request is abandoned"
    return Finding(text, after_id <= 4, before_id == 0)
