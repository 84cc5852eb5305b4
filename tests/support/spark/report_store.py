"""Small tables for the report: a static, a dynamic and a cooperative group, with a few failures.

The figures of their report are easy to count by hand.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from koordinator.pipeline import schema
from koordinator.pipeline.frames import with_constants
from koordinator.pipeline.report.facts import read_facts
from koordinator.pipeline.schema import TABLES
from koordinator.pipeline.store import Store
from koordinator.pipeline.views import spark_query
from spark.literal_frames import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from koordinator.pipeline.report.facts import Facts
    from koordinator.pipeline.schema import Table
    from koordinator.pipeline.views import Query

BEGAN = datetime(2026, 11, 21, 12, tzinfo=UTC)

EVIL = "svc</script><img src=x onerror=alert(1)>|`*$x$ @all"
"""A hostile name."""

UUIDS = ("-3e1f2a90-92fe-4b8f-a2e1-9f0c5b8d7e64", "-0a5d70c1-7a60-4d2b-8a54-2f6e1c9b3d18")
"""The suffixes that Kafka adds to client ids."""

Row = dict[str, Any]


def at(second: int) -> datetime:
    return BEGAN + timedelta(seconds=second)


def rebalance(group: str, number: int, second: int, ms: float, **more: Any) -> Row:
    us = int(at(second).timestamp() * 1e6)
    return {
        "group_id": group,
        "rebalance_no": number,
        "start_seq": 10 * number,
        "started_at": at(second),
        "t_start_us": us,
        "join_ms": ms * 0.8,
        "sync_ms": ms * 0.2,
        "total_ms": float(ms),
        "outcome": "completed",
        "membership": "dynamic",
        "mode": "eager",
        "cause": "member_join",
        "followup": False,
        **more,
    }


def stopped(group: str, number: int, member: str, ms: float, **more: Any) -> Row:
    return {"group_id": group, "rebalance_no": number, "member": member, "stopped_ms": ms, **more}


EAGER = {"mode": "eager"}
STATIC = {"membership": "static"}
ZOMBIE = {"is_zombie": True, "gen_lag": 2}
COOPERATIVE = {"mode": "cooperative", "protocol": "cooperative-sticky"}

ROWS: dict[str, list[Row]] = {
    schema.TRACE.path: [
        {"source": "koordinator", "n_events": 500, "lost": 0, "started_us": int(at(-600_000).timestamp() * 1e6)}
    ],
    schema.REBALANCE.path: [
        rebalance("s", 1, 0, 100, **STATIC, partitions_total=4, partitions_moved=0, moves_minimum=0),
        rebalance("d", 1, 0, 50, partitions_total=4, partitions_moved=0, moves_minimum=0),
        rebalance(
            *("d", 2, 20, 400),
            cause="member_leave",
            sub_cause="consumer_closed",
            trigger_member=f"blue-1{UUIDS[0]}",
            straggler_member=f"slow-1{UUIDS[0]}",
            straggler_wait_ms=300.0,
            straggler_share=0.75,
            n_timed_out=1,
            partitions_total=4,
            partitions_moved=3,
            moves_minimum=2,
            storm_id="d-2",
        ),
        rebalance("d", 3, 21, 200, partitions_total=4, partitions_moved=2, moves_minimum=2, storm_id="d-2"),
        rebalance("d", 4, 30, 10, cause="session_expired", outcome="emptied", join_ms=None, sync_ms=None),
        rebalance("d", 5, 40, 10, outcome="superseded", join_ms=None, sync_ms=None),
        rebalance("c", 1, 0, 30, **COOPERATIVE, partitions_total=4, partitions_moved=0, moves_minimum=0),
        rebalance(
            *("c", 2, 10, 20),
            **COOPERATIVE,
            cause="leader_rejoin",
            followup=True,
            partitions_total=4,
            partitions_moved=1,
            moves_minimum=1,
        ),
    ],
    schema.MEMBER_DOWNTIME.path: [
        stopped("s", 1, "a", 80.0, **STATIC),
        stopped("d", 1, f"worker{UUIDS[0]}", 40.0),
        stopped("d", 2, f"worker{UUIDS[0]}", 380.0, **EAGER, revoked_n=2, kept_n=1, commit_before_revoke=False),
        stopped("d", 2, f"other{UUIDS[1]}", 80.0, **EAGER, revoked_n=0, kept_n=1),
        stopped("d", 3, f"worker{UUIDS[1]}", 180.0),
        stopped("c", 1, "calm", 0.0, mode="cooperative"),
        stopped("c", 2, "calm", 0.0, mode="cooperative"),
    ],
    schema.PARTITION_GAP.path: [
        {"group_id": "d", "rebalance_no": 2, "partition": 0, "gap_ms": 400.0, "redelivered_records": 7},
        {"group_id": "d", "rebalance_no": 2, "partition": 1, "gap_ms": 600.0},
        {"group_id": "d", "rebalance_no": 3, "partition": 0, "gap_ms": 200.0},
        {"group_id": "c", "rebalance_no": 2, "partition": 3, "gap_ms": 20.0, "redelivered_records": 0},
        {"group_id": "d", "rebalance_no": 1, "partition": 0, "old_member": None},
    ],
    schema.STATE_TIME.path: [
        {"group_id": "s", "state": "Stable", "ms": 3_600_000.0, "visits": 1},
        {"group_id": "s", "state": "PreparingRebalance", "ms": 80.0, "visits": 1},
        {"group_id": "d", "state": "Stable", "ms": 1_799_500.0, "visits": 3},
        {"group_id": "d", "state": "PreparingRebalance", "ms": 500.0, "visits": 5},
        {"group_id": "c", "state": "Stable", "ms": 1_800_000.0, "visits": 2},
    ],
    schema.GROUP.path: [{"group_id": group} for group in "sdc"],
    schema.EVENT.path: [
        {"group_id": group, "kind": "member", "change": change, "cause": cause, "member_id": member, "seq": seq}
        for seq, (group, change, cause, member) in enumerate(
            (
                ("x", "removed", "session_expired", f"{EVIL}{UUIDS[0]}"),
                ("x", "removed", "session_expired", f"{EVIL}{UUIDS[1]}"),
                ("d", "removed", "join_timeout", "m-1"),
                ("d", "removed", "member_leave", "m-2"),
                ("d", "added", "session_expired", "m-3"),
            )
        )
    ],
    schema.COMMIT.path: [
        {"group_id": "d", "seq": 1, "error": "NONE", "error_code": 0, "state_at": "Stable"},
        {"group_id": "d", "seq": 2, "error": "NONE", "error_code": 0, "state_at": "Stable"},
        {"group_id": "d", "seq": 3, "error": "ILLEGAL_GENERATION", "state_at": "Stable", **ZOMBIE},
        {"group_id": "d", "seq": 4, "error": "REBALANCE_IN_PROGRESS", "state_at": "CompletingRebalance"},
        {"group_id": "d", "seq": 5, "error": None, "state_at": None},
    ],
    schema.FENCING.path: [
        {"group_id": "s", "seq": 1, "instance_id": "a", "api": "Heartbeat", "stage": "Stable"},
        {"group_id": "s", "seq": 2, "instance_id": "a", "api": "Heartbeat", "stage": "Stable"},
    ],
    schema.TRANSACTION.path: [
        {"start_seq": 1, "outcome": "committed", "cause": "committed", "total_ms": 4.0, "markers_ms": 1.0,
         "n_partitions": 2, "n_offsets": 1},
        {"start_seq": 2, "outcome": "committed", "cause": "committed", "total_ms": 6.0, "markers_ms": 3.0,
         "n_partitions": 1, "n_offsets": 0},
        {"start_seq": 3, "outcome": "aborted", "cause": "timed_out", "total_ms": 60_000.0, "n_partitions": 1,
         "n_offsets": 0},
    ],
    schema.HEARTBEAT.path: [
        {"group_id": "d", "member": "m-1", "n": 20, "max_gap_ms": 9000.0, "max_ratio_to_session": 0.9},
        {"group_id": "d", "member": "m-2", "n": 20, "max_gap_ms": 3000.0, "max_ratio_to_session": 0.3},
    ],
    schema.AVOIDED.path: [{"group_id": "s", "seq": seq, "instance_id": "a"} for seq in (5, 6, 7)],
    schema.VERDICT.path: [
        {"group_id": group, "check_id": check, "title": f"what {check} wants", "severity": "error", **more}
        for group, check, more in (
            ("s", "S01", {"status": "pass", "subject": "coordinator"}),
            ("d", "S01", {"status": "pass", "subject": "coordinator"}),
            ("d", "C03", {"status": "fail", "subject": EVIL, "n_evidence": 1, "first_seq": 3, "last_seq": 3,
                          "message": f"{EVIL} commits for generation 1"}),
            ("s", "C03", {"status": "not_applicable", "subject": "clients"}),
        )
    ],
    schema.FLAKY.path: [
        {"test_id": "test_flaky", "runs": 10, "failed": 3, "flake_rate": 0.3, "rebalances": 4.0},
        {"test_id": "test_calm", "runs": 10, "failed": 0, "flake_rate": 0.0, "rebalances": 1.0},
    ],
    schema.CLIENT_MATRIX.path: [
        {"client_software": "lib", "client_version": "1", "scenario": scenario, "runs": runs, "failed": 0, **more}
        for scenario, runs, more in (
            ("a", 1, {"status": "fail", "rebalances": 4.0}),
            ("b", 3, {"status": "pass", "rebalances": 2.0}),
        )
    ],
    schema.CLIENT_JOIN.path: [
        {"source": "java", "cause": "member_join", "start_seq": 1, "generation": 1, "total_ms": 30.0},
        {"source": "java", "cause": "member_join", "start_seq": 2},
    ],
    schema.COUNTS.path: [
        {"source_file": "a.jsonl", "source": "koordinator", "read": 502, "event": 500, "header": 1, "quarantined": 1}
    ],
    schema.UNREAD.path: [
        {"source_file": "b.log", "kind": "foreign", "text": "", "n": 1_200, "example": "app-1 | hello"},
        {"source_file": "b.log", "kind": "other_text", "text": "Something", "n": 2, "example": EVIL},
        {"source_file": "c.log", "kind": "foreign", "text": "", "n": 3, "example": "app-2 | hello"},
    ],
    schema.QUARANTINE.path: [{"reason": "bad_json", "detail": EVIL, "source_file": "a.jsonl", "line_no": 77}],
}  # fmt: skip

ALL_HAVE: dict[str, Any] = {
    "trace_id": "t",
    "run_id": "r",
    "test_id": EVIL,
    "topic": "orders",
    "old_member": "m-1",
    "new_member": "m-2",
}


def reader(rows: dict[str, list[Row]] = ROWS) -> Callable[[Table], pa.Table]:
    """Return a function that returns the tables of this store."""

    def read(table: Table) -> pa.Table:
        also = {} if table is schema.FLAKY else ALL_HAVE
        shared = {name: value for name, value in also.items() if name in table.names}
        return literal(None, table, *rows.get(table.path, []), **shared)

    assert set(rows) <= set(TABLES)
    return read


def write_store(root: Path, tables: dict[Table, pa.Table]) -> None:
    """Write a store with these tables, from one load."""
    draft = Store(str(root)).begin()
    for table, frame in tables.items():
        made = with_constants(frame, **dict.fromkeys(table.origin, "text-1"))
        draft.append(made, table, "text-1", ["text-1"])
    draft.commit()


def query_of(spark: SparkSession, root: Path, rows: dict[str, list[Row]] = ROWS, *, by_spark: bool = False) -> Query:
    """Write a store with these rows into a new folder, and return its queries: those of DuckDB, or of Spark."""
    read = reader(rows)
    write_store(root, {schema.TABLES[path]: read(schema.TABLES[path]) for path in rows})
    return spark_query(Store(str(root)).open(spark)) if by_spark else Store(str(root)).query(lambda: spark)


@cache
def store_facts(spark: SparkSession, *, by_spark: bool = False) -> Facts:
    """Return the facts of this store, queried once for all tests."""
    with TemporaryDirectory() as folder:
        return read_facts(query_of(spark, Path(folder), by_spark=by_spark))


@cache
def empty_facts(spark: SparkSession) -> Facts:
    """Return the facts of an empty store."""
    with TemporaryDirectory() as folder:
        return read_facts(query_of(spark, Path(folder), {}))
