"""gold/transaction by Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from polars import col

if TYPE_CHECKING:
    from polars import LazyFrame

NEVER = 2**62

OUTCOMES = {
    "Ongoing": "open",
    "PrepareCommit": "committing",
    "PrepareAbort": "aborting",
    "CompleteCommit": "committed",
    "CompleteAbort": "aborted",
}
"""The outcome of a transaction, by the last state of its transactional id."""


def transaction(event: LazyFrame) -> LazyFrame:
    """Return every transaction, from its first partition to its last marker."""
    changes, whole = _changes(event), ("trace_id", "transactional_id", "no")
    ends, decides = col("state_to").str.starts_with("Complete"), col("state_to").str.starts_with("Prepare")
    at_end, at_decision = col("wall_us").filter(ends).last(), col("wall_us").filter(decides).last()
    found = changes.group_by(whole).agg(
        start_seq=col("seq").first(),
        end_seq=col("seq").filter(ends).last(),
        t_start_us=col("wall_us").first(),
        first_body=col("body").first(),
        last_body=col("body").filter(~ends).last(),
        client_id=col("client_id").first(),
        decided_us=at_decision,
        ended_us=at_end,
        cause=col("cause").filter(decides).last(),
        outcome=col("state_to").last().replace_strict(OUTCOMES),
    )
    t_start, decided = col("t_start_us"), pl.coalesce("decided_us", "t_start_us")
    body = col("first_body").str
    return (
        found.join(_partitions(found, whole), on=whole, how="left")
        .join(_accepted(event, found, whole), on=whole, how="left")
        .with_columns(
            started_at="t_start_us",
            producer_id=body.json_path_match("$.producer_id").cast(pl.Int64),
            producer_epoch=body.json_path_match("$.producer_epoch").cast(pl.Int32),
            partitions=col("partitions").fill_null([]),
            n_partitions=col("n_partitions").fill_null(0),
            groups=col("groups").fill_null([]),
            n_offsets=col("n_offsets").fill_null(0),
            decided_ms=(col("decided_us") - t_start) / 1000,
            markers_ms=(col("ended_us") - decided) / 1000,
            total_ms=(col("ended_us") - t_start) / 1000,
        )
    )


def _changes(event: LazyFrame) -> LazyFrame:
    """Return the changes of transactional ids in a transaction, numbered."""
    of_id = {"partition_by": ("trace_id", "transactional_id"), "order_by": "seq"}
    of_one = {"partition_by": ("trace_id", "transactional_id", "no"), "order_by": "seq"}
    ends = col("state_to").str.starts_with("Complete")
    begins = (col("state_to") == "Ongoing") & ends.shift(1).over(**of_id).fill_null(value=True)
    return (
        event.filter((col("kind") == "transaction") & col("state_to").is_in(list(OUTCOMES)))
        .sort("seq")
        .with_columns(transactional_id=col("body").str.json_path_match("$.transactional_id"))
        .with_columns(no=begins.cast(pl.Int32).cum_sum().over(**of_id))
        .with_columns(ended=(ends.cast(pl.Int32).cum_sum() - ends.cast(pl.Int32)).over(**of_one))
        .filter((col("no") > 0) & (col("ended") == 0))
    )


def _partitions(found: LazyFrame, whole: tuple[str, ...]) -> LazyFrame:
    kind = pl.Struct({"partitions": pl.List(pl.List(pl.String))})
    rows = found.select(*whole, row=col("last_body").str.json_decode(kind).struct.field("partitions"))
    return (
        rows.explode("row")
        .select(*whole, key=col("row").list.get(0), number=col("row").list.get(1).cast(pl.Int32))
        .filter(~col("key").str.starts_with("__"))
        .group_by(*whole, "key")
        .agg(value=col("number").sort())
        .sort("key")
        .group_by(whole)
        .agg(partitions=pl.struct("key", "value"), n_partitions=col("value").list.len().sum())
    )


def _accepted(event: LazyFrame, found: LazyFrame, whole: tuple[str, ...]) -> LazyFrame:
    """Return the groups and the number of offsets of each transaction, without those that were refused."""
    rows, call = pl.List(pl.List(pl.String)), ("trace_id", "node", "conn_id", "correlation_id")
    commits = event.filter(col("api") == "TxnOffsetCommit")
    asked = commits.filter(col("kind") == "request").select(
        *call,
        "group_id",
        transactional_id=col("body").str.json_path_match("$.transactional_id"),
        row=col("body").str.json_decode(pl.Struct({"offsets": rows})).struct.field("offsets"),
    )
    refused = col("body").str.json_decode(pl.Struct({"refused": rows})).struct.field("refused")
    place = pl.concat_str(col("row").list.get(0), col("row").list.get(1), separator="-")
    return (
        commits.filter(col("kind") == "response")
        .select(*call, "seq", refused=refused.list.eval(pl.element().list.head(2).list.join("-")))
        .join(asked, on=call)
        .explode("row")
        .with_columns(place=place)
        .filter(~col("place").is_in(col("refused").fill_null([])))
        .join(found.select(*whole, "start_seq", "end_seq"), on=("trace_id", "transactional_id"))
        .filter((col("seq") > col("start_seq")) & (col("seq") < col("end_seq").fill_null(NEVER)))
        .group_by(whole)
        .agg(groups=col("group_id").unique().sort(), n_offsets=pl.struct("group_id", "place").n_unique())
    )
