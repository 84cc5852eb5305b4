"""The share coordinator: initializing, writing, reading, and deleting the state of share partitions (KIP-932)."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

from scenarios.registry import scenario
from scenarios.share_states import ShareStates

from koordinator.wire.messages import initialize_share_group_state as initialize_wire
from koordinator.wire.messages import read_share_group_state as read_wire

if TYPE_CHECKING:
    from scenarios.player import Player

share_scenario = partial(scenario, kip="KIP-932", share=True)

FENCED_LEADER = 74, "The leader epoch in the request is older than the epoch on the broker."
NO_PARTITION = 3, "This server does not host this topic-partition."
NEGATIVE = 42, "The partition id cannot be a negative number."
REFUSED = (
    'Unable to write share group state: Cannot invoke "java.lang.Integer.intValue()" because the return value of '
    '"java.util.TreeMap.get(Object)" is null'
)
AT = "t", 0
HIGHEST = (1 << 63) - 1
"""The highest offset."""


def fenced_state(play: Player) -> tuple[int, str]:
    if play.since("4.4.0"):
        return 124, "The coordinator rejected the request because the state epoch did not match."
    return 124, "The share coordinator rejected the request because the share-group state epoch did not match."


def known_or(play: Player, done: int) -> int:
    """Return the number of completed deliveries after a write of -1 where it was `done`; since 4.4 it does not fall."""
    return done if play.since("4.4.0") else -1


@share_scenario()
def test_h107_a_state_epoch_may_not_go_back(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(AT, 5, -1) == 0
    assert x.initialize(AT, 4, 3) == fenced_state(play)
    assert x.initialize(AT, 5, 7) == 0
    if not play.since("4.4.0"):
        assert x.initialize(AT, -1, 8) == 0
        assert x.read(AT) == (-1, 8, "")
    assert x.initialize(AT, 6, 0) == 0
    assert x.write(AT, "", state_epoch=5) == fenced_state(play)
    epochs = [row.partition(",")[0] for row in x.state_written(*AT)]
    assert epochs == ["S(0/5", "S(1/5", *(["S(2/6"] if play.since("4.4.0") else ["S(2/-1", "S(3/6"])]


@share_scenario()
def test_h108_a_read_notes_the_leader_epoch_and_a_write_does_not(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(AT, 6, 0) == 0
    assert x.write(AT, "0-4/2/1 5-9/0/2", start=0, leader_epoch=3) == 0
    assert x.write(AT, "", start=0, leader_epoch=2) == 0
    assert x.read(AT, 7) == (6, 0, "0-4/2/1 5-9/0/2")
    done = known_or(play, 0)
    assert x.summary(AT) == (6, 7, 0, done)
    assert [x.write(AT, "", leader_epoch=3), x.read(AT, 6)] == [FENCED_LEADER] * 2
    assert x.summary(AT, 3) == (6, 7, 0, done)
    assert x.state_written(*AT)[-1] == f"U(0, leader 7, start 0, done {done}, [])"


@share_scenario()
def test_h216_since_4_4_epochs_are_not_negative(play: Player) -> None:
    x = ShareStates(play)
    refuses = play.since("4.4.0")
    text = "The {} epoch cannot be a negative number."
    leader, state = ((42, text.format(which)) if refuses else 0 for which in ("leader", "state"))
    assert x.initialize(("t", 1), -1, 0) == state
    assert x.initialize(AT, 6, 0) == 0
    assert x.read(AT, 3) == (6, 0, "")
    assert [x.write(AT, "", leader_epoch=-1), x.write(AT, "", state_epoch=-1)] == [leader, state]
    assert x.write(AT, "", leader_epoch=-1, state_epoch=-1) == leader
    assert x.read(AT, -1) == leader or (6, 0, "")
    for at in (AT, ("t", 2), ("t", 5), ("t", -1), ("nowhere", 0)):
        for epoch in (-1, -2):
            x.initialize(at, epoch, 1)
            x.write(at, "", leader_epoch=epoch)
            x.write(at, "", state_epoch=epoch)
            x.read(at, epoch)
            x.summary(at, epoch)


@share_scenario()
def test_h110_share_partitions_that_do_not_exist(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(("t", 5), 1, 0) == NO_PARTITION
    assert x.initialize(("t", -1), 1, 0) == NEGATIVE
    assert x.initialize(("nowhere", 0), 1, 0) == NO_PARTITION
    row = read_wire.ReadStateData(topic_id=x.id_of("t"), partitions=(read_wire.PartitionData(partition=0),))
    nothing = read_wire.ReadStateData(topic_id=x.id_of("t"))
    for group, topics in (("", (row,)), (play.g, ()), (play.g, (nothing,))):
        request = read_wire.ReadShareGroupStateRequest(group_id=group, topics=topics)
        assert play.slowly(request, 0, recorded=True).results == ()
    assert x.initialize(AT, 5, 3) == 0
    assert x.delete_state(AT) == 0
    assert x.summary(AT) == (0, 0, -1, -1)
    assert x.initialize(AT, 1, 0) == 0
    assert x.state_written(*AT) == [
        "S(0/5, leader 0, start 3, done 0, [])",
        "-S",
        "S(0/1, leader 0, start 0, done 0, [])",
    ]


@share_scenario()
def test_h207_a_share_partition_is_initialized_first(play: Player) -> None:
    x = ShareStates(play)
    text = "{} operation on uninitialized share partition not allowed."
    assert [x.write(AT, ""), x.read(AT)] == [(42, text.format("Write")), (42, text.format("Read"))]
    for at, error in ((("t", 5), NO_PARTITION), (("t", -1), NEGATIVE), (("nowhere", 0), NO_PARTITION)):
        assert [x.summary(at), x.delete_state(at)] == [error] * 2
        x.write(at, "")
        x.read(at)
    assert [x.delete_state(AT), x.summary(AT)] == [0, (0, 0, -1, -1)]
    assert x.state_written(*AT) == []


@share_scenario()
def test_h208_partitions_of_one_request_are_on_their_own(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(("t", 1), 9, 0) == 0
    rows = tuple(initialize_wire.PartitionData(partition=n, state_epoch=3, start_offset=n) for n in (0, 1, 3, 4, -2))
    topics = tuple(
        initialize_wire.InitializeStateData(topic_id=x.id_of(name), partitions=each)
        for name, each in (("t", rows), ("u", rows[:1]))
    )
    request = initialize_wire.InitializeShareGroupStateRequest(group_id=play.g, topics=topics)
    answer = play.slowly(request, 0).results
    found = {
        (name, row.partition): row.error_code
        for topic in answer
        for name in ("t", "u")
        if topic.topic_id == x.id_of(name)
        for row in topic.partitions
    }
    assert found == {("t", 0): 0, ("t", 1): 124, ("t", 3): 0, ("t", 4): 3, ("t", -2): 42, ("u", 0): 0}


@share_scenario()
def test_h209_the_values_of_a_write_are_not_checked(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(AT, 1, -1) == 0
    for written, start, done in (
        *(("7-9/9/1", -1, -3), ("-3-2/0/0", 2, 5), ("0-9/0/-1", -7, 1 << 20), ("", 1, 3)),
        *(("0-100/2/32767 3-4/-1/-32768", 0, -1), ("", 1 << 40, 0)),
    ):
        assert x.write(AT, written, start=start, done=done) == 0
        x.read(AT)
        x.summary(AT)


@share_scenario()
def test_h217_an_empty_batch_is_stored_and_since_4_4_refused_beside_others(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(AT, 1, 0) == 0
    assert x.write(AT, "5-4/2/1") == 0
    assert x.read(AT) == (1, 0, "5-4/2/1")
    assert x.write(AT, "7-9/0/1") == ((-1, REFUSED) if play.since("4.4.0") else 0)
    x.read(AT)
    assert x.initialize(("t", 1), 1, 0) == 0
    assert [x.write(("t", 1), "3-5/2/1"), x.write(("t", 1), "3-1/4/1", start=3)] == [0, 0]
    assert x.read(("t", 1)) == (1, 3, "3-5/2/1")


@share_scenario()
def test_h219_an_empty_batch_is_merged_with_others(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(AT, 1, 0) == 0
    if not play.since("4.4.0"):
        for written, merged in (
            ("0-5/4/1", "0-5/4/1"),
            ("3-2/2/1", "0-5/4/1"),
            ("6-5/4/1", "0-5/4/1"),
            ("3-2/4/2", "0-2/4/1 3-2/4/2 3-5/4/1"),
            ("3-2/4/2 0-9/0/2", "0-2/0/2 3-2/4/2 3-9/0/2"),
        ):
            assert x.write(AT, written) == 0
            assert x.read(AT) == (1, 0, merged)
    else:
        refused = -1, REFUSED
        assert [x.write(AT, "0-20/2/1 9-5/2/1"), x.read(AT)] == [0, (1, 0, "0-5/2/1 9-20/2/1")]
        for other in ("9-5/2/1", "9-5/2/2", "6-5/4/1 7-7/0/1", "8-7/2/1 9-9/2/1", "20-19/2/1", "21-19/2/1"):
            x.write(AT, other)
            x.read(AT)
        assert x.write(AT, f"30-{HIGHEST}/2/1") == refused
        assert x.initialize(("t", 1), 1, 0) == 0
        assert [x.write(("t", 1), f"30-{HIGHEST}/2/1"), x.write(("t", 1), "3-3/2/1")] == [0, refused]
        assert x.read(("t", 1)) == (1, 0, f"30-{HIGHEST}/2/1")
        x.read(AT, 3)
        x.transcribe_state(*AT)


@share_scenario()
def test_h218_since_4_4_a_write_leaves_no_lower_offset_and_no_lower_number(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(AT, 1, 5) == 0
    for start, done in ((5, 3), (5, 2), (4, 9), (-1, 7), (7, 1), (6, 2), (7, 4)):
        assert x.write(AT, "0-9/2/1", start=start, done=done) == 0
    shown = [(5, 3), (5, 3), (5, 3), (5, 3), (7, 1), (7, 1), (7, 4)]
    if play.since("4.4.0"):
        assert x.state_written(*AT)[1:] == [
            f"U(0, leader 0, start {start}, done {done}, [{start}-9/2/1])" for start, done in shown
        ]
    assert x.summary(AT) == (1, 0, 7, 4)


@share_scenario()
def test_h210_batches_of_writes_are_merged(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(AT, 1, 0) == 0
    for written, merged in (
        ("5-9/0/2", "5-9/0/2"),
        ("7-8/2/2", "5-6/0/2 7-8/2/2 9-9/0/2"),
        ("5-6/0/1", "5-6/0/2 7-8/2/2 9-9/0/2"),
        ("9-9/2/2", "5-6/0/2 7-9/2/2" if play.since("4.4.0") else "5-6/0/2 7-8/2/2 9-9/2/2"),
        ("", "5-6/0/2 7-9/2/2"),
    ):
        assert x.write(AT, written) == 0
        assert x.read(AT) == (1, 0, merged)


def merges(play: Player, seed: int) -> None:
    """Write random batches, and read what they are merged to."""
    x, chance = ShareStates(play), random.Random(seed)
    assert x.initialize(AT, 1, 0) == 0
    start = 0
    for _ in range(30):
        batches = []
        for _ in range(chance.randrange(5)):
            first = chance.randrange(40)
            last = first + chance.randrange(12)
            batches.append(f"{first}-{last}/{chance.choice((0, 2, 4))}/{chance.randrange(1, 4)}")
        start = start + chance.randrange(4) if chance.random() < 0.3 else start
        assert x.write(AT, " ".join(batches), start=chance.choice((-1, start)), done=chance.randrange(9)) == 0
        x.read(AT)
    x.transcribe_state(*AT)


@share_scenario()
def test_h211_random_batches_are_merged_as_in_kafka(play: Player) -> None:
    merges(play, 211)


@share_scenario(share_updates=2)
def test_h212_so_are_those_of_snapshots(play: Player) -> None:
    merges(play, 212)


@share_scenario(share_updates=2)
def test_h213_every_third_write_is_a_snapshot(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(AT, 4, 0) == 0
    for offset in range(6):
        assert x.write(AT, f"{offset}-{offset}/2/1", start=offset, done=1) == 0
    assert x.read(AT, 3) == (4, 5, "5-5/2/1")
    assert [row.partition(",")[0] for row in x.state_written(*AT)] == [
        *("S(0/4", "U(0", "U(0", "S(1/4", "U(1", "U(1", "S(2/4", "U(2"),
    ]
    assert x.initialize(AT, 4, 2) == 0
    assert x.state_written(*AT)[-1] == "S(3/4, leader 0, start 2, done 0, [])"
    assert [x.write(AT, "", start=2, done=1) for _ in range(4)] == [0] * 4
    assert [row.partition(",")[0] for row in x.state_written(*AT)[9:]] == ["U(3", "S(4/4", "U(4", "U(4"]


@share_scenario(restarted=True)
def test_h214_a_share_coordinator_loads_its_states(play: Player) -> None:
    x = ShareStates(play)
    assert [x.initialize(("t", partition), 4, partition) for partition in range(4)] == [0] * 4
    assert x.write(AT, "0-4/2/1 5-9/0/2", start=0, done=5) == 0
    assert x.delete_state(("t", 1)) == 0
    assert x.read(("t", 2), 6) == (4, 2, "")
    play.restart()
    x.await_share_coordinator()
    assert x.read(AT) == (4, 0, "0-4/2/1 5-9/0/2")
    assert [x.summary(("t", partition)) for partition in range(4)] == [
        *((4, 0, 0, 5), (0, 0, -1, -1), (4, 6, 2, 0), (4, 0, 3, 0)),
    ]
    assert x.write(AT, "5-9/2/2", start=0, done=10) == 0
    assert x.state_written(*AT)[-1] == "U(0, leader 0, start 0, done 10, [5-9/2/2])"
