"""Heartbeats of a controlled cluster: the cost of 200 long polls and 100 non-matching rules for other clients."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from measuring import processes
from measuring.rows import Row

from koordinator import faults
from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from measuring.processes import Process

MEMBERS = 10
EVERY_S = 0.02
"""The interval of one member: 500 heartbeats a second in all."""

POLLS, RULES = 200, 100
ROUNDS = 5
TARGET = 2.0
"""In multiples of the idle server's median."""


def rows(*, quick: bool) -> list[Row]:
    """Return one row."""
    polls, rule_count, rounds, each = (4, 4, 2, 4) if quick else (POLLS, RULES, ROUNDS, 50)
    idle, busy = [], []
    with processes.emulator("--control-port", "0") as server, processes.load() as load:
        load.tell(order="form", port=server.port, connections=MEMBERS, in_flight=each)
        with Remote(server.said["control_url"]) as control:
            cluster = control.cluster()
            for _ in range(rounds):
                server.rest()
                idle.append(_beat(load, each))
                rules = [
                    cluster.add_rule(
                        "Heartbeat", faults.error("UNKNOWN_MEMBER_ID"), client_id=f"nobody-{number}", optional=True
                    )
                    for number in range(rule_count)
                ]
                with processes.polls() as waiting:
                    waiting.tell(url=server.said["control_url"], count=polls)
                    server.rest()
                    busy.append(_beat(load, each))
                    waiting.tell()
                for rule in rules:
                    rule.remove()
    before, after = median(idle), median(busy)
    ratio = after / before
    return [
        Row(
            part="a heartbeat, while the cluster is controlled over HTTP",
            work=f"{MEMBERS} members; {polls} long polls and {rule_count} rules that do not match",
            measured=f"p50 {after / 1e3:,.2f} ms",
            beside=f"idle: p50 {before / 1e3:,.2f} ms",
            result=f"{ratio:.2f} times",
            target=f"under {TARGET:.0f} times",
            met=ratio < TARGET,
            figures={"idle_us": idle, "busy_us": busy},
        )
    ]


def _beat(load: Process, each: int) -> float:
    return float(load.tell(order="pace", each=each, every_s=EVERY_S)["p50_us"])
