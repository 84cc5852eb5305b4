"""The logs of Kafka's group coordinators become events of the trace."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise

import pytest
from builders.log_events import Row, read_lines
from spark.log_rows import RELEASES, recorded

from koordinator.pipeline.silver.logs.reader import CUT_OFF, MARKS, NO_TIME, LogReader

OLD = "[2026-11-21 20:15:{:02},123] INFO [GroupCoordinator 1]: {} (kafka.coordinator.group.GroupCoordinator)"
NEW = (
    "[2026-11-21 20:15:{:02},123] INFO [GroupCoordinator id=3 topic=__consumer_offsets partition=1] {}"
    " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)

PREPARING = "Preparing to rebalance group g in state PreparingRebalance with old generation 4 "

REASONS = {
    "Adding new member c-1 with group instance id None; client reason: not provided": ("member_join", "c-1"),
    "Adding new member c-1 with group instanceid Some(i)": ("member_join", "c-1"),
    "Member c-1 joining group during Stable; client reason: x": ("member_rejoin", "c-1"),
    "Member c-1 is joining group during Stable; client reason: x": ("member_rejoin", "c-1"),
    "leader c-1 re-joining group during Stable": ("leader_rejoin", "c-1"),
    "Leader c-1 re-joining group during Stable; client reason: x": ("leader_rejoin", "c-1"),
    "Updating metadata for member c-1": ("metadata_change", "c-1"),
    "Updating metadata for member c-1 during CompletingRebalance; client reason: x": ("metadata_change", "c-1"),
    "Updating metadata for static member c-1 with instance id i; client reason: x": ("metadata_change", "c-1"),
    "removing member c-1 on LeaveGroup": ("member_leave", "c-1"),
    "Removing member c-1 on LeaveGroup; client reason: the consumer is being closed": ("member_leave", "c-1"),
    "explicit `LeaveGroup` request for (c-1, c-2) members.": ("member_leave", "c-1"),
    "removing member c-1 on heartbeat expiration": ("session_expired", "c-1"),
    "removing member c-1 on heartbeat expiration.": ("session_expired", "c-1"),
    "Removing Set(c-1, c-2) on pending sync request expiration": ("sync_timeout", None),
    "Removing [c-1] on pending sync request expiration": ("sync_timeout", None),
    "Group's selectedProtocol will change because static member c-1 with instance id i joined with change of protocol;"
    " client reason: x": ("protocol_change", "c-1"),
    "Freshly-loaded group is over capacity (2). Rebalancing in order to give a chance for consumers to commit"
    " offsets": ("over_capacity", None),
    "Freshly-loaded group g (size 3) is over capacity 2. Rebalancing in order to give a chance for consumers to commit"
    " offsets": ("over_capacity", None),
    "error when storing group assignment during SyncGroup (member: c-1)": ("store_error", "c-1"),
    "Error NOT_COORDINATOR when storing group assignment during SyncGroup (member: c-1).": ("store_error", "c-1"),
    "Downgrade group g from consumer to classic for member leaving.": ("group_downgrade", None),
}


CLIENT_REASONS = {"rebalance failed due to 'x; y'": "rebalance failed due to 'x; y'", "not provided": None, "": None}

TIMES = (
    "[2026-11-21 20:15:01,123] INFO",
    "2026-11-21T20:15:01.123Z INFO",
    "broker-1  | [2026-11-21 20:15:01,123] INFO",
    "2026-11-21 22:15:01.123+0200 [thread-1] INFO",
    "INFO 2026-11-21 20:15:01,123",
)

ODD_NAME = "a generation 7 with 3 members"

BAD = {
    "cut": (OLD.format(1, PREPARING)[:-50], CUT_OFF),
    "tail": (OLD.format(1, "Stabilized group g generation 5 with 2 members and a dog"), CUT_OFF),
    "no time": ("INFO [GroupCoordinator 1]: Stabilized group g generation 5 with 2 members", NO_TIME),
}

LITERAL = {
    "reasons, old": [OLD.format(n, f"{PREPARING}(__consumer_offsets-3) (reason: {r})") for n, r in enumerate(REASONS)],
    "reasons, new": [NEW.format(n, f"{PREPARING}(reason: {r}).") for n, r in enumerate(REASONS)],
    "client reasons": [
        OLD.format(n, f"{PREPARING}(reason: Leader c-1 re-joining group during Stable; client reason: {reason})")
        for n, reason in enumerate(CLIENT_REASONS)
    ],
    "several lines": [
        *OLD.format(1, f"{PREPARING}(reason: Leader c-1 re-joining group during Stable; client reason: a\nb)").split(
            "\n"
        ),
        "[2026-11-21 20:15:02,000] WARN Failed (kafka.coordinator.group.GroupMetadata)",
        "java.lang.Error",
        "\tat kafka.coordinator.group.GroupCoordinator.some(GroupCoordinator.scala:1)",
        OLD.format(2, "Stabilized group g generation 5 (__consumer_offsets-3) with 2 members"),
    ],
    "several members": [
        NEW.format(1, "Group g removed dynamic members who haven't joined: [c-1, c-2]"),
        NEW.format(1, f"{PREPARING}(reason: Removing [c-3, c-4] on pending sync request expiration)."),
    ],
    "odd name": [OLD.format(1, f"Stabilized group {ODD_NAME} generation 8 (__consumer_offsets-3) with 1 members")],
    "times": [f"{time} [GroupCoordinator 1]: Group g with generation 5 is now empty" for time in TIMES],
    **{name: [line] for name, (line, _) in BAD.items()},
}

DMS = json.dumps(
    {
        "level": "INFO",
        "timestamp": "2026-11-21 20:15:01,123",
        "message": {
            "leaderId": "c-1",
            "generationId": "5",
            "reason": "Adding new member c-2 with group instance id None",
            "groupId": "g",
            "coordinatorId": "3",
            "type": "END_REBALANCE",
            "group": "GroupMetadata(groupId=g, members=Map(c-1 -> MemberMetadata(memberId=c-1, clientId=c),"
            " c-2 -> MemberMetadata(memberId=c-2, clientId=c)))",
        },
    }
)
"""A line of Huawei DMS's coordinator.log, from its documentation."""

