"""A share group goes on after a restart from its data directory: members, start offset, finished records (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.consumers import wait_until
from clients.share_member import ShareMember

from koordinator import Cluster, Emulator
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from pathlib import Path


def acquired(member: ShareMember, last: int) -> list[tuple[int, int, int]]:
    """Fetch until the record at `last` is acquired; return all rows."""
    rows: list[tuple[int, int, int]] = []
    while not rows or rows[-1][1] < last:
        rows += member.fetch(wait_ms=5_000)
    return rows


def read_four(cluster: Cluster, member: ShareMember) -> None:
    """Let a member join, and acquire four records."""
    member.join()
    while not cluster.group("g").share_positions():
        member.fetch()
    cluster.topic("jobs").produce(*(f"job {at}" for at in range(4)))
    acquired(member, 3)


def test_h095_records_that_are_finished_stay_so_and_the_others_are_delivered_again(tmp_path: Path) -> None:
    with Emulator(data_dir=tmp_path) as cluster:
        cluster.create_topic("jobs", 1)
        with ShareMember(cluster, "jobs") as member:
            read_four(cluster, member)
            assert member.acknowledge(0, 1) == 0
        # the closed connection releases the other records
        wait_until("the records are released", lambda: cluster.group("g").share_positions() == [])
    with Emulator(data_dir=tmp_path) as cluster:
        snapshot = cluster.group("g").describe()
        assert (snapshot.type, snapshot.state, [each.member_id for each in snapshot.members]) == (
            "share",
            "Stable",
            ["A"],
        )
        with ShareMember(cluster, "jobs") as member:
            member.join()
            assert acquired(member, 3) == [(2, 3, 2)]
            assert member.acknowledge(2, 3) == 0
            assert cluster.group("g").share_positions()[0].start_offset == 4


def test_h029_a_share_session_ends_with_the_broker(tmp_path: Path) -> None:
    with Emulator(data_dir=tmp_path) as cluster:
        cluster.create_topic("jobs", 1)
        with ShareMember(cluster, "jobs") as member:
            read_four(cluster, member)
            cluster.nodes[1].stop()
            cluster.nodes[1].start()
        with ShareMember(cluster, "jobs") as again:
            again.join()
            again.skip_epochs(2)
            assert again.fetch_error() == Error.SHARE_SESSION_NOT_FOUND
