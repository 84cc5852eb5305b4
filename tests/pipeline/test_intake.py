"""From what was read to events: what is taken over, what is a duplicate, what goes to quarantine and why."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

from koordinator.pipeline.bronze import lines as bronze
from koordinator.pipeline.schema import API_KEY_MAX, BRONZE_LINE, EVENT, REASONS
from koordinator.pipeline.silver import intake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from koordinator.pipeline.silver.intake import IngestedRows

TRACES = Path(__file__).parents[1] / "pages" / "traces"

BEAT = {
    "seq": 7,
    "wall_ts": 1_000_000,
    "kind": "request",
    "node": 1,
    "api": "Heartbeat",
    "api_key": 12,
    "group_id": "g",
    "group_ts_us": 2_000_000,
    "generation": 3,
    "trace_id": "t",
}


def read(spark: SparkSession, folder: Path) -> DataFrame:
    return bronze.bronze_lines(bronze.select_lines(spark.read.text(str(folder))))


def taken(lines: DataFrame, known: DataFrame | None = None) -> IngestedRows:
    # rows are kept between the two, as a load keeps them
    return intake.ingest(intake.parse_lines(lines), known)


def frame(spark: SparkSession, *lines: dict[str, object] | str, file: str = "a.jsonl") -> DataFrame:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    rows = [(file, 0, number, text, "i", 9, None) for number, text in enumerate(texts, start=5)]
    return spark.createDataFrame(rows, BRONZE_LINE.columns)


def one(frame: DataFrame) -> Row:
    (row,) = frame.collect()
    return row


def test_every_line_of_a_trace_is_an_event_with_its_columns(spark: SparkSession) -> None:
    found = taken(read(spark, TRACES / "cooperative.jsonl"))
    said = [json.loads(line) for line in (TRACES / "cooperative.jsonl").read_text().splitlines()]
    events = {row.seq: row for row in found.event.collect()}
    assert found.event.columns == EVENT.names
    assert sorted(events) == [line["seq"] for line in said[1:]]
    others = {"wall_ts": "wall_us", "group_ts_us": "group_us"}
    for line in said[1:]:
        row = events[line["seq"]].asDict()
        for name, value in line.items():
            if name == "body":
                assert json.loads(row["body"]) == value
            else:
                assert row[others.get(name, name)] == value, name
    assert one(found.header).cluster == said[0]["cluster"]
    counts = one(found.counts)
    assert (counts.read, counts.event, counts.header, counts.quarantined) == (len(said), len(said) - 1, 1, 0)
    assert (counts.source, found.quarantine.count()) == ("koordinator", 0)


def test_lines_without_a_trace_are_of_their_file_however_it_is_rotated_or_packed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = (TRACES / "static_bounce.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "x.jsonl").write_text("".join(lines[:50]))
    (tmp_path / "x.jsonl.1").write_text("".join(lines[50:90]))
    (tmp_path / "x.jsonl.2026-11-21-20.gz").write_bytes(gzip.compress("".join(lines[90:]).encode()))
    found = taken(read(spark, tmp_path))
    assert found.event.select("trace_id").distinct().count() == 1
    assert found.event.count() == len(lines) - 1
    assert found.counts.count() == 3


def test_a_line_that_names_its_trace_is_of_it_in_any_file(spark: SparkSession) -> None:
    a = frame(spark, BEAT, file="a.jsonl").union(frame(spark, {**BEAT, "seq": 8}, file="b.txt"))
    assert {row.trace_id for row in taken(a).event.collect()} == {"t"}


def test_lines_of_a_log_are_known_by_what_they_say_and_counted_by_line(spark: SparkSession) -> None:
    by = "[GroupCoordinator id=3 topic=__consumer_offsets partition=1]"
    log = (
        "[2026-11-21 20:15:00,100] INFO Loading the log (kafka.log.LogManager)",
        f"[2026-11-21 20:15:01,123] INFO {by} Group g removed dynamic members who haven't joined: [c-1, c-2] (k)",
        f"[2026-11-21 20:15:02,123] INFO {by} Preparing to rebalance group g in state PreparingRebalance with",
        "",
    )
    lines = frame(spark, *log, file="server.log").union(frame(spark, BEAT, "no log", file="trace.txt"))
    found = taken(lines)
    counts = {row.source_file: row for row in found.counts.collect()}
    of_log, of_trace = counts["server.log"], counts["trace.txt"]
    assert (of_log.source, of_trace.source) == ("server_log", "koordinator")
    assert (of_log.read, of_log.event, of_log.ignored, of_log.quarantined) == (4, 1, 2, 1)
    assert (of_trace.read, of_trace.event, of_trace.quarantined) == (2, 1, 1)
    gone = found.event.where("source = 'server_log'").collect()
    assert {(row.kind, row.change, row.member_id) for row in gone} == {
        ("member", "removed", "c-1"),
        ("member", "removed", "c-2"),
    }
    assert {(row.reason, row.line_no) for row in found.quarantine.collect()} == {("bad_line", 3), ("bad_json", 2)}


def test_a_line_that_cannot_be_taken_over_is_kept_with_its_reason_and_place(spark: SparkSession) -> None:
    bad = (
        ('{"seq":1,"kind"', "bad_json", "a JSON object"),
        ("[1, 2]", "bad_json", "a JSON object"),
        ("no trace at all", "bad_json", "a JSON object"),
        ({**BEAT, "seq": "seven"}, "bad_json", "a JSON object"),
        ({**BEAT, "seq": None}, "missing_key", "seq missing"),
        ({"seq": 1}, "missing_key", "kind, wall_ts missing"),
        ({**BEAT, "kind": "miracle"}, "unknown_kind", "kind miracle"),
        ({**BEAT, "api_key": API_KEY_MAX + 1}, "unknown_api", f"api_key {API_KEY_MAX + 1}"),
        ({**BEAT, "api_key": None}, "unknown_api", "api_key none"),
        (
            {"kind": "header", "schema_version": 9, "wall_ts": 1, "trace_id": "u"},
            "unknown_version",
            "schema_version 9; supported: 1",
        ),
    )
    found = taken(frame(spark, BEAT, *(line for line, _, _ in bad)))
    rows = {row.line_no: row for row in found.quarantine.collect()}
    for number, (line, reason, detail) in enumerate(bad, start=2):
        assert (rows[number].reason, rows[number].source_file) == (reason, "a.jsonl")
        assert detail in rows[number].detail
        assert rows[number].raw == (line if isinstance(line, str) else json.dumps(line))
        assert reason in REASONS
    assert one(found.event).seq == BEAT["seq"]
    counts = one(found.counts)
    assert (counts.read, counts.event, counts.quarantined) == (len(bad) + 1, 1, len(bad))


def test_lines_are_counted_over_the_parts_of_a_file(spark: SparkSession) -> None:
    rows = [
        ("a.jsonl", 0, 70, "", "i", 9, None),
        ("a.jsonl", 0, 71, "", "i", 9, None),
        ("a.jsonl", 900, 3, "?", "i", 9, None),
    ]
    found = taken(spark.createDataFrame(rows, BRONZE_LINE.columns))
    assert one(found.quarantine).line_no == 3
    assert one(found.counts).ignored == 2


def test_nothing_is_believed_of_a_trace_with_a_schema_that_is_not_understood(spark: SparkSession) -> None:
    header = {"kind": "header", "schema_version": 2, "wall_ts": 1, "trace_id": "t"}
    found = taken(frame(spark, header, BEAT, {**BEAT, "trace_id": "other"}))
    assert one(found.event).trace_id == "other"
    assert {row.reason for row in found.quarantine.collect()} == {"unknown_version"}


def test_an_equal_event_is_a_duplicate_and_another_one_with_its_key_a_conflict(spark: SparkSession) -> None:
    lines = frame(spark, BEAT, BEAT, {**BEAT, "seq": 8}).union(frame(spark, {**BEAT, "node": 2}, file="b.jsonl"))
    found = taken(lines)
    assert {(row.seq, row.node) for row in found.event.collect()} == {(7, 1), (8, 1)}
    bad = one(found.quarantine)
    assert (bad.reason, bad.source_file, bad.line_no) == ("conflict", "b.jsonl", 1)
    assert json.loads(bad.raw)["node"] == 2
    counts = {row.source_file: row for row in found.counts.collect()}
    assert (counts["a.jsonl"].event, counts["a.jsonl"].duplicate, counts["b.jsonl"].quarantined) == (2, 1, 1)


def test_what_is_known_from_before_counts_as_come_before(spark: SparkSession) -> None:
    known = taken(frame(spark, BEAT, {**BEAT, "seq": 9})).event
    found = taken(frame(spark, BEAT, {**BEAT, "seq": 8}, {**BEAT, "seq": 9, "node": 4}), known)
    assert [row.seq for row in found.event.collect()] == [8]
    counts = one(found.counts)
    assert (counts.read, counts.event, counts.duplicate, counts.quarantined) == (3, 1, 1, 1)


def test_what_the_memory_has_lost_yields_to_the_event_of_another_file(spark: SparkSession) -> None:
    lost = {"seq": 7, "wall_ts": 5, "kind": "dropped", "count": 7, "trace_id": "t"}
    found = taken(frame(spark, lost, BEAT))
    assert one(found.event).kind == "request"
    assert one(found.counts).duplicate == 1


def test_how_a_test_ended_is_no_event(spark: SparkSession) -> None:
    end = {"kind": "test", "trace_id": "t", "test_id": "x", "outcome": "failed", "duration_ms": 12.5, "rerun": 1}
    found = taken(frame(spark, BEAT, end))
    outcome = one(found.outcome)
    assert (outcome.trace_id, outcome.test_id, outcome.outcome, outcome.duration_ms) == ("t", "x", "failed", 12.5)
    assert one(found.counts).test == 1


def test_rows_of_a_table_are_the_same_events_as_their_lines(spark: SparkSession) -> None:
    header = {"kind": "header", "schema_version": 1, "wall_ts": 3, "trace_id": "t", "run_id": "r"}
    by_line = taken(frame(spark, BEAT))
    columns = "trace_id string, seq long, wall_us long, kind string, body string"
    line = spark.createDataFrame([("t", 0, 3, "header", json.dumps(header))], columns)
    rows = by_line.event.unionByName(line, allowMissingColumns=True).selectExpr("*", "'p' source_file", "'i' ingest_id")
    by_table = intake.ingest(intake.parse_table(rows))
    assert by_table.event.collect() == by_line.event.collect()
    assert one(by_table.header).run_id == "r"
    assert taken(frame(spark, BEAT), by_table.event).event.isEmpty()


def test_a_row_of_a_table_without_a_key_goes_to_quarantine(spark: SparkSession) -> None:
    rows = spark.sql("select 't' trace_id, 'state' kind, 5 wall_us, 'p' source_file, 'i' ingest_id")
    bad = one(intake.ingest(intake.parse_table(rows)).quarantine)
    assert (bad.reason, bad.line_no, json.loads(bad.raw)["kind"]) == ("missing_key", None, "state")


def test_numbers_that_are_as_far_apart_as_can_be_are_events(spark: SparkSession) -> None:
    found = taken(frame(spark, BEAT | {"seq": -5}, BEAT | {"seq": 2**63 - 1}))
    assert sorted(row.seq for row in found.event.collect()) == [-5, 2**63 - 1]
