"""The marts: what runs, clients and tests are compared by, and the verdicts."""

from __future__ import annotations

from .tables import DOUBLE, INT, LONG, STRING, TEST_ID, TIMESTAMP, WHOSE, table

VERDICT = table(
    "mart/verdict",
    "Every check of every group: S01 to S10 judge the coordinator, C01 to C10 its clients.",
    *WHOSE,
    ("subject", STRING, "who is judged: `coordinator`, or a client library with its version; `clients` if several"),
    ("check_id", STRING, "S01 … C10"),
    ("title", STRING, "what it wants"),
    ("status", STRING, "pass, fail, inconclusive or not_applicable"),
    ("severity", STRING, "error: against the protocol; warning: against good manners"),
    ("n_evidence", INT, "how many times it was broken; of a pass, how many times it was looked at"),
    ("first_seq", LONG, "the first event of the evidence"),
    ("last_seq", LONG, "the last"),
    ("message", STRING, "what is wrong, or why nothing can be said"),
    key="trace_id group_id check_id",
)

CLIENT_MATRIX = table(
    "mart/client_matrix",
    "Every client version in every scenario: did it keep to the protocol, and do its tests flake?",
    ("client_software", STRING, "the client library"),
    ("client_version", STRING, "its version"),
    ("scenario", STRING, "the test"),
    ("status", STRING, "the worst status of its client checks"),
    ("runs", LONG, "runs of the test with it"),
    ("failed", LONG, "of them failed"),
    ("flake_rate", DOUBLE, "the share of runs that ended otherwise than most; 0 if all are alike"),
    ("rebalances", DOUBLE, "rebalances per run"),
    ("last_run", TIMESTAMP, "when the last one began"),
    key="client_software client_version scenario",
    partitions=(),
)

FLAKY = table(
    "mart/flaky",
    "Every test: how it ended, how often it rebalanced, and whether the one goes with the other.",
    TEST_ID,
    ("runs", LONG, "its runs"),
    ("failed", LONG, "of them failed"),
    ("flake_rate", DOUBLE, "the share of runs that ended otherwise than most"),
    ("rebalances_passed", DOUBLE, "rebalances per run that passed"),
    ("rebalances_failed", DOUBLE, "rebalances per run that failed"),
    ("rebalances", DOUBLE, "rebalances per run"),
    key="test_id",
    partitions=(),
)
