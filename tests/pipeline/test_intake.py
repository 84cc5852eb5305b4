"""Ingestion: events, duplicates, and quarantined rows with their reasons."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from spark.literal_frames import literal

from koordinator.emulator.pages.perfetto import perfetto_of
from koordinator.pipeline.frames import rows_of, table_of, with_constants
from koordinator.pipeline.local_files import list_files, read_lines
from koordinator.pipeline.schema import API_KEY_MAX, BRONZE_LINE, EVENT, REASONS
from koordinator.pipeline.silver import intake

if TYPE_CHECKING:
    from koordinator.pipeline.frames import Frame
    from koordinator.pipeline.queries import Row
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


def read(folder: Path) -> pa.Table:
    return read_lines(list_files([str(folder)]) or [])


def ingested(lines: pa.Table, known: pa.Table | None = None) -> IngestedRows:
    return intake.ingest(intake.parse_lines(lines, {*lines["source_file"].to_pylist()}), known=known)


def frame(*lines: dict[str, object] | str, file: str = "a.jsonl") -> pa.Table:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    rows = ({"row_id": number, "raw": text} for number, text in enumerate(texts, start=5))
    return literal(None, BRONZE_LINE, *rows, source_file=file, block_start=0, ingest_id="i", file_size=9)


def one(frame: Frame) -> Row:
    (row,) = rows_of(frame)
    return row


def test_every_line_of_a_trace_becomes_an_event() -> None:
    found = ingested(read(TRACES / "cooperative.jsonl"))
    trace_lines = [json.loads(line) for line in (TRACES / "cooperative.jsonl").read_text().splitlines()]
    events = {row.seq: row for row in rows_of(found.event)}
    assert found.event.column_names == EVENT.names
    assert sorted(events) == [line["seq"] for line in trace_lines[1:]]
    others = {"wall_ts": "wall_us", "group_ts_us": "group_us"}
    for line in trace_lines[1:]:
        row = events[line["seq"]]
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
    assert (counts.source, len(found.quarantine)) == ("koordinator", 0)


def test_lines_without_a_trace_id_belong_to_their_rotated_or_compressed_file(tmp_path: Path) -> None:
    lines = (TRACES / "static_bounce.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "x.jsonl").write_text("".join(lines[:50]))
    (tmp_path / "x.jsonl.1").write_text("".join(lines[50:90]))
    (tmp_path / "x.jsonl.2026-11-21-20.gz").write_bytes(gzip.compress("".join(lines[90:]).encode()))
    found = ingested(read(tmp_path))
    assert len(found.event["trace_id"].unique()) == 1
    assert len(found.event) == len(lines) - 1
    assert len(found.counts) == 3


def test_the_trace_id_of_a_line_precedes_its_file() -> None:
    a = pa.concat_tables([frame(BEAT, file="a.jsonl"), frame({**BEAT, "seq": 8}, file="b.txt")])
    assert {row.trace_id for row in rows_of(ingested(a).event)} == {"t"}


def test_log_lines_are_recognized_by_content_and_counted() -> None:
    by = "[GroupCoordinator id=3 topic=__consumer_offsets partition=1]"
    log = (
        "[2026-11-21 20:15:00,100] INFO Loading the log (kafka.log.LogManager)",
        f"[2026-11-21 20:15:01,123] INFO {by} Group g removed dynamic members who haven't joined: [c-1, c-2] (k)",
        f"[2026-11-21 20:15:02,123] INFO {by} Preparing to rebalance group g in state PreparingRebalance with",
        "",
    )
    lines = pa.concat_tables([frame(*log, file="server.log"), frame(BEAT, "no log", file="trace.txt")])
    found = ingested(lines)
    counts = {row.source_file: row for row in rows_of(found.counts)}
    of_log, of_trace = counts["server.log"], counts["trace.txt"]
    assert (of_log.source, of_trace.source) == ("server_log", "koordinator")
    assert (of_log.read, of_log.event, of_log.ignored, of_log.quarantined) == (4, 1, 2, 1)
    assert (of_trace.read, of_trace.event, of_trace.quarantined) == (2, 1, 1)
    gone = [row for row in rows_of(found.event) if row.source == "server_log"]
    assert {(row.kind, row.change, row.member_id) for row in gone} == {
        ("member", "removed", "c-1"),
        ("member", "removed", "c-2"),
    }
    assert {(row.reason, row.line_no) for row in rows_of(found.quarantine)} == {("bad_line", 3), ("bad_json", 2)}


def test_an_invalid_line_is_quarantined_with_its_reason_and_position() -> None:
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
    found = ingested(frame(BEAT, *(line for line, _, _ in bad)))
    rows = {row.line_no: row for row in rows_of(found.quarantine)}
    for number, (line, reason, detail) in enumerate(bad, start=2):
        assert (rows[number].reason, rows[number].source_file) == (reason, "a.jsonl")
        assert detail in rows[number].detail
        assert rows[number].raw == (line if isinstance(line, str) else json.dumps(line))
        assert reason in REASONS
    assert (one(found.event).seq, one(found.event).principal) == (BEAT["seq"], BEAT["principal"])
    counts = one(found.counts)
    assert (counts.read, counts.event, counts.quarantined) == (len(bad) + 1, 1, len(bad))


def test_a_trace_in_perfettos_format_is_ignored() -> None:
    text = json.dumps(perfetto_of(json.loads(line) for line in (TRACES / "late_commit.jsonl").read_text().splitlines()))
    counts = one(ingested(frame(text, file="trace.json")).counts)
    assert (counts.read, counts.ignored, counts.quarantined) == (1, 1, 0)


def test_line_numbers_continue_over_the_parts_of_a_file() -> None:
    places = ((0, 70, ""), (0, 71, ""), (900, 3, "?"))
    rows = (dict(zip(("block_start", "row_id", "raw"), place, strict=True)) for place in places)
    found = ingested(literal(None, BRONZE_LINE, *rows, source_file="a.jsonl", ingest_id="i", file_size=9))
    assert one(found.quarantine).line_no == 3
    assert one(found.counts).ignored == 2


def test_a_trace_with_an_unknown_schema_is_quarantined_entirely() -> None:
    header = {"kind": "header", "schema_version": 2, "wall_ts": 1, "trace_id": "t"}
    found = ingested(frame(header, BEAT, {**BEAT, "trace_id": "other"}))
    assert one(found.event).trace_id == "other"
    assert {row.reason for row in rows_of(found.quarantine)} == {"unknown_version"}


def test_an_equal_event_is_a_duplicate_and_a_different_one_a_conflict() -> None:
    lines = pa.concat_tables([frame(BEAT, BEAT, {**BEAT, "seq": 8}), frame({**BEAT, "node": 2}, file="b.jsonl")])
    found = ingested(lines)
    assert {(row.seq, row.node) for row in rows_of(found.event)} == {(7, 1), (8, 1)}
    bad = one(found.quarantine)
    assert (bad.reason, bad.source_file, bad.line_no) == ("conflict", "b.jsonl", 1)
    assert json.loads(bad.raw)["node"] == 2
    counts = {row.source_file: row for row in rows_of(found.counts)}
    assert (counts["a.jsonl"].event, counts["a.jsonl"].duplicate, counts["b.jsonl"].quarantined) == (2, 1, 1)


def test_events_of_earlier_batches_take_precedence() -> None:
    known = ingested(frame(BEAT, {**BEAT, "seq": 9})).event
    found = ingested(frame(BEAT, {**BEAT, "seq": 8}, {**BEAT, "seq": 9, "node": 4}), known)
    assert [row.seq for row in rows_of(found.event)] == [8]
    counts = one(found.counts)
    assert (counts.read, counts.event, counts.duplicate, counts.quarantined) == (3, 1, 1, 1)


def test_a_dropped_event_yields_to_the_event_in_another_file() -> None:
    lost = {"seq": 7, "wall_ts": 5, "kind": "dropped", "count": 7, "trace_id": "t"}
    found = ingested(frame(lost, BEAT))
    assert one(found.event).kind == "request"
    assert one(found.counts).duplicate == 1


def test_a_test_outcome_is_not_an_event() -> None:
    end = {"kind": "test", "trace_id": "t", "test_id": "x", "outcome": "failed", "duration_ms": 12.5, "rerun": 1}
    found = ingested(frame(BEAT, end))
    outcome = one(found.outcome)
    assert (outcome.trace_id, outcome.test_id, outcome.outcome, outcome.duration_ms) == ("t", "x", "failed", 12.5)
    assert one(found.counts).test == 1


def of_table(*rows: dict[str, object]) -> pa.Table:
    """Return rows of silver/event as they are read from a Parquet file."""
    return with_constants(table_of(rows, EVENT), source_file="p", ingest_id="i")


def test_rows_of_a_table_give_the_same_events_as_lines() -> None:
    header = {"kind": "header", "schema_version": 1, "wall_ts": 3, "trace_id": "t", "run_id": "r"}
    by_line = ingested(frame(BEAT))
    line = {"trace_id": "t", "seq": 0, "wall_us": 3, "kind": "header", "body": json.dumps(header)}
    by_table = intake.ingest(intake.parse_table(of_table(*rows_of(by_line.event), line)))
    assert rows_of(by_table.event) == rows_of(by_line.event)
    assert one(by_table.header).run_id == "r"
    assert not rows_of(ingested(frame(BEAT), by_table.event).event)


def test_a_table_row_without_a_key_is_quarantined() -> None:
    found = intake.ingest(intake.parse_table(of_table({"trace_id": "t", "kind": "state", "wall_us": 5})))
    bad = one(found.quarantine)
    assert (bad.reason, bad.line_no, json.loads(bad.raw)["kind"]) == ("missing_key", None, "state")
    assert (one(found.counts).read, one(found.counts).quarantined) == (1, 1)


def test_sequence_numbers_may_span_the_whole_range() -> None:
    found = ingested(frame(BEAT | {"seq": -5}, BEAT | {"seq": 2**63 - 1}))
    assert sorted(row.seq for row in rows_of(found.event)) == [-5, 2**63 - 1]
