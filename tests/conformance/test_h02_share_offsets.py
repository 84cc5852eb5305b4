"""The offsets of share groups, as admins see, change and delete them (KIP-932)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scenarios.consumer_members import ConsumerMembers
from scenarios.registry import scenario
from scenarios.share_members import ALL
from scenarios.share_states import ShareStates

from koordinator.emulator.core.java.uuids import uuid_text
from koordinator.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
)
from koordinator.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest

if TYPE_CHECKING:
    from scenarios.player import Player

share_scenario = partial(scenario, kip="KIP-932", share=True)

NO_PARTITION = 3, "This server does not host this topic-partition."
NO_OFFSETS = 3, "There is no offset information to delete."
INVALID_ID, NON_EMPTY, MISSING = 24, 68, 69
NONE = -1, -1
"""The start offset and the lag of a partition of which nothing was written."""


def left(play: Player, topic: str = "t") -> ShareStates:
    """Let A join a topic, and leave."""
    x = ShareStates(play)
    epoch, _ = x.settle_in("A", [topic])
    assert epoch == 3
    assert x.beat("A", -1) == (-1, None)
    return x


@share_scenario()
def test_h101_only_share_groups_have_share_offsets(play: Player) -> None:
    x = ShareStates(play)
    no_id = INVALID_ID, "The group id is invalid."
    assert [x.alter({("t", 0): 1}, ""), x.delete_offsets("t", group="")] == [no_id] * 2
    assert x.delete_offsets("t", group="nothing") == (MISSING, "Group nothing not found.")
    assert ConsumerMembers(play).join("A") == (2, ALL)
    no_share_group = MISSING, f"Group {play.g} is not a share group."
    assert [x.alter({("t", 0): 1}), x.delete_offsets("t")] == [no_share_group] * 2


@share_scenario()
def test_h102_any_start_offset_may_be_set(play: Player) -> None:
    x = ShareStates(play)
    x.new_topic("x", 1)
    x.produce("x", 10)
    assert x.alter({("x", 0): -5}) == {("x", 0): 0}
    assert x.read(("x", 0)) == (x.raw(1), -5, "")
    x.offsets()
    assert x.alter({("x", 0): 100}) == {("x", 0): 0}
    assert x.read(("x", 0)) == (x.raw(1), 100, "")
    assert x.offsets() == {("x", 0): (100, -90)}
    assert x.alter({("x", 0): 4}) == {("x", 0): 0}
    assert x.offsets() == {("x", 0): (4, 6)}
    assert x.alter({("x", 0): -1}) == {("x", 0): 0}
    assert x.offsets() == {("x", 0): NONE}


@share_scenario()
def test_h223_a_lag_is_computed_with_longs(play: Player) -> None:
    x = ShareStates(play)
    x.new_topic("x", 1)
    x.produce("x", 3)
    assert x.alter({("x", 0): -(1 << 63)}) == {("x", 0): 0}
    assert x.offsets() == {("x", 0): (-(1 << 63), 3 - (1 << 63))}


@share_scenario()
def test_h104_a_share_group_need_not_exist_to_be_described(play: Player) -> None:
    x = ShareStates(play)
    x.new_topic("x", 1)
    x.produce("x", 3)
    assert x.settle_in("A", ["x"]) == (3, {"x": [0]})
    missing = f"{play.g}.missing"
    wanted = {("x", 0): NONE, (missing, 0): NONE}
    assert [x.offsets({"x": [0], missing: [0]}, version=version) for version in (1, 0)] == [wanted] * 2
    assert (x.offsets(), x.offsets({})) == ({("x", 0): NONE}, {})
    unknown = f"{play.g}.unknown"
    assert (x.offsets(None, unknown), x.offsets({"x": [0]}, unknown)) == ({}, {("x", 0): NONE})
    consumers = f"{play.g}.consumers"
    assert ConsumerMembers(play).join("A", group=consumers) == (2, ALL)
    assert (x.offsets(None, consumers), x.offsets({"t": [0]}, consumers)) == ({}, {("t", 0): NONE})
    assert play.ask(DescribeShareGroupOffsetsRequest(), 1).answer().groups == ()


@share_scenario(slow=True)
def test_h105_a_partition_that_does_not_exist_has_no_share_offset(play: Player) -> None:
    x = ShareStates(play)
    x.new_topic("x", 1)
    assert x.offsets({"x": [7]}) == {("x", 7): NONE}


@share_scenario()
def test_h201_an_empty_share_group_begins_elsewhere(play: Player) -> None:
    x = left(play)
    x.mark()
    missing = f"{play.g}.missing"
    assert x.alter({("t", 0): 3, ("t", 9): 1, (missing, 0): 1, ("t", 2): 0}) == {
        ("t", 0): 0,
        ("t", 2): 0,
        ("t", 9): NO_PARTITION,
        (missing, 0): NO_PARTITION,
    }
    x.await_written(15, 15)
    begun, done = x.values()
    assert [x.named(rows) for rows in (begun.initializing_topics, begun.initialized_topics)] == [{"t": [0, 2]}, ALL]
    assert [x.named(rows) for rows in (done.initializing_topics, done.initialized_topics)] == [{}, ALL]
    assert [x.read(("t", partition)) for partition in (0, 1)] == [(x.raw(4), 3, ""), (x.raw(2), -1, "")]
    assert x.state_written("t", 0) == [
        f"S(0/{x.raw(2)}, leader 0, start -1, done -1, [])",
        f"S(1/{x.raw(4)}, leader 0, start 3, done 0, [])",
    ]
    assert x.summary(("t", 0)) == (x.raw(4), 0, 3, 0)
    assert x.shape() == ("Empty", 4, x.emptied_target(3))
    assert x.join("A") == (5, ALL)


@share_scenario()
def test_h202_a_share_group_with_members_keeps_its_offsets(play: Player) -> None:
    x = ShareStates(play)
    assert x.settle_in("A") == (3, ALL)
    x.mark()
    members = NON_EMPTY, "The group is not empty."
    assert [x.alter({("t", 0): 1}), x.delete_offsets("t")] == [members] * 2
    assert x.written() == []


@share_scenario()
def test_h203_new_offsets_create_a_share_group(play: Player) -> None:
    x = ShareStates(play)
    assert x.alter({("u", 1): 7}) == {("u", 1): 0}
    x.await_written(15, 15)
    assert x.shape() == ("Empty", 1, 1)
    assert x.offsets() == {("u", 1): (7, -7)}
    assert x.summary(("u", 0)) == (0, 0, -1, -1)
    assert x.join("A", ["u"]) == (2, {"u": [1]})
    x.beats_until((3, {"u": [0, 1]}), "A", 2)
    assert x.read(("u", 1)) == (x.raw(1), 7, "")


@share_scenario()
def test_h204_whoever_is_asked_for_no_offset_creates_a_group_or_none(play: Player) -> None:
    x = ShareStates(play)
    missing = f"{play.g}.missing"
    assert x.alter({(missing, 0): 7}, f"{play.g}.a") == {(missing, 0): NO_PARTITION}
    assert x.alter({("t", 9): 7}, f"{play.g}.b") == {("t", 9): NO_PARTITION}
    assert x.alter({}, f"{play.g}.c") == {}
    row = AlterShareGroupOffsetsRequestTopic(topic_name=play.t)
    play.slowly(AlterShareGroupOffsetsRequest(group_id=f"{play.g}.d", topics=(row,)), 0, recorded=True)
    play.delete(*(f"{play.g}.{each}" for each in "abcd")).expect(
        {f"{play.g}.a": MISSING, f"{play.g}.b": 0, f"{play.g}.c": MISSING, f"{play.g}.d": 0}
    )


@share_scenario()
def test_h215_a_request_without_a_topic_that_exists_asks_no_group(play: Player) -> None:
    x = ShareStates(play)
    consumers, missing = f"{play.g}.consumers", f"{play.g}.missing"
    assert x.settle_in("A") == (3, ALL)
    assert ConsumerMembers(play).join("A", group=consumers) == (2, ALL)
    for group in ("", play.g, consumers, f"{play.g}.unknown"):
        x.alter({}, group)
        x.alter({(missing, 0): 1}, group)
        x.delete_offsets(group=group)
        x.delete_offsets(missing, group=group)


@share_scenario()
def test_h222_a_negative_partition_fails_on_its_way_to_a_share_coordinator(play: Player) -> None:
    x = ShareStates(play)
    missing = f"{play.g}.missing"
    for rows in ([("t", [-1, 0])], [("t", [])], [("t", [0]), ("u", [])]):
        assert x.offsets_row(rows).error_code == -1
    row = x.offsets_row([(missing, [-1, -1]), ("t", [1, 0]), (missing, []), ("t", [1, 2])])
    found = [(x.short(topic.topic_name), [each.partition_index for each in topic.partitions]) for topic in row.topics]
    assert found == [("t", [0, 1, 2]), (missing, [-1, -1]), (missing, [])]
    x.mark()
    answer = x.alter_rows([("t", {-1: 3, 0: 4}), (missing, {-1: 1}), ("u", {})], recorded=False)
    text = f"Initialize share group parameters has invalid partitionId - {play.g} {uuid_text(x.id_of('t'))} -1"
    assert (answer.error_code, answer.error_message, answer.responses) == (-1, text, ())
    x.await_written(15)
    assert [x.named(row.initializing_topics) for row in x.values()] == [{"t": [-1, 0], "u": []}]
    assert x.read(("t", 0)) == (42, "Read operation on uninitialized share partition not allowed.")


@share_scenario()
def test_h220_a_topic_whose_offsets_are_altered_twice_has_one_row(play: Player) -> None:
    x = ShareStates(play)
    x.mark()
    missing, other = f"{play.g}.missing", f"{play.g}.other"
    rows = (("t", {0: 3, 9: 1}), (missing, {}), ("u", {}), (other, {0: 1}), ("t", {1: 4, 0: 5}), (other, {0: 2, 1: 1}))
    answer = x.alter_rows(rows)
    found = [(x.short(row.topic_name), [each.partition_index for each in row.partitions]) for row in answer.responses]
    assert found == [(other, [0, 0, 1]), ("t", [0, 9, 1, 0]), ("u", [])]
    x.await_written(15, 15)
    begun, done = x.values()
    assert [x.named(rows) for rows in (begun.initializing_topics, begun.initialized_topics)] == [
        {"t": [0, 1], "u": []},
        {},
    ]
    assert [x.named(rows) for rows in (done.initializing_topics, done.initialized_topics)] == [
        {"u": []},
        {"t": [0, 1]},
    ]
    assert [x.read(("t", partition)) for partition in (0, 1)] == [(x.raw(1), 5, ""), (x.raw(1), 4, "")]


@share_scenario()
def test_h221_offsets_that_a_share_coordinator_refuses_stay_begun(play: Player) -> None:
    x = ShareStates(play)
    assert x.initialize(("t", 0), 99, 7) == 0
    x.mark()
    answer = x.alter({("t", 0): 3, ("t", 1): 4})
    assert (answer["t", 0][0], answer["t", 1]) == (124, 0)
    x.await_written(15)
    assert x.alter({("t", 1): 5}) == {("t", 1): 0}
    x.await_written(15, 15, 15)
    assert [x.named(row.initializing_topics) for row in x.values()] == [{"t": [0, 1]}, {"t": [0, 1]}, {"t": [0]}]
    assert [x.named(row.initialized_topics) for row in x.values()] == [{}, {}, {"t": [1]}]
    assert [x.read(("t", partition)) for partition in (0, 1)] == [(99, 7, ""), (x.raw(1), 5, "")]


@share_scenario()
def test_h205_the_state_of_topics_is_deleted(play: Player) -> None:
    x = left(play, "u")
    x.mark()
    missing = f"{play.g}.missing"
    assert x.delete_offsets("u", "t", missing) == {"u": 0, "t": NO_OFFSETS, missing: NO_PARTITION}
    x.await_written(15, 15)
    deleting, deleted = x.values()
    assert (deleting.initialized_topics, [row.topic_name for row in deleting.deleting_topics]) == ((), ["u"])
    assert (deleted.initialized_topics, deleted.deleting_topics) == ((), ())
    assert [x.state_written("u", partition)[-1] for partition in (0, 1)] == ["-S"] * 2
    assert x.delete_offsets("u") == {"u": NO_OFFSETS}
    assert x.delete_offsets() == {}
    assert x.shape() == ("Empty", 4, x.emptied_target(3))
    assert x.offsets() == {}
    assert x.join("A", ["u"]) == (5, {})
    assert x.settled("A", 5) == (6, {"u": [0, 1]})
    assert x.read(("u", 0)) == (x.raw(5), -1, "")


@share_scenario()
def test_h224_topics_whose_offsets_are_deleted_twice(play: Player) -> None:
    x = left(play, "u")
    missing = f"{play.g}.missing"
    x.mark()
    rows = x.delete_rows("t", missing, "u", missing, "t", "u").responses
    refused = [(name, 3) for name in ("t", missing, missing, "t")]
    assert [(x.short(row.topic_name), row.error_code) for row in rows] == [("u", 0), *refused]
    x.await_written(15, 15)
    assert x.delete_offsets("t") == {"t": NO_OFFSETS}
    assert x.delete_offsets() == {}
    x.await_written(15, 15, 15, 15)
    x.alter_rows([("t", {-1: 1})], recorded=False)
    assert x.delete_offsets("t") == {"t": NO_OFFSETS}
    x.await_written(15, 15, 15, 15, 15, 15)
    assert x.named(x.values()[-1].initializing_topics) == {"t": [-1]}


@share_scenario()
def test_h225_a_group_that_has_read_nothing_has_no_offsets_to_delete(play: Player) -> None:
    x = ShareStates(play)
    missing = f"{play.g}.missing"
    x.join("A", [missing])
    assert x.beat("A", -1) == (-1, None)
    x.mark()
    assert x.delete_offsets("t", missing) == {}
    assert x.written() == []


@share_scenario()
def test_h206_a_member_that_leaves_and_comes_back_finds_new_offsets(play: Player) -> None:
    x = left(play, "u")
    assert x.alter({("u", 0): 5, ("u", 1): 6}) == {("u", 0): 0, ("u", 1): 0}
    assert x.join("A", ["u"]) == (5, {"u": [0, 1]})
    assert x.offsets({"u": [0, 1], "t": [3]}) == {("u", 0): (5, -5), ("u", 1): (6, -6), ("t", 3): NONE}
    assert x.beat("A", -1) == (-1, None)
    assert x.delete_offsets("u") == {"u": 0}
    assert x.offsets({"u": [0, 1]}) == {("u", 0): NONE, ("u", 1): NONE}
