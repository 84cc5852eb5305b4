"""Loads of logs: files of all kinds, several brokers, and the end of what was watched."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest
from spark.loads import load, read_table
from spark.log_rows import recorded

from koordinator.pipeline import layers
from koordinator.pipeline.frames import rows_of
from koordinator.pipeline.job_errors import JobFailed
from koordinator.pipeline.local_files import LogOptions, list_files, read_lines
from koordinator.pipeline.schema import BRONZE_LINE, COUNTS, EVENT, QUARANTINE, ROUND, STATE_TIME, TRACE, UNREAD
from koordinator.pipeline.silver.intake import ingest, parse_lines
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from koordinator.pipeline.loading import LoadResult
    from koordinator.pipeline.schema import Table

BUILT = {"silver/trace", "silver/fold", "silver/round", "gold/state_time", "silver/group_state"}

STABILIZED = "Stabilized group {} generation {} (__consumer_offsets-3) with 2 members"
ASSIGNED = (
    "Assignment received from leader c-1 for group {} for generation {}."
    " The group has 2 members, 0 of which are static."
)
PREPARING = (
    "Preparing to rebalance group {} in state PreparingRebalance with old generation {} (__consumer_offsets-3)"
    " (reason: Adding new member c-1 with group instance id None)"
)
UNLOADING = "Unloading group metadata for {} with generation {}"


def line(node: int, time: str, message: str, group: str = "g", generation: int = 1) -> str:
    text = message.format(group, generation)
    return (
        f"[2026-11-21 {time},000] INFO [GroupCoordinator {node}]: {text} (kafka.coordinator.group.GroupCoordinator)\n"
    )


def other(time: str) -> str:
    return f"[2026-11-21 {time},000] INFO Rolled new log segment (kafka.log.UnifiedLog)\n"


def round_of(node: int, hour: int, generation: int) -> str:
    return (
        line(node, f"{hour:02}:00:00", PREPARING, generation=generation - 1)
        + line(node, f"{hour:02}:00:01", STABILIZED, generation=generation)
        + line(node, f"{hour:02}:00:02", ASSIGNED, generation=generation)
    )


ONE = other("07:59:00") + round_of(1, 8, 1) + line(1, "09:00:00", UNLOADING)
TWO = round_of(2, 10, 2) + other("20:00:02")
INVALID = "[2026-11-21 08:30:00,000] INFO caf\xe9 (kafka.log.UnifiedLog)\n".encode("latin-1")


def packed_and_cut(text: str) -> bytes:
    return gzip.compress(text.encode())[:-20]


@pytest.fixture(scope="module", autouse=True)
def _few_tables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "PER_HOME_STEPS", tuple(s for s in layers.PER_HOME_STEPS if s.table.path in BUILT))
        patch.setattr(layers, "STORE_STEPS", ())
        yield


class Loaded:
    """A store after one load."""

    def __init__(self, spark: SparkSession, folder: Path, files: dict[str, bytes], **options: Any) -> None:
        for name, content in files.items():
            path = folder / "inputs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.store, self._spark = folder / "store", spark
        self.result: LoadResult = load(
            spark, folder / "store", folder / "inputs", max_bad_ratio=0.5, options=LogOptions(**options)
        )

    def rows(self, table: Table) -> list[Row]:
        rows: list[Row] = Store(str(self.store)).open(self._spark).read(table).collect()
        return rows


@pytest.fixture(scope="module")
def mixed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Load a log with a rotated piece without a group, foreign files, invalid text, and a file that is cut off."""
    files = {
        "broker/server.log.1": other("06:00:00").encode(),
        "broker/server.log": ONE.encode() + INVALID,
        "controller.log": other("06:00:00").encode() * 3,
        "cut.log.gz": packed_and_cut("".join(recorded("4.3"))),
    }
    return Loaded(spark, tmp_path_factory.mktemp("mixed"), files)


@pytest.fixture(scope="module")
def brokers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Load the logs of two brokers of one cluster, between which a group's coordinator moves."""
    files = {"one/server.log": ONE.encode(), "two/server.log": TWO.encode()}
    return Loaded(spark, tmp_path_factory.mktemp("brokers"), files, cluster="east", time_zone="+01:00")


def test_a_log_without_a_known_line_is_ignored_and_named(mixed: Loaded) -> None:
    assert [name.rpartition("/")[2] for name in mixed.result.unknown] == ["controller.log"]
    counts = {row["source_file"].rpartition("/")[2]: row for row in mixed.rows(COUNTS)}
    assert (counts["controller.log"].source, counts["controller.log"].ignored) == ("unknown", 3)
    assert (counts["server.log.1"].source, counts["server.log.1"].ignored) == ("server_log", 1)


def test_a_file_that_is_cut_off_is_one_row_in_quarantine(mixed: Loaded) -> None:
    (row,) = mixed.rows(QUARANTINE)
    assert (row["source_file"].rpartition("/")[2], row.reason, row.line_no, row.raw) == (
        "cut.log.gz",
        "bad_file",
        None,
        None,
    )
    assert mixed.result.rows("quarantined") == 1
    assert mixed.result.bad_lines()[0].endswith(
        "cut.log.gz: bad_file: the file is cut off or damaged; replace it under a new name"
    )


def test_invalid_utf_8_becomes_valid_parquet(mixed: Loaded) -> None:
    lines = read_table(mixed.store, BRONZE_LINE).column("raw")
    lines.validate(full=True)
    assert [text for text in lines.to_pylist() if text and "caf" in text] == [
        "[2026-11-21 08:30:00,000] INFO caf\ufffd (kafka.log.UnifiedLog)"
    ]


