"""gold/delivery and gold/dead_letter by Polars: the life of each record in the order of the lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from polars import col, lit, when

from .polar_rebalances import GROUP
from .polar_spans import places, spans

if TYPE_CHECKING:
    from polars import LazyFrame

CALL = ("trace_id", "node", "conn_id", "correlation_id")
RECORD = (*GROUP, "topic", "partition", "record")

OUTCOMES = {"accept": "accepted", "release": "released", "reject": "rejected"}
"""The outcome of a delivery, by the word of its acknowledgement; other ends are outcomes themselves."""

FATE = ("member_id", "delivery_count", "acquired_seq", "ended_seq", "t_acquired_us", "held_ms")
FATE += ("renewals", "outcome", "archived")
"""What neighbours have in common in a row."""


def delivery(event: LazyFrame, label: LazyFrame) -> LazyFrame:
    """Return the deliveries of share groups: neighbours with the same fate are a row."""
    calls = _calls(event)
    steps = pl.concat([_acquired(calls), _acknowledged(calls), _ended(event)], how="diagonal")
    number, is_first = col("acquired").cum_sum().over(RECORD, order_by="seq"), col("acquired")
    ends = ~is_first & (col("word") != "renew")
    word = col("word").filter(ends).first()
    lives = (
        steps.with_columns(no=number)
        .filter(col("no") > 0)
        .sort("seq")
        .filter(col("holder") == col("holder").first().over(*RECORD, "no"))
        .group_by(*RECORD, "no", maintain_order=True)
        .agg(
            member_id=col("holder").first(),
            delivery_count=col("delivery_count").first(),
            acquired_seq=col("seq").first(),
            t_acquired_us=col("group_us").first(),
            ended_seq=col("seq").filter(ends).first(),
            held_ms=(col("group_us").filter(ends).first() - col("group_us").first()) / 1000,
            word=word,
            archived=col("archived").filter(ends).first().fill_null(value=False),
            renewals=(col("word") == "renew").sum().cast(pl.Int64),
        )
        .with_columns(is_last=col("no") == col("no").max().over(RECORD))
        .with_columns(
            outcome=pl.coalesce(
                col("word").replace(OUTCOMES), when("is_last").then(lit("open")).otherwise(lit("unknown"))
            )
        )
    )
    place = (*GROUP, "topic", "partition")
    rank = pl.int_range(pl.len()).over(*place, *FATE, order_by="record")
    return (
        lives.with_columns(island=col("record") - rank)
        .group_by(*place, *FATE, "island")
        .agg(first_offset=col("record").min(), last_offset=col("record").max(), n_records=pl.len().cast(pl.Int64))
        .join(label, on=(*GROUP, "member_id"), how="left")
        .with_columns(member=pl.coalesce("label", "member_id"))
    )


def dead_letter(event: LazyFrame) -> LazyFrame:
    """Return the records that share groups wrote to a dead-letter topic, or gave up without one."""
    body = col("body").str
    return (
        event.filter(col("kind") == "dead_letters")
        .with_columns(
            row=spans("dead"),
            at="wall_us",
            written_to=body.json_path_match("$.written_to"),
            problem=body.json_path_match("$.problem"),
        )
        .explode("row")
        .unnest("row")
        .with_columns(
            n_records=col("last_offset") - col("first_offset") + 1,
            delivery_count=col("rest").list.get(0).cast(pl.Int32),
        )
    )


def _calls(event: LazyFrame) -> LazyFrame:
    """Return the requests of share consumers with their responses."""
    asked = event.filter(
        col("api").is_in(["ShareFetch", "ShareAcknowledge"])
        & (col("kind") == "request")
        & col("group_id").is_not_null()
    ).select(*CALL, *GROUP[1:], "seq", "group_us", holder="member_id", acknowledged=spans("acknowledged"))
    answers = event.filter(col("api").is_in(["ShareFetch", "ShareAcknowledge"]) & (col("kind") == "response")).select(
        *CALL,
        "error",
        answered_seq="seq",
        answered_us="group_us",
        acquired_rows=spans("acquired"),
        refused=places("refused"),
    )
    return asked.join(answers, on=CALL, nulls_equal=True).filter(col("answered_seq") > col("seq"))


def _acquired(calls: LazyFrame) -> LazyFrame:
    rows = calls.select(*GROUP, "holder", seq="answered_seq", group_us="answered_us", row="acquired_rows")
    return _by_record(rows).with_columns(acquired=True, delivery_count=col("rest").list.get(0).cast(pl.Int32))


def _acknowledged(calls: LazyFrame) -> LazyFrame:
    """Return the acknowledgements that were accepted: one word is for all records of a row, or each has its own."""
    kept = calls.filter(col("error").is_null() | (col("refused").list.len() > 0))
    rows = kept.select(*GROUP, "holder", "seq", "group_us", "refused", row="acknowledged")
    place = pl.concat_str("topic", "partition", separator="-")
    index = when(col("rest").list.len() > 1).then(col("record") - col("first_offset")).otherwise(0)
    return (
        _by_record(rows)
        .filter(~place.is_in(col("refused").fill_null([])))
        .with_columns(acquired=False, word=col("rest").list.get(index))
        .with_columns(archived=col("word") == "reject")
        .drop("refused")
    )


def _ended(event: LazyFrame) -> LazyFrame:
    """Return the ends of locks without an acknowledgement."""
    rows = event.filter(col("kind") == "locks").select(
        *GROUP,
        "seq",
        "group_us",
        holder="member_id",
        word=col("cause").replace("lock_expired", "expired"),
        row=spans("ended"),
    )
    return _by_record(rows).with_columns(acquired=False, archived=col("rest").list.get(1) == "archived")


def _by_record(rows: LazyFrame) -> LazyFrame:
    """Return a row for each record of the ranges."""
    return (
        rows.explode("row")
        .filter(col("row").is_not_null())
        .unnest("row")
        .with_columns(record=pl.int_ranges("first_offset", col("last_offset") + 1))
        .explode("record")
    )
