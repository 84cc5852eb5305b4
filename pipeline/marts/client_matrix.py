"""mart/client_matrix: every version of every client in every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from koordinator.emulator.verify.observations import FAIL, INCONCLUSIVE, NOT_APPLICABLE, PASS

from ..frames import select_schema
from ..schema import CLIENT_MATRIX
from .test_outcomes import failed, flake_rate, with_rebalances

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLIENT = ("client_software", "client_version")

WORST_FIRST = (FAIL, INCONCLUSIVE, PASS, NOT_APPLICABLE)

SEVERAL = "clients"
"""Subject of a verdict that concerns several clients."""


def client_matrix(
    verdict: DataFrame, trace: DataFrame, test: DataFrame, member: DataFrame, rebalance: DataFrame
) -> DataFrame:
    """Return mart/client_matrix. A client took part in a test if one of its members sent a request.

    A verdict that concerns several clients counts for each of them.
    """
    clients = member.where("client_software IS NOT NULL").select("trace_id", "group_id", *CLIENT).distinct()
    named = F.concat_ws(" ", *CLIENT)
    rank = F.array_position(F.array(*(F.lit(status) for status in WORST_FIRST)), F.col("status"))
    judged = (
        clients.join(verdict.where("check_id LIKE 'C%'"), ["trace_id", "group_id"])
        .where((F.col("subject") == named) | (F.col("subject") == SEVERAL))
        .groupBy("trace_id", *CLIENT)
        .agg(F.min(F.struct(rank.alias("rank"), "status")).alias("worst"))
    )
    failures = test.select("trace_id", failed().alias("failed"))
    outcomes = with_rebalances(trace.select("trace_id", "test_id", "started_us"), rebalance).join(
        failures, "trace_id", "left"
    )
    runs = clients.select("trace_id", *CLIENT).distinct().join(outcomes, "trace_id")
    matrix = (
        runs.join(judged, ["trace_id", *CLIENT], "left")
        .groupBy(*CLIENT, F.col("test_id").alias("scenario"))
        .agg(
            F.coalesce(F.min("worst").getField("status"), F.lit(NOT_APPLICABLE)).alias("status"),
            F.count(F.lit(1)).alias("runs"),
            F.coalesce(F.sum(F.col("failed").cast("long")), F.lit(0)).alias("failed_runs"),
            F.coalesce(flake_rate(F.col("failed")), F.lit(0.0)).alias("flake_rate"),
            F.avg("n_rebalances").alias("rebalances"),
            F.timestamp_micros(F.max("started_us")).alias("last_run"),
        )
    )
    return select_schema(matrix.withColumnRenamed("failed_runs", "failed"), CLIENT_MATRIX)
