"""gold/commit: every OffsetCommit, and whether its generation is stale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import with_trace_columns
from ..silver.group_columns import wall_time, with_group_state, with_member_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def commit(event: DataFrame, call: DataFrame, member_span: DataFrame, trace: DataFrame) -> DataFrame:
    """Return gold/commit. A commit in generation -1 comes from a client without a membership."""
    commits = with_group_state(call.where(F.col("api") == "OffsetCommit"), event)
    lag = F.when(F.col("generation") >= 0, F.col("group_generation") - F.col("generation"))
    rows = (
        with_member_name(commits, member_span, "member_id", "member")
        .withColumn("member", F.coalesce("instance_id", "member"))
        .withColumn("at", wall_time("wall_us"))
        .withColumn("gen_lag", lag)
        .withColumn("n_partitions", F.when(F.col("offsets").isNotNull(), F.size("offsets")))
        .withColumn("is_zombie", F.coalesce(F.col("gen_lag") > 0, F.lit(col=False)))
    )
    return with_trace_columns(rows, trace, schema.COMMIT)
