"""mart/client_matrix: every version of every client in every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import CLIENT_MATRIX
from .test_run import CLIENT, flake_rate, severity_rank

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def client_matrix(test_run: DataFrame) -> DataFrame:
    """Return mart/client_matrix."""
    runs = test_run.withColumn("client", F.explode("clients")).select("*", "client.*")
    matrix = runs.groupBy(*CLIENT, F.col("test_id").alias("scenario")).agg(
        F.min_by("status", severity_rank(F.col("status"))).alias("status"),
        F.count(F.lit(1)).alias("runs"),
        F.coalesce(F.sum(F.col("failed").cast("long")), F.lit(0)).alias("failed_runs"),
        F.coalesce(flake_rate(F.col("failed")), F.lit(0.0)).alias("flake_rate"),
        F.avg("n_rebalances").alias("rebalances"),
        F.timestamp_micros(F.max("started_us")).alias("last_run"),
    )
    return select_schema(matrix.withColumnRenamed("failed_runs", "failed"), CLIENT_MATRIX)
