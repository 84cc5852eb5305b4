"""mart/verdict: every check of every group, S01 to S10 of the coordinator and C01 to C10 of its clients."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import whose
from ..schema import VERDICT
from .checks import CHECKS, Check
from .judging import FAIL, GROUP, INCONCLUSIVE, NOT_APPLICABLE, PASS
from .story import MEMBER, Story

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHOWN = 3
"""So many findings are told, the others counted."""


def verdict(event: DataFrame, call: DataFrame, member: DataFrame, group: DataFrame, trace: DataFrame) -> DataFrame:
    """What each check says of each group. One thing that is wrong decides; then one that is unclear."""
    story = Story(event, call, member, group)
    found = [check.judge(story).withColumn("check_id", F.lit(check.id)) for check in _concerned(story)]
    findings = reduce(lambda one, other: one.unionByName(other), found, _nothing(event))
    checks = F.array(*(F.struct(F.lit(each.id), F.lit(each.title), F.lit(each.severity)) for each in CHECKS))
    asked = group.select(*GROUP, "lost", F.explode(checks.cast(ABOUT)).alias("check")).select(*GROUP, "lost", "check.*")
    judged = asked.join(_decided(findings, member), [*GROUP, "check_id"], "left").join(
        _softwares(member), [*GROUP], "left"
    )
    forgotten = (F.col("status") == PASS) & (F.col("lost") > 0)
    said = F.concat(F.lit("the trace lacks its first "), "lost", F.lit(" events"))
    named = F.when(F.size("softwares") > 0, F.col("softwares")).otherwise(F.col("all_softwares"))
    subject = (
        F.when(F.col("check_id").startswith("S"), "coordinator").when(F.size(named) == 1, named[0]).otherwise("clients")
    )
    return whose(
        judged.withColumn("message", F.when(forgotten, said).otherwise(_message()))
        .withColumn("subject", subject)
        .withColumn("status", F.when(forgotten, INCONCLUSIVE).otherwise(F.coalesce("status", F.lit(NOT_APPLICABLE))))
        .withColumn("n_evidence", F.coalesce("n_evidence", F.lit(0))),
        trace,
        VERDICT,
    )


def _concerned(story: Story) -> list[Check]:
    """The checks that have something to judge. It is looked for at once: each check is a plan of many joins."""
    there: dict[str, bool] = {}
    for among in ("event", "call"):
        asked = [check for check in CHECKS if check.among == among]
        whether = [F.coalesce(F.max(F.expr(check.about)), F.lit(col=False)).alias(check.id) for check in asked]
        row = getattr(story, among).agg(*whether).first()
        there |= row.asDict() if row is not None else {}
    return [check for check in CHECKS if there.get(check.id)]


def _nothing(event: DataFrame) -> DataFrame:
    numbers, strings = ("first_seq", "last_seq", "n"), ("text", "member_id", "status", "check_id")
    kinds = dict.fromkeys(numbers, "bigint") | dict.fromkeys(strings, "string")
    no_one = (F.lit(None).cast(kind).alias(name) for name, kind in kinds.items())
    return event.where(F.lit(col=False)).select(*GROUP, *no_one)


ABOUT = "array<struct<check_id:string,title:string,severity:string>>"

RANK = {FAIL: 2, INCONCLUSIVE: 1, PASS: 0}


def _decided(findings: DataFrame, member: DataFrame) -> DataFrame:
    """The findings of each check that decide: of the worst status there is; first by member, who are few.

    Most findings are that all is well, and say nothing: they are counted before lists are gathered.
    """
    told_seq = F.when(F.col("text").isNotNull(), F.col("first_seq"))
    alike = findings.groupBy(*GROUP, "check_id", "status", "member_id", "text", told_seq.alias("told_seq")).agg(
        F.sum("n").alias("n"), F.min("first_seq").alias("first_seq"), F.max("last_seq").alias("last_seq")
    )
    told = F.when(F.col("text").isNotNull(), F.struct(F.col("told_seq").alias("first_seq"), "text"))
    by_member = alike.groupBy(*GROUP, "check_id", "status", "member_id").agg(
        F.sum("n").alias("n"),
        F.min("first_seq").alias("first_seq"),
        F.max("last_seq").alias("last_seq"),
        F.slice(F.array_sort(F.collect_list(told)), 1, SHOWN).alias("told"),
    )
    label = F.coalesce("member", "member_id", F.lit(""))
    software = F.coalesce(F.concat(F.lit(" ("), "software", F.lit(")")), F.lit(""))
    named = by_member.join(member.select(*MEMBER, "member", _software()), [*MEMBER], "left").withColumn(
        "told", F.transform("told", lambda each: _filled(each, label, software))
    )
    rank = F.create_map(*(F.lit(each) for pair in RANK.items() for each in pair))[F.col("status")]
    counted = named.groupBy(*GROUP, "check_id", "status").agg(
        F.sum("n").cast("int").alias("n_evidence"),
        F.min("first_seq").alias("first_seq"),
        F.max("last_seq").alias("last_seq"),
        F.slice(F.array_sort(F.flatten(F.collect_list("told"))), 1, SHOWN).alias("told"),
        F.array_sort(F.collect_set("software")).alias("softwares"),
    )
    rest = [name for name in counted.columns if name not in (*GROUP, "check_id")]
    return (
        counted.groupBy(*GROUP, "check_id")
        .agg(F.max_by(F.struct(*rest), rank).alias("worst"))
        .select(*GROUP, "check_id", "worst.*")
    )


def _filled(told: Column, label: Column, software: Column) -> Column:
    text = F.replace(F.replace(told["text"], F.lit("{name}"), label), F.lit("{software}"), software)
    return F.struct(told["first_seq"].alias("first_seq"), text.alias("text"))


def _message() -> Column:
    shown = F.array_join(F.transform("told", lambda each: each["text"]), "; ")
    more = F.col("n_evidence") - SHOWN
    rest = F.when(more > 0, F.concat(F.lit("; and "), more, F.lit(" more of the kind"))).otherwise("")
    return F.when(F.size("told") > 0, F.concat(shown, rest)).otherwise("")


def _softwares(member: DataFrame) -> DataFrame:
    return member.groupBy(*GROUP).agg(F.array_sort(F.collect_set(_software())).alias("all_softwares"))


def _software() -> Column:
    """A client library and its version, null if it does not say."""
    named = F.concat_ws(" ", "client_software", "client_version")
    return F.when(F.col("client_software").isNotNull(), named).alias("software")
