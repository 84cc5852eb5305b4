"""The queries of the report: each returns a small frame, whatever the size of the tables.

A group is identified by its `scope` (the test, else the cluster) and its `group_id`: a thousand runs of a test count as
one group. A member is identified by its `group.instance.id`, a dynamic member by its client id, because its member id
changes with every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from koordinator.emulator.trace.vocabulary import REMOVAL_CAUSES
from koordinator.trace.names import SUFFIX

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROWS_MAX = 20
"""Maximum length of a list; the most important rows come first."""

PARTITIONS_MAX = 36
"""Maximum number of rows of the heat map."""

FAILURES_MAX = 200

UNREAD_MAX = 50
"""Maximum number of kinds of lines that were not understood."""

COHORTS = ("static", "dynamic", "cooperative", "consumer", "mixed")
"""The membership of a generation: `mixed` has static and dynamic members. `cooperative` is any of these with a
cooperative assignor (KIP-429), `consumer` any in a consumer group (KIP-848); the others are eager."""

GROUP_KEY, REBALANCE_KEY = ("trace_id", "group_id"), ("trace_id", "group_id", "rebalance_no")

HOUR_MS = 3_600_000

PER_DECADE = 4
"""Bars per power of ten in a distribution of times."""

MS_MIN = 0.1
"""Shorter times go into the first bar."""


def scope() -> Column:
    """Return the test, else the cluster, else the trace."""
    return F.coalesce("test_id", "cluster", "trace_id").alias("scope")


def member_name(member: str) -> Column:
    """Return the name of a member without the suffix of its member id."""
    return F.regexp_replace(member, SUFFIX, "").alias("member")


def _percentiles(column: str) -> list[Column]:
    return [F.percentile_approx(column, share).alias(name) for name, share in (("p50", 0.5), ("p95", 0.95))]


def count_if(when: Column) -> Column:
    """Return the number of rows for which a condition is true."""
    return F.count(F.when(when, 1))


def _cohort() -> Column:
    protocol = F.when(F.col("type") == "consumer", "consumer").when(F.col("mode") == "cooperative", "cooperative")
    return F.coalesce(protocol, F.col("membership"), F.lit("unknown")).alias("cohort")


def span(rebalance: DataFrame) -> DataFrame:
    """Return when the first and the last rebalance began, in seconds since the epoch, and the number of rebalances."""
    began = F.unix_seconds("started_at")
    return rebalance.agg(
        F.min(began).alias("first_s"),
        F.max(began).alias("last_s"),
        F.count("*").alias("begun"),
        count_if(F.col("outcome") == "completed").alias("completed"),
        count_if(F.col("outcome") == "emptied").alias("emptied"),
        count_if(F.col("outcome") == "superseded").alias("superseded"),
        *_percentiles("total_ms"),
        F.max("total_ms").alias("longest_ms"),
    )


def by_time(rebalance: DataFrame, seconds: int) -> DataFrame:
    """Return the number of rebalances that began in each interval, by cause."""
    at = (F.floor(F.unix_seconds("started_at") / seconds) * seconds).alias("at_s")
    return rebalance.groupBy(at, "cause").agg(F.count("*").alias("n")).orderBy("at_s", "cause")


def causes(rebalance: DataFrame) -> DataFrame:
    """Return each cause with the clients' own reasons (KIP-800), its frequency, and its durations."""
    return (
        rebalance.groupBy("cause")
        .agg(
            F.count("*").alias("begun"),
            count_if(F.col("outcome") == "completed").alias("completed"),
            F.sort_array(F.collect_set("sub_cause")).alias("sub_causes"),
            count_if(F.col("followup")).alias("followups"),
            *_percentiles("total_ms"),
            F.sum("total_ms").alias("sum_ms"),
        )
        .orderBy(F.desc("begun"), "cause")
    )


