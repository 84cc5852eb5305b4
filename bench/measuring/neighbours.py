"""Heartbeats beside hostile peers: the response times of 50 well-behaved members.

Rounds alone and rounds beside peers alternate on one server, for all kinds of peers. The members keep their pace
whether answered or not, so every stall of the server counts with its full length. The median round counts: the best
would be the one with the least hostile work.
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
"""The interval of one member: 1,000 heartbeats a second, a tenth of the server's capacity, and as many samples."""

ALONE, BESIDE = 8, 20
"""The heartbeats of each member in a round: 0.4 s and 1 s."""

ROUNDS = 3
TARGET_MS = 100.0
"""A thirtieth of the heartbeat interval, a sixtieth of the shortest session timeout (Kafka's defaults)."""

SIZE_MAX = 2 * MEMBERS
"""group.max.size (KIP-389)."""

LOG_SHOWN = 2_000
"""Characters of the server's log in an error message."""

Order = dict[str, str | int]
Figures = dict[str, float]


@dataclass(frozen=True)
class Peers:
    """Hostile peers: their kind (`hostile.KINDS`), their number or size, and the same for a quick run."""

    kind: str
    work: str
    full: dict[str, int]
    quick: dict[str, int]


def rows(*, quick: bool) -> list[Row]:
    """Return a row for each kind of peers."""
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
    """Return, for each order to the hostile peers, its rounds: `alone`, `beside`, and the work of the `peers`."""
    found: dict[str, list[dict[str, Figures]]] = {name: [] for name in orders}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,
        # its log has a line for each connection that it closes
        processes.emulator(*processes.ANY_RECORD, "--config", f"group.max.size={SIZE_MAX}", log=log) as server,
        processes.load() as load,
        processes.hostile() as hostile,
    ):
        try:
            # a whole round may be in flight: a response may be that late
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
