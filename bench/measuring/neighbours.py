"""Heartbeats beside hostile peers: how long 50 members that do nothing wrong wait for their answers.

Alone and beside take turns on one server, and so do the kinds of peers. The members beat at a pace, whether they have
been answered or not, so that every moment in which the server does not answer is seen for as long as it lasts. Of the
rounds the median counts: the best would be the one in which the least was done to the server.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from statistics import median

from measuring import processes
from measuring.groups import SPARE_FILES
from measuring.rows import Row

MEMBERS = 50
EVERY_S = 0.05
"""Of one member: 1,000 heartbeats a second, a tenth of what the server can do, and as many looks at it."""

ALONE, BESIDE = 8, 20
"""The heartbeats of each member in a round: 0.4 s and 1 s."""

ROUNDS = 3
TARGET_MS = 100.0
"""A thirtieth of the time between two heartbeats, a sixtieth of the shortest session (Kafka's defaults)."""

SIZE_MAX = 2 * MEMBERS
"""group.max.size (KIP-389)."""

LOG_SHOWN = 2_000
"""The characters of the server's log that are shown if something goes wrong."""

Order = dict[str, str | int]
Figures = dict[str, float]


@dataclass(frozen=True)
class Peers:
    """Hostile peers: their kind (`hostile.KINDS`), how many or how large, and how few or small if quick."""

    kind: str
    work: str
    full: dict[str, int]
    quick: dict[str, int]


def rows(*, quick: bool) -> list[Row]:
    """A row for each kind of peers."""
    limit = processes.file_limit()
    crowd = (
        Peers(
            "silent",
            "{connections:,} silent connections, {dripping} of them drip",
            {"connections": min(2_000, limit - SPARE_FILES), "dripping": 50},
            {"connections": 20, "dripping": 5},
        ),
        Peers("malformed", "frames that cannot be read, each closes its connection", {}, {}),
        Peers(
            "flood",
            "JoinGroups without a member id, {in_flight} in flight on each of {connections} connections",
            {"connections": 50, "in_flight": 64},
            {"connections": 5, "in_flight": 4},
        ),
        Peers(
            "large",
            "JoinGroup with {protocols:,} protocols, again and again",
            {"protocols": 10_000, "metadata_bytes": 1},
            {"protocols": 100, "metadata_bytes": 1},
        ),
        Peers(
            "large",
            "JoinGroup with {metadata_bytes:,} bytes of metadata, again and again",
            {"protocols": 1, "metadata_bytes": 90_000_000},
            {"protocols": 1, "metadata_bytes": 9_000},
        ),
        Peers(
            "resets",
            "clients that reset in the middle of an answer of {assignment_bytes:,} bytes",
            {"assignment_bytes": 10_000_000},
            {"assignment_bytes": 10_000},
        ),
    )
    orders: dict[str, Order] = {
        peers.work: {"kind": peers.kind, **(peers.quick if quick else peers.full)} for peers in crowd
    }
    rounds, each = (1, (2, 4)) if quick else (ROUNDS, (ALONE, BESIDE))
    return [_row(work.format(**orders[work]), turns) for work, turns in _in_turns(orders, rounds, *each).items()]


def _in_turns(orders: dict[str, Order], rounds: int, alone: int, beside: int) -> dict[str, list[dict[str, Figures]]]:
    """For each order to the hostile peers its rounds: `alone`, `beside`, and what the `peers` have done."""
    found: dict[str, list[dict[str, Figures]]] = {name: [] for name in orders}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,
        # its log has a line for each connection that it closes
        processes.emulator("--config", f"group.max.size={SIZE_MAX}", log=log) as server,
        processes.load() as load,
        processes.hostile() as hostile,
    ):
        try:
            # all of a round may be in flight: so late may an answer be
            load.tell(order="form", port=server.port, connections=MEMBERS, in_flight=max(alone, beside))
            for _ in range(rounds):
                for name, order in orders.items():
                    server.rest()
                    turn = {"alone": load.tell(order="pace", each=alone, every_s=EVERY_S)}
                    hostile.tell(order="begin", port=server.port, **order)
                    used_s = server.processor_s()
                    turn["beside"] = load.tell(order="pace", each=beside, every_s=EVERY_S)
                    turn["beside"]["server_cpu_s"] = server.processor_s() - used_s
                    turn["peers"] = hostile.tell(order="end")
                    found[name].append(turn)
        except (RuntimeError, TimeoutError) as error:
            log.seek(0)
            error.add_note(f"the server's log ends with: {log.read()[-LOG_SHOWN:]}")
            raise
    return found


def _row(work: str, rounds: list[dict[str, Figures]]) -> Row:
    alone, beside = (
        {name: median(turn[when][name] for turn in rounds) / 1e3 for name in ("p50_us", "p99_us")}
        for when in ("alone", "beside")
    )
    return Row(
        part=f"a heartbeat of {MEMBERS} members, beside hostile peers",
        work=work,
        measured=f"p50 {beside['p50_us']:,.1f}, p99 {beside['p99_us']:,.1f} ms",
        beside=f"alone: p50 {alone['p50_us']:,.1f}, p99 {alone['p99_us']:,.1f} ms",
        result=f"p99 {beside['p99_us']:,.1f} ms",
        target=f"under {TARGET_MS:.0f} ms",
        met=beside["p99_us"] < TARGET_MS,
        figures={"rounds": rounds},
    )
