"""The columns of gold/rebalance by Polars, from a row for each rebalance with its arrivals and moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from polars import col, lit, when

from koordinator.emulator.trace.vocabulary import SUB_CAUSES

if TYPE_CHECKING:
    from polars import Expr, LazyFrame

GROUP = ("trace_id", "group_id")


def beside(found: LazyFrame) -> LazyFrame:
    """Add the columns that depend on the other rebalances of a group."""
    members = when(col("outcome") == "emptied").then(0).otherwise(pl.coalesce("n_members", "told_members"))
    protocol = col("protocol").str.to_lowercase()
    keeps = protocol.str.contains("cooperative") | protocol.is_in(["compatible", "sessioned", "stream"])
    mode = when(keeps | col("somebody_owns")).then(lit("cooperative")).otherwise(lit("eager"))
    sub_cause: Expr = when(col("client_reason").fill_null("") == "").then(lit(None, pl.String))
    for name, pattern in SUB_CAUSES:
        sub_cause = sub_cause.when(col("client_reason").str.contains(f"(?i){pattern}")).then(lit(name))
    in_order = {"partition_by": GROUP, "order_by": "rebalance_no"}
    made = when(col("members_after").is_not_null())
    storm = (*GROUP, "storm_no")
    apart = (col("start_us") - col("end_us").shift(1) > 1_000_000).fill_null(value=True)
    return (
        found.with_columns(
            members_after=members,
            mode=when(col("protocol").is_not_null()).then(mode),
            sub_cause=sub_cause.otherwise(lit("other")),
        )
        .with_columns(
            base_no=made.then("rebalance_no").forward_fill().shift(1).over(**in_order),
            base_members=made.then("members_after").forward_fill().shift(1).over(**in_order),
            # an unknown number is carried on, too
            base_known=made.then(col("n_members").fill_null(-1)).forward_fill().shift(1).over(**in_order),
            mode_before=col("mode").shift(1).over(**in_order),
            losers_before=col("losers").shift(1).over(**in_order),
            storm_no=apart.cum_sum().over(**in_order),
        )
        .with_columns(
            storm_id=when(pl.len().over(storm) > 1).then(
                pl.concat_str(*GROUP, col("rebalance_no").min().over(storm).cast(pl.String), separator="/")
            )
        )
    )


def facts(found: LazyFrame) -> LazyFrame:
    """Add the columns that follow from those of `beside`."""
    joined, made = col("join_seq").is_not_null(), col("gen_after").is_not_null()
    completed, emptied = col("outcome") == "completed", col("outcome") == "emptied"
    before = pl.coalesce("base_members", when(col("gen_before") == 0).then(0))
    stayed = (col("seen_in") - col("base_no")).list.count_matches(0).fill_null(0)
    known = (col("base_known") >= 0) | (col("members_before") == 0)
    late, has_two = col("late_member"), col("came_us").list.len() == 2
    newest_us = col("came_us").list.first()
    wait_us = (
        when(late.is_not_null())
        .then(col("over_us") - newest_us)
        .when(has_two)
        .then(newest_us - col("came_us").list.last())
    )
    statics, members = col("n_static"), col("members_after")
    fetched = pl.coalesce("fetch_group_us", col("end_us") + col("fetch_wall_us") - col("end_wall_us"))
    asked_to = (col("mode_before") == "cooperative") & col("cause").is_in(
        ["member_rejoin", "leader_rejoin", "metadata_change"]
    )
    revoked = asked_to & col("losers_before").list.contains(col("trigger_member"))
    moved = col("partitions_moved")
    return (
        found.with_columns(members_before=before, n_static=when(joined).then(pl.coalesce("n_static", "told_static")))
        .with_columns(
            started_at="start_wall_us",
            t_start_us="start_us",
            t_join_done_us="over_us",
            t_sync_done_us=when(completed).then("end_us"),
            t_first_fetch_us=fetched,
            join_ms=(col("over_us") - col("start_us")) / 1000,
            sync_ms=when(joined & completed).then((col("end_us") - col("over_us")) / 1000),
            total_ms=(col("end_us") - col("start_us")) / 1000,
            resume_ms=(fetched - col("start_us")) / 1000,
            n_joined=when(emptied).then(0).when(known).then(col("n_members") - stayed),
            membership=when((statics == 0) & (members > 0))
            .then(lit("dynamic"))
            .when(statics == members)
            .then(lit("static"))
            .when(statics > 0)
            .then(lit("mixed")),
            straggler_member=when(made).then(pl.coalesce(late, when(has_two).then("newest"))),
            straggler_wait_ms=when(made).then(wait_us / 1000),
            n_timed_out=col("n_timed_out").fill_null(0),
            stickiness=when(moved == 0).then(1.0).otherwise(col("moves_minimum") / moved),
            followup=(col("sub_cause") == "revoke_and_rejoin").fill_null(value=False) | revoked.fill_null(value=False),
        )
        .with_columns(
            n_left=col("members_before") - members + col("n_joined"),
            straggler_share=when(col("join_ms") > 0).then(col("straggler_wait_ms") / col("join_ms")),
        )
    )
