"""gold/avoided: the rebalances that static membership avoided (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import with_trace_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def avoided(event: DataFrame, trace: DataFrame) -> DataFrame:
    """Return gold/avoided. The log of Kafka 2.4 does not name the group."""
    avoided_events = event.where(F.col("kind") == "avoided_static").withColumn("at", F.timestamp_micros("wall_us"))
    return with_trace_columns(avoided_events, trace, schema.AVOIDED)
