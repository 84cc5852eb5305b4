"""A line that is not a coordinator's never changes what is read of those that are, and is counted."""

from __future__ import annotations

import json
import time
from itertools import zip_longest

import pytest
from builders.log_events import read_lines
from hypothesis import given, settings
from hypothesis import strategies as st
from spark.log_rows import RELEASES, recorded

from koordinator.pipeline.silver.logs.reader import LINE_MAX, MARKS, NO_TIME, LogReader

PLAIN = "[2026-11-21 20:15:0{},123] INFO [GroupCoordinator 1]: {} (kafka.coordinator.group.GroupCoordinator)"
NEW = (
    "[2026-11-21 20:15:0{},123] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=4] [GroupId c] {}"
    " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
COORDINATOR = [
    PLAIN.format(
        1,
        "Preparing to rebalance group g in state PreparingRebalance with old generation 4 (__consumer_offsets-3)"
        " (reason: Adding new member c-1 with group instance id None; client reason: a)",
    ),
    PLAIN.format(2, "Stabilized group g generation 5 (__consumer_offsets-3) with 2 members"),
    PLAIN.format(
        2,
        "Preparing to rebalance group g in state PreparingRebalance with old generation 5 (__consumer_offsets-3)"
        " (reason: Leader c-1 re-joining group during Stable; client reason: cut",
    ),
    PLAIN.format(3, "Member c-1 in group g has failed, removing it from the group"),
    NEW.format(4, "Member m joins the consumer group using the consumer protocol."),
    NEW.format(4, "Bumped group epoch to 2 with metadata hash 17."),
    NEW.format(4, "Computed a new target assignment for epoch 2 with 'uniform' assignor in 1ms."),
    "INFO [GroupCoordinator 1]: Stabilized group g generation 6 with 2 members",
]
WRAPPERS = {
    "plain": "{}",
    "docker compose": "kafka-1  | {}",
    "coloured": "\x1b[36mkafka-1  |\x1b[0m {}",
    "kubectl": "[pod/kafka-0/kafka] 2026-11-21T20:15:09.000000001Z {}",
    "a node's container log": "2026-11-21T20:15:09.000000001Z stdout F {}",
}
FOREIGN = (
    "app-1    | processing order 7",
    "\tat kafka.coordinator.group.GroupCoordinator.some(GroupCoordinator.scala:1)",
    "java.lang.IllegalStateException: 2099-01-01 00:00:00",
    "b) (kafka.coordinator.group.GroupCoordinator)",
    "2020-01-17T10:24:14.704Z INFO log/harvester.go:251 Harvester started for file: /var/log/containers/svc.log",
    "[2099-01-17 10:24:14,704] INFO Rolled new log segment (kafka.log.UnifiedLog)",
    '{"kind": "order", "seq": 7, "message": "shipped", "@timestamp": "2099-01-01T00:00:00Z"}',
    '{"type": "CART_REBALANCE", "message": "x"}',
    "[2099-01-17 10:24:14,704] INFO [Consumer clientId=a, groupId=g] (Re-)joining group",
    "[2099-01-17 10:24:14,704] INFO [GroupCoordinator 2]: Unloading group metadata for other with generation 3",
    "[2026-11-21 20:15:04,123] INFO [GroupMetadataManager brokerId=1] Elected as something new",
    "",
    "\x1b[0m",
    "{" * 200,
)
LINES = st.one_of(
    st.sampled_from(FOREIGN),
    st.text(max_size=80),
    st.binary(max_size=80).map(lambda raw: raw.decode("utf-8", "replace")),
)


def events_of(lines: list[str], node: int = 1) -> list[tuple[object, ...]]:
    rows, _ = read_lines(lines)
    rows = [row for row in rows if row.raw in KNOWN_LINES and row.node in (node, None)]
    return [tuple(sorted((name, row[name]) for name in row if name != "row_id")) for row in rows]


KNOWN_LINES = {wrapper.format(line) for wrapper in WRAPPERS.values() for line in COORDINATOR}


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    layout=st.sampled_from(sorted(WRAPPERS)),
    between=st.lists(st.lists(LINES, max_size=3), min_size=len(COORDINATOR) + 1, max_size=len(COORDINATOR) + 1),
)
def test_foreign_lines_change_nothing_of_a_coordinators(layout: str, between: list[list[str]]) -> None:
    lines = [WRAPPERS[layout].format(line) for line in COORDINATOR]
    mixed = [*between[0]]
    for line, foreign in zip_longest(lines, between[1:]):
        mixed += [line, *foreign]
    assert events_of(mixed) == events_of(lines)
    assert len(events_of(lines)) == len(COORDINATOR) + 2


@pytest.mark.parametrize("release", RELEASES)
def test_a_recorded_log_is_read_alike_between_the_lines_of_others(release: str) -> None:
    lines = recorded(release)
    mixed = [each for number, line in enumerate(lines) for each in (FOREIGN[number % len(FOREIGN)], line)]

    def events(rows: list[str]) -> list[tuple[object, ...]]:
        return [(row.seq, row.kind, row.group_id, row.cause) for row in read_lines(rows)[0] if row.node == 1]

    assert events(mixed) == events(lines)


