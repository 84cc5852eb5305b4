"""The claims of KIP-345's "future works", which Kafka never released: each has an experiment as its scheme."""

from __future__ import annotations

from ..cells import AFTER_S
from ..load import Load
from ..schemes import SCHEMES
from ..situations import PAUSE_BETWEEN_S, names_of
from .claim import KIP_345, Finding, begin, claim, measure

NEW_MEMBERS = 4


def _rebalances_of_a_slow_deployment(scheme_name: str) -> int:
    load = Load(members=NEW_MEMBERS, partitions=4 * NEW_MEMBERS)
    names = names_of(2 * NEW_MEMBERS)
    with SCHEMES[scheme_name].open(load) as scheme:
        scheme.announce(names[:NEW_MEMBERS])
        begin(scheme)
        scheme.announce(names)
        for name in names[NEW_MEMBERS:]:
            scheme.start(name)
            scheme.pass_time(PAUSE_BETWEEN_S)
        scheme.pass_time(AFTER_S)
        return scheme.record.rebalances[""]


@claim(f"{KIP_345}, future works 1", "A fleet that the coordinator knows in advance joins with one rebalance.")
def a_known_fleet_joins_at_once() -> Finding:
    """Start four more members, half a minute apart."""
    plain, known = map(_rebalances_of_a_slow_deployment, ("static", "preregistered"))
    return Finding(f"rebalances for {NEW_MEMBERS} members: {plain} static, {known} preregistered", known == 1 < plain)


@claim(f"{KIP_345}, future works 2", "A spare process replaces a closed member without a rebalance and without a wait.")
def a_spare_takes_over() -> Finding:
    """Compare a restart with dynamic, static and spare members."""
    figures = [measure(each, "bounce") for each in ("eager", "static", "hot-standby")]
    rebalances, idle, moved = ([getattr(each, name) for each in figures] for name in ("rebalances", "idle_s", "moved"))
    text = f"eager, static, with a spare: {rebalances} rebalances, {idle} idle partition-s, {moved} moves"
    return Finding(text, rebalances[2] == idle[2] == 0 < moved[2])


@claim(f"{KIP_345}, future works 2", "With a spare process the session timeout need not be long.")
def spares_allow_short_sessions() -> Finding:
    """Compare crashes with sessions of 45 s and 10 s."""
    found = {each: measure("hot-standby", "crash", session_timeout_s=each) for each in (45, 10)}
    text = ", ".join(f"{each.idle_s:g} idle partition-s with {session} s" for session, each in found.items())
    return Finding(text, found[10].rebalances == 0 and found[10].idle_s < found[45].idle_s / 2)
