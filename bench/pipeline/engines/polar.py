"""The gold tables by Polars: from the silver tables, following the column descriptions in `pipeline/schema/`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
from polars import col, lit, when

from koordinator.pipeline.schema import TABLES
from koordinator.pipeline.snapshots import parquet_files

from .polar_rebalances import GROUP, beside, facts
from .polar_shares import dead_letter, delivery
from .polar_tasks import task
from .polar_transactions import transaction

if TYPE_CHECKING:
    from pathlib import Path

    from polars import DataFrame, LazyFrame

TAKEN = ("event", "call", "member_span", "round", "arrival", "move")
ROUND = (*GROUP, "rebalance_no")
NEVER = 2**62


class Made:
    """The silver tables of a store and the requested gold tables, as lazy frames."""

    def __init__(self, store: Path) -> None:
        taken = (
            pl.scan_parquet(parquet_files(store, f"silver/{name}")).select(TABLES[f"silver/{name}"].names)
            for name in TAKEN
        )
        self.event, self.call, self.member_span, self.round, self.arrival, self.move = taken
        of_state = (col("kind") == "state") & col("group_id").is_not_null()
        self.mark = self.event.filter(of_state).select(
            *GROUP, "seq", "group_us", state_at="state_to", group_generation="generation"
        )
        self.label = (
            self.member_span.filter(col("instance_id").is_not_null())
            .group_by(*GROUP, "member_id")
            .agg(label=col("instance_id").first())
        )

    def state_time(self) -> LazyFrame:
        """Return how long each group was in each state."""
        timed = self.event.filter(col("group_id").is_not_null() & col("group_us").is_not_null())
        ends = timed.group_by(GROUP).agg(end_us=col("group_us").sort_by("seq").last())
        until = col("group_us").shift(-1).over(GROUP, order_by="seq")
        return (
            self.mark.with_columns(until=until)
            .join(ends, on=GROUP)
            .group_by(*GROUP, state="state_at")
            .agg(
                ms=(pl.coalesce("until", "end_us") - col("group_us")).sum() / 1000,
                visits=pl.len(),
            )
        )

    def commit(self) -> LazyFrame:
        """Return every OffsetCommit."""
        commits = self.call.filter(col("api") == "OffsetCommit")
        lag = col("group_generation") - col("generation")
        return (
            self._labelled(as_of(commits, self.mark.drop("group_us")))
            .with_columns(
                at="wall_us",
                member=pl.coalesce("instance_id", "member"),
                gen_lag=when(col("generation") >= 0).then(lag),
                n_partitions=col("offsets").list.len(),
            )
            .with_columns(is_zombie=(col("gen_lag") > 0).fill_null(value=False))
        )

    def fencing(self) -> LazyFrame:
        """Return rejected and replaced static members."""
        replaced = (col("kind") == "member") & (col("change") == "replaced")
        refused = (col("kind") == "response") & (col("error") == "FENCED_INSTANCE_ID")
        found = self.event.filter((replaced | refused) & col("group_id").is_not_null())
        by = col("reason").str.extract(r"was replaced by (\S+)", 1)
        return as_of(found, self.mark.drop("group_us")).select(
            *GROUP,
            "seq",
            "instance_id",
            at="wall_us",
            old_member="member_id",
            new_member=by.forward_fill().over(*GROUP, "instance_id", order_by="seq"),
            api=col("api").fill_null("JoinGroup"),
            stage="state_at",
        )

    def heartbeat(self) -> LazyFrame:
        """Return the regularity of heartbeats."""
        member = (*GROUP, "member_id")
        gap = (col("group_us") - col("group_us").shift(1).over(member, order_by="seq")) / 1000
        stays = self.member_span.group_by(member).agg(
            named=col("member").first(), session_timeout_ms=col("session_timeout_ms").sort_by("joined_seq").last()
        )
        session = col("session_timeout_ms")
        return (
            self.call.filter((col("api") == "Heartbeat") & col("member_id").is_not_null())
            .select(*member, "error", gap_ms=gap)
            .group_by(member)
            .agg(
                n=pl.len(),
                n_refused=(col("error") != "NONE").sum(),
                p50_gap_ms=col("gap_ms").quantile(0.5, "linear"),
                p99_gap_ms=col("gap_ms").quantile(0.99, "linear"),
                max_gap_ms=col("gap_ms").max(),
            )
            .join(stays, on=member, how="left")
            .with_columns(
                member=pl.coalesce("named", "member_id"),
                max_ratio_to_session=when(session > 0).then(col("max_gap_ms") / session),
            )
        )

    def avoided(self) -> LazyFrame:
        """Return the avoided rebalances."""
        return self.event.filter(col("kind") == "avoided_static").with_columns(at="wall_us")

    def rebalance(self) -> LazyFrame:
        """Return every rebalance."""
        return self._rebalances.lazy()

    @cached_property
    def _rebalances(self) -> DataFrame:
        """Compute the rebalances once: two other tables depend on them."""
        found = self.round
        for more in (self._came(), self._counted(), self._moved(), self._first_fetch()):
            found = found.join(more, on=ROUND, how="left")
        return facts(beside(found)).collect()

    def _came(self) -> LazyFrame:
        newest_first = ["last_joined_seq", "last_joined_us", "member"]
        return self.arrival.group_by(ROUND).agg(
            col("protocol").max(),
            somebody_owns=col("owns").any(),
            newest=col("member").sort_by(newest_first, descending=True).first(),
            came_us=col("last_joined_us").sort_by(newest_first, descending=True).head(2),
        )

    def _roster(self) -> LazyFrame:
        listed = col("members").sort_by("joined_seq").drop_nulls().first()
        ids = (
            self.arrival.group_by(ROUND)
            .agg(listed=listed, ids=col("member_id").unique())
            .select(*ROUND, member_id=pl.coalesce("listed", "ids"))
            .explode("member_id")
        )
        return (
            ids.join(self.label, on=(*GROUP, "member_id"), how="left")
            .group_by(*ROUND, member=pl.coalesce("label", "member_id"))
            .agg(is_static=col("label").is_not_null().any())
        )

    def _counted(self) -> LazyFrame:
        seen = col("rebalance_no").shift(1).over(*GROUP, "member", order_by="rebalance_no")
        return (
            self._roster()
            .with_columns(seen_in=seen)
            .group_by(ROUND)
            .agg(
                n_members=pl.len().cast(pl.Int64), n_static=col("is_static").sum(), seen_in=col("seen_in").drop_nulls()
            )
        )

    def _moved(self) -> LazyFrame:
        given = col("new_member").is_not_null()
        had = given & col("is_life") & col("old_member").is_not_null()
        moves = self.move.with_columns(given=given, had=had.fill_null(value=False))
        sizes = moves.group_by(ROUND).agg(
            partitions_total=col("given").sum().cast(pl.Int64),
            partitions_moved=(col("had") & (col("old_member") != col("new_member"))).sum().cast(pl.Int64),
            owned=col("had").sum().cast(pl.Int64),
            losers=col("old_member").filter(~col("given")).drop_nulls().unique(),
        )
        kept = moves.filter("had").group_by(*ROUND, member="old_member").agg(kept=pl.len().cast(pl.Int64))
        fair = col("partitions_total") // col("members")
        kept_by = (
            self._roster()
            .with_columns(members=pl.len().over(ROUND).cast(pl.Int64))
            .join(kept, on=(*ROUND, "member"), how="left")
            .join(sizes.select(*ROUND, "partitions_total"), on=ROUND)
            .group_by(ROUND)
            .agg(
                fair_share=pl.min_horizontal("kept", fair).filter(col("kept").is_not_null()).sum(),
                more=(col("kept") > fair).sum().cast(pl.Int64),
                rest=(col("partitions_total") % col("members")).first(),
            )
        )
        balanced = col("owned") - col("fair_share") - pl.min_horizontal("more", "rest")
        return sizes.join(kept_by, on=ROUND, how="left").select(
            *ROUND,
            "partitions_total",
            "partitions_moved",
            "losers",
            moves_minimum=when(balanced.is_not_null()).then(pl.min_horizontal(balanced, "partitions_moved")),
        )

    def _first_fetch(self) -> LazyFrame:
        columns = (*GROUP, "seq", "wall_us", "group_us")
        looked = self.call.filter(col("api") == "OffsetFetch").select(columns)
        ended = self.round.filter(col("outcome") == "completed").select(*ROUND, "end_seq")
        return (
            self._numbered(pl.concat([looked, self._brought().select(columns)]))
            .join(ended, on=ROUND)
            .filter(col("seq") > col("end_seq"))
            .sort("seq")
            .group_by(ROUND)
            .agg(fetch_wall_us=col("wall_us").first(), fetch_group_us=col("group_us").first())
        )

    def member_downtime(self) -> LazyFrame:
        """Return how long members were stopped."""
        same = col("had") & (col("old_member") == col("new_member")).fill_null(value=False)
        got = self.move.filter(col("new_member").is_not_null()).select(
            *ROUND, member="new_member", kept=same, lost=False
        )
        lost = self.move.filter(col("had") & ~same).select(*ROUND, member="old_member", kept=False, lost=True)
        held = (
            pl.concat([got, lost])
            .group_by(*ROUND, "member")
            .agg(kept_n=col("kept").sum(), revoked_n=col("lost").sum(), assigned_n=(~col("kept") & ~col("lost")).sum())
        )
        commits = self.call.filter((col("api") == "OffsetCommit") & (col("error") == "NONE"))
        committed = (
            self._numbered(commits.select(*GROUP, "member_id", "seq"))
            .join(self.arrival.select(*ROUND, "member_id", "joined_seq"), on=(*ROUND, "member_id"))
            .filter(col("seq") < col("joined_seq"))
            .select(*ROUND, "member_id", committed=True)
            .unique()
        )
        completed = col("outcome") == "completed"
        numbers = {name: when(completed).then(col(name).fill_null(0)) for name in ("kept_n", "revoked_n", "assigned_n")}
        waited = (col("synced_us") - col("joined_us")) / 1000
        keeps_all = ((col("mode") == "cooperative") & (col("revoked_n") == 0)).fill_null(value=False)
        must_commit = (col("revoked_n") > 0) & (col("joined_seq") > col("start_seq"))
        return (
            self.arrival.join(self.rebalance().select(*ROUND, "mode", "start_seq", "outcome"), on=ROUND)
            .join(held, on=(*ROUND, "member"), how="left")
            .join(committed, on=(*ROUND, "member_id"), how="left")
            .with_columns(**numbers)
            .with_columns(
                membership=when(col("instance_id").is_null()).then(lit("dynamic")).otherwise(lit("static")),
                waited_ms=waited,
                stopped_ms=when(keeps_all).then(0.0).otherwise(waited),
                commit_before_revoke=when(must_commit).then(col("committed").fill_null(value=False)),
            )
        )

    def partition_gap(self) -> LazyFrame:
        """Return the gaps of partitions that changed owners."""
        first = col("joined_us").sort_by("joined_seq").first().over(*GROUP, "chain", "member")
        timed = (
            self.arrival.join(self.round.select(*ROUND, "chain"), on=ROUND)
            .with_columns(first_us=first)
            .group_by(*ROUND, "member")
            .agg(col("first_us", "joined_us", "synced_us").min())
        )
        old = timed.select(*ROUND, "first_us", "joined_us", old_member="member")
        new = timed.select(*ROUND, "synced_us", new_member="member")
        left = self.member_span.filter(col("left_seq").is_not_null()).select(
            *GROUP, "left_us", old_member="member", seq="left_seq"
        )
        owned = (*GROUP, "old_member", "topic", "partition")
        given_up = when(col("mode") == "eager").then("first_us").otherwise("joined_us")
        unread = col("last_fetched") - col("last_committed")
        changes = self.rebalance().select(*ROUND, "mode", seq="end_seq")
        return (
            self.move.filter(col("old_member").is_null() | col("old_member").ne_missing(col("new_member")))
            .join(changes, on=ROUND)
            .join(old, on=(*ROUND, "old_member"), how="left")
            .join(new, on=(*ROUND, "new_member"), how="left")
            .pipe(as_of, left, (*GROUP, "old_member"))
            .pipe(as_of, self._committed(), owned)
            .pipe(as_of, self._fetched(), owned)
            .with_columns(
                gap_ms=(col("synced_us") - pl.coalesce(given_up, "left_us")) / 1000,
                redelivered_records=when(unread < 0).then(0).otherwise(unread),
            )
        )

    def transaction(self) -> LazyFrame:
        """Return every transaction, from its first partition to its last marker."""
        return transaction(self.event)

    def delivery(self) -> LazyFrame:
        """Return the deliveries of records of share groups."""
        return delivery(self.event, self.label)

    def dead_letter(self) -> LazyFrame:
        """Return the records that share groups gave up."""
        return dead_letter(self.event)

    def task(self) -> LazyFrame:
        """Return the tasks of members of streams groups."""
        return task(self.event, self.label)

    def _committed(self) -> LazyFrame:
        commits = self.call.filter((col("api") == "OffsetCommit") & (col("error") == "NONE"))
        rows = self._labelled(commits).select(*GROUP, "seq", "offsets", old_member=pl.coalesce("instance_id", "member"))
        return (
            rows.explode("offsets")
            .unnest("offsets")
            .select(*GROUP, "seq", "old_member", "topic", "partition", last_committed="offset")
            .filter(col("last_committed").is_not_null())
        )

    def _fetched(self) -> LazyFrame:
        kind = pl.Struct({"fetched": pl.List(pl.List(pl.String))})
        rows = self._brought().filter(col("body").is_not_null())
        rows = rows.select(*GROUP, "seq", "member", row=col("body").str.json_decode(kind).struct.field("fetched"))
        return (
            rows.explode("row")
            .filter(col("row").is_not_null())
            .select(
                *GROUP,
                "seq",
                old_member="member",
                topic=col("row").list.get(0),
                partition=col("row").list.get(1).cast(pl.Int32),
                last_fetched=col("row").list.get(3).cast(pl.Int64),
            )
        )

    def _numbered(self, frame: LazyFrame) -> LazyFrame:
        marks = self.round.select(*ROUND, seq="start_seq")
        return as_of(frame, marks).filter(col("rebalance_no").is_not_null())

    def _labelled(self, frame: LazyFrame) -> LazyFrame:
        known = frame.join(self.label, on=(*GROUP, "member_id"), how="left")
        return known.with_columns(member=pl.coalesce("label", "member_id"))

    def _brought(self) -> LazyFrame:
        client = ("trace_id", "client_id")
        until = col("left_seq").fill_null(NEVER)
        before = until.cum_max().shift(1).over(client, order_by="joined_seq")
        alone = (
            self.member_span.filter(col("client_id").is_not_null())
            .with_columns(until=until, overlaps=(col("joined_seq") < before).fill_null(value=False))
            .filter(~col("overlaps").any().over(client))
            .select(*client, "group_id", "member", "joined_seq", "until")
        )
        brought = (col("api") == "Fetch") & (col("kind") == "response") & col("error").is_null()
        return (
            self.event.filter(brought)
            .select(*client, "seq", "wall_us", "group_us", "body")
            .join(alone, on=client)
            .filter((col("seq") > col("joined_seq")) & (col("seq") < col("until")))
        )


def as_of(frame: LazyFrame, marks: LazyFrame, by: tuple[str, ...] = GROUP) -> LazyFrame:
    """Return the frame with each row's latest earlier mark, by seq."""
    return frame.sort("seq").join_asof(marks.sort("seq"), on="seq", by=by, strategy="backward", check_sortedness=False)