def join_times(rebalance: DataFrame) -> DataFrame:
    """Return the distribution of join barriers by cohort: `bar` n starts at 10 ** (n / PER_DECADE) ms."""
    bar = F.floor(F.log10(F.greatest("join_ms", F.lit(MS_MIN))) * PER_DECADE).alias("bar")
    timed = rebalance.where("join_ms is not null")
    return timed.groupBy(_cohort(), bar).agg(F.count("*").alias("n")).orderBy("bar", "cohort")


def stopped_groups(downtime: DataFrame) -> DataFrame:
    """Return the total time for which the members of each group were stopped."""
    return (
        downtime.groupBy(scope(), "group_id")
        .agg(
            F.countDistinct("trace_id", "rebalance_no").alias("rebalances"),
            (F.sum("stopped_ms") / 1000).alias("stopped_s"),
            F.avg("stopped_ms").alias("mean_ms"),
            F.max("stopped_ms").alias("longest_ms"),
        )
        .orderBy(F.desc_nulls_last("stopped_s"), "scope", "group_id")
        .limit(ROWS_MAX)
    )


def stopped_members(downtime: DataFrame) -> DataFrame:
    """Return the total time for which each member was stopped."""
    return (
        downtime.groupBy(scope(), "group_id", member_name("member"))
        .agg(
            F.count("*").alias("rebalances"),
            F.max("client_software").alias("client_software"),
            F.max("client_version").alias("client_version"),
            (F.sum("stopped_ms") / 1000).alias("stopped_s"),
            F.avg("stopped_ms").alias("mean_ms"),
            F.max("stopped_ms").alias("longest_ms"),
            F.sum("revoked_n").alias("revoked"),
            count_if(~F.col("commit_before_revoke")).alias("uncommitted"),
        )
        .orderBy(F.desc_nulls_last("stopped_s"), "scope", "group_id", "member")
        .limit(ROWS_MAX)
    )


def stragglers(rebalance: DataFrame) -> DataFrame:
    """Return the members that delayed join barriers, with the delays and their shares."""
    return (
        rebalance.where("straggler_member is not null")
        .groupBy(scope(), "group_id", member_name("straggler_member"))
        .agg(
            F.count("*").alias("times"),
            F.sum("straggler_wait_ms").alias("wait_ms"),
            F.max("straggler_wait_ms").alias("longest_ms"),
            F.avg("straggler_share").alias("share"),
            count_if(F.col("n_timed_out") > 0).alias("timed_out"),
        )
        .orderBy(F.desc_nulls_last("wait_ms"), "scope", "group_id", "member")
        .limit(ROWS_MAX)
    )


STATES = ("Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead")
"""The states of a group, in the order of the chart."""


def state_times(state_time: DataFrame) -> DataFrame:
    """Return the time of each group in each state; groups with the longest rebalances come first."""
    return (
        state_time.groupBy(scope(), "group_id")
        .agg(*(F.sum(F.when(F.col("state") == state, F.col("ms")).otherwise(0.0)).alias(state) for state in STATES))
        .orderBy(F.desc(F.col("PreparingRebalance") + F.col("CompletingRebalance")), "scope", "group_id")
        .limit(ROWS_MAX)
    )


def moves(gap: DataFrame, started: DataFrame, seconds: int) -> DataFrame:
    """Return the number of moves of each partition in each interval, for the partitions with the most moves."""
    moved = gap.where("old_member is not null and new_member is not null").withColumn("scope", scope())
    partition = ["scope", "group_id", "topic", "partition"]
    busiest = moved.groupBy(*partition).agg(F.count("*").alias("all")).orderBy(F.desc("all"), *partition)
    at = (F.floor(F.unix_seconds("started_at") / seconds) * seconds).alias("at_s")
    return (
        moved.join(started.select(*REBALANCE_KEY, "started_at"), [*REBALANCE_KEY])
        .join(F.broadcast(busiest.limit(PARTITIONS_MAX)), partition)
        .groupBy(*partition, at)
        .agg(F.count("*").alias("n"))
        .orderBy(*partition, "at_s")
    )


