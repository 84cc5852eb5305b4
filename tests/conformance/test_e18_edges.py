"""E.18: requests of careless clients: unreadable metadata, records that are too large, rows given twice."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from conformance.requests import subscription
from conformance.scenarios import scenario

if TYPE_CHECKING:
    from conformance.player import Player

TOPIC_T = b"\x00\x01t"
NULL = b"\xff\xff\xff\xff"

SUBSCRIBED_TO_T = {
    "newest": subscription("t"),
    **{f"v{version}": struct.pack(">hi", version, 1) + TOPIC_T + NULL for version in (1, 2, 3, 4, 9, 32767, -1, -2)},
    "v1 with damaged owned partitions": struct.pack(">hi", 1, 1) + TOPIC_T + NULL + b"\xff\xff\xff\xffjunk",
    "user data of length -2": struct.pack(">hi", 0, 1) + TOPIC_T + b"\xff\xff\xff\xfe",
}
"""Metadata in which brokers read a subscription to `t`."""

SUBSCRIBED_TO_ALL = {
    "empty": b"",
    "half a version": b"\x00",
    "no topic count": struct.pack(">h", 0),
    "a topic less than counted": struct.pack(">hi", 0, 2) + TOPIC_T,
    "no user data": struct.pack(">hi", 0, 1) + TOPIC_T,
    "half a length of user data": struct.pack(">hi", 0, 1) + TOPIC_T + b"\xff\xff",
}
"""Metadata that end within a number."""

NOT_UTF_8 = struct.pack(">hih", 0, 1, 1) + b"\xff" + NULL

INVALID_LENGTHS = {
    "-1 topics": struct.pack(">hi", 0, -1) + NULL,
    "-2 topics": struct.pack(">hi", 0, -2) + NULL,
    "a million topics": struct.pack(">hi", 0, 1_000_000) + NULL,
    "a null topic": struct.pack(">hih", 0, 1, -1) + NULL,
    "a topic of length -2": struct.pack(">hih", 0, 1, -2) + NULL,
    "a topic longer than the rest": struct.pack(">hih", 0, 1, 9) + TOPIC_T + NULL,
    "user data longer than the rest": struct.pack(">hi", 0, 1) + TOPIC_T + struct.pack(">i", 1),
}
"""Metadata on which the coordinator fails with an exception that it does not expect."""

INVALID = (("range", INVALID_LENGTHS["-1 topics"]),)


def _fails(play: Player) -> bool:
    """Whether the coordinator fails on invalid lengths; 2.4 reads them as subscriptions to every topic."""
    return play.since("2.8.0")


@scenario(kip="KIP-496")
def test_e601_of_a_subscription_the_fields_of_version_0_are_read(play: Player) -> None:
    subscribed = (
        *((metadata, (86, 0)) for metadata in SUBSCRIBED_TO_T.values()),
        *((metadata, (86, 86)) for metadata in SUBSCRIBED_TO_ALL.values()),
        (NOT_UTF_8, (0, 0)),
    )
    for number, (metadata, (of_t, of_u)) in enumerate(subscribed):
        group, offered = f"{play.g}.{number}", (("range", metadata),)
        a = play.new_id(group=group, protocols=offered)
        assert play.join(a, group=group, protocols=offered).answer().generation_id == 1
        play.sync(1, a, group=group).answer()
        play.delete_offsets(("t", 0), ("u", 0), group=group).expect({("t", 0): of_t, ("u", 0): of_u})


@scenario(kip="base")
def test_e602_a_join_with_invalid_lengths_is_never_answered(play: Player) -> None:
    for number, metadata in enumerate(INVALID_LENGTHS.values()):
        group, offered = f"{play.g}.{number}", (("range", metadata),)
        a = play.new_id(group=group, protocols=offered)
        joining = play.join(a, group=group, protocols=offered)
        if not _fails(play):
            assert joining.answer().generation_id == 1
            play.delete_offsets(("u", 0), group=group).expect({("u", 0): 86})
            continue
        play.expect_never(joining)
        play.heartbeat(0, a, group=group).expect(22)
        play.heartbeat(1, a, group=group).expect(27)
        play.sync(1, a, group=group).expect(27)
        play.describe(group).expect("PreparingRebalance", [a])


@scenario(kip="base")
def test_e603_after_invalid_lengths_a_group_goes_on_with_the_next_member(play: Player) -> None:
    a = play.new_id(protocols=INVALID, session=1)
    joining = play.join(a, protocols=INVALID, session=1)
    if not _fails(play):
        assert joining.answer().generation_id == 1
        return
    play.heartbeat(1, a).expect(27)
    play.wait(3)
    # OLD: a join phase that failed never ends
    play.describe().expect("PreparingRebalance" if play.old else "Empty", [])
    b = play.new_id()
    joining = play.join(b)
    if play.old:
        play.expect_never(joining)
    else:
        play.expect_generation(3, joining, leader=b)


@scenario(kip="base")
def test_e604_a_leader_that_rejoins_with_invalid_lengths_gets_an_unknown_error(play: Player) -> None:
    a = play.stable_one()
    joining = play.join(a, protocols=INVALID)
    if not _fails(play):
        assert joining.answer().generation_id == 2
        return
    joining.expect(-1, member_id="")
    play.heartbeat(1, a).expect(22)
    play.heartbeat(2, a).expect(27)
    play.describe().expect("PreparingRebalance", [a])
    again = play.join(a)
    if play.old:
        play.expect_never(again)
    else:
        play.expect_generation(3, again, leader=a)
        play.describe().expect("CompletingRebalance", [a])


@scenario(kip="base")
def test_e605_the_last_join_beside_invalid_lengths_gets_an_unknown_error(play: Player) -> None:
    a, b = play.stable_two()
    joining = play.join(b, protocols=INVALID)
    play.expect_parked(joining)
    last = play.join(a)
    if not _fails(play):
        assert {last.answer().generation_id, joining.answer().generation_id} == {3}
        return
    last.expect(-1, member_id="")
    play.expect_parked(joining)
    play.heartbeat(3, a).expect(27)
    play.leave(b).expect(0)
    joining.expect(25, member_id="")
    # the join of a counts, though it was answered
    play.describe().expect("PreparingRebalance" if play.old else "CompletingRebalance", [a])
    play.heartbeat(3 if play.old else 4, a).expect(27 if play.old else 0)
