"""Tests with a cluster each, in one process, and a server with idle clients."""

from __future__ import annotations

import sys
import time

from measuring import processes
from measuring.rows import Row

TESTS = 200
TEST_TARGET_MS, OURS_TARGET_MS = 75, 4

IDLE = 1_000
IDLE_S = 5.0
IDLE_TARGET = 0.01
"""The largest share of a core."""

_TESTS = """
import json, sys, time
from statistics import median
from confluent_kafka import Consumer
from koordinator import Emulator

totals, ours = [], []
for _ in range(int(sys.argv[1])):
    begun = time.perf_counter()
    cluster = Emulator({"t": 1}).start()
    started = time.perf_counter()
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    assigned = []
    consumer.subscribe(["t"], on_assign=lambda _, partitions: assigned.extend(partitions))
    until = time.monotonic() + 30
    while not assigned:
        assert time.monotonic() < until, "the consumer has no assignment"
        consumer.poll(0.01)
    consumer.close()
    joined = time.perf_counter()
    cluster.stop()
    ended = time.perf_counter()
    totals.append(ended - begun)
    ours.append(started - begun + ended - joined)
print(json.dumps({"total": median(totals), "ours": median(ours)}))
"""
"""A consumer joins a new cluster, again and again."""


def rows(*, quick: bool) -> list[Row]:
    """Return a row for tests with a cluster each, and one for an idle server."""
    processes.file_limit()
    tests, clients, seconds = (2, 20, 0.2) if quick else (TESTS, IDLE, IDLE_S)
    with processes.Process(sys.executable, "-c", _TESTS, str(tests)) as process:
        found = process.line()
    total_ms, ours_ms = found["total"] * 1e3, found["ours"] * 1e3
    share = _idle_share(clients, seconds)
    return [
        Row(
            part="clusters",
            work=f"{tests} tests with a cluster each, which a consumer joins (confluent-kafka)",
            measured=f"{total_ms:.1f} ms",
            beside=f"start and stop of the cluster: {ours_ms:.1f} ms",
            result=f"{total_ms:.1f} ms; {ours_ms:.1f} ms",
            target=f"at most {TEST_TARGET_MS} ms; {OURS_TARGET_MS} ms",
            met=total_ms <= TEST_TARGET_MS and ours_ms <= OURS_TARGET_MS,
            figures=found,
        ),
        Row(
            part="clusters",
            work=f"{clients:,} idle connections",
            measured=f"{share:.2%} of a core",
            beside="-",
            result=f"{share:.2%}",
            target=f"under {IDLE_TARGET:.0%}",
            met=share < IDLE_TARGET,
            figures={"share": share, "connections": clients, "seconds": seconds},
        ),
    ]


def _idle_share(clients: int, seconds: float) -> float:
    """Return the share of a core that a server with idle connections uses."""
    with processes.emulator() as server, processes.load() as load:
        load.tell(order="idle", port=server.port, connections=clients)
        server.rest()
        before, begun = server.processor_s(), time.monotonic()
        time.sleep(seconds)
        return (server.processor_s() - before) / (time.monotonic() - begun)
