"""E.13: groups after a move of their coordinator, and the records written for it."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import TYPE_CHECKING

from builders.requests import RANGE, protocols
from scenarios.registry import scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.primitives import write_bytes, write_nullable_string

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.player import Player

T0, T1 = ("t", 0), ("t", 1)

TIMESTAMP = 8
"""Length in bytes of a timestamp, which differs between plays."""


def texts(*values: str | None) -> bytes:
    """Encode nullable strings as in records."""
    io = BytesIO()
    for value in values:
        write_nullable_string(value, io)
    return io.getvalue()


def group_value(
    play: Player, generation: int, leader: str, members: Iterable[tuple[str, str | None, bytes]]
) -> tuple[bytes, bytes]:
    """Return GroupMetadataValue v3 as the bytes before and after the time of the last state change.

    `members` are (id, instance id, assignment).
    """
    rows = list(members)
    tail = BytesIO()
    for member_id, instance_id, assignment in rows:
        tail.write(texts(member_id, instance_id, "c", "/127.0.0.1"))
        tail.write(struct.pack(">ii", play.ms(play.rebalance), play.ms(play.session)))
        write_bytes(RANGE[0][1], tail)
        write_bytes(assignment, tail)
    head = struct.pack(">h", 3) + texts("consumer") + struct.pack(">i", generation) + texts("range", leader)
    return head, struct.pack(">i", len(rows)) + tail.getvalue()


def expect_value(value: bytes | None, head: bytes, tail: bytes) -> None:
    """Expect a record value to be these bytes with a timestamp between them."""
    assert value is not None
    assert value[: len(head)] == head
    (time_ms,) = struct.unpack_from(">q", value, len(head))
    assert time_ms > 0
    assert value[len(head) + TIMESTAMP :] == tail


@scenario(kip="base", restarted=True)
def test_e231_a_stable_group_survives_a_reload(play: Player) -> None:
    a, b = play.stable_two()
    before = play.describe().expect("Stable", [a, b])
    play.reload()
    play.heartbeat(2, a).expect(0)
    play.heartbeat(2, b).expect(0)
    play.sync(2, a).expect(assignment=b"a2")
    play.sync(2, b).expect(assignment=b"b2")
    after = play.describe().expect("Stable", [a, b], protocol_type="consumer", protocol_data="range")
    assert sorted(after.members, key=str) == sorted(before.members, key=str)


@scenario(kip="base", restarted=True)
def test_e233_a_member_without_an_assignment_does_not_survive_a_reload(play: Player) -> None:
    a, b = play.stable_two()
    c = play.join_stable(3, a, b)
    play.reload()
    play.heartbeat(3, c).expect(25)
    play.join(c).expect(25, member_id=c)


@scenario(kip="base", restarted=True)
def test_e234_an_id_that_was_given_is_forgotten(play: Player) -> None:
    x = play.new_id()
    play.reload()
    play.join(x).expect(25, member_id=x)


@scenario(kip="base", restarted=True)
def test_e236_a_generation_that_was_not_assigned_is_forgotten(play: Player) -> None:
    a = play.stable_one()
    play.expect_generation(2, play.join(a), leader=a)
    play.crash()
    play.heartbeat(1, a).expect(0)
    play.heartbeat(2, a).expect(22)


@scenario(kip="base", restarted=True)
def test_e237_of_a_members_protocols_the_selected_one_is_kept(play: Player) -> None:
    a, b = play.stable_two()
    play.reload()
    play.join(b).expect(generation_id=2, leader=a, member_id=b)
    several = protocols("range", "roundrobin")
    joining = play.join(b, protocols=several)
    play.expect_parked(joining)
    play.expect_generation(3, play.join(a, protocols=several), joining, leader=a)
    play.sync_all(3, {a: b"a3", b: b"b3"})
    play.join(b, protocols=several).expect(generation_id=3, leader=a, member_id=b)
    play.reload()
    again = play.join(b, protocols=several)
    play.expect_parked(again)
    play.heartbeat(3, a).expect(27)
    play.expect_generation(4, play.join(a, protocols=several), again, leader=a)


@scenario(kip="base", restarted=True)
def test_e239_offsets_survive_a_reload(play: Player) -> None:
    a = play.stable_one()
    play.commit(1, a, {T0: 5, T1: 6}, leader_epoch=3, metadata="m").expect(0)
    play.reload()
    play.fetch(T0, T1).expect({T0: (5, 3, "m", 0), T1: (6, 3, "m", 0)})


@scenario(kip="KIP-447", restarted=True)
def test_e240_an_offset_of_an_open_transaction_is_not_stable_until_it_ends(play: Player) -> None:
    play.commit(-1, "", {T0: 5}).expect(0)
    transaction = play.transaction()
    transaction.commit(-1, "", {T0: 9}).expect(0)
    play.reload()
    play.fetch(T0, stable=True, version=7).expect({T0: (-1, -1, "", 88)})
    play.fetch(T0, version=7).expect({T0: 5})
    play.zero()
    transaction.end()
    while play.fetch(T0, stable=True, version=7).unrecorded().topics[0].partitions[0].error_code == 88:
        assert play.seconds < 20, "the transaction does not end"
        play.wait(0.1)
    play.fetch(T0, stable=True, version=7).expect({T0: 9})


@scenario(kip="base", restarted=True)
def test_e242_a_group_of_offsets_alone_survives_a_reload(play: Player) -> None:
    play.offsets_only()
    play.reload()
    play.describe().expect("Empty", [], protocol_type="", protocol_data="")
    play.commit(-1, "", {T1: 43}).expect(0)
    play.fetch(T0, T1).expect({T0: 42, T1: 43})


@scenario(kip="KIP-345", restarted=True)
def test_e243_static_members_are_known_and_fenced(play: Player) -> None:
    p, q = play.static_two()
    play.reload()
    play.heartbeat(2, "x", "i2").expect(82)
    # KIP-814, where available
    joining = play.join("", "i2", version=9 if play.serves(ApiKey.JOIN_GROUP, 9) else 5)
    back = joining.expect(generation_id=2, protocol_name="range", leader=p, skip_assignment=False).member_id
    assert back not in {p, q}
    play.sync(2, back, instance_id="i2").expect(assignment=b"q2")


@scenario(kip="base", offsets_partitions=1, nodes=2)
def test_e245_parked_requests_get_not_coordinator_on_a_move(play: Player) -> None:
    other = f"{play.g}.x"
    c = play.join(version=3, group=other).answer().member_id
    play.sync(1, c, {c: b"c1"}, group=other).expect(assignment=b"c1")
    newcomer = play.join(version=3, group=other)
    play.expect_parked(newcomer)
    play.join(c, group=other).expect(generation_id=2, leader=c, members=[c, newcomer.answer().member_id], member_id=c)
    syncing = play.sync(2, newcomer.answer().member_id, group=other)
    a, _ = play.stable_two()
    joining = play.join(a)
    play.expect_parked(joining, syncing)
    play.resign()
    joining.expect(16, member_id=a)
    syncing.expect(16)


@scenario(kip="base")
def test_e246_a_stable_group_is_written(play: Player) -> None:
    a = play.stable_one()
    key, value = play.records()[-1]
    assert key == struct.pack(">h", 2) + texts(play.g)
    expect_value(value, *group_value(play, 1, a, [(a, None, b"a1")]))


@scenario(kip="base")
def test_e248_an_offset_is_written(play: Player) -> None:
    play.commit(-1, "", {T0: 5}).expect(0)
    ((key, value),) = play.records()
    assert key == struct.pack(">h", 1) + texts(play.g, "t") + struct.pack(">i", 0)
    if not play.since("4.1.0"):
        expect_value(value, struct.pack(">hqi", 3, 5, -1) + texts(""), b"")
        return
    if not play.since("4.3.0"):
        expect_value(value, struct.pack(">hqi", 4, 5, -1) + b"\x01", b"\x00")
        return
    # KAFKA-19141: version 4 is flexible and carries the topic id as tag 0
    topic = MetadataRequestTopic(name="t")
    (found,) = play.ask(MetadataRequest(topics=(topic,)), 10).unrecorded().topics
    expect_value(value, struct.pack(">hqi", 4, 5, -1) + b"\x01", b"\x01\x00\x10" + found.topic_id.bytes)


@scenario(kip="KIP-345")
def test_e249_the_new_id_of_a_static_member_is_written(play: Player) -> None:
    play.static_one()
    before = len(play.records())
    back = play.join("", "i1").expect(generation_id=1).member_id
    written = play.records()[before:]
    if not play.since("2.6.1", "2.7.0"):
        # KAFKA-10284
        assert written == []
        return
    ((key, value),) = written
    assert key == struct.pack(">h", 2) + texts(play.g)
    expect_value(value, *group_value(play, 1, back, [(back, "i1", b"p1")]))
