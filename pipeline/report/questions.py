"""What the report asks of the tables: from each question comes a small frame, whatever the size of what it is asked of.

A group is called by its `scope` (the test, or the cluster where there is none) and its `group_id`: of a test that ran a
thousand times, all thousand are one. A member is called by its `group.instance.id`, a dynamic one by its client id, for
its member id is another one each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROWS_MAX = 20
"""How long a list may be: those that matter most."""

PARTITIONS_MAX = 36
"""How many rows the map of moves has."""

FAILURES_MAX = 200

COHORTS = ("static", "dynamic", "cooperative", "mixed")
"""How a generation's members take part: `mixed` has static and dynamic ones, `cooperative` is any of these with a
cooperative assignor (KIP-429); the others are eager."""

OWN, REBALANCE = ("trace_id", "group_id"), ("trace_id", "group_id", "rebalance_no")

HOUR_MS = 3_600_000

PER_DECADE = 4
"""Bars of a distribution of times, for each power of ten."""

MS_MIN = 0.1
"""Shorter times go into the first bar."""


UUID = "-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
"""What Kafka puts behind the client id to make the member id of a dynamic member."""


def _scope() -> Column:
    return F.coalesce("test_id", "cluster", "trace_id").alias("scope")


def _name(member: str) -> Column:
    return F.regexp_replace(member, UUID, "").alias("member")


def _percentiles(column: str) -> list[Column]:
    return [F.percentile_approx(column, share).alias(name) for name, share in (("p50", 0.5), ("p95", 0.95))]


def _count(when: Column) -> Column:
    return F.count(F.when(when, 1))


def _cohort() -> Column:
    of_mode = F.when(F.col("mode") == "cooperative", "cooperative")
    return F.coalesce(of_mode, F.col("membership"), F.lit("unknown")).alias("cohort")


def span(rebalance: DataFrame) -> DataFrame:
    """When the first and the last rebalance began, in seconds since the epoch, and how many there were."""
    began = F.unix_seconds("started_at")
    return rebalance.agg(
        F.min(began).alias("first_s"),
        F.max(began).alias("last_s"),
        F.count("*").alias("begun"),
        _count(F.col("outcome") == "completed").alias("completed"),
        _count(F.col("outcome") == "emptied").alias("emptied"),
        _count(F.col("outcome") == "superseded").alias("superseded"),
        *_percentiles("total_ms"),
        F.max("total_ms").alias("longest_ms"),
    )


def by_time(rebalance: DataFrame, seconds: int) -> DataFrame:
    """How many rebalances began in each stretch of time, by cause."""
    at = (F.floor(F.unix_seconds("started_at") / seconds) * seconds).alias("at_s")
    return rebalance.groupBy(at, "cause").agg(F.count("*").alias("n")).orderBy("at_s", "cause")


def causes(rebalance: DataFrame) -> DataFrame:
    """Each cause with the client's own reasons (KIP-800): how often, and how long it took."""
    return (
        rebalance.groupBy("cause")
        .agg(
            F.count("*").alias("begun"),
            _count(F.col("outcome") == "completed").alias("completed"),
            F.sort_array(F.collect_set("sub_cause")).alias("sub_causes"),
            _count(F.col("followup")).alias("followups"),
            *_percentiles("total_ms"),
            F.sum("total_ms").alias("sum_ms"),
        )
        .orderBy(F.desc("begun"), "cause")
    )


def join_times(rebalance: DataFrame) -> DataFrame:
    """The distribution of join barriers by cohort: in `bar` n are times from 10 ** (n / PER_DECADE) ms on."""
    bar = F.floor(F.log10(F.greatest("join_ms", F.lit(MS_MIN))) * PER_DECADE).alias("bar")
    timed = rebalance.where("join_ms is not null")
    return timed.groupBy(_cohort(), bar).agg(F.count("*").alias("n")).orderBy("bar", "cohort")