def cohorts(
    rebalance: DataFrame, downtime: DataFrame, gap: DataFrame, state_time: DataFrame, avoided: DataFrame
) -> DataFrame:
    """Compare the cohorts: costs of rebalances, by the members of the generation they formed.

    `hours`, `per_hour` and `avoided` describe whole groups; a group belongs to the cohort of most of its generations.
    """
    completed = rebalance.where("outcome = 'completed'").withColumn("cohort", _cohort())
    stopped = downtime.groupBy(*REBALANCE_KEY).agg(
        F.sum("stopped_ms").alias("stopped_ms"), F.count("*").alias("members"), F.max("stopped_ms").alias("worst_ms")
    )
    redelivered = gap.groupBy(*REBALANCE_KEY).agg(F.sum("redelivered_records").alias("redelivered"))
    cost = (
        completed.join(stopped, [*REBALANCE_KEY], "left")
        .join(redelivered, [*REBALANCE_KEY], "left")
        .groupBy("cohort")
        .agg(
            F.count("*").alias("rebalances"),
            F.countDistinct(*GROUP_KEY).alias("groups"),
            *_percentiles("total_ms"),
            (F.sum("stopped_ms") / F.sum("members")).alias("stopped_ms"),
            F.percentile_approx("worst_ms", 0.95).alias("worst_ms"),
            F.sum("partitions_total").alias("partitions"),
            F.sum("partitions_moved").alias("moved"),
            F.sum("moves_minimum").alias("needed"),
            F.sum("redelivered").alias("redelivered"),
        )
    )
    times = completed.groupBy(*GROUP_KEY, "cohort").agg(F.count("*").alias("n"))
    most = times.groupBy(*GROUP_KEY).agg(
        F.max_by("cohort", F.struct("n", "cohort")).alias("cohort"), F.sum("n").alias("n")
    )
    whole = (
        most.join(state_time.groupBy(*GROUP_KEY).agg(F.sum("ms").alias("ms")), [*GROUP_KEY], "left")
        .join(avoided.groupBy(*GROUP_KEY).agg(F.count("*").alias("avoided")), [*GROUP_KEY], "left")
        .groupBy("cohort")
        .agg(
            (F.sum("ms") / HOUR_MS).alias("hours"),
            (F.sum("n") * HOUR_MS / F.sum("ms")).alias("per_hour"),
            F.sum("avoided").alias("avoided"),
        )
    )
    order = F.array_position(F.array(*map(F.lit, COHORTS)), F.col("cohort"))
    return cost.join(whole, "cohort", "left").orderBy(order == 0, order)


def commits(commit: DataFrame) -> DataFrame:
    """Return the results of OffsetCommits by the group's state; a null error means no response."""
    return (
        commit.groupBy("error", "state_at")
        .agg(
            F.count("*").alias("n"),
            count_if(F.col("is_zombie")).alias("zombies"),
            F.max("gen_lag").alias("lag"),
        )
        .orderBy("error", "state_at")
    )


def wasted(rebalance: DataFrame, gap: DataFrame) -> DataFrame:
    """Return wasted work by group: redelivered records, time without an owner, and unnecessary moves."""
    moved = rebalance.groupBy(scope(), "group_id").agg(
        F.sum(F.col("partitions_moved") - F.col("moves_minimum")).alias("needless"),
        F.sum("partitions_moved").alias("moved"),
    )
    lost = gap.groupBy(scope(), "group_id").agg(
        F.sum("redelivered_records").alias("redelivered"), (F.sum("gap_ms") / 1000).alias("gap_s")
    )
    return (
        moved.join(lost, ["scope", "group_id"], "left")
        .where("needless > 0 or moved > 0 or redelivered > 0 or gap_s > 0")
        .orderBy(F.desc_nulls_last("redelivered"), F.desc_nulls_last("gap_s"), "scope", "group_id")
    )


