"""mart/verdict: every check of every group, S01 to S10 of the coordinator and C01 to C10 of its clients."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import with_trace_columns
from ..schema import VERDICT
from .check_input import MEMBER, CheckInput
from .checks import CHECKS, Check
from .findings import FAIL, GROUP, INCONCLUSIVE, NOT_APPLICABLE, PASS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TEXTS_MAX = 3
"""Findings to describe in a message; the others are only counted."""


def verdict(event: DataFrame, call: DataFrame, member: DataFrame, group: DataFrame, trace: DataFrame) -> DataFrame:
    """Return the verdict of each check on each group: fail if any finding fails, else inconclusive if any is."""
    inputs = CheckInput(event, call, member, group)
    results = [check.judge(inputs).withColumn("check_id", F.lit(check.id)) for check in _applicable_checks(inputs)]
    findings = reduce(lambda one, other: one.unionByName(other), results, _no_findings(event))
    checks = F.array(*(F.struct(F.lit(check.id), F.lit(check.title), F.lit(check.severity)) for check in CHECKS))
    all_checks = group.select(*GROUP, "lost", F.explode(checks.cast(CHECK_TYPE)).alias("check")).select(
        *GROUP, "lost", "check.*"
    )
    judged = all_checks.join(_decided(findings, member), [*GROUP, "check_id"], "left").join(
        _softwares(member), [*GROUP], "left"
    )
    is_incomplete = (F.col("status") == PASS) & (F.col("lost") > 0)
    text = F.concat(F.lit("the trace lacks its first "), "lost", F.lit(" events"))
    named = F.when(F.size("softwares") > 0, F.col("softwares")).otherwise(F.col("all_softwares"))
    subject = (
        F.when(F.col("check_id").startswith("S"), "coordinator").when(F.size(named) == 1, named[0]).otherwise("clients")
    )
    return with_trace_columns(
        judged.withColumn("message", F.when(is_incomplete, text).otherwise(_message()))
        .withColumn("subject", subject)
        .withColumn(
            "status", F.when(is_incomplete, INCONCLUSIVE).otherwise(F.coalesce("status", F.lit(NOT_APPLICABLE)))
        )
        .withColumn("n_evidence", F.coalesce("n_evidence", F.lit(0))),
        trace,
        VERDICT,
    )


def _applicable_checks(inputs: CheckInput) -> list[Check]:
    """Return the checks with something to judge. One query decides, because each check is a plan of many joins."""
    applicable: dict[str, bool] = {}
    for among in ("event", "call"):
        checks = [check for check in CHECKS if check.among == among]
        conditions = [F.coalesce(F.max(F.expr(check.about)), F.lit(col=False)).alias(check.id) for check in checks]
        row = getattr(inputs, among).agg(*conditions).first()
        applicable |= row.asDict() if row is not None else {}
    return [check for check in CHECKS if applicable.get(check.id)]


def _no_findings(event: DataFrame) -> DataFrame:
    numbers, strings = ("first_seq", "last_seq", "n"), ("text", "member_id", "status", "check_id")
    kinds = dict.fromkeys(numbers, "bigint") | dict.fromkeys(strings, "string")
    columns = (F.lit(None).cast(kind).alias(name) for name, kind in kinds.items())
    return event.where(F.lit(col=False)).select(*GROUP, *columns)


CHECK_TYPE = "array<struct<check_id:string,title:string,severity:string>>"

RANK = {FAIL: 2, INCONCLUSIVE: 1, PASS: 0}


def _decided(findings: DataFrame, member: DataFrame) -> DataFrame:
    """Return the findings with the worst status of each check, aggregated by member first.

    Most findings are passes without a text; they are counted before the texts are collected into lists.
    """
    text_seq = F.when(F.col("text").isNotNull(), F.col("first_seq"))
    merged = findings.groupBy(*GROUP, "check_id", "status", "member_id", "text", text_seq.alias("text_seq")).agg(
        F.sum("n").alias("n"), F.min("first_seq").alias("first_seq"), F.max("last_seq").alias("last_seq")
    )
    entry = F.when(F.col("text").isNotNull(), F.struct(F.col("text_seq").alias("first_seq"), "text"))
    by_member = merged.groupBy(*GROUP, "check_id", "status", "member_id").agg(
        F.sum("n").alias("n"),
        F.min("first_seq").alias("first_seq"),
        F.max("last_seq").alias("last_seq"),
        F.slice(F.array_sort(F.collect_list(entry)), 1, TEXTS_MAX).alias("texts"),
    )
    label = F.coalesce("member", "member_id", F.lit(""))
    software = F.coalesce(F.concat(F.lit(" ("), "software", F.lit(")")), F.lit(""))
    named = by_member.join(member.select(*MEMBER, "member", _software()), [*MEMBER], "left").withColumn(
        "texts", F.transform("texts", lambda entry: _filled(entry, label, software))
    )
    rank = F.create_map(*(F.lit(value) for pair in RANK.items() for value in pair))[F.col("status")]
    counted = named.groupBy(*GROUP, "check_id", "status").agg(
        F.sum("n").cast("int").alias("n_evidence"),
        F.min("first_seq").alias("first_seq"),
        F.max("last_seq").alias("last_seq"),
        F.slice(F.array_sort(F.flatten(F.collect_list("texts"))), 1, TEXTS_MAX).alias("texts"),
        F.array_sort(F.collect_set("software")).alias("softwares"),
    )
    rest = [name for name in counted.columns if name not in (*GROUP, "check_id")]
    return (
        counted.groupBy(*GROUP, "check_id")
        .agg(F.max_by(F.struct(*rest), rank).alias("worst"))
        .select(*GROUP, "check_id", "worst.*")
    )


def _filled(entry: Column, label: Column, software: Column) -> Column:
    text = F.replace(F.replace(entry["text"], F.lit("{name}"), label), F.lit("{software}"), software)
    return F.struct(entry["first_seq"].alias("first_seq"), text.alias("text"))


def _message() -> Column:
    shown = F.array_join(F.transform("texts", lambda entry: entry["text"]), "; ")
    more = F.col("n_evidence") - TEXTS_MAX
    rest = F.when(more > 0, F.concat(F.lit("; and "), more, F.lit(" more of the kind"))).otherwise("")
    return F.when(F.size("texts") > 0, F.concat(shown, rest)).otherwise("")


def _softwares(member: DataFrame) -> DataFrame:
    return member.groupBy(*GROUP).agg(F.array_sort(F.collect_set(_software())).alias("all_softwares"))


def _software() -> Column:
    """Return a client library and its version; null if unknown."""
    named = F.concat_ws(" ", "client_software", "client_version")
    return F.when(F.col("client_software").isNotNull(), named).alias("software")