def stopped_groups(downtime: DataFrame) -> DataFrame:
    """How long the members of each group were stopped, all together."""
    return (
        downtime.groupBy(_scope(), "group_id")
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
    """The same for each member."""
    return (
        downtime.groupBy(_scope(), "group_id", _name("member"))
        .agg(
            F.count("*").alias("rebalances"),
            F.max("client_software").alias("client_software"),
            F.max("client_version").alias("client_version"),
            (F.sum("stopped_ms") / 1000).alias("stopped_s"),
            F.avg("stopped_ms").alias("mean_ms"),
            F.max("stopped_ms").alias("longest_ms"),
            F.sum("revoked_n").alias("revoked"),
            _count(~F.col("commit_before_revoke")).alias("uncommitted"),
        )
        .orderBy(F.desc_nulls_last("stopped_s"), "scope", "group_id", "member")
        .limit(ROWS_MAX)
    )


def stragglers(rebalance: DataFrame) -> DataFrame:
    """Who held up join barriers, for how long, and what share of them that was."""
    return (
        rebalance.where("straggler_member is not null")
        .groupBy(_scope(), "group_id", _name("straggler_member"))
        .agg(
            F.count("*").alias("times"),
            F.sum("straggler_wait_ms").alias("wait_ms"),
            F.max("straggler_wait_ms").alias("longest_ms"),
            F.avg("straggler_share").alias("share"),
            _count(F.col("n_timed_out") > 0).alias("timed_out"),
        )
        .orderBy(F.desc_nulls_last("wait_ms"), "scope", "group_id", "member")
        .limit(ROWS_MAX)
    )


STATES = ("Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead")


def state_times(state_time: DataFrame) -> DataFrame:
    """How long each group was in each state: those first that were rebalancing the longest."""
    return (
        state_time.groupBy(_scope(), "group_id")
        .agg(*(F.sum(F.when(F.col("state") == state, F.col("ms")).otherwise(0.0)).alias(state) for state in STATES))
        .orderBy(F.desc(F.col("PreparingRebalance") + F.col("CompletingRebalance")), "scope", "group_id")
        .limit(ROWS_MAX)
    )


def moves(gap: DataFrame, started: DataFrame, seconds: int) -> DataFrame:
    """How often each partition went from one member to another in each stretch of time: those that moved most."""
    moved = gap.where("old_member is not null and new_member is not null").withColumn("scope", _scope())
    partition = ["scope", "group_id", "topic", "partition"]
    most = moved.groupBy(*partition).agg(F.count("*").alias("all")).orderBy(F.desc("all"), *partition)
    at = (F.floor(F.unix_seconds("started_at") / seconds) * seconds).alias("at_s")
    return (
        moved.join(started.select(*REBALANCE, "started_at"), [*REBALANCE])
        .join(F.broadcast(most.limit(PARTITIONS_MAX)), partition)
        .groupBy(*partition, at)
        .agg(F.count("*").alias("n"))
        .orderBy(*partition, "at_s")
    )


def cohorts(
    rebalance: DataFrame, downtime: DataFrame, gap: DataFrame, state_time: DataFrame, avoided: DataFrame
) -> DataFrame:
    """Static against dynamic against cooperative: what rebalances cost, by the members of the generation they made.

    `hours`, `per_hour` and `avoided` are of whole groups: each is of the cohort that most of its generations are of.
    """
    done = rebalance.where("outcome = 'completed'").withColumn("cohort", _cohort())
    stopped = downtime.groupBy(*REBALANCE).agg(
        F.sum("stopped_ms").alias("stopped_ms"), F.count("*").alias("members"), F.max("stopped_ms").alias("worst_ms")
    )
    again = gap.groupBy(*REBALANCE).agg(F.sum("redelivered_records").alias("redelivered"))
    cost = (
        done.join(stopped, [*REBALANCE], "left")
        .join(again, [*REBALANCE], "left")
        .groupBy("cohort")
        .agg(
            F.count("*").alias("rebalances"),
            F.countDistinct(*OWN).alias("groups"),
            *_percentiles("total_ms"),
            (F.sum("stopped_ms") / F.sum("members")).alias("stopped_ms"),
            F.percentile_approx("worst_ms", 0.95).alias("worst_ms"),
            F.sum("partitions_total").alias("partitions"),
            F.sum("partitions_moved").alias("moved"),
            F.sum("moves_minimum").alias("needed"),
            F.sum("redelivered").alias("redelivered"),
        )
    )
    times = done.groupBy(*OWN, "cohort").agg(F.count("*").alias("n"))
    most = times.groupBy(*OWN).agg(F.max_by("cohort", F.struct("n", "cohort")).alias("cohort"), F.sum("n").alias("n"))
    whole = (
        most.join(state_time.groupBy(*OWN).agg(F.sum("ms").alias("ms")), [*OWN], "left")
        .join(avoided.groupBy(*OWN).agg(F.count("*").alias("avoided")), [*OWN], "left")
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
    """What became of OffsetCommits, by the state the group was in; a null error: never answered."""
    return (
        commit.groupBy("error", "state_at")
        .agg(
            F.count("*").alias("n"),
            _count(F.col("is_zombie")).alias("zombies"),
            F.max("gen_lag").alias("lag"),
        )
        .orderBy("error", "state_at")
    )


def wasted(rebalance: DataFrame, gap: DataFrame) -> DataFrame:
    """Work done twice, or not at all, by group: records delivered again, partitions nobody had, moves without need."""
    moved = rebalance.groupBy(_scope(), "group_id").agg(
        F.sum(F.col("partitions_moved") - F.col("moves_minimum")).alias("needless"),
        F.sum("partitions_moved").alias("moved"),
    )
    lost = gap.groupBy(_scope(), "group_id").agg(
        F.sum("redelivered_records").alias("redelivered"), (F.sum("gap_ms") / 1000).alias("gap_s")
    )
    return (
        moved.join(lost, ["scope", "group_id"], "left")
        .where("needless > 0 or moved > 0 or redelivered > 0 or gap_s > 0")
        .orderBy(F.desc_nulls_last("redelivered"), F.desc_nulls_last("gap_s"), "scope", "group_id")
    )


def storms(rebalance: DataFrame, downtime: DataFrame) -> DataFrame:
    """Rebalances on the heels of one another, such as a deployment makes: what each of these storms cost."""
    stopped = downtime.groupBy(*REBALANCE).agg(F.sum("stopped_ms").alias("stopped_ms"))
    ended_us = F.max(F.col("t_start_us") + F.col("total_ms") * 1000)
    return (
        rebalance.where("storm_id is not null")
        .join(stopped, [*REBALANCE], "left")
        .groupBy("storm_id", "trace_id", _scope(), "group_id")
        .agg(
            F.count("*").alias("rebalances"),
            F.min("start_seq").alias("start_seq"),
            ((ended_us - F.min("t_start_us")) / 1000).alias("took_ms"),
            (F.sum("stopped_ms") / 1000).alias("stopped_s"),
            F.sort_array(F.collect_set("cause")).alias("causes"),
        )
        .orderBy(F.desc_nulls_last("stopped_s"), F.desc("rebalances"), "storm_id")
        .limit(ROWS_MAX)
    )


def longest(rebalance: DataFrame) -> DataFrame:
    """The rebalances that took longest."""
    return (
        rebalance.where("total_ms is not null")
        .select("trace_id", _scope(), "group_id", "rebalance_no", "start_seq", "cause", "reason", "total_ms", "outcome")
        .orderBy(F.desc("total_ms"), "trace_id", "start_seq")
        .limit(ROWS_MAX)
    )


def checks(verdict: DataFrame) -> DataFrame:
    """Each check: in how many groups it passed, failed, or could not be decided."""
    each = ("pass", "fail", "inconclusive", "not_applicable")
    return (
        verdict.groupBy("check_id", "title")
        .agg(F.max("severity").alias("severity"), *(_count(F.col("status") == one).alias(one) for one in each))
        .orderBy(F.desc(F.substring("check_id", 1, 1)), "check_id")
    )


def failures(verdict: DataFrame) -> DataFrame:
    """The checks that failed: errors first."""
    return (
        verdict.where("status = 'fail'")
        .select(
            *("trace_id", "group_id", "check_id", "severity", "subject", "title"),
            *("message", "n_evidence", "first_seq", "last_seq"),
            _scope(),
        )
        .orderBy("severity", "check_id", "scope", "group_id", "trace_id")
        .limit(FAILURES_MAX)
    )


def flaky(table: DataFrame) -> DataFrame:
    """Tests that do not always end alike, or that fail."""
    return (
        table.where("flake_rate > 0 or failed > 0")
        .orderBy(F.desc("flake_rate"), F.desc("failed"), "test_id")
        .limit(ROWS_MAX)
    )


def heavy(table: DataFrame) -> DataFrame:
    """Tests that rebalance the most."""
    return table.where("rebalances > 0").orderBy(F.desc("rebalances"), "test_id").limit(ROWS_MAX)


def clients(matrix: DataFrame) -> DataFrame:
    """Each client version over all scenarios."""
    return (
        matrix.groupBy("client_software", "client_version")
        .agg(
            F.count("*").alias("scenarios"),
            F.sum("runs").alias("runs"),
            F.sum("failed").alias("failed"),
            _count(F.col("status") == "fail").alias("broken"),
            (F.sum(F.col("rebalances") * F.col("runs")) / F.sum("runs")).alias("rebalances"),
        )
        .orderBy("client_software", "client_version")
    )


def beats(heartbeat: DataFrame) -> DataFrame:
    """The members whose heartbeats came nearest to the end of their session."""
    return (
        heartbeat.where("max_ratio_to_session is not null")
        .select(
            *(_scope(), "group_id", _name("member"), "n", "n_refused"),
            *("p50_gap_ms", "p99_gap_ms", "max_gap_ms", "session_timeout_ms", "max_ratio_to_session"),
        )
        .orderBy(F.desc("max_ratio_to_session"), "scope", "group_id", "member")
        .limit(ROWS_MAX)
    )


def fenced(fencing: DataFrame) -> DataFrame:
    """Where static members were fenced or replaced."""
    by = ("api", "stage")
    members = F.countDistinct("instance_id").alias("members")
    return fencing.groupBy(*by).agg(F.count("*").alias("n"), members).orderBy(*by)


def logs(client_join: DataFrame) -> DataFrame:
    """What the logs of clients tell: each kind of log with its causes."""
    return (
        client_join.groupBy("source", "cause")
        .agg(F.count("*").alias("joins"), F.count("generation").alias("arrived"), *_percentiles("total_ms"))
        .orderBy("source", "cause")
    )


def read(counts: DataFrame) -> DataFrame:
    """What was read, and where it went, by kind of input."""
    sums = ("read", "event", "header", "test", "ignored", "duplicate", "quarantined")
    return (
        counts.groupBy("source")
        .agg(F.countDistinct("source_file").alias("files"), *(F.sum(name).alias(name) for name in sums))
        .orderBy("source")
    )


def refused(quarantine: DataFrame) -> DataFrame:
    """Why rows were not taken over, with the first place of each reason."""
    place = F.struct("source_file", "line_no", "detail")
    return (
        quarantine.groupBy("reason")
        .agg(F.count("*").alias("n"), F.min(place).alias("first"))
        .select("reason", "n", "first.source_file", "first.line_no", "first.detail")
        .orderBy(F.desc("n"), "reason")
    )


def extent(trace: DataFrame) -> DataFrame:
    """How much there is."""
    return trace.agg(
        F.count("*").alias("traces"),
        F.countDistinct("run_id").alias("runs"),
        F.countDistinct("test_id").alias("tests"),
        F.countDistinct(_scope()).alias("scopes"),
        F.sum("n_events").alias("events"),
        F.sum("lost").alias("lost"),
    )


def costs(downtime: DataFrame) -> DataFrame:
    """How long members were stopped, all of them together."""
    return downtime.agg((F.sum("stopped_ms") / 1000).alias("stopped_s"))


def watched(state_time: DataFrame) -> DataFrame:
    """How many groups were watched, and for how long, all together."""
    return state_time.agg(F.countDistinct(*OWN).alias("groups"), (F.sum("ms") / HOUR_MS).alias("hours"))


def saved(avoided: DataFrame) -> DataFrame:
    """How many rebalances did not happen because a static member came back in time (KIP-345)."""
    return avoided.agg(F.count("*").alias("avoided"))