def longest(rebalance: DataFrame) -> DataFrame:
    """Return the longest rebalances."""
    return (
        rebalance.where("total_ms is not null")
        .select("trace_id", scope(), "group_id", "rebalance_no", "start_seq", "cause", "reason", "total_ms", "outcome")
        .orderBy(F.desc("total_ms"), "trace_id", "start_seq")
        .limit(ROWS_MAX)
    )


def checks(verdict: DataFrame) -> DataFrame:
    """Return the number of groups for each check and status."""
    statuses = ("pass", "fail", "inconclusive", "not_applicable")
    return (
        verdict.groupBy("check_id", "title")
        .agg(
            F.max("severity").alias("severity"),
            *(count_if(F.col("status") == status).alias(status) for status in statuses),
        )
        .orderBy(F.desc(F.substring("check_id", 1, 1)), "check_id")
    )


def failures(verdict: DataFrame) -> DataFrame:
    """Return the failed checks, errors first."""
    return (
        verdict.where("status = 'fail'")
        .select(
            *("trace_id", "group_id", "check_id", "severity", "subject", "title"),
            *("message", "n_evidence", "first_seq", "last_seq"),
            scope(),
        )
        .orderBy("severity", "check_id", "scope", "group_id", "trace_id")
        .limit(FAILURES_MAX)
    )


def flaky(table: DataFrame) -> DataFrame:
    """Return the tests that fail, or whose runs have different outcomes."""
    return (
        table.where("flake_rate > 0 or failed > 0")
        .orderBy(F.desc("flake_rate"), F.desc("failed"), "test_id")
        .limit(ROWS_MAX)
    )


def rebalance_heavy(table: DataFrame) -> DataFrame:
    """Return the tests with the most rebalances."""
    return table.where("rebalances > 0").orderBy(F.desc("rebalances"), "test_id").limit(ROWS_MAX)


def clients(matrix: DataFrame) -> DataFrame:
    """Return each client version, aggregated over all scenarios."""
    return (
        matrix.groupBy("client_software", "client_version")
        .agg(
            F.count("*").alias("scenarios"),
            F.sum("runs").alias("runs"),
            F.sum("failed").alias("failed"),
            count_if(F.col("status") == "fail").alias("broken"),
            (F.sum(F.col("rebalances") * F.col("runs")) / F.sum("runs")).alias("rebalances"),
        )
        .orderBy("client_software", "client_version")
    )


def heartbeats(heartbeat: DataFrame) -> DataFrame:
    """Return the members whose heartbeats came closest to the session timeout."""
    return (
        heartbeat.where("max_ratio_to_session is not null")
        .select(
            *(scope(), "group_id", member_name("member"), "n", "n_refused"),
            *("p50_gap_ms", "p99_gap_ms", "max_gap_ms", "session_timeout_ms", "max_ratio_to_session"),
        )
        .orderBy(F.desc("max_ratio_to_session"), "scope", "group_id", "member")
        .limit(ROWS_MAX)
    )


def fencing(fencing_: DataFrame) -> DataFrame:
    """Return how often static members were fenced or replaced, by API and state."""
    by = ("api", "stage")
    members = F.countDistinct("instance_id").alias("members")
    return fencing_.groupBy(*by).agg(F.count("*").alias("n"), members).orderBy(*by)


def transactions(transaction: DataFrame) -> DataFrame:
    """Return the transactions of each test or cluster by outcome and cause: their number, duration, and size."""
    by = (scope(), "outcome", "cause")
    return (
        transaction.groupBy(*by)
        .agg(
            F.count("*").alias("n"),
            *_percentiles("total_ms"),
            F.max("markers_ms").alias("markers_ms"),
            F.sum("n_partitions").alias("partitions"),
            F.sum("n_offsets").alias("offsets"),
        )
        .orderBy(F.desc("n"), "scope", "outcome", "cause")
        .limit(ROWS_MAX)
    )