def test_a_line_without_a_time_has_that_of_the_line_before_in_its_own_stream() -> None:
    message = "INFO: [Consumer clientId=c, groupId=g] (Re-)joining group"
    begin = "Jul 17, 2026 1:50:29\u202fPM org.apache.kafka.clients.consumer.internals.AbstractCoordinator send"
    for lines in (
        [begin, message],
        [f"app-1  | {begin}", "app-2  | Jul 18, 2026 1:50:29 PM a.B c", f"app-1  | {message}"],
        ["Jul 17, 2026 @ 13:50:29.000", message],
    ):
        (row,), reader = read_lines(lines)
        assert (row.change, row.wall_us) == ("joining", 1_784_296_229_000_000)
        assert not reader.unread
    (row,), _ = read_lines([begin, "another line", message])
    assert (row.reject_reason, row.detail) == ("bad_line", NO_TIME)


def test_lines_that_are_not_understood_are_counted_by_kind_with_an_example() -> None:
    lines = [
        *["app-1    | processing order 7"] * 3,
        "kafka-1  | [2026-11-21 20:15:01,123] INFO [GroupCoordinator 1]: Something new happened to group g7 (a.B)",
        "kafka-1  | [2026-11-21 20:15:01,123] INFO [GroupCoordinator 1]: Something new happened to group g8 (a.B)",
        "kafka-1  | INFO [GroupCoordinator 1]: Stabilized group g generation 5 with 2 members",
        "kafka-1  | [2026-11-21 20:15:01,123] INFO [GroupCoordinator 1]: Starting up. (a.B)",
        f"kafka-1  | {COORDINATOR[1]}",
    ]
    _, reader = read_lines(lines)
    assert [(each.kind, each.text, each.n, each.example) for each in reader.unread] == [
        ("foreign", "", 3, lines[0]),
        ("other_text", "Something new happened to group", 2, lines[3]),
        ("bad_line", NO_TIME, 1, lines[5]),
    ]


def test_an_example_is_short_and_has_nothing_that_a_terminal_would_obey() -> None:
    (each,) = read_lines(["\x1b]0;title\x07\tat x" + "y" * 1000])[1].unread
    assert each.example == "\ufffd]0;title\ufffd at x" + "y" * 485


def test_the_number_of_texts_is_bounded() -> None:
    words = ["".join(chr(ord("a") + int(digit)) for digit in str(number)) for number in range(300)]
    _, reader = read_lines(f"[2026-11-21 20:15:01,123] [GroupCoordinator 1]: {word}" for word in words)
    assert len(reader.unread) == 21
    assert sum(each.n for each in reader.unread) == 300


def test_only_lines_in_the_layout_of_known_ones_show_how_long_a_log_was_watched() -> None:
    lines = [
        "kafka-1  | [2026-11-21 20:00:00,000] INFO Rolled new log segment (kafka.log.UnifiedLog)",
        f"kafka-1  | {COORDINATOR[1]}",
        "app-1    | [2099-11-21 20:00:00,000] INFO from the future",
        "kafka-1  | 2099-11-21 20:00:00 is in another layout",
        '{"@timestamp": "2099-01-01T00:00:00Z", "message": "x"}',
    ]
    reader = read_lines(lines)[1]
    known = [(begin, end) for _, is_known, begin, end in reader.watched() if is_known]
    assert known == [(1_795_291_200_000_000, 1_795_292_102_123_000)]


def test_a_text_that_no_table_can_have_is_made_valid() -> None:
    message = "[GroupCoordinator 1]: Stabilized group g\ud800 generation 5 with 2 members"
    dms = {"type": "END_REBALANCE", "groupId": "g\ud800", "generationId": "5"}
    for record in ({"message": message}, {"message": dms}):
        rows, _ = read_lines([json.dumps(record | {"timestamp": "2026-11-21 20:15:01,123"})])
        assert {row.group_id for row in rows} == {"g?"}


@pytest.mark.parametrize("time", ["9999-12-31 23:59:59", "0001-01-01 00:00:00", "2026-13-45 20:15:01", 10**40])
def test_an_impossible_time_is_none(time: str | int) -> None:
    message = "[GroupCoordinator 1]: Stabilized group g generation 5 with 2 members"
    name = "timeMillis" if isinstance(time, int) else "time"
    for line in (json.dumps({name: time, "message": message}), f"[{time}] INFO {message}"):
        (row,), reader = read_lines([line])
        assert (row.detail, [*reader.watched()]) == (NO_TIME, [])


@pytest.mark.slow
def test_a_long_line_costs_little() -> None:
    text = "[2026-11-21 20:15:01,123] INFO [GroupCoordinator 1]: Member " + " in group  has failed" * 1_500
    nested = json.dumps({"message": "[" * 100_000})
    began = time.process_time()
    for line in (text, text * 100, nested, "[Consumer clientId=" * (LINE_MAX // 20), "[thrd:" * 5_000):
        LogReader().read(line)
    assert time.process_time() - began < 2


def test_every_source_has_a_mark() -> None:
    assert [*MARKS] == ["server_log", "dms", "java", "librdkafka", "aiokafka", "kafka_python"]
