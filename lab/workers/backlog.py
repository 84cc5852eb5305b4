"""A backlog of records, the record of the work on it, and the figures of that."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

Job = tuple[int, int]
"""A partition and an offset."""


LOCK_S = 30
"""Kafka's default of `group.share.record.lock.duration.ms`: a record that takes longer is delivered again."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The records of each partition before the work begins, and the time for a record, of a slow member as well."""

    records: int = 100
    record_s: float = 1
    slow_record_s: float = 10

    def __post_init__(self) -> None:
        for each in fields(self):
            number = getattr(self, each.name)
            if number <= 0:
                raise ValueError(f"{each.name} must be above 0, not {number}")
            if each.name != "records" and number >= LOCK_S:
                raise ValueError(f"{each.name} must be below {LOCK_S}, the seconds of a record's lock, not {number}")


@dataclass(frozen=True, slots=True)
class RecordDelivery:
    """A delivery: the time in ms since the records were written, the worker, the record."""

    at_ms: int
    worker: str
    job: Job


@dataclass(slots=True)
class WorkRecord:
    """The deliveries of the records, and the time in ms at which the last worker of each was done with it.

    `lost` is the worker that died or hung, with the time in ms.
    """

    started: list[RecordDelivery] = field(default_factory=list)
    done_ms: dict[Job, int] = field(default_factory=dict)
    lost: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class WorkFigures:
    """The figures of a run; `comparison.WORK_COLUMNS` describes each."""

    records_per_s: float
    done_s: float
    redelivered: int
    recovered_s: float | None


def figures_of(work: WorkRecord) -> WorkFigures:
    """Return the figures of finished work."""
    done_s = max(work.done_ms.values()) / 1000
    return WorkFigures(
        records_per_s=round(len(work.done_ms) / done_s, 3),
        done_s=done_s,
        redelivered=len(work.started) - len({each.job for each in work.started}),
        recovered_s=_recovered_s(work),
    )


def _recovered_s(work: WorkRecord) -> float | None:
    if work.lost is None:
        return None
    name, lost_ms = work.lost
    had = {each.job for each in work.started if each.worker == name}
    again = {each.job for each in work.started if each.worker != name and each.at_ms >= lost_ms} & had
    return (max(work.done_ms[job] for job in again) - lost_ms) / 1000 if again else 0.0
