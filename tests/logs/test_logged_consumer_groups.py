"""The lines about consumer groups (KIP-848) become the events of classic ones, in the texts of every release."""

from __future__ import annotations

import pytest
from builders.log_events import Row, read_lines

LINE = (
    "[2026-11-21 20:15:0{},123] INFO [GroupCoordinator id=3 topic=__consumer_offsets partition=1] {}"
    " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)


def read(*messages: str) -> list[Row]:
    return read_lines([LINE.format(number, message) for number, message in enumerate(messages)])[0]


def member(change: str, cause: str, member_id: str = "m", **more: object) -> dict[str, object]:
    return {"kind": "member", "change": change, "cause": cause, "group_id": "g", "member_id": member_id} | more


STATIC = {"instance_id": "i 1"}
ALL = {
    "[GroupId g] Member m joins the consumer group using the consumer protocol.": member("added", "member_join"),
    "[GroupId g] Member m joins the consumer group using the classic protocol.": member("added", "member_join"),
    "[GroupId g] Static member m with instance id i 1 joins the consumer group using the consumer protocol.": member(
        "added", "member_join", **STATIC
    ),
    (
        "[GroupId g] Static member with instance id i 1 re-joins the consumer group using the consumer protocol."
        " Created a new member m2 to replace the existing member m."
    ): member("replaced", "fenced", api="ConsumerGroupHeartbeat", **STATIC),
    (
        "[GroupId g] Dynamic member with unknown member id joins the consumer group. Created a new member id m and"
        " requesting the member to rejoin with this id."
    ): member("pending", "member_id_required"),
    "[GroupId g] Member m left the consumer group.": member("removed", "member_leave"),
    "[GroupId g] Static member m with instance id i 1 left the consumer group.": member(
        "removed", "member_leave", **STATIC
    ),
    "[GroupId g] Static Member m with instance id i 1 left the consumer group.": member(  # 3.9
        "removed", "member_leave", **STATIC
    ),
    "[GroupId g] Static member m with instance id i 1 temporarily left the consumer group.": member(
        "away", "member_leave", **STATIC
    ),
    "[GroupId g] Static Member m with instance id i 1 temporarily left the consumer group.": member(  # 3.9
        "away", "member_leave", **STATIC
    ),
    "[GroupId g] Dynamic member m has left group through explicit `LeaveGroup` request; client reason: bye": member(
        "removed", "member_leave", client_reason="bye"
    ),
    (
        "[GroupId g] Static member m with instance id i 1 has left group through explicit `LeaveGroup` request;"
        " client reason: not provided"
    ): member("removed", "member_leave", client_reason=None, **STATIC),
    "[GroupId g] Member m fenced from the group because the member session expired.": member(
        "removed", "session_expired"
    ),
    "[GroupId g] Member m fenced from the group because the member session expired..": member(  # 3.9, 4.0
        "removed", "session_expired"
    ),
    (
        "[GroupId g] Member m fenced from the group because it failed to transition from epoch 7 within 300000ms."
    ): member("removed", "revocation_timeout"),
    "[GroupId g] Member m fenced from the group because the member failed to sync within timeout.": member(
        "removed", "sync_timeout"
    ),
    (
        "[GroupId g] Static member m with instance id i 1 cannot join the group because the instance id is owned by"
        " member m2."
    ): member("refused", "fenced", error="UNRELEASED_INSTANCE_ID", **STATIC),
    (
        "[GroupId g] Static member m with instance id i 1 cannot join the group because the instance id is is owned by"
        " member m2."
    ): member("refused", "fenced", error="UNRELEASED_INSTANCE_ID", **STATIC),  # 3.9
    "[GroupId g] Static member m with instance id i 1 is fenced by existing member m2.": member(
        "refused", "fenced", error="FENCED_INSTANCE_ID", **STATIC
    ),
    "[GroupId=g] Unloaded group metadata for group epoch 7.": {"state_to": "Dead", "cause": "unloaded"},
    "Loaded consumer group g with 2 members.": {"state_to": "Stable", "cause": "loaded", "body": '{"n_members":2}'},
}


@pytest.mark.parametrize("message", ALL)
def test_a_line_becomes_an_event(message: str) -> None:
    (row,) = read(message)
    assert {name: row[name] for name in ALL[message]} == ALL[message]
    assert (row.group_id, row.node, row.reason) == ("g", 3, message)


@pytest.mark.parametrize(
    "bumped",
    ["Bumped group epoch to 3.", "Bumped group epoch to 3 with metadata hash -7."],
    ids=["to 4.0", "from 4.1"],
)
def test_an_epoch_begins_a_rebalance_with_the_cause_of_the_line_before(bumped: str) -> None:
    joined = "[GroupId g] Member m joins the consumer group using the consumer protocol."
    rows = read_lines(
        [
            LINE.format(1, joined),
            LINE.format(1, "[GroupId other] Member x left the consumer group."),
            LINE.format(1, f"[GroupId g] {bumped}"),
            LINE.format(2, "[GroupId g] Computed a new target assignment for epoch 3 with 'uniform' assignor in 2ms."),
            LINE.format(9, "[GroupId g] Bumped group epoch to 4 with metadata hash 1."),
        ]
    )[0]
    states = [row for row in rows if row.kind == "state"]
    names = ("state_from", "state_to", "generation", "cause", "member_id", "body")
    assert [tuple(row[name] for name in names) for row in states] == [
        (None, "Assigning", 2, "member_join", "m", None),
        ("Assigning", "Reconciling", 3, "assigned", None, '{"assignor":"uniform"}'),
        ("Reconciling", "Stable", 3, "assigned", None, None),
        (None, "Assigning", 3, "other", None, None),
    ]
    assert states[0].reason == joined


def test_a_changed_subscription_is_the_cause_of_an_epoch() -> None:
    lines = ("Member m updated its subscribed topics to: [a].", "Bumped group epoch to 3.")
    (row,) = read_lines([LINE.format(1, f"[GroupId g] {each}") for each in lines])[0]
    assert (row.state_to, row.cause, row.member_id) == ("Assigning", "metadata_change", "m")


@pytest.mark.parametrize(
    "message",
    [
        "[GroupId g] Member m joins the share group using the share protocol.",
        "[GroupId g] Member m left the share group.",
        "[GroupId g][MemberId m] Member joins the streams group.",
        "[GroupId g][MemberId m] Bumped streams group epoch to 3 with metadata hash 1 and validated topic epoch 2.",
        "[GroupId g] Streams member m fenced from the group because the member session expired.",
        "Loaded share group g with 2 members.",
    ],
)
def test_share_and_streams_groups_are_ignored(message: str) -> None:
    assert not read(message, "[GroupId g] Bumped group epoch to 3 with metadata hash 1.")


@pytest.mark.parametrize(
    "message",
    [
        "Starting up.",
        "Scheduling loading of metadata from __consumer_offsets-1 with epoch 0",
        "Finished unloading metadata for __consumer_offsets-1 with epoch OptionalInt[3].",
        "Elected as the group coordinator for partition 3 in epoch 0",
        "Generated 3 tombstone records while cleaning up group metadata in 2 milliseconds.",
        "[GroupId g] Computed new metadata hash: 17.",
        (
            "[GroupId g] Member m new assignment state: epoch=1, previousEpoch=0, state=STABLE, assignedPartitions=[]"
            " and revokedPartitions=[]."
        ),
        "[GroupId g] Converted the consumer group to a classic group.",
    ],
)
def test_a_line_that_changes_no_group_is_understood(message: str) -> None:
    rows, reader = read_lines([LINE.format(1, message)])
    assert (rows, reader.unread) == ([], [])
