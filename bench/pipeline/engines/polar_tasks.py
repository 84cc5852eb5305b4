"""gold/task by Polars: the steps of each member of a streams group, and the tasks that each step leaves to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from polars import col

from .polar_rebalances import GROUP
from .polar_spans import tasks

if TYPE_CHECKING:
    from polars import LazyFrame

MEMBER = (*GROUP, "member_id")
TASK = (*MEMBER, "type", "subtopology", "partition")
STEP = (*MEMBER, "seq", "group_us", "tasks")


def task(event: LazyFrame, label: LazyFrame) -> LazyFrame:
    """Return the tasks of members of streams groups, each from its assignment to the step without it."""
    number = pl.int_range(pl.len()).over(MEMBER, order_by="seq")
    steps = _steps(event).with_columns(no=number)
    rank = pl.int_range(pl.len()).over(TASK, order_by="no")
    ends = steps.select(*MEMBER, "no", ended_seq="seq", ended_us="group_us")
    return (
        steps.explode("tasks")
        .filter(col("tasks").is_not_null())
        .unnest("tasks")
        .with_columns(island=col("no") - rank)
        .sort("seq")
        .group_by(*TASK, "island", maintain_order=True)
        .agg(given_seq=col("seq").first(), t_given_us=col("group_us").first(), no=col("no").last() + 1)
        .join(ends, on=(*MEMBER, "no"), how="left")
        .join(label, on=MEMBER, how="left")
        .with_columns(member=pl.coalesce("label", "member_id"), kept_ms=(col("ended_us") - col("t_given_us")) / 1000)
    )


def _steps(event: LazyFrame) -> LazyFrame:
    """Return the assignments of members, and the ends of their memberships, which leave no tasks."""
    answers = (col("api") == "StreamsGroupHeartbeat") & (col("kind") == "response") & col("body").is_not_null()
    told = event.filter(answers).with_columns(tasks=tasks()).filter(col("tasks").is_not_null()).select(STEP)
    removed = (col("kind") == "member") & col("change").is_in(["removed", "replaced"])
    ended = event.filter(removed).select(*MEMBER, "seq", "group_us")
    emptied = (
        event.filter((col("kind") == "state") & col("state_to").is_in(["Empty", "Dead"]))
        .select(*GROUP, "seq", "group_us")
        .join(told.select(MEMBER).unique(), on=GROUP)
    )
    return pl.concat([told, ended, emptied], how="diagonal")
