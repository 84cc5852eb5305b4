"""gold/commit: every OffsetCommit, and whether it came from the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .. import schema
from ..frames import whose
from ..silver.groups import at, named, stamped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def commit(event: DataFrame, call: DataFrame, member_span: DataFrame, trace: DataFrame) -> DataFrame:
    """gold/commit of these events and calls. A commit in generation -1 is of somebody who is in no group."""
    commits = stamped(call.where(F.col("api") == "OffsetCommit"), event)
    lag = F.when(F.col("generation") >= 0, F.col("group_generation") - F.col("generation"))
    found = (
        named(commits, member_span, "member_id", "member")
        .withColumn("member", F.coalesce("instance_id", "member"))
        .withColumn("at", at("wall_us"))
        .withColumn("gen_lag", lag)
        .withColumn("n_partitions", F.when(F.col("offsets").isNotNull(), F.size("offsets")))
        .withColumn("is_zombie", F.coalesce(F.col("gen_lag") > 0, F.lit(col=False)))
    )
    return whose(found, trace, schema.COMMIT)
