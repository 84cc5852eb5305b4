"""The claims of KIP-62, KIP-345, KIP-389 and KIP-394."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..cells import SETTLE_S
from ..load import Load
from ..schemes.on_core import CoreScheme, Members
from ..situations import SLOW_S, name_of
from .claim import CONDITIONS, KIP_62, KIP_345, KIP_389, KIP_394, Finding, begin, claim, fenced, measure, record

if TYPE_CHECKING:
    from ..record import RunRecord

JOIN_V3, JOIN_V4 = 3, 4
"""JoinGroup before and since KIP-394."""


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


def _abandoned(version: int, joins: int) -> RunRecord:
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
