"""The cost of a rebalance in each protocol: puppets on virtual time, with the heartbeat intervals of Kafka's defaults.

A partition is idle while no member uses it. A member that keeps a partition through a rebalance and one that gives it
up and gets it back differ in that alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tables import table

from koordinator import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.handles.group import Group

PARTITIONS, MEMBERS = 12, 3

PROTOCOLS: Mapping[str, dict[str, Any]] = {
    "classic, range": {"protocols": ["range"], "heartbeat_interval": 3, "session_timeout": 45},
    "classic, cooperative-sticky": {
        "protocols": ["cooperative-sticky"],
        "heartbeat_interval": 3,
        "session_timeout": 45,
    },
    "consumer, uniform": {"group_protocol": "consumer", "heartbeat_interval": 5},
}

SLOW_S = 10
"""The time that the slow member of one case takes to give up partitions."""

LIMIT_S = 120


@dataclass(frozen=True)
class Cost:
    """The time of a rebalance, the time that partitions were idle, added up, and the number of those that stopped."""

    seconds: float
    idle_s: float
    stopped: int


def cost(protocol: str, case: str) -> Cost:
    """Return the cost of a case in a group of three members."""
    options = PROTOCOLS[protocol]
    config = {"group.initial.rebalance.delay.ms": 0, "group.max.session.timeout.ms": 60_000}
    with Simulation(topics={"t": PARTITIONS}, config=config) as cluster:
        group = cluster.group("g")
        for number in range(MEMBERS):
            slow = case == "a member joins, another is slow" and number == 0
            behaviour: Any = {"kind": "straggler", "delay_s": SLOW_S} if slow else "healthy"
            group.create_puppet(f"m{number}", **options, behaviour=behaviour).join()
            cluster.pass_time(1)
        group.wait_stable(members=MEMBERS, all_owned=True, timeout=LIMIT_S)
        cluster.pass_time(60)
        began = group.now_ms
        members = CASES[case](group, options)
        group.wait_stable(members=members, all_owned=True, timeout=LIMIT_S)
        return _cost([line for line in cluster.events() if line["kind"] == "puppet"], began)


def _join(group: Group, options: dict[str, Any]) -> int:
    group.create_puppet("new", **options).join()
    return MEMBERS + 1


def _leave(group: Group, _options: dict[str, Any]) -> int:
    group.puppets["m1"].leave()
    return MEMBERS - 1


CASES: Mapping[str, Callable[[Group, dict[str, Any]], int]] = {
    "a member joins": _join,
    "a member leaves": _leave,
    "a member joins, another is slow": _join,
}


def _cost(lines: list[dict[str, Any]], began_ms: int) -> Cost:
    """Follow the partitions that puppets hold; `began_ms` is the time of the change."""
    held: dict[str, set[int]] = {}
    idle_us, last_us, stopped = 0, began_ms * 1000, set[int]()
    for line in lines:
        at_us, before = line["group_ts_us"], {number for numbers in held.values() for number in numbers}
        if at_us >= began_ms * 1000:
            idle_us += (at_us - last_us) * (PARTITIONS - len(before))
            last_us = at_us
        held[line["puppet"]] = set(line["body"]["holds"].get("t", ()))
        if at_us >= began_ms * 1000:
            stopped |= before - {number for numbers in held.values() for number in numbers}
    return Cost((last_us / 1000 - began_ms) / 1000, idle_us / 1e6, len(stopped))


def costs_table() -> str:
    """Return the costs of every case as a Markdown table."""
    rows = []
    for case in CASES:
        for protocol in PROTOCOLS:
            each = cost(protocol, case)
            rows.append(
                [case, protocol, f"{each.seconds:g} s", f"{each.stopped} of {PARTITIONS}", f"{each.idle_s:g} s"]
            )
    return table(
        ["change", "protocol, assignor", "until all have their partitions", "partitions that stop", "idle, added up"],
        rows,
    )
