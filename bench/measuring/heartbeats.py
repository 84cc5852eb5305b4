"""Heartbeats per second, and their processor time: ours, a minimal Trio server, librdkafka's mock in C, kfake in Go."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import processes
from measuring.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from measuring.processes import Process, Server

ROUNDS = 60
ECHO_TARGET = 0.6
MOCK_TARGET = 0.5
KFAKE_TARGETS = {50: 1.3, 1: 1.05}
"""The largest ratio of our processor time to kfake's, by number of connections."""


@dataclass
class Contestant:
    """A server with its own load process, and its best result."""

    name: str
    server: Server
    load: Process
    per_s: float = 0.0
    used_s: float = 0.0
    count: int = 0
    p50_us: float = float("inf")
    p99_us: float = float("inf")
    rounds: list[float] = field(default_factory=list)

    @property
    def cpu_us(self) -> float:
        """The server's processor time for a heartbeat."""
        return max(self.used_s, 1 / processes.TICKS_PER_S) / self.count * 1e6

    def turn(self, each: int, connections: int) -> None:
        """Run one round."""
        before = self.server.processor_s()
        found = self.load.tell(order="beat", each=each)
        # its steps are too coarse for one round
        self.used_s += self.server.processor_s() - before
        count = each * connections
        self.count += count
        self.rounds.append(count / found["seconds"])
        self.per_s = max(self.rounds)
        self.p50_us = min(self.p50_us, found["p50_us"])
        self.p99_us = min(self.p99_us, found["p99_us"])


def rows(*, quick: bool) -> list[Row]:
    """Return three rows for 50 ping-pong connections, three for one with 64 requests in flight, two for TLS."""
    rounds = 1 if quick else ROUNDS
    kfake = "not built for a quick run" if quick else processes.kfake_program()
    found = _compete(kfake, connections=50, in_flight=1, each=4 if quick else 40, rounds=rounds)
    made = _rows("50 connections, each waits for its answer", found, {"echo": ECHO_TARGET})
    made.append(_kfake_row(made[0].work, kfake, found, KFAKE_TARGETS[50]))
    found = _compete(kfake, connections=1, in_flight=64, each=256 if quick else 6_400, rounds=rounds)
    made += _rows("one connection, 64 in flight", found, {"mock": MOCK_TARGET})
    made.append(_kfake_row(made[-1].work, kfake, found, KFAKE_TARGETS[1]))
    return [*made, *_tls_rows(kfake, each=4 if quick else 40, rounds=rounds)]


def _tls_rows(kfake: Path | str, *, each: int, rounds: int) -> list[Row]:
    """Return a row for heartbeats over TLS beside plain ones, and one for their processor time beside kfake's."""
    connections = 50
    servers: dict[str, Callable[[], Server]] = {
        "plain": processes.emulator,
        "koordinator": partial(processes.emulator, "--security", "ssl"),
    }
    if isinstance(kfake, Path):
        servers["kfake"] = partial(processes.Server, str(kfake), "1", "tls")
    with ExitStack() as stack:
        found: dict[str, Contestant] = {}
        for name, start in servers.items():
            server, load = stack.enter_context(start()), stack.enter_context(processes.load())
            load.tell(order="form_each", port=server.port, connections=connections, tls=name != "plain")
            found[name] = Contestant(name, server, load)
        for _ in range(rounds):
            for contestant in found.values():
                contestant.turn(each, connections)
    plain, ours, work = found["plain"], found["koordinator"], f"{connections} connections with TLS"
    ratio = ours.per_s / plain.per_s
    beside_plain = Row(
        part="heartbeats a second",
        work=work,
        measured=f"{ours.per_s:,.0f}",
        beside=f"without TLS: {plain.per_s:,.0f}",
        result=f"{ratio:.2f} of it",
        target="for comparison",
        met=None,
        figures=_compared("plain", ratio, ours, plain),
    )
    return [beside_plain, _kfake_row(work, kfake, found, None)]


def _compete(kfake: Path | str, *, connections: int, in_flight: int, each: int, rounds: int) -> dict[str, Contestant]:
    with ExitStack() as stack:
        found: dict[str, Contestant] = {}
        servers: dict[str, Callable[[], Server]] = {
            "koordinator": processes.emulator,
            "echo": processes.echo,
            "mock": processes.mock,
        }
        if isinstance(kfake, Path):
            servers["kfake"] = partial(processes.Server, str(kfake))
        for name, start in servers.items():
            server = stack.enter_context(start())
            load = stack.enter_context(processes.load())
            order = {"port": server.port, "connections": connections, "in_flight": in_flight}
            if name == "echo":
                load.tell(order="echo", **order)
            elif name == "kfake":
                # its groups do not wait for issued ids, so that a group of many has many generations
                load.tell(order="form_each", **order)
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
                figures=_compared(name, ratio, ours, theirs),
            )
        )
    return made


def _kfake_row(work: str, program: Path | str, found: dict[str, Contestant], target: float | None) -> Row:
    """Compare processor time: kfake uses more than one processor."""
    ours, kfake = found["koordinator"], found.get("kfake")
    ratio = None if kfake is None else ours.cpu_us / kfake.cpu_us
    return Row(
        part="processor time of a heartbeat",
        work=work,
        measured=f"{ours.cpu_us:.1f} µs",
        beside="kfake" if kfake is None else f"kfake: {kfake.cpu_us:.1f} µs, {kfake.per_s:,.0f} a second",
        result=f"skipped: {program}" if ratio is None else f"{ratio:.2f} times its time",
        target="for comparison" if target is None else f"at most {target} times its time",
        met=None if ratio is None or target is None else ratio <= target,
        figures={} if kfake is None or ratio is None else _compared("kfake", ratio, ours, kfake),
    )


def _compared(name: str, ratio: float, ours: Contestant, theirs: Contestant) -> dict[str, object]:
    return {"contestant": name, "ratio": ratio, "ours": _figures(ours), "theirs": _figures(theirs)}


def _figures(of: Contestant) -> dict[str, object]:
    return {
        "per_s": of.per_s,
        "rounds_per_s": of.rounds,
        "server_cpu_us": of.cpu_us,
        "p50_us": of.p50_us,
        "p99_us": of.p99_us,
    }
