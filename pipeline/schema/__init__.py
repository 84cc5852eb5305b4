"""Every table of the pipeline: its layer, key, columns with their types, and what each column says.

A row belongs to a *trace*: what one cluster (or one log of a broker or a client) wrote from its start to its end.
`(trace_id, seq)` names an event; every derived row can be traced back to events. Times that end in `_us` are
microseconds since the epoch: `wall_us` by the wall's clock, `group_us` and `t_…_us` by the group's own clock, which
tests move; durations are in the group's time unless a column says otherwise. A member is called by its
`group.instance.id` if it is static, else by its member id: that is the column `member`.

In the store a folder `batch=` holds what one load brought, and is written once. A folder `home=` holds the traces
that were first seen in that load, whole: what is derived from them is written again when more of them comes.

The tables grow by columns, never otherwise: `SCHEMA_VERSION` says which these are.
"""

from __future__ import annotations

from . import bronze, gold, marts, silver
from .bronze import API_KEY_MAX, BRONZE_LINE, COUNTS, FILE, QUARANTINE, REASONS, SOURCES, TRACE_HOME
from .gold import (
    AVOIDED,
    CLIENT_JOIN,
    COMMIT,
    FENCING,
    HEARTBEAT,
    MEMBER_DOWNTIME,
    PARTITION_GAP,
    REBALANCE,
    STATE_TIME,
    STORM_GAP_MS,
)
from .marts import CLIENT_MATRIX, FLAKY, VERDICT
from .silver import (
    ARRIVAL,
    ASSIGNMENT,
    CALL,
    EVENT,
    GROUP,
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
from .tables import LONG, STRING, Table

SCHEMA_VERSION = 1
"""Of the tables; a store that was written by another one is refused."""

TRACE_SCHEMA_VERSIONS = (1,)
"""The versions of the emulator's trace files that are understood."""

TABLES: dict[str, Table] = {
    each.path: each
    for layer in (bronze, silver, gold, marts)
    for each in vars(layer).values()
    if isinstance(each, Table)
}
"""All of them, by `layer/name`."""

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
    "EVENT",
    "FENCING",
    "FILE",
    "FLAKY",
    "GROUP",
    "HEADER",
    "HEARTBEAT",
    "LONG",
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
    "STORM_GAP_MS",
    "STRING",
    "TABLES",
    "TEST",
    "TRACE",
    "TRACE_HOME",
    "TRACE_SCHEMA_VERSIONS",
    "VERDICT",
    "Table",
]