def logs(client_join: DataFrame) -> DataFrame:
    """Return the joins in client logs, by kind of log and cause."""
    return (
        client_join.groupBy("source", "cause")
        .agg(F.count("*").alias("joins"), F.count("generation").alias("arrived"), *_percentiles("total_ms"))
        .orderBy("source", "cause")
    )


def removals(event: DataFrame, trace: DataFrame) -> DataFrame:
    """Return the members that coordinators removed although they did not leave, by group and cause."""
    removed = event.where((F.col("kind") == "member") & (F.col("change") == "removed"))
    removed = removed.where(F.col("cause").isin(*REMOVAL_CAUSES))
    known = F.broadcast(trace.select("trace_id", "test_id", "cluster"))
    return (
        removed.join(known, "trace_id", "left")
        .groupBy(scope(), "group_id", "cause")
        .agg(
            F.count("*").alias("n"),
            F.countDistinct("member_id").alias("members"),
            F.max("wall_us").alias("last_us"),
            F.max_by("member_id", "seq").alias("last_member"),
        )
        .orderBy(F.desc("n"), "scope", "group_id", "cause")
        .limit(ROWS_MAX)
    )


def unread(rows: DataFrame) -> DataFrame:
    """Return the lines of logs that were not understood, by file, kind and text; those of other programs come last."""
    is_foreign = F.col("kind") == "foreign"
    return (
        rows.groupBy("source_file", "kind", "text")
        .agg(F.sum("n").alias("n"), F.min("example").alias("example"))
        .withColumn("files", F.size(F.collect_set("source_file").over(Window.partitionBy(F.lit(1)))))
        .withColumn("lines", F.sum("n").over(Window.partitionBy(F.lit(1))))
        .orderBy(is_foreign, F.desc("n"), "source_file", "kind", "text")
        .limit(UNREAD_MAX)
    )


def rows_read(counts: DataFrame) -> DataFrame:
    """Return the disposition of all rows, by kind of input."""
    sums = ("read", "event", "header", "test", "ignored", "duplicate", "quarantined")
    return (
        counts.groupBy("source")
        .agg(F.countDistinct("source_file").alias("files"), *(F.sum(name).alias(name) for name in sums))
        .orderBy("source")
    )


def quarantine(rows: DataFrame) -> DataFrame:
    """Return the reasons for quarantine, each with its first row."""
    place = F.struct("source_file", "line_no", "detail")
    return (
        rows.groupBy("reason")
        .agg(F.count("*").alias("n"), F.min(place).alias("first"))
        .select("reason", "n", "first.source_file", "first.line_no", "first.detail")
        .orderBy(F.desc("n"), "reason")
    )


def extent(trace: DataFrame) -> DataFrame:
    """Return the size of the input, and its time in seconds since the epoch."""
    return trace.agg(
        F.count("*").alias("traces"),
        F.countDistinct("run_id").alias("runs"),
        F.countDistinct("test_id").alias("tests"),
        F.countDistinct(scope()).alias("scopes"),
        F.sum("n_events").alias("events"),
        F.sum("lost").alias("lost"),
        F.floor(F.min("started_us") / 1_000_000).alias("since_s"),
        F.floor(F.max(F.coalesce("watched_us", "started_us")) / 1_000_000).alias("until_s"),
    )


def costs(downtime: DataFrame) -> DataFrame:
    """Return the total time for which members were stopped."""
    return downtime.agg((F.sum("stopped_ms") / 1000).alias("stopped_s"))


def observed(state_time: DataFrame) -> DataFrame:
    """Return the total time of the observed groups."""
    return state_time.agg((F.sum("ms") / HOUR_MS).alias("hours"))


def groups(group: DataFrame) -> DataFrame:
    """Return the number of groups."""
    return group.agg(F.countDistinct(*GROUP_KEY).alias("groups"))


def avoided(avoided_: DataFrame) -> DataFrame:
    """Return the number of rebalances that a static member's timely return avoided (KIP-345)."""
    return avoided_.agg(F.count("*").alias("avoided"))
