"""The trace of a share group in the emulator: two members, and records of every fate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.share_member import ShareMember

from koordinator import Emulator

if TYPE_CHECKING:
    from koordinator.trace import Event

REJECT = 3


def two_workers() -> list[Event]:
    """Let A acquire the records 0 to 5 of `jobs`, accept two, lose the lock of one to B, and close its session."""
    with Emulator() as cluster:
        cluster.create_topic("jobs", 1)
        with ShareMember(cluster, "jobs") as a, ShareMember(cluster, "jobs", "B") as b:
            for member in (a, b):
                member.join()
                while not cluster.group("g").share_positions("jobs"):
                    member.fetch()
            cluster.topic("jobs").produce(*(f"job {at}" for at in range(6)))
            got = a.fetch(wait_ms=5_000)
            while not got or got[-1][1] < 5:
                got += a.fetch(wait_ms=5_000)
            assert a.acknowledge(0, 1) == 0
            assert cluster.group("g").expire_locks("jobs", 0, 2) == 1
            assert b.fetch(wait_ms=5_000) == [(2, 2, 2)]
            assert b.acknowledge(2, 2, REJECT) == 0
            assert b.acknowledge(3, 3) == 121
            a.close_session()
            return list(cluster.events())
