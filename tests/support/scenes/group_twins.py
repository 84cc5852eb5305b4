"""Twins: two plays of one scene, of which one is disturbed; later answers and records must be equal.

Each row of `ROWS` is a request that writes, by the state of its group. Together they write every type of record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from scenes.migrations import HALF, MigrationPlay, owning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


def nothing(play: MigrationPlay) -> None:
    """There is no group."""
    del play


def classic(play: MigrationPlay) -> None:
    """A Stable classic group of one dynamic member, with offsets, of which one is in a transaction."""
    play.m = play.classic()
    play.commit(1, play.m, offsets={T0: 5, U0: 6})
    play.txn_commit({T1: 7})


def static_pair(play: MigrationPlay) -> None:
    """A Stable classic group of two static members."""
    play.p, play.q = play.static_pair()


def completing(play: MigrationPlay) -> None:
    """A classic group whose members have joined and not synced."""
    play.m, play.n = play.unsynced_pair()


def empty_classic(play: MigrationPlay) -> None:
    """A classic group that its member has left, with offsets, of which two are in a transaction."""
    classic(play)
    play.txn_commit({U0: 8})
    play.leave(play.m)


def consumers(play: MigrationPlay) -> None:
    """A, static P, and R with a regular expression share the topics of a consumer group with offsets."""
    members = {
        "A": play.subscribe("A"),
        "P": play.subscribe("P", inst="i1"),
        "R": play.subscribe("R", topics=None, regex="u.*"),
    }
    play.settle()
    play.members = play.converge(members)
    assert play.described().group_state == "Stable"
    play.commit_as("A", play.members["A"][0], {T0: 5})
    play.txn_commit({T1: 7})


def static_away(play: MigrationPlay) -> None:
    """As `consumers`; the static member has left for a while."""
    consumers(play)
    assert play.beat("P", -2, inst="i1") == (-2, None)


def revoking(play: MigrationPlay) -> None:
    """A has to give half of its partitions to B."""
    epoch, _ = play.subscribe("A")
    play.subscribe("B")
    play.members = {"A": play.beat("A", epoch)}
    assert play.members["A"] == (epoch, {"t": HALF})


def one_static(play: MigrationPlay) -> None:
    """A consumer group of one static member."""
    play.subscribe("P", inst="i1")


def mixed(play: MigrationPlay) -> None:
    """A consumer group of A and a classic member."""
    play.m = play.settled()


def empty_consumers(play: MigrationPlay) -> None:
    """A consumer group that its member has left, with offsets, of which one is in a transaction."""
    play.subscribe("A")
    play.commit_as("A", 2, {T0: 42, U0: 6})
    play.txn_commit({T1: 7})
    play.beat("A", -1)


def _consumer_joins(play: MigrationPlay, member: str = "B", **fields: Any) -> None:
    given = {"topics": ["t"], "owned": {}, "timeout": 30_000, **fields}
    play.start_heart(member, 0, **given)
    # resolves regular expressions
    play.settle()


def _classic_joins(play: MigrationPlay, member: str = "", instance: str | None = None, **join: Any) -> None:
    play.join(member, instance, version=7, **{"protocols": owning(), **join})


def _beats(play: MigrationPlay, member: str, **fields: Any) -> None:
    play.start_heart(member, play.members[member][0], **fields)
    play.settle()


def _commits(play: MigrationPlay) -> None:
    play.commit(offsets={U0: 9})


def _commits_in_transaction(play: MigrationPlay) -> None:
    play.txn_commit({U0: 9, T1: 10}, producer_id=8)


def _deletes_offsets(play: MigrationPlay, *partitions: tuple[str, int]) -> None:
    topics = tuple(
        OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(partition_index=partition),))
        for name, partition in partitions or (T0, T1, U0)
    )
    play.send(OffsetDeleteRequest(group_id="g", topics=topics), 0)


def _deletes_group(play: MigrationPlay) -> None:
    play.start_delete("g")


def _topic_is_deleted(play: MigrationPlay) -> None:
    play._perform(play.coordinator.topics_deleted(play.now, ["t", "u"]))


ROWS: dict[Callable[[MigrationPlay], None], dict[str, Callable[[MigrationPlay], object]]] = {
    nothing: {
        "a static member founds a classic group": lambda play: _classic_joins(play, "", "i1"),
        "a member founds a consumer group": _consumer_joins,
        "a member with a pattern founds a consumer group": lambda play: _consumer_joins(play, topics=None, regex="u.*"),
        "a commit creates a group": _commits,
        "a transaction creates a group": _commits_in_transaction,
    },
    classic: {
        "a consumer converts the group": _consumer_joins,
        "a consumer with a pattern converts the group": lambda play: _consumer_joins(play, topics=None, regex="u.*"),
        "a member commits": lambda play: play.commit(1, play.m, offsets={T0: 9, U0: 10}),
        "a member commits in a transaction": lambda play: play.txn_commit({U0: 9}, 1, play.m, producer_id=8),
        "its topics are deleted": _topic_is_deleted,
        "unused offsets are deleted": lambda play: _deletes_offsets(play, U0),
    },
    static_pair: {
        "a static leader returns": lambda play: play.join("", "i1"),
        "a static follower returns": lambda play: play.join("", "i2"),
        "a static member returns with other timeouts": lambda play: play.join(
            "", "i2", session=20_000, rebalance=60_000
        ),
    },
    empty_classic: {
        "a consumer converts the empty group": _consumer_joins,
        "offsets are deleted": _deletes_offsets,
        "the group is deleted": _deletes_group,
        "a commit from outside": _commits,
        "a transaction from outside": _commits_in_transaction,
        "its topics are deleted": _topic_is_deleted,
    },
    consumers: {
        "a consumer joins": _consumer_joins,
        "a static consumer joins": lambda play: _consumer_joins(play, inst="i2"),
        "a consumer with a new pattern joins": lambda play: _consumer_joins(play, topics=None, regex="t.*"),
        "a consumer with the same pattern joins": lambda play: _consumer_joins(play, topics=None, regex="u.*"),
        "a consumer changes its topics": lambda play: _beats(play, "A", topics=["t", "u"]),
        "a consumer takes a new pattern": lambda play: _beats(play, "A", topics=[], regex="t.*"),
        "a consumer drops its pattern": lambda play: _beats(play, "R", topics=["u"], regex=""),
        "a consumer leaves": lambda play: play.start_heart("A", -1),
        "the last consumer with a pattern leaves": lambda play: play.start_heart("R", -1),
        "a static consumer leaves": lambda play: play.start_heart("P", -1, inst="i1"),
        "a static consumer leaves for a while": lambda play: play.start_heart("P", -2, inst="i1"),
        "members leave by LeaveGroup": lambda play: play.start_leave("A", "R"),
        "a classic member joins": lambda play: _classic_joins(play, "", "i3"),
        "a consumer commits": lambda play: play.commit(play.members["A"][0], "A", offsets={T0: 9}, version=9),
        "a consumer commits in a transaction": _commits_in_transaction,
        "its topics are deleted": _topic_is_deleted,
    },
    static_away: {
        "a static consumer returns": lambda play: _consumer_joins(play, "P2", inst="i1"),
        "a static consumer returns with other topics": lambda play: _consumer_joins(
            play, "P2", inst="i1", topics=["t", "u"]
        ),
        "a classic member takes its place": lambda play: _classic_joins(play, "", "i1"),
    },
    revoking: {
        "a consumer has revoked its partitions": lambda play: _beats(play, "A", owned={"t": HALF}),
        "a revoking consumer changes its topics": lambda play: _beats(play, "A", topics=["u"]),
        "a revoking consumer leaves": lambda play: play.start_heart("A", -1),
        "a third consumer joins": lambda play: _consumer_joins(play, "C"),
    },
    one_static: {
        "a static classic member replaces the last consumer": lambda play: _classic_joins(play, "", "i1"),
    },
    mixed: {
        "the last consumer leaves": lambda play: play.start_heart("A", -1),
        "the last consumer leaves by LeaveGroup": lambda play: play.start_leave("A"),
        "a classic member leaves": lambda play: play.start_leave(play.m),
        "a classic member becomes a consumer": lambda play: _consumer_joins(play, play.m),
        "a classic member joins again": lambda play: _classic_joins(play, play.m, protocols=owning(topic="u")),
        "another consumer joins": _consumer_joins,
    },
    empty_consumers: {
        "a classic member converts the empty group": lambda play: _classic_joins(play, "", "i1"),
        "a classic member gets its id": _classic_joins,
        "a consumer joins again": _consumer_joins,
        "offsets are deleted": _deletes_offsets,
        "the group is deleted": _deletes_group,
    },
}
"""The requests that write, by the state of the group."""

NEWER_ONLY = (mixed,)
"""The states that older releases reach with other epochs."""


def look(play: MigrationPlay) -> list[Any]:
    """Return the answers to requests that change nothing; Kafka does not say in which order rows come."""
    described = play.describe()
    return [
        play.send(ConsumerGroupDescribeRequest(group_ids=("g",)), 1).response,
        replace(described, members=tuple(sorted(described.members, key=lambda member: member.member_id))),
        play.list_groups(),
        *({(row.name, row.partitions) for row in play.fetch_raw("g", stable=each).groups[0].topics} for each in (0, 1)),
    ]


def twins(scene: Callable[[MigrationPlay], None], release: str) -> tuple[MigrationPlay, MigrationPlay]:
    pair = MigrationPlay(kafka_version=release), MigrationPlay(kafka_version=release)
    for play in pair:
        scene(play)
    return pair


def marked(play: MigrationPlay) -> tuple[int, int]:
    # both draw the same ids from here on
    play._random.seed(11)
    return len(play._exchanges), len(play.appended)


def later(play: MigrationPlay, mark: tuple[int, int]) -> list[Any]:
    """Return the answers and the records since a mark."""
    answers, records = mark
    return [
        [sent.responses for sent in list(play._exchanges.values())[answers:]],
        [append.records for append in play.appended[records:]],
    ]


EVERY_MS, UNTIL_MS = 5_000, 65_000
"""Longer than each timeout: sessions of 10 and 45 s, rebalances of 30 s."""


def assert_twins(
    tried: MigrationPlay,
    twin: MigrationPlay,
    again: Callable[[MigrationPlay], object] | None = None,
    lasting_ms: int = UNTIL_MS,
) -> None:
    marks = marked(tried), marked(twin)
    assert look(tried) == look(twin)
    for play in (tried, twin):
        if again is not None:
            again(play)
    assert later(tried, marks[0]) == later(twin, marks[1])
    for _ in range(0, lasting_ms, EVERY_MS):
        for play in (tried, twin):
            play.wait(EVERY_MS)
        assert look(tried) == look(twin), f"{tried.now - 1_700_000_000_000} ms"
    assert later(tried, marks[0]) == later(twin, marks[1])


RELEASES = ["4.0", "4.4"]


def rows(table: dict[Any, dict[str, Any]], releases: Sequence[str] = RELEASES) -> list[Any]:
    return [
        pytest.param(scene, attempt, release, id=f"{scene.__name__}: {name}, {release}")
        for scene, attempts in table.items()
        for name, attempt in attempts.items()
        for release in releases
        if scene not in NEWER_ONLY or release != "4.0"
    ]
