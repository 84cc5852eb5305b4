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
from .bronze import *  # noqa: F403 - every table is a name of this package
from .gold import *  # noqa: F403
from .marts import *  # noqa: F403
from .silver import *  # noqa: F403
from .tables import Table as Table

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
