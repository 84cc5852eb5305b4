"""Heartbeats per second: our server, the minimal Trio server, and librdkafka's mock in C."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from measuring import processes
from measuring.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from measuring.processes import Process, Server

ROUNDS = 60
ECHO_TARGET = 0.6
MOCK_TARGET = 0.5


@dataclass
class Contestant:
    """A server with its own load process, and its best result."""

    name: str
    server: Server
    load: Process
    per_s: float = 0.0
    cpu_us: float = float("inf")
    p50_us: float = float("inf")
    p99_us: float = float("inf")
    rounds: list[float] = field(default_factory=list)

    def turn(self, each: int, connections: int) -> None:
        """Run one round."""
        before = self.server.processor_s()
        found = self.load.tell(order="beat", each=each)
        used = self.server.processor_s() - before
        count = each * connections
        self.rounds.append(count / found["seconds"])
        self.per_s = max(self.rounds)
        self.cpu_us = min(self.cpu_us, used / count * 1e6)
        self.p50_us = min(self.p50_us, found["p50_us"])
        self.p99_us = min(self.p99_us, found["p99_us"])


def rows(*, quick: bool) -> list[Row]:
    """Return two rows for 50 ping-pong connections, two for one connection with 64 requests in flight."""
    rounds = 1 if quick else ROUNDS
    found = _compete(connections=50, in_flight=1, each=4 if quick else 40, rounds=rounds)
    made = _rows("50 connections, each waits for its answer", found, {"echo": ECHO_TARGET})
    found = _compete(connections=1, in_flight=64, each=256 if quick else 6_400, rounds=rounds)
    return made + _rows("one connection, 64 in flight", found, {"mock": MOCK_TARGET})


def _compete(connections: int, in_flight: int, each: int, rounds: int) -> dict[str, Contestant]:
    with ExitStack() as stack:
        found: dict[str, Contestant] = {}
        servers: dict[str, Callable[[], Server]] = {
            "koordinator": processes.emulator,
            "echo": processes.echo,
            "mock": processes.mock,
        }
        for name, start in servers.items():
            server = stack.enter_context(start())
            load = stack.enter_context(processes.load())
            order = {"port": server.port, "connections": connections, "in_flight": in_flight}
            if name == "echo":
                load.tell(order="echo", **order)
            else:
                # the mock has an initial delay of three seconds, and slow rebalances after it
                load.tell(order="form", first_alone=name == "koordinator", **order)
            found[name] = Contestant(name, server, load)
        for _ in range(rounds):
            for contestant in found.values():
                contestant.turn(each, connections)
        return found


def _rows(work: str, found: dict[str, Contestant], targets: dict[str, float]) -> list[Row]:
    ours = found["koordinator"]
    made = []
    for name, text in (("echo", "bare Trio echo"), ("mock", "librdkafka's mock")):
        theirs = found[name]
        ratio = ours.per_s / theirs.per_s
        target = targets.get(name)
        made.append(
            Row(
                part="heartbeats a second",
                work=work,
                measured=f"{ours.per_s:,.0f}",
                beside=f"{text}: {theirs.per_s:,.0f}",
                result=f"{ratio:.2f} of it",
                target="for comparison" if target is None else f"at least {target} of it",
                met=None if target is None else ratio >= target,
                figures={
                    "contestant": name,
                    "ratio": ratio,
                    "ours": _figures(ours),
                    "theirs": _figures(theirs),
                },
            )
        )
    return made


def _figures(of: Contestant) -> dict[str, object]:
    return {
        "per_s": of.per_s,
        "rounds_per_s": of.rounds,
        "server_cpu_us": of.cpu_us,
        "p50_us": of.p50_us,
        "p99_us": of.p99_us,
    }