def test_a_log_is_watched_from_its_first_line_to_its_last(mixed: Loaded) -> None:
    (row,) = mixed.rows(TRACE)
    assert (row.watched_us - row.started_us) / 3_600_000_000 == 2.5  # from 06:00 to the invalid line at 08:30


def test_a_group_whose_coordinator_moves_is_one_group_of_its_cluster(brokers: Loaded) -> None:
    (trace,) = brokers.rows(TRACE)
    assert (trace.cluster, trace.started_us) == ("east", 1_795_244_340_000_000)  # 07:59 at +01:00
    rounds = sorted(brokers.rows(ROUND), key=lambda row: row.rebalance_no)
    assert [(row.rebalance_no, row.gen_after, row.outcome) for row in rounds] == [
        (1, 1, "completed"),
        (2, 2, "completed"),
    ]


def test_a_group_has_its_state_until_its_logs_end(brokers: Loaded) -> None:
    hours = {row.state: round(row.ms / 3_600_000, 2) for row in brokers.rows(STATE_TIME)}
    assert hours == {"PreparingRebalance": 0.0, "CompletingRebalance": 0.0, "Stable": 11.0, "Dead": 1.0}


def test_a_small_log_never_refuses_a_folder_and_its_lines_are_named(spark: SparkSession, tmp_path: Path) -> None:
    odd = "INFO [GroupCoordinator 1]: Stabilized group g generation 5 with 2 members\n"
    for name, text in {"server.log": ONE + TWO, "odd.log": odd * 2}.items():
        (tmp_path / "inputs").mkdir(exist_ok=True)
        (tmp_path / "inputs" / name).write_text(text)
    loaded = load(spark, tmp_path / "store", tmp_path / "inputs", max_bad_ratio=0.001)
    assert (loaded.rows("quarantined"), loaded.refused_ratio) == (2, 0)
    first, second, *rest = loaded.unread_lines()
    assert first.endswith("odd.log: 2 of 2 lines were not understood")
    assert second == f"    2 bad_line: {odd.strip()}"
    assert [line.partition(": ")[2] for line in rest if "server.log" in line] == ["2 of 9 lines were not understood"]
    rows = read_table(tmp_path / "store", UNREAD).to_pylist()
    assert {(row["kind"], row["n"]) for row in rows} == {("bad_line", 2), ("foreign", 2)}
    with pytest.raises(JobFailed, match="2 of 2 rows are bad"):
        load(spark, tmp_path / "alone", tmp_path / "inputs" / "odd.log", max_bad_ratio=0.001)


def test_a_log_with_foreign_json_is_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    order = '{"kind": "order", "seq": 1}\n'
    (tmp_path / "inputs" / "all.log").write_text(order + ONE + order)
    loaded = load(spark, tmp_path / "store", tmp_path / "inputs")
    assert [(row.source, row.event, row.ignored) for row in loaded.counts] == [("server_log", 4, 3)]


@pytest.mark.slow
def test_a_growing_log_gives_the_same_events_as_a_complete_one(spark: SparkSession, tmp_path: Path) -> None:
    log, content = tmp_path / "growing" / "server.log", (ONE + TWO).encode()
    cuts = [len(ONE) - 30, len(ONE) + len(TWO) // 2, len(content)]  # in the middle of lines
    log.parent.mkdir()
    follow = LogOptions(follow=True)
    for cut in cuts:
        log.write_bytes(content[:cut])
        load(spark, tmp_path / "store", log.parent, options=follow)
    log.rename(log.with_suffix(".log.1"))
    log.write_text(round_of(1, 21, 3))
    load(spark, tmp_path / "store", log.parent, options=follow)
    load(spark, tmp_path / "whole", log.parent)
    followed, whole = (
        read_table(tmp_path / name, EVENT).select(["seq", "group_us", "wall_us", "kind", "generation"]).to_pylist()
        for name in ("store", "whole")
    )
    assert sorted(map(repr, followed)) == sorted(map(repr, whole))
    counts = read_table(tmp_path / "store", COUNTS).sort_by([("batch", "ascending"), ("source_file", "ascending")])
    # the new file and the renamed one, whose lines are duplicates, are in the last batch
    read = [(row["read"], row["duplicate"]) for row in counts.to_pylist()]
    assert read == [(4, 0), (2, 0), (3, 0), (3, 0), (9, 7)]


def test_rows_of_rotated_files_and_additional_events_are_counted(tmp_path: Path) -> None:
    lines = [f"{line}\n" for line in recorded("4.3")]
    begin = next(at for at in range(len(lines) // 2, len(lines)) if lines[at].startswith("["))
    (tmp_path / "server.log.2026-11-21-20.gz").write_bytes(gzip.compress("".join(lines[:begin]).encode()))
    (tmp_path / "server.log").write_text("".join(lines[begin:]))
    files = list_files([str(tmp_path)]) or []
    found = ingest(parse_lines(read_lines(files), [file.source_file for file in files]))
    counts, events = rows_of(found.counts), rows_of(found.event)
    assert [(row.source, row.quarantined, row.duplicate) for row in counts] == [("server_log", 0, 0)] * 2
    assert sum(row.read for row in counts) == sum(row.event + row.ignored for row in counts) == len(lines)
    assert sum(row.event + row.more for row in counts) == len(events)
    assert len({row.trace_id for row in events}) == 1
    assert sum(row.more for row in counts) > 0
