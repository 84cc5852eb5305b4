"""The comparison of work: a share group beside groups with an owner for each partition, under the same load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ..cells import AFTER_S, SETTLE_S
from ..load import Load
from ..matrix import Column
from ..schemes import SCHEMES
from ..situations import name_of, names_of
from .backlog import Backlog, WorkFigures, figures_of
from .partition_workers import PartitionWorkers
from .share_workers import ShareWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..matrix import Grid
    from .backlog import Job, WorkRecord

SHARE = "share"

WORK_SCHEMES: Mapping[str, str] = {
    **{name: SCHEMES[name].summary for name in ("eager", "cooperative", "consumer")},
    SHARE: "members take records, of partitions that they share (KIP-932)",
}
"""The schemes of the comparison, by name."""

WORK_LOAD = Load(members=6, partitions=4)
"""The default load: more members than partitions."""

BACKLOG = Backlog()

LOST_AFTER_S = 12.5
"""The time until a member dies or hangs: in the middle of a record, and of a commit interval of 5 s."""

ONE = name_of(0)
"""The member that is slow, dies or hangs."""


@dataclass(frozen=True, slots=True)
class WorkSituation:
    """A situation: whether a member is slow from the start, and the action that takes it from the group."""

    summary: str
    has_slow_member: bool = False
    action: str | None = None


WORK_SITUATIONS: Mapping[str, WorkSituation] = {
    "quiet": WorkSituation("all members work"),
    "slow-member": WorkSituation("a member needs more time for each record", has_slow_member=True),
    "death": WorkSituation("a member is killed, and its connections close", action="kill"),
    "hang": WorkSituation("a member hangs: its connections stay open, and it sends nothing", action="hang"),
}

WORK_COLUMNS = {
    "records_per_s": Column("finished", "records finished until the backlog is done", "records/s"),
    "done_s": Column("all done after", "the time until the last record of the backlog is done", "s"),
    "redelivered": Column("delivered again", "deliveries of records that had been delivered before", "records"),
    "recovered_s": Column(
        "lost work done after",
        "from the death of a member until others are done with the records that it had neither committed nor"
        " acknowledged",
        "s",
    ),
}
"""The figures of work in the order of tables."""


@cache
def play_work(scheme: str, situation: str, load: Load = WORK_LOAD, backlog: Backlog = BACKLOG) -> WorkFigures:
    """Play a scheme in a situation until the backlog is done.

    Raises KeyError for an unknown name, and ValueError if a situation leaves no member.
    """
    of = WORK_SITUATIONS[situation]
    if of.action is not None and load.members == 1:
        raise ValueError(f"members must be at least 2 in the situation {situation!r}, not 1")

    def record_s(name: str) -> float:
        return backlog.slow_record_s if of.has_slow_member and name == ONE else backlog.record_s

    if scheme == SHARE:
        return figures_of(_shared(of, load, backlog, record_s))
    return figures_of(_owned(scheme, of, load, backlog, record_s))


def _shared(of: WorkSituation, load: Load, backlog: Backlog, record_s: Callable[[str], float]) -> WorkRecord:
    def busy_s(name: str, _: Job) -> float:
        return record_s(name)

    with ShareWorkers(load) as workers:
        workers.write(backlog.records)
        if of.action is not None:
            workers.run(LOST_AFTER_S, busy_s)
            (workers.kill if of.action == "kill" else workers.hang)(ONE)
        while len(workers.work.done_ms) < backlog.records * load.partitions:
            workers.run(1, busy_s)
        return workers.work


def _owned(
    scheme: str, of: WorkSituation, load: Load, backlog: Backlog, record_s: Callable[[str], float]
) -> WorkRecord:
    with SCHEMES[scheme].open(load) as group:
        for name in names_of(load.members):
            group.start(name, record_s(name))
        group.pass_time(SETTLE_S)
        group.record.begin(group.now_ms)
        if of.action is not None:
            group.pass_time(LOST_AFTER_S)
            (group.kill if of.action == "kill" else group.pause)(ONE)
        group.pass_time(AFTER_S)
        workers = PartitionWorkers(
            backlog, round(load.commit_interval_s * 1000), lambda name: round(1000 * record_s(name))
        )
        return workers.work(group.record)


def work_table(situation: str, schemes: Sequence[str], figures: Sequence[WorkFigures]) -> Grid:
    """Return the figures of the schemes in one situation."""
    return [
        [situation, *(f"{column.heading} ({column.unit})" for column in WORK_COLUMNS.values())],
        *(
            [scheme, *(figure_text(name, getattr(each, name)) for name in WORK_COLUMNS)]
            for scheme, each in zip(schemes, figures, strict=True)
        ),
    ]


def figure_text(name: str, number: float | None) -> str:
    """Return a figure as tables show it; empty if the situation has none."""
    return "" if number is None else WORK_COLUMNS[name].text(number)
