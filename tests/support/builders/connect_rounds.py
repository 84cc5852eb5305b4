"""Rebalances of Connect workers as text lines: the leader's input, and the answer of Kafka Connect 3.9.2.

A question has the time in ms, the last completed generation, the current generation, the connectors with their numbers
of tasks, and the units each worker claims to run: `2050 1 2 c:5 w1=a/-1,a/0;w2=`; task -1 is the connector itself. An
answer has the delay in ms, and for each worker the units to start (+) and to stop (!): `0 w1!a/0 w2+c/0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.control.assignors.connect import IncrementalLeader, Unit, units_of
from koordinator.wire.messages.connect_protocol import CONNECTOR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from random import Random

Told = tuple[int, dict[str, tuple[list[Unit], list[Unit]]]]
"""The delay in ms, and the units each worker starts and stops, by worker name."""


def answer_of(leader: IncrementalLeader, question: str) -> Told:
    """Return our leader's answer."""
    now, completed, generation, connectors, workers = question.split(" ")
    configured = {name: int(count) for each in connectors.split(",") if each for name, count in [each.split(":")]}
    running = {name: _units(said, ",") for each in workers.split(";") for name, said in [each.split("=")]}
    changes = leader.assign(int(now), (int(completed), int(generation)), units_of(configured), running)
    return leader.delay_ms, {name: (sorted(each.started), sorted(each.stopped)) for name, each in changes.items()}


def parsed(answer: str) -> Told:
    """Parse Kafka's answer."""
    delay, *workers = answer.split(" ")
    told = {}
    for worker in workers:
        started, *stopped = worker.split("!")
        name, *new = started.split("+")
        told[name] = sorted(_units("+".join(new), "+")), sorted(_units("!".join(stopped), "!"))
    return int(delay), told


def read(path: Path) -> list[tuple[int, list[tuple[str, str]]]]:
    """Return the groups of a file: the maximum delay of each, and its questions with answers."""
    found: list[tuple[int, list[tuple[str, str]]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("max "):
            found.append((int(line.removeprefix("max ")), []))
        elif line.startswith("= "):
            question, _ = found[-1][1].pop()
            found[-1][1].append((question, line.removeprefix("= ")))
        elif not line.startswith("#"):
            found[-1][1].append((line, ""))
    return found


def play(random: Random, ask: Callable[[str], str]) -> list[tuple[str, Told, Told]]:
    """Play random rounds of a group: each question, Kafka's answer (`ask`) and ours. Workers follow Kafka.

    Workers come, go, and claim units that others run; connectors come and go; a leader misses a generation.
    """
    max_delay = random.choice([0, 1000, 300_000, 300_000])
    ask(f"max {max_delay}")
    leader = IncrementalLeader(max_delay)
    now, completed, connectors = 1000, -1, dict[str, int]()
    running: dict[str, list[Unit]] = {"w1": []}
    said = []
    for generation in range(1, random.randint(2, 14)):
        if not connectors or random.random() < 0.3:
            connectors = {name: random.randint(0, 5) for name in "abc" if random.random() < 0.6}
        _disturb(random, running)
        now += random.choice([0, 1, 50, 500, 1000, 2000, 100_000, 300_000])
        known = completed - (random.random() < 0.1)
        configured = ",".join(f"{name}:{count}" for name, count in connectors.items())
        runs = ";".join(f"{name}={','.join(f'{c}/{t}' for c, t in units)}" for name, units in sorted(running.items()))
        question = f"{now} {known} {generation} {configured} {runs}"
        theirs = parsed(ask(question))
        said.append((question, theirs, answer_of(leader, question)))
        for name, (started, stopped) in theirs[1].items():
            running[name] = _as_on_the_wire([*started, *(unit for unit in running[name] if unit not in stopped)])
        completed = generation
    return said


def _disturb(random: Random, running: dict[str, list[Unit]]) -> None:
    what = random.random()
    if what < 0.3:
        running[f"w{random.randint(1, 6)}"] = []
    elif what < 0.5 and len(running) > 1:
        del running[random.choice(sorted(running.keys() - {"w1"}))]
    elif what < 0.6:
        one, other = random.choice(sorted(running)), random.choice(sorted(running))
        running[other] += [unit for unit in running[one][:2] if unit not in running[other]]


def _as_on_the_wire(units: Iterable[Unit]) -> list[Unit]:
    """Order units by connector, each connector before its tasks."""
    by_connector: dict[str, list[int]] = {}
    for connector, task in sorted(units, key=lambda unit: unit[1] != CONNECTOR):
        by_connector.setdefault(connector, []).append(task)
    return [(connector, task) for connector, tasks in by_connector.items() for task in tasks]


def _units(said: str, separator: str) -> list[Unit]:
    return [(name, int(task)) for each in said.split(separator) if each for name, task in [each.split("/")]]