SEED = random.randrange(1 << 32)

CUT = "4.3"
"""The log that is split into files."""


def _split(lines: list[str], chance: random.Random) -> dict[str, list[str]]:
    """Split the lines into four files, as log rotation does: each has events of several milliseconds."""
    begins = [number for number, line in enumerate(lines) if line.startswith("[")]
    while True:
        cuts = [0, *sorted(chance.sample(begins, 3)), len(lines)]
        files = [lines[start:end] for start, end in pairwise(cuts)]
        if all(len({line[:25] for line in file if "Stabilized group" in line}) > 1 for file in files):
            return {f"server.log.{4 - number}": file for number, file in enumerate(files)}


@pytest.fixture(scope="module")
def events() -> dict[str, list[Row]]:
    """Read all logs once; return the events by log."""
    chance = random.Random(SEED)
    files = {name: [lines] for name, lines in LITERAL.items()}
    files |= {release: [recorded(release)] for release in RELEASES}
    files |= {f"cut {number}": [*_split(recorded(CUT), chance).values()] for number in range(6)}
    files |= {"again": [recorded(CUT)], "again, cut": [recorded(CUT)[:100]], "dms": [[DMS]]}
    return {
        name: sorted((row for lines in each for row in read_lines(lines)[0]), key=lambda row: row.seq or 0)
        for name, each in files.items()
    }


@pytest.mark.parametrize("release", RELEASES)
def test_every_stabilized_generation_is_found(events: dict[str, list[Row]], release: str) -> None:
    matches = [re.search(r"Stabilized group (\S+) generation (\d+)", line) for line in recorded(release)]
    found = [(row.group_id, row.generation) for row in events[release] if row.state_to == "CompletingRebalance"]
    assert found == [(each[1], int(each[2])) for each in matches if each]
    assert len(found) >= 12
    assert not [row.raw for row in events[release] if row.reject_reason]


@pytest.mark.parametrize("release", RELEASES)
def test_a_returning_static_member_has_its_group(events: dict[str, list[Row]], release: str) -> None:
    (found,) = [row for row in events[release] if row.kind == "avoided_static"]
    assert (found.group_id, found.instance_id) == ("billing", "s1")


@pytest.mark.parametrize("release", RELEASES)
def test_members_are_removed_for_the_causes_in_the_churn(events: dict[str, list[Row]], release: str) -> None:
    removed = {(row.group_id, row.cause) for row in events[release] if row.change == "removed"}
    expected = {("orders", "member_leave"), ("orders", "session_expired"), ("billing", "session_expired")}
    # Kafka 2.4 does not log the former, and does not know the latter
    by_hand = {("stubborn", "join_timeout"), ("stubborn", "sync_timeout")} if release != "2.4" else set()
    assert removed >= expected | by_hand


@pytest.mark.parametrize("layout", ["old", "new"])
def test_the_reason_gives_the_cause_and_the_member(events: dict[str, list[Row]], layout: str) -> None:
    begun = [row for row in events[f"reasons, {layout}"] if row.kind == "state"]
    assert {row.reason: (row.cause, row.member_id) for row in begun} == REASONS


