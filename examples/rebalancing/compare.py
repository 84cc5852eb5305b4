"""One story in four rebalance styles, and its costs in each: `python -m rebalancing.compare` in `examples/`.

A newcomer joins, a member restarts, a member leaves for good. Time is virtual, so the figures are exact and equal on
every machine. They come from the trace, from the partitions that each member owns at each moment:

* stopped, in member-seconds: a member has owned partitions and owns none now, because of a rebalance;
* idle, in partition-seconds: a partition has no owner, for any reason;
* moved: partitions with another owner at the end;
* rounds: generations of the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rebalancing.stage import PARTITIONS, TOPIC, Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STYLES: Mapping[str, dict[str, Any]] = {
    "eager": {"protocols": ["range"]},
    "static": {"protocols": ["range"]},
    "cooperative": {"protocols": ["cooperative-sticky"]},
    "connect": {"protocols": ["sessioned"], "protocol_type": "connect", "topics": {TOPIC: PARTITIONS}},
}

BATCH_S = {"C1": 1, "C2": 5, "C3": 2}
"""The time each member is busy with fetched records before it can rejoin."""

RESTART_S = 10
"""The downtime of a restarted process."""

LONG_S = 600
"""Longer than any session, and than Kafka Connect's scheduled.rebalance.max.delay.ms of 300 s."""


@dataclass(frozen=True)
class Cost:
    """The cost of one act."""

    stopped_s: float
    idle_s: float
    moved: int
    rounds: int


def play(style: str) -> dict[str, Cost]:
    """Play the whole story; return the cost of each act."""
    with Stage(**STYLES[style]) as stage:

        def start(name: str) -> None:
            instance_id = f"i-{name}" if style == "static" else None
            stage.start(name, instance_id=instance_id, behaviour={"kind": "straggler", "delay_s": BATCH_S[name]})

        def close(name: str, for_s: float) -> None:
            """Close a member: a static one sends nothing, others leave."""
            if style == "static":
                stage.kill(name, for_s=for_s)
            else:
                stage.leave(name, for_s=for_s)

        costs = {}
        start("C1")
        start("C2")
        begin = stage.now_s
        start("C3")
        stage.pass_time(LONG_S)
        costs["C3 joins"] = cost(stage.events, begin, stage.now_s)
        begin = stage.now_s
        close("C2", for_s=RESTART_S)
        stage.start_again("C2")
        stage.pass_time(LONG_S)
        costs["C2 is restarted"] = cost(stage.events, begin, stage.now_s)
        begin = stage.now_s
        close("C2", for_s=LONG_S)
        costs["C2 leaves for good"] = cost(stage.events, begin, stage.now_s)
        return costs


def cost(events: Iterable[Mapping[str, Any]], begin_s: float, end_s: float) -> Cost:
    """Compute the cost from a group's trace between two times."""
    held: dict[str, set[int]] = {}
    has_worked: set[str] = set()
    owners: dict[int, str] = {}
    before: dict[int, str] = {}
    rounds = 0
    stopped_s = idle_s = 0.0
    at = begin_s
    the_end = {"wall_ts": end_s * 1e6, "kind": "the end"}
    for line in [*(line for line in events if line["wall_ts"] <= end_s * 1e6), the_end]:
        now = line["wall_ts"] / 1e6
        if now > begin_s:
            before = before or dict(owners)
            rounds += line.get("state_to") == "CompletingRebalance"
            stopped_s += (now - at) * sum(not held[name] for name in held.keys() & has_worked)
            idle_s += (now - at) * (PARTITIONS - len(set().union(*held.values())))
            at = now
        match line:
            case {
                "kind": "puppet",
                "change": "assigned" | "revoked" | "lost",
                "puppet": name,
                "body": {"holds": holds},
            }:
                held[name] = {number for number in holds.get(TOPIC, ()) if number >= 0}
                owners.update(dict.fromkeys(held[name], name))
                if held[name]:
                    has_worked.add(name)
            case {"kind": "puppet", "change": "stopped", "puppet": name} | {
                "kind": "request",
                "api": "LeaveGroup",
                "client_id": name,
            }:
                held.pop(name, None)
                has_worked.discard(name)
    moved = sum(owners[partition] != owner for partition, owner in before.items())
    return Cost(round(stopped_s, 3), round(idle_s, 3), moved, rounds)


def table(costs: Mapping[str, Mapping[str, Cost]]) -> str:
    """Render the figures, act by act."""
    lines = []
    for act in next(iter(costs.values())):
        lines += ["", f"{act:20}{'stopped':>14}{'idle':>14}{'moved':>8}{'rounds':>8}"]
        for style, of in costs.items():
            each = of[act]
            stopped, idle = f"{each.stopped_s:g} s", f"{each.idle_s:g} s"
            lines.append(f"  {style:18}{stopped:>14}{idle:>14}{each.moved:>8}{each.rounds:>8}")
    return "\n".join(lines[1:])


def main() -> None:
    """Play the story in every style."""
    print(table({style: play(style) for style in STYLES}))


if __name__ == "__main__":
    main()
