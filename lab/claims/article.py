"""The claims of the article on how rebalancing evolved."""

from __future__ import annotations

from ..cells import AFTER_S
from ..load import Load
from ..record import FactKind
from ..schemes.on_core import CoreScheme, Members
from ..schemes.zookeeper import ZookeeperScheme
from ..situations import name_of, newcomer
from .claim import ARTICLE, CONDITIONS, Finding, begin, claim, measure, record

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
    stopped = {fact.member for fact in of.facts[of.first :] if fact.kind is FactKind.HOLDS and not fact.partitions}
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
