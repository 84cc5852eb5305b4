"""Records consumed per second by three Python clients, beside kfake."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from measuring import processes
from measuring.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from measuring.processes import Server

CLIENTS = ("confluent-kafka", "aiokafka", "kafka-python")
RECORDS = 1_000_000
RECORD = bytes(100)
ROUNDS = 2
TARGET = 0.95
LIMIT_S = 60


def rows(*, quick: bool) -> list[Row]:
    """Return a row for each client."""
    rounds, count = (1, 1_000) if quick else (ROUNDS, RECORDS)
    kfake = "not built for a quick run" if quick else processes.kfake_program()
    with ExitStack() as stack:
        starts: dict[str, Callable[[], Server]] = {"koordinator": partial(processes.emulator, "--topic", "t:1")}
        if isinstance(kfake, Path):
            starts["kfake"] = partial(processes.Server, str(kfake))
        servers = {name: stack.enter_context(start()) for name, start in starts.items()}
        for server in servers.values():
            _produce(server.port, count)
        per_s = dict.fromkeys(((client, name) for client in CLIENTS for name in servers), 0.0)
        for _ in range(rounds):
            for client, name in per_s:
                per_s[client, name] = max(per_s[client, name], _consumed_per_s(client, servers[name].port, count))
    return [
        _row(client, count, per_s[client, "koordinator"], per_s.get((client, "kfake")), kfake) for client in CLIENTS
    ]


def _row(client: str, count: int, ours: float, theirs: float | None, kfake: Path | str) -> Row:
    return Row(
        part="records consumed a second",
        work=f"{client}, {count:,} records of {len(RECORD)} bytes",
        measured=f"{ours:,.0f}",
        beside="kfake" if theirs is None else f"kfake: {theirs:,.0f}",
        result=f"skipped: {kfake}" if theirs is None else f"{ours / theirs:.2f} of it",
        target=f"at least {TARGET} of it",
        met=None if theirs is None else ours >= TARGET * theirs,
        figures={"client": client, "per_s": ours, "kfake_per_s": theirs},
    )


def _produce(port: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "queue.buffering.max.messages": count + 1})
    for _ in range(count):
        producer.produce("t", RECORD, partition=0)
    if producer.flush(LIMIT_S):
        raise TimeoutError("records have not been produced")


def _consumed_per_s(client: str, port: int, count: int) -> float:
    with processes.Process(
        sys.executable, str(processes.HERE / "consumer.py"), client, str(port), str(count)
    ) as process:
        return count / float(process.line()["seconds"])