def test_client_reasons_are_extracted_or_null(events: dict[str, list[Row]]) -> None:
    assert [row.client_reason for row in events["client reasons"]] == list(CLIENT_REASONS.values())


def test_a_multi_line_message_is_read_to_its_first_end_and_a_stack_trace_is_none(events: dict[str, list[Row]]) -> None:
    one, two = events["several lines"]
    assert (one.client_reason, one.generation, one.node, one.state_from) == ("a", 4, 1, None)
    assert (two.generation, two.body, two.row_id) == (5, '{"n_members":2}', 5)


def test_each_member_in_a_line_has_an_event(events: dict[str, list[Row]]) -> None:
    assert [(row.kind, row.change, row.member_id, row.cause) for row in events["several members"]] == [
        ("member", "removed", "c-1", "join_timeout"),
        ("member", "removed", "c-2", "join_timeout"),
        ("member", "removed", "c-3", "sync_timeout"),
        ("member", "removed", "c-4", "sync_timeout"),
        ("state", None, None, "sync_timeout"),
    ]


def test_group_names_may_contain_log_texts(events: dict[str, list[Row]]) -> None:
    (found,) = events["odd name"]
    assert (found.group_id, found.generation) == (ODD_NAME, 8)


def test_a_dms_line_is_a_completed_rebalance_without_a_start(events: dict[str, list[Row]]) -> None:
    names = ("node", "group_id", "state_to", "generation", "cause", "member_id", "body")
    assert [tuple(row[name] for name in names) for row in events["dms"]] == [
        (3, "g", "PreparingRebalance", 4, "member_join", "c-2", None),
        (3, "g", "CompletingRebalance", 5, "joined", None, '{"n_members":2}'),
        (3, "g", "Stable", 5, "assigned", "c-1", '{"n_members":2}'),
    ]
    assert [(row.wall_us, row.group_us) for row in events["dms"]] == [
        (1795292101123000, group_us) for group_us in (None, None, 1795292101123000)
    ]
    assert re.search(MARKS["dms"], DMS)


@pytest.mark.parametrize("name", BAD)
def test_an_unreadable_coordinator_line_is_quarantined(events: dict[str, list[Row]], name: str) -> None:
    (found,) = events[name]
    assert (found.reject_reason, found.raw, found.detail) == ("bad_line", *BAD[name])


def test_common_time_formats_are_read(events: dict[str, list[Row]]) -> None:
    assert [(row.wall_us, row.group_us) for row in events["times"]] == [(1795292101123000,) * 2] * len(TIMES)


def test_the_events_of_a_log_do_not_depend_on_its_split_into_files(events: dict[str, list[Row]]) -> None:
    def of(trace: str) -> list[tuple[object, ...]]:
        keys = [row.seq for row in events[trace]]
        assert len(keys) == len(set(keys)), f"seed {SEED}, {trace}"
        names = (
            "wall_us",
            "kind",
            "change",
            "group_id",
            "member_id",
            "instance_id",
            "generation",
            "state_to",
            "reason",
        )
        return [tuple(row[name] for name in names) for row in events[trace] if row.kind != "avoided_static"]

    for number in range(6):
        assert of(f"cut {number}") == of(CUT), f"seed {SEED}, cut {number}"


def test_a_renamed_log_gives_the_same_keys(events: dict[str, list[Row]]) -> None:
    first, second = ({(row.seq, row.reason) for row in events[name]} for name in ("again, cut", "again"))
    assert first
    assert first <= second


def test_each_log_matches_its_own_source_first() -> None:
    logs = {"java": "java-java-1.log", "librdkafka": "confluent-kafka-rd-1.log", "aiokafka": "aiokafka-aio-1.log"}
    logs |= {"kafka_python": "kafka-python-kp-1.log", "server_log": "server.log"}
    for source, name in logs.items():
        lines = recorded("4.3", name)
        assert next(each for each, mark in MARKS.items() if any(re.search(mark, line) for line in lines)) == source


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_log_that_continues_has_the_numbers_of_one_that_is_read_at_once(share: float) -> None:
    lines = recorded(CUT)
    at = int(len(lines) * share)
    first = read_lines(lines[:at])[0]
    last = max(first, key=lambda row: row.seq)
    reader = LogReader(earlier={(True, 1): (last.seq, last.group_us)})
    rest = [Row(event) for raw in lines[at:] for event in reader.read(raw).events]
    whole = read_lines(lines)[0]
    assert [(row.seq, row.group_us, row.kind) for row in (*first, *rest)] == [
        (row.seq, row.group_us, row.kind) for row in whole
    ]
