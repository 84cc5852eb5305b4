"""Traces of real clients, recorded by `tests/pages/record.py`, and of many puppets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from koordinator import Simulation, faults

TRACES = Path(__file__).parents[2] / "pages" / "traces"

NAMES = tuple(sorted(path.stem for path in TRACES.glob("*.jsonl")))


def lines_of(name: str) -> list[dict[str, Any]]:
    """Return a recorded trace with its header."""
    return [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]


def crowd(*, members: int = 50, events: int) -> list[dict[str, Any]]:
    """Return a trace, of at least `events` events, of puppets that restart in turn; half of them are static."""
    with Simulation(topics={"orders": 2 * members}, seed=1) as cluster:
        group = cluster.group("crowd")
        names = [f"svc-{number:02}" for number in range(members)]
        puppets = [
            group.create_puppet(name, instance_id=name if number % 2 else None) for number, name in enumerate(names)
        ]
        for puppet in puppets:
            puppet.join()
        turn = 0
        while cluster.events()[-1]["seq"] < events:
            cluster.pass_time(4)
            puppets[turn % members].stop() if turn % 2 else puppets[turn % members].leave()
            cluster.pass_time(2)
            puppets[turn % members].join()
            turn += 1
        cluster.pass_time(30)
        return cluster._port.trace_lines()


def with_faults() -> list[dict[str, Any]]:
    """Return a trace with actions of a test: a rule, a hold, a fence and a clock jump."""
    with Simulation(topics={"orders": 6}, seed=1) as cluster:
        group = cluster.group("orders-svc")
        first, second = group.create_puppet("svc-1"), group.create_puppet("svc-2", instance_id="i-2")
        first.join()
        second.join()
        cluster.pass_time(1)
        group.add_rule("OffsetCommit", faults.error("REBALANCE_IN_PROGRESS"), client_id="svc-1")
        first.commit({("orders", 0): 10})
        with group.hold("Heartbeat", client_id="svc-2"):
            cluster.pass_time(1)
        group.fence("i-2")
        cluster.pass_time(1)
        group.advance("2m")
        cluster.pass_time(1)
        return cluster._port.trace_lines()
