"""Marts: verdicts, and comparisons of runs, clients and tests."""

from __future__ import annotations

from .kinds import ArrayOf, StructOf, TableColumn
from .tables import BOOL, DOUBLE, INT, LONG, RUN_ID, STRING, TEST_ID, TIMESTAMP, TRACE_COLUMNS, TRACE_ID, table

VERDICT = table(
    "mart/verdict",
    "Every check of every group: S01 to S16 judge the coordinator, C01 to C14 its clients. T01 to T03 judge the "
    "transactions of a trace, without a group.",
    *TRACE_COLUMNS,
    ("subject", STRING, "`coordinator`, or the client library with its version; `clients` if there are several"),
    ("check_id", STRING, "S01 … T03"),
    ("title", STRING, "the requirement"),
    ("status", STRING, "pass, fail, inconclusive or not_applicable"),
    ("severity", STRING, "error: protocol violation; warning: bad practice"),
    ("n_evidence", INT, "number of findings; for a pass, number of checked cases"),
    ("first_seq", LONG, "the first event of the evidence"),
    ("last_seq", LONG, "the last"),
    ("message", STRING, "the violation, or the reason why the check is inconclusive"),
    key="trace_id group_id check_id",
)

CLIENT_STATUS = StructOf(tuple(TableColumn(name, STRING) for name in ("client_software", "client_version", "status")))

TEST_RUN = table(
    "mart/test_run",
    "Every trace with the outcome of its test, its rebalances, and its clients with their worst verdicts.",
    TRACE_ID,
    RUN_ID,
    TEST_ID,
    ("rerun", INT, "number of the repetition, from 0"),
    ("started_us", LONG, "start of the trace"),
    ("failed", BOOL, "whether the test failed; null if it was skipped, or its outcome is unknown"),
    ("n_rebalances", LONG, "rebalances of all groups"),
    ("clients", ArrayOf(CLIENT_STATUS), "the client libraries of its members, each with its worst verdict"),
    key="trace_id",
)

CLIENT_MATRIX = table(
    "mart/client_matrix",
    "Every client version in every scenario, with its worst verdict and its flake rate.",
    ("client_software", STRING, "the client library"),
    ("client_version", STRING, "its version"),
    ("scenario", STRING, "the test"),
    ("status", STRING, "the worst status of its client checks"),
    ("runs", LONG, "runs of the test with it"),
    ("failed", LONG, "failed runs"),
    ("flake_rate", DOUBLE, "share of runs whose outcome differs from the majority; 0 if all are equal"),
    ("rebalances", DOUBLE, "rebalances per run"),
    ("last_run", TIMESTAMP, "start of the last run"),
    key="client_software client_version scenario",
    origin=(),
)

FLAKY = table(
    "mart/flaky",
    "Every test, with its outcomes and its rebalances in passed and failed runs.",
    TEST_ID,
    ("runs", LONG, "its runs"),
    ("failed", LONG, "failed runs"),
    ("flake_rate", DOUBLE, "share of runs whose outcome differs from the majority"),
    ("rebalances_passed", DOUBLE, "rebalances per passed run"),
    ("rebalances_failed", DOUBLE, "rebalances per failed run"),
    ("rebalances", DOUBLE, "rebalances per run"),
    key="test_id",
    origin=(),
)
