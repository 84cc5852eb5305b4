"""C06 and C07: the owners of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .check_input import MEMBER
from .client_commits import COOPERATIVE
from .findings import FAIL, GROUP, OK, PASS, call_text, findings, join_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .check_input import CheckInput

GENERATION = (*GROUP, "generation")


def single_owner(inputs: CheckInput) -> DataFrame:
    """C07: no generation assigns a partition to two members.

    Unassigned partitions are not judged: the trace does not contain the number of partitions of a topic.
    """
    assigned = _assignments(inputs).withColumn("all", F.flatten(F.transform(F.map_values("assignments"), _flat)))
    repeated = F.size(F.array_distinct("all")) < F.size("all")
    passes = findings(assigned.where(~repeated), PASS, "seq", member="leader_id")
    owned = (
        _by_member(inputs, assigned.where(repeated))
        .select(*GENERATION, "seq", "leader_id", "place", "label", F.explode("held").alias("at"))
        .groupBy(*GENERATION, "seq", "leader_id", "at")
        .agg(_in_order("label").alias("labels"))
        .where(F.size(F.array_distinct("labels")) > 1)
    )
    text = join_text(
        "in generation ", F.col("generation"), " ", _named("at"), " was given to ", F.array_join("labels", " and ")
    )
    return passes.unionByName(findings(owned, FAIL, "seq", text=text, member="leader_id"))


def revoke_before_assign(inputs: CheckInput) -> DataFrame:
    """C06: a partition claimed in a join stays with its member, or free for one generation (KIP-429)."""
    cooperative = (
        inputs.call.where(F.col("formed").isNotNull() & F.col("protocol").like(COOPERATIVE))
        .select(*GROUP, F.col("formed").alias("generation"))
        .distinct()
    )
    syncs = inputs.answered_as(("SyncGroup",)).where("size(assignments) > 0")
    judged = syncs.join(cooperative, [*GENERATION], "left_semi").withColumn("text", call_text())
    held = _by_member(inputs, judged.withColumnRenamed("member_id", "leader_id"))
    everything = held.groupBy(*GROUP, "seq").agg(
        F.flatten(F.collect_list("held")).alias("all"), F.collect_list(F.struct("place", "label", "held")).alias("rows")
    )
    reassigned = (
        held.join(_claims(inputs), [*GENERATION, "label"])
        .join(everything, [*GROUP, "seq"])
        .withColumn("lost", F.array_intersect(F.array_except("claimed", "held"), "all"))
        .where("size(lost) > 0")
        .select(*GROUP, "seq", "leader_id", "text", "rows", "place", "label", F.explode("lost").alias("at"))
        .groupBy(*GROUP, "seq", "leader_id", "text", "at")
        .agg(_in_order("label").alias("losers"), F.first("rows").alias("rows"))
    )
    owner = F.filter(F.array_sort("rows"), lambda row: F.array_contains(row["held"], F.col("at")))[0]["label"]
    text = join_text(
        "{name}{software} leads, and gave ",
        _named("at"),
        " to ",
        owner,
        " while ",
        F.col("losers")[0],
        " owned it: ",
        F.col("text"),
    )
    failures = findings(reassigned, FAIL, "seq", text=text, member="leader_id")
    unaffected = judged.join(reassigned.select(*GROUP, "seq"), [*GROUP, "seq"], "left_anti")
    return failures.unionByName(findings(unaffected, PASS, "seq", member="member_id")).unionByName(
        _foreign_commits(inputs, cooperative)
    )


def _claims(inputs: CheckInput) -> DataFrame:
    """Return the partitions that each member claimed when it joined a generation and really had (`claimed`)."""
    joins = inputs.call.where("formed IS NOT NULL")
    syncs = inputs.answered_as(("SyncGroup",)).where("member_id IS NOT NULL")
    calls = joins.unionByName(syncs).join(inputs.labels, [*MEMBER])
    before = Window.partitionBy(*GROUP, "label").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    had = F.last(F.when(F.col("api") == "SyncGroup", _flat(F.col("assignment"))), ignorenulls=True).over(before)
    claimed = F.array_intersect(_flat(F.col("owned")), F.coalesce("had", F.array().cast(FLAT)))
    return (
        calls.withColumn("had", had)
        .where("formed IS NOT NULL")
        .groupBy(*GROUP, F.col("formed").alias("generation"), "label")
        .agg(F.max_by(claimed, "seq").alias("claimed"))
        .where("size(claimed) > 0")
    )


def _foreign_commits(inputs: CheckInput, cooperative: DataFrame) -> DataFrame:
    """Find commits for partitions that another member owns in the same generation; the coordinator accepts these."""
    assigned = _assignments(inputs).join(cooperative, [*GENERATION], "left_semi")
    owners = (
        _by_member(inputs, assigned)
        .select(*GENERATION, "place", F.col("label").alias("owner"), F.explode("held").alias("at"))
        .groupBy(*GENERATION, "at")
        .agg(_in_order("owner").alias("owners"))
    )
    places = F.transform("offsets", lambda row: row.dropFields("offset"))
    commits = (
        inputs.answered_as(("OffsetCommit",))
        .where("generation >= 0 AND member_id IS NOT NULL")
        .select(*MEMBER, "generation", "seq", call_text().alias("text"), places.alias("places"))
        .join(assigned.select(*GENERATION, "assignments"), [*GENERATION])
        # nearly all commits concern the member's own partitions
        .where(F.size(F.array_except("places", _flat(F.col("assignments")[F.col("member_id")]))) > 0)
        .join(inputs.labels, [*MEMBER])
        .select(*MEMBER, "generation", "seq", "label", "text", F.posexplode("places").alias("place", "at"))
        .join(owners, [*GENERATION, "at"])
        .where(~F.array_contains("owners", F.col("label")))
    )
    foreign = commits.groupBy(*MEMBER, "generation", "seq", "text").agg(
        _in_order(join_text(_named("at"), " of ", F.col("owners")[0])).alias("foreign")
    )
    changes = inputs.changes.select(*MEMBER, F.struct("seq", "change").alias("was"))
    former = (
        foreign.join(changes, [*MEMBER])
        .where("was.seq < seq")
        .groupBy(*GROUP, "seq")
        .agg(F.max("was").alias("was"))
        .where("was.change IN ('removed', 'replaced')")
    )
    formed = inputs.states.where("state_to = 'CompletingRebalance'").select(
        *GROUP, F.struct("seq", "generation").alias("formed")
    )
    behind = (
        foreign.join(formed, [*GROUP])
        .where("formed.seq < seq")
        .groupBy(*GROUP, "seq", "generation")
        .agg(F.max("formed").alias("formed"))
        .where("formed.generation > generation")
    )
    violations = foreign.join(former, [*GROUP, "seq"], "left_anti").join(behind, [*GROUP, "seq"], "left_anti")
    text = join_text(F.col("text"), ": it commits ", F.array_join("foreign", ", "), "{software}")
    return findings(violations, FAIL, "seq", text=text, member="member_id")


FLAT = "array<struct<topic:string,partition:int>>"


def _flat(topics: Column) -> Column:
    """Return a map of topic to partitions as an array of (topic, partition)."""
    one = F.transform(
        F.map_entries(topics),
        lambda entry: F.transform(
            entry["value"], lambda number: F.struct(entry["key"].alias("topic"), number.alias("partition"))
        ),
    )
    return F.coalesce(F.flatten(one), F.array().cast(FLAT))


def _named(at: str) -> Column:
    return F.concat_ws(" ", f"{at}.topic", f"{at}.partition")


def _in_order(value: Column | str) -> Column:
    """Collect the values of a group of rows in the order of their `place`."""
    column = F.col(value) if isinstance(value, str) else value
    rows = F.array_sort(F.collect_list(F.struct("place", column.alias("value"))))
    return F.transform(rows, lambda row: row["value"])


def _assignments(inputs: CheckInput) -> DataFrame:
    """Return the first accepted assignment of each generation."""
    syncs = inputs.call.where(
        (F.col("api") == "SyncGroup") & (F.col("error") == OK) & F.col("generation").isNotNull()
    ).where("size(assignments) > 0")
    first = F.row_number().over(Window.partitionBy(*GENERATION).orderBy("seq"))
    return (
        syncs.withColumn("nth", first)
        .where("nth = 1")
        .select(*GENERATION, "seq", F.col("member_id").alias("leader_id"), "assignments", call_text().alias("text"))
    )


def _by_member(inputs: CheckInput, assigned: DataFrame) -> DataFrame:
    """Return one row for each member of an assignment: its partitions `held`, and its `place` in the assignment."""
    return (
        assigned.select(
            *GENERATION, "seq", "leader_id", "text", F.posexplode("assignments").alias("place", "member_id", "topics")
        )
        .join(inputs.labels, [*MEMBER], "left")
        .withColumn("label", F.coalesce("label", "member_id"))
        .withColumn("held", _flat(F.col("topics")))
    )
