"""Every table of the pipeline: its layer, its key, and its columns with types and descriptions.

A row belongs to a *trace*: the output of one cluster, or of one broker's or client's log, from start to end.
`(trace_id, seq)` identifies an event, and every derived row leads back to events. Times that end in `_us` are
microseconds since the epoch: `wall_us` by the wall clock, `group_us` and `t_…_us` by the group's own clock, which tests
can advance. Durations are in group time unless a column says otherwise. The column `member` names a member: its
`group.instance.id` if it is static, else its member id.

A *batch* is the input of one kind in one load; the column `batch` names the one that brought a row. The column `home`
names the batch in which a trace first appeared; the tables derived from traces are rewritten for whole homes.

Tables may gain columns and never change otherwise; `SCHEMA_VERSION` is their version.
"""

from __future__ import annotations

from . import bronze, gold, marts, silver
from .bronze import (
    API_KEY_MAX,
    BRONZE_LINE,
    COUNTS,
    FILE,
    QUARANTINE,
    REASONS,
    SOURCES,
    TRACE_HOME,
    UNREAD,
    UNREAD_KINDS,
)
from .gold import (
    AVOIDED,
    CLIENT_JOIN,
    COMMIT,
    DEAD_LETTER,
    DELIVERY,
    FENCING,
    HEARTBEAT,
    MEMBER_DOWNTIME,
    PARTITION_GAP,
    REBALANCE,
    STATE_TIME,
    TASK,
    TRANSACTION,
)
from .marts import CLIENT_MATRIX, FLAKY, TEST_RUN, VERDICT
from .silver import (
    ARRIVAL,
    ASSIGNMENT,
    CALL,
    EVENT,
    GROUP,
    GROUP_STATE,
    HEADER,
    MEMBER,
    MEMBER_SPAN,
    MOVE,
    OUTCOME,
    ROUND,
    RUN,
    TEST,
    TRACE,
)
from .tables import Table

SCHEMA_VERSION = 1
"""Version of the tables; a store of another version is refused."""

TRACE_SCHEMA_VERSIONS = (1,)
"""Supported versions of the emulator's trace files."""

TABLES: dict[str, Table] = {
    table.path: table
    for layer in (bronze, silver, gold, marts)
    for table in vars(layer).values()
    if isinstance(table, Table)
}
"""All tables, by `layer/name`."""

__all__ = [
    "API_KEY_MAX",
    "ARRIVAL",
    "ASSIGNMENT",
    "AVOIDED",
    "BRONZE_LINE",
    "CALL",
    "CLIENT_JOIN",
    "CLIENT_MATRIX",
    "COMMIT",
    "COUNTS",
    "DEAD_LETTER",
    "DELIVERY",
    "EVENT",
    "FENCING",
    "FILE",
    "FLAKY",
    "GROUP",
    "GROUP_STATE",
    "HEADER",
    "HEARTBEAT",
    "MEMBER",
    "MEMBER_DOWNTIME",
    "MEMBER_SPAN",
    "MOVE",
    "OUTCOME",
    "PARTITION_GAP",
    "QUARANTINE",
    "REASONS",
    "REBALANCE",
    "ROUND",
    "RUN",
    "SCHEMA_VERSION",
    "SOURCES",
    "STATE_TIME",
    "TABLES",
    "TASK",
    "TEST",
    "TEST_RUN",
    "TRACE",
    "TRACE_HOME",
    "TRACE_SCHEMA_VERSIONS",
    "TRANSACTION",
    "UNREAD",
    "UNREAD_KINDS",
    "VERDICT",
    "Table",
]
