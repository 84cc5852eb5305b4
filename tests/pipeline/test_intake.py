"""Ingestion: events, duplicates, and quarantined rows with their reasons."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

from spark.literal_frames import literal

from koordinator.emulator.pages.perfetto import perfetto_of
from koordinator.pipeline.bronze import lines as bronze
from koordinator.pipeline.schema import API_KEY_MAX, BRONZE_LINE, EVENT, REASONS
from koordinator.pipeline.silver import intake

if TYPE_CHECKING:
    import pytest
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
    "principal": "User:alice",
    "group_id": "g",
    "group_ts_us": 2_000_000,
    "generation": 3,
    "trace_id": "t",
}


def read(spark: SparkSession, folder: Path) -> DataFrame:
    return bronze.bronze_lines(bronze.select_lines(spark.read.text(str(folder))))


def ingested(lines: DataFrame, known: DataFrame | None = None) -> IngestedRows:
    return intake.ingest(intake.parse_lines(lines, small=True), known)


def frame(spark: SparkSession, *lines: dict[str, object] | str, file: str = "a.jsonl") -> DataFrame:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    rows = ({"row_id": number, "raw": text} for number, text in enumerate(texts, start=5))
    return literal(spark, BRONZE_LINE, *rows, source_file=file, block_start=0, ingest_id="i", file_size=9)


def one(frame: DataFrame) -> Row:
    (row,) = frame.collect()
    return row


def test_every_line_of_a_trace_becomes_an_event(spark: SparkSession) -> None:
    found = ingested(read(spark, TRACES / "cooperative.jsonl"))
    trace_lines = [json.loads(line) for line in (TRACES / "cooperative.jsonl").read_text().splitlines()]
    events = {row.seq: row for row in found.event.collect()}
    assert found.event.columns == EVENT.names
    assert sorted(events) == [line["seq"] for line in trace_lines[1:]]
    others = {"wall_ts": "wall_us", "group_ts_us": "group_us"}
    for line in trace_lines[1:]:
        row = events[line["seq"]].asDict()
        for name, value in line.items():
            if name == "body":
                assert json.loads(row["body"]) == value
            else:
                assert row[others.get(name, name)] == value, name
    assert one(found.header).cluster == trace_lines[0]["cluster"]
    counts = one(found.counts)
    assert (counts.read, counts.event, counts.header, counts.quarantined) == (
        len(trace_lines),
        len(trace_lines) - 1,
        1,
        0,
    )
    assert (counts.source, found.quarantine.count()) == ("koordinator", 0)


def test_lines_without_a_trace_id_belong_to_their_rotated_or_compressed_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = (TRACES / "static_bounce.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "x.jsonl").write_text("".join(lines[:50]))
    (tmp_path / "x.jsonl.1").write_text("".join(lines[50:90]))
    (tmp_path / "x.jsonl.2026-11-21-20.gz").write_bytes(gzip.compress("".join(lines[90:]).encode()))
    found = ingested(read(spark, tmp_path))
    assert found.event.select("trace_id").distinct().count() == 1
    assert found.event.count() == len(lines) - 1
    assert found.counts.count() == 3


def test_the_trace_id_of_a_line_precedes_its_file(spark: SparkSession) -> None:
    a = frame(spark, BEAT, file="a.jsonl").union(frame(spark, {**BEAT, "seq": 8}, file="b.txt"))
    assert {row.trace_id for row in ingested(a).event.collect()} == {"t"}


def test_log_lines_are_recognized_by_content_and_counted(spark: SparkSession) -> None:
    by = "[GroupCoordinator id=3 topic=__consumer_offsets partition=1]"
    log = (
        "[2026-11-21 20:15:00,100] INFO Loading the log (kafka.log.LogManager)",
        f"[2026-11-21 20:15:01,123] INFO {by} Group g removed dynamic members who haven't joined: [c-1, c-2] (k)",
        f"[2026-11-21 20:15:02,123] INFO {by} Preparing to rebalance group g in state PreparingRebalance with",
        "",
    )
    lines = frame(spark, *log, file="server.log").union(frame(spark, BEAT, "no log", file="trace.txt"))
    found = ingested(lines)
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


def test_steps_after_the_parsing_of_a_log_do_not_plan_it_again(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "[2026-11-21 20:15:02,123] INFO [GroupCoordinator 1]: Preparing to rebalance group g in state Stable with"
    ingested(frame(spark, line, file="server.log")).event.explain(extended=True)
    plan = capsys.readouterr().out
    assert "Physical Plan" in plan
    assert "regexp_extract(" not in plan


def test_an_invalid_line_is_quarantined_with_its_reason_and_position(spark: SparkSession) -> None:
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
    found = ingested(frame(spark, BEAT, *(line for line, _, _ in bad)))
    rows = {row.line_no: row for row in found.quarantine.collect()}
    for number, (line, reason, detail) in enumerate(bad, start=2):
        assert (rows[number].reason, rows[number].source_file) == (reason, "a.jsonl")
        assert detail in rows[number].detail
        assert rows[number].raw == (line if isinstance(line, str) else json.dumps(line))
        assert reason in REASONS
    assert (one(found.event).seq, one(found.event).principal) == (BEAT["seq"], BEAT["principal"])
    counts = one(found.counts)
    assert (counts.read, counts.event, counts.quarantined) == (len(bad) + 1, 1, len(bad))


def test_a_trace_in_perfettos_format_is_ignored(spark: SparkSession) -> None:
    text = json.dumps(perfetto_of(json.loads(line) for line in (TRACES / "late_commit.jsonl").read_text().splitlines()))
    counts = one(ingested(frame(spark, text, file="trace.json")).counts)
    assert (counts.read, counts.ignored, counts.quarantined) == (1, 1, 0)


def test_line_numbers_continue_over_the_parts_of_a_file(spark: SparkSession) -> None:
    places = ((0, 70, ""), (0, 71, ""), (900, 3, "?"))
    rows = (dict(zip(("block_start", "row_id", "raw"), place, strict=True)) for place in places)
    found = ingested(literal(spark, BRONZE_LINE, *rows, source_file="a.jsonl", ingest_id="i", file_size=9))
    assert one(found.quarantine).line_no == 3
    assert one(found.counts).ignored == 2


def test_a_trace_with_an_unknown_schema_is_quarantined_entirely(spark: SparkSession) -> None:
    header = {"kind": "header", "schema_version": 2, "wall_ts": 1, "trace_id": "t"}
    found = ingested(frame(spark, header, BEAT, {**BEAT, "trace_id": "other"}))
    assert one(found.event).trace_id == "other"
    assert {row.reason for row in found.quarantine.collect()} == {"unknown_version"}


def test_an_equal_event_is_a_duplicate_and_a_different_one_a_conflict(spark: SparkSession) -> None:
    lines = frame(spark, BEAT, BEAT, {**BEAT, "seq": 8}).union(frame(spark, {**BEAT, "node": 2}, file="b.jsonl"))
    found = ingested(lines)
    assert {(row.seq, row.node) for row in found.event.collect()} == {(7, 1), (8, 1)}
    bad = one(found.quarantine)
    assert (bad.reason, bad.source_file, bad.line_no) == ("conflict", "b.jsonl", 1)
    assert json.loads(bad.raw)["node"] == 2
    counts = {row.source_file: row for row in found.counts.collect()}
    assert (counts["a.jsonl"].event, counts["a.jsonl"].duplicate, counts["b.jsonl"].quarantined) == (2, 1, 1)


def test_events_of_earlier_batches_take_precedence(spark: SparkSession) -> None:
    known = ingested(frame(spark, BEAT, {**BEAT, "seq": 9})).event
    found = ingested(frame(spark, BEAT, {**BEAT, "seq": 8}, {**BEAT, "seq": 9, "node": 4}), known)
    assert [row.seq for row in found.event.collect()] == [8]
    counts = one(found.counts)
    assert (counts.read, counts.event, counts.duplicate, counts.quarantined) == (3, 1, 1, 1)


def test_a_dropped_event_yields_to_the_event_in_another_file(spark: SparkSession) -> None:
    lost = {"seq": 7, "wall_ts": 5, "kind": "dropped", "count": 7, "trace_id": "t"}
    found = ingested(frame(spark, lost, BEAT))
    assert one(found.event).kind == "request"
    assert one(found.counts).duplicate == 1


def test_a_test_outcome_is_not_an_event(spark: SparkSession) -> None:
    end = {"kind": "test", "trace_id": "t", "test_id": "x", "outcome": "failed", "duration_ms": 12.5, "rerun": 1}
    found = ingested(frame(spark, BEAT, end))
    outcome = one(found.outcome)
    assert (outcome.trace_id, outcome.test_id, outcome.outcome, outcome.duration_ms) == ("t", "x", "failed", 12.5)
    assert one(found.counts).test == 1


def test_rows_of_a_table_give_the_same_events_as_lines(spark: SparkSession) -> None:
    header = {"kind": "header", "schema_version": 1, "wall_ts": 3, "trace_id": "t", "run_id": "r"}
    by_line = ingested(frame(spark, BEAT))
    columns = "trace_id string, seq long, wall_us long, kind string, body string"
    line = spark.createDataFrame([("t", 0, 3, "header", json.dumps(header))], columns)
    rows = by_line.event.unionByName(line, allowMissingColumns=True).selectExpr("*", "'p' source_file", "'i' ingest_id")
    by_table = intake.ingest(intake.parse_table(rows))
    assert by_table.event.collect() == by_line.event.collect()
    assert one(by_table.header).run_id == "r"
    assert ingested(frame(spark, BEAT), by_table.event).event.isEmpty()


def test_a_table_row_without_a_key_is_quarantined(spark: SparkSession) -> None:
    rows = spark.sql("select 't' trace_id, 'state' kind, 5 wall_us, 'p' source_file, 'i' ingest_id")
    bad = one(intake.ingest(intake.parse_table(rows)).quarantine)
    assert (bad.reason, bad.line_no, json.loads(bad.raw)["kind"]) == ("missing_key", None, "state")


def test_sequence_numbers_may_span_the_whole_range(spark: SparkSession) -> None:
    found = ingested(frame(spark, BEAT | {"seq": -5}, BEAT | {"seq": 2**63 - 1}))
    assert sorted(row.seq for row in found.event.collect()) == [-5, 2**63 - 1]
