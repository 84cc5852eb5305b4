"""C06 and C07: who owns what, and from whom it came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .client_commits import COOPERATIVE
from .judging import FAIL, GROUP, OK, PASS, found, said, texts
from .story import MEMBER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .story import Story

GENERATION = (*GROUP, "generation")


def owned_once(story: Story) -> DataFrame:
    """C07. No generation gives a partition to two.

    Whether partitions are left over cannot be said: how many a topic has is not in the trace.
    """
    given = _given(story).withColumn("all", F.flatten(F.transform(F.map_values("assignments"), _flat)))
    twice = F.size(F.array_distinct("all")) < F.size("all")
    right = found(given.where(~twice), PASS, "seq", member="leader_id")
    owned = (
        _by_member(story, given.where(twice))
        .select(*GENERATION, "seq", "leader_id", "place", "label", F.explode("held").alias("at"))
        .groupBy(*GENERATION, "seq", "leader_id", "at")
        .agg(_in_order("label").alias("labels"))
        .where(F.size(F.array_distinct("labels")) > 1)
    )
    text = texts(
        "in generation ", F.col("generation"), " ", _named("at"), " was given to ", F.array_join("labels", " and ")
    )
    return right.unionByName(found(owned, FAIL, "seq", text=text, member="leader_id"))


def revoked_first(story: Story) -> DataFrame:
    """C06. KIP-429: what a member still owns when it joins it keeps, or nobody has it until the next generation."""
    cooperative = (
        story.call.where(F.col("formed").isNotNull() & F.col("protocol").like(COOPERATIVE))
        .select(*GROUP, F.col("formed").alias("generation"))
        .distinct()
    )
    syncs = story.answered_as(("SyncGroup",)).where("size(assignments) > 0")
    judged = syncs.join(cooperative, [*GENERATION], "left_semi").withColumn("text", said())
    held = _by_member(story, judged.withColumnRenamed("member_id", "leader_id"))
    everything = held.groupBy(*GROUP, "seq").agg(
        F.flatten(F.collect_list("held")).alias("all"), F.collect_list(F.struct("place", "label", "held")).alias("rows")
    )
    taken = (
        held.join(_claims(story), [*GENERATION, "label"])
        .join(everything, [*GROUP, "seq"])
        .withColumn("lost", F.array_intersect(F.array_except("claimed", "held"), "all"))
        .where("size(lost) > 0")
        .select(*GROUP, "seq", "leader_id", "text", "rows", "place", "label", F.explode("lost").alias("at"))
        .groupBy(*GROUP, "seq", "leader_id", "text", "at")
        .agg(_in_order("label").alias("losers"), F.first("rows").alias("rows"))
    )
    owner = F.filter(F.array_sort("rows"), lambda row: F.array_contains(row["held"], F.col("at")))[0]["label"]
    text = texts(
        "{name}{software} leads, and gave ",
        _named("at"),
        " to ",
        owner,
        " while ",
        F.col("losers")[0],
        " owned it: ",
        F.col("text"),
    )
    wrong = found(taken, FAIL, "seq", text=text, member="leader_id")
    right = judged.join(taken.select(*GROUP, "seq"), [*GROUP, "seq"], "left_anti")
    return wrong.unionByName(found(right, PASS, "seq", member="member_id")).unionByName(
        _used_by_two(story, cooperative)
    )


def _claims(story: Story) -> DataFrame:
    """What each member still had when it joined a generation, of what it says it has (`claimed`)."""
    joins = story.call.where("formed IS NOT NULL")
    syncs = story.answered_as(("SyncGroup",)).where("member_id IS NOT NULL")
    calls = joins.unionByName(syncs).join(story.labels, [*MEMBER])
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


def _used_by_two(story: Story, cooperative: DataFrame) -> DataFrame:
    """Commits of what another owns in the same generation, which the coordinator took: of that it knows nothing."""
    given = _given(story).join(cooperative, [*GENERATION], "left_semi")
    owners = (
        _by_member(story, given)
        .select(*GENERATION, "place", F.col("label").alias("owner"), F.explode("held").alias("at"))
        .groupBy(*GENERATION, "at")
        .agg(_in_order("owner").alias("owners"))
    )
    places = F.transform("offsets", lambda row: row.dropFields("offset"))
    commits = (
        story.answered_as(("OffsetCommit",))
        .where("generation >= 0 AND member_id IS NOT NULL")
        .select(*MEMBER, "generation", "seq", said().alias("text"), places.alias("places"))
        .join(given.select(*GENERATION, "assignments"), [*GENERATION])
        # nearly all commit what is theirs
        .where(F.size(F.array_except("places", _flat(F.col("assignments")[F.col("member_id")]))) > 0)
        .join(story.labels, [*MEMBER])
        .select(*MEMBER, "generation", "seq", "label", "text", F.posexplode("places").alias("place", "at"))
        .join(owners, [*GENERATION, "at"])
        .where(~F.array_contains("owners", F.col("label")))
    )
    foreign = commits.groupBy(*MEMBER, "generation", "seq", "text").agg(
        _in_order(texts(_named("at"), " of ", F.col("owners")[0])).alias("foreign")
    )
    changes = story.changes.select(*MEMBER, F.struct("seq", "change").alias("was"))
    gone = (
        foreign.join(changes, [*MEMBER])
        .where("was.seq < seq")
        .groupBy(*GROUP, "seq")
        .agg(F.max("was").alias("was"))
        .where("was.change IN ('removed', 'replaced')")
    )
    formed = story.states.where("state_to = 'CompletingRebalance'").select(
        *GROUP, F.struct("seq", "generation").alias("formed")
    )
    behind = (
        foreign.join(formed, [*GROUP])
        .where("formed.seq < seq")
        .groupBy(*GROUP, "seq", "generation")
        .agg(F.max("formed").alias("formed"))
        .where("formed.generation > generation")
    )
    wrong = foreign.join(gone, [*GROUP, "seq"], "left_anti").join(behind, [*GROUP, "seq"], "left_anti")
    text = texts(F.col("text"), ": it commits ", F.array_join("foreign", ", "), "{software}")
    return found(wrong, FAIL, "seq", text=text, member="member_id")


FLAT = "array<struct<topic:string,partition:int>>"


def _flat(topics: Column) -> Column:
    """Topic -> partitions as an array of both."""
    one = F.transform(
        F.map_entries(topics),
        lambda entry: F.transform(
            entry["value"], lambda number: F.struct(entry["key"].alias("topic"), number.alias("partition"))
        ),
    )
    return F.coalesce(F.flatten(one), F.array().cast(FLAT))


def _named(at: str) -> Column:
    return F.concat_ws(" ", f"{at}.topic", f"{at}.partition")


def _in_order(what: Column | str) -> Column:
    """Of a group of rows: in the order of their `place`."""
    column = F.col(what) if isinstance(what, str) else what
    rows = F.array_sort(F.collect_list(F.struct("place", column.alias("what"))))
    return F.transform(rows, lambda row: row["what"])


def _given(story: Story) -> DataFrame:
    """What the leader of each generation assigned first, as far as the coordinator took it over."""
    syncs = story.call.where(
        (F.col("api") == "SyncGroup") & (F.col("error") == OK) & F.col("generation").isNotNull()
    ).where("size(assignments) > 0")
    first = F.row_number().over(Window.partitionBy(*GENERATION).orderBy("seq"))
    return (
        syncs.withColumn("nth", first)
        .where("nth = 1")
        .select(*GENERATION, "seq", F.col("member_id").alias("leader_id"), "assignments", said().alias("text"))
    )


def _by_member(story: Story, given: DataFrame) -> DataFrame:
    """One row for each member that was given something, or nothing: `held`, and its `place` among them."""
    return (
        given.select(
            *GENERATION, "seq", "leader_id", "text", F.posexplode("assignments").alias("place", "member_id", "topics")
        )
        .join(story.labels, [*MEMBER], "left")
        .withColumn("label", F.coalesce("label", "member_id"))
        .withColumn("held", _flat(F.col("topics")))
    )
