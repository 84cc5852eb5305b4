"""The time to start and stop: a process, and a cluster inside a process."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

from measuring import processes
from measuring.peers import HELLO
from measuring.rows import Row

ROUNDS = 15
SERVE_TARGETS_S = {"koordinator serve": 0.22, "koordinator serve --control-port 0": 0.3}
IN_PROCESS_TARGET_S = 0.01
TLS_TARGET_S = 0.05
STOP_TARGET_S = 1.0
CLIENTS = 100

_IN_PROCESS = f"""
import json, socket, sys, time
from koordinator import Emulator

starts, stops = [], []
for _ in range(int(sys.argv[1])):
    begun = time.perf_counter()
    cluster = Emulator().start()
    starts.append(time.perf_counter() - begun)
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    clients = [socket.create_connection((host, int(port))) for _ in range({CLIENTS})]
    hello = bytes.fromhex(sys.argv[2])
    for client in clients:
        client.sendall(hello)
    for client in clients:
        client.recv(65536)
    begun = time.perf_counter()
    cluster.stop()
    stops.append(time.perf_counter() - begun)
    for client in clients:
        client.close()
print(json.dumps({{"start": min(starts[1:] or starts), "first": starts[0], "stop": min(stops), "slowest": max(stops)}}))
"""
"""Clusters one after the other, each stopped with clients that have received responses."""


_WITH_TLS = """
import json, sys, time
from koordinator import Emulator

starts = []
for _ in range(int(sys.argv[1])):
    begun = time.perf_counter()
    cluster = Emulator(security="ssl").start()
    starts.append(time.perf_counter() - begun)
    cluster.stop()
print(json.dumps({"start": min(starts[1:] or starts), "first": starts[0]}))
"""
"""Clusters with TLS one after the other; the first one makes the certificates."""


def rows(*, quick: bool) -> list[Row]:
    """Return rows for process start to the first response, cluster start in a process, and stop with clients."""
    rounds = 2 if quick else ROUNDS
    imported = float("inf")
    answered = dict.fromkeys(SERVE_TARGETS_S, float("inf"))
    for _ in range(rounds):
        imported = min(imported, _imported())
        for command in answered:
            answered[command] = min(answered[command], _answered(*command.split()[2:]))
    with processes.Process(sys.executable, "-c", _IN_PROCESS, str(rounds), HELLO.hex()) as process:
        inside = process.line()
    with processes.Process(sys.executable, "-c", _WITH_TLS, str(rounds)) as process:
        with_tls = process.line()
    part = "start and stop"
    return [
        *(
            Row(
                part=part,
                work=f"{command}, to its first ApiVersions response",
                measured=f"{seconds * 1e3:.0f} ms",
                beside=f'python -c "import trio": {imported * 1e3:.0f} ms',
                result=f"{seconds / imported:.1f} times that",
                target=f"at most {SERVE_TARGETS_S[command] * 1e3:.0f} ms",
                met=seconds <= SERVE_TARGETS_S[command],
                figures={"seconds": seconds, "import_trio_seconds": imported},
            )
            for command, seconds in answered.items()
        ),
        Row(
            part=part,
            work="start of a cluster in a process",
            measured=f"{inside['start'] * 1e3:.1f} ms",
            beside=f"the first one: {inside['first'] * 1e3:.1f} ms",
            result=f"{inside['start'] * 1e3:.1f} ms",
            target=f"under {IN_PROCESS_TARGET_S * 1e3:.0f} ms",
            met=inside["start"] < IN_PROCESS_TARGET_S,
            figures=inside,
        ),
        Row(
            part=part,
            work="start of a cluster with TLS in a process, after the first",
            measured=f"{with_tls['start'] * 1e3:.1f} ms",
            beside=f"the first one: {with_tls['first'] * 1e3:.1f} ms",
            result=f"{with_tls['start'] * 1e3:.1f} ms",
            target=f"at most {TLS_TARGET_S * 1e3:.0f} ms",
            met=with_tls["start"] <= TLS_TARGET_S,
            figures=with_tls,
        ),
        Row(
            part=part,
            work=f"stop with {CLIENTS} clients",
            measured=f"{inside['slowest'] * 1e3:.1f} ms",
            beside=f"the quickest: {inside['stop'] * 1e3:.1f} ms",
            result=f"{inside['slowest'] * 1e3:.1f} ms",
            target=f"under {STOP_TARGET_S:.0f} s",
            met=inside["slowest"] < STOP_TARGET_S,
            figures=inside,
        ),
    ]


def _answered(*options: str) -> float:
    """Return the seconds from the start of a process to its first response."""
    begun = time.perf_counter()
    with processes.emulator(*options) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(HELLO)
        client.recv(1)
        return time.perf_counter() - begun


def _imported() -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import trio"], check=True)
    return time.perf_counter() - begun
