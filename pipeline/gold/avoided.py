"""gold/avoided: the rebalances that static membership has saved (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .. import schema
from ..frames import whose
from ..silver.groups import at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def avoided(event: DataFrame, trace: DataFrame) -> DataFrame:
    """gold/avoided of these events. The log of Kafka 2.4 does not say in which group it was."""
    found = event.where(F.col("kind") == "avoided_static").withColumn("at", at("wall_us"))
    return whose(found, trace, schema.AVOIDED)
