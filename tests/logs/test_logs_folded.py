"""The rows of tables from broker logs, folded without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders.log_events import read_lines

from koordinator.pipeline.fold.trace_fold import fold

LINE = (
    "[2026-11-21 20:15:{:02},{:03}] INFO [GroupCoordinator id=3 topic=__consumer_offsets partition=1] {}"
    " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
INSTANCE_LINES = [
    "Static member m1 with instance id i joins the consumer group using the consumer protocol.",
    "Bumped group epoch to 1 with metadata hash 7.",
    "Computed a new target assignment for epoch 1 with 'uniform' assignor in 1ms.",
    "Static member m2 with instance id i cannot join the group because the instance id is owned by member m1.",
    "Static member m1 with instance id i temporarily left the consumer group.",
    (
        "Static member with instance id i re-joins the consumer group using the consumer protocol. Created a new member"
        " m3 to replace the existing member m1."
    ),
    "Member m3 fenced from the group because the member session expired.",
    "Bumped group epoch to 2 with metadata hash 7.",
]
WATCHED = {"seq": 2**62, "kind": "watched", "wall_ts": 1_795_292_200_000_000, "group_ts_us": 1_795_292_200_000_000}


def tables(*messages: str) -> dict[str, list[dict[str, Any]]]:
    lines = [LINE.format(*divmod(number * 500, 1000), f"[GroupId g] {each}") for number, each in enumerate(messages)]
    renamed = {"wall_us": "wall_ts", "group_us": "group_ts_us"}
    events = []
    for row in read_lines(lines)[0]:
        line = {renamed.get(name, name): value for name, value in row.items() if value is not None}
        events.append(line | ({"body": json.loads(row.body)} if row.body else {}))
    rows: dict[str, list[dict[str, Any]]] = {}
    for path, each in fold("t", [*events, WATCHED]):
        rows.setdefault(path, []).extend(each)
    return rows


@pytest.fixture(scope="module")
def found() -> dict[str, list[dict[str, Any]]]:
    return tables(*INSTANCE_LINES)


def test_an_epoch_with_a_target_is_a_completed_rebalance_of_unknown_length(
    found: dict[str, list[dict[str, Any]]],
) -> None:
    names = ("type", "cause", "trigger_member", "gen_before", "gen_after", "outcome", "join_ms", "sync_ms", "total_ms")
    assert [tuple(row[name] for name in names) for row in found["gold/rebalance"]] == [
        ("consumer", "member_join", "i", 0, 1, "completed", 500.0, None, None),
        ("consumer", "session_expired", "i", 1, None, "open", None, None, None),
    ]
    assert (found["gold/rebalance"][0]["mode"], found["gold/rebalance"][0]["protocol"]) == ("cooperative", "uniform")
    assert [row["type"] for row in found["silver/group"]] == ["consumer"]


def test_refused_and_replaced_static_members_are_fencings(found: dict[str, list[dict[str, Any]]]) -> None:
    names = ("instance_id", "old_member", "new_member", "api")
    assert [tuple(row[name] for name in names) for row in found["gold/fencing"]] == [
        ("i", "m2", "m1", "ConsumerGroupHeartbeat"),
        ("i", "m1", "m3", "ConsumerGroupHeartbeat"),
    ]


def test_a_static_member_that_is_away_stays(found: dict[str, list[dict[str, Any]]]) -> None:
    spans = [(row["member_id"], row["membership"], row.get("end_reason")) for row in found["silver/member_span"]]
    assert sorted(spans) == [("m1", "static", "replaced"), ("m3", "static", "session_expired")]


def test_a_group_of_which_only_a_removal_is_known_is_a_group() -> None:
    rows = tables("Member m fenced from the group because the member session expired.")
    assert [row["group_id"] for row in rows["silver/group"]] == ["g"]
    assert not rows["gold/rebalance"]
