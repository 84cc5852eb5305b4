"""coordinator.log of Huawei Cloud DMS for Kafka: a JSON object for every completed rebalance.

    {"level": "INFO", "timestamp": "2023-03-23 17:23:22,906", "message": {"type": "END_REBALANCE", "groupId": …,
     "generationId": "1", "leaderId": …, "coordinatorId": …, "reason": …, "group": "GroupMetadata(…members=Map(…))"}}

A line has the end of a rebalance but not its start. So its events have no group time, and the rebalance no duration.
(https://support.huaweicloud.com/intl/en-us/usermanual-kafka/kafka-ug-0037.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from pyspark.sql import Column

MARK = r'^\s*\{.*"type"\s*:\s*"\w+_REBALANCE"'
"""Pattern of DMS lines."""

RELEVANT = MARK


def fields(line: Column) -> dict[str, Column]:
    """Return the fields (`patterns.FIELDS`) of a line: the start of its rebalance, and the leader."""
    has_ended = _field(line, "type") == "END_REBALANCE"
    members = F.size(F.split(_field(line, "group"), r"\bmemberId=")) - 1
    return {
        "kind": F.when(has_ended, "state"),
        "state_to": F.when(has_ended, "PreparingRebalance"),
        "group_id": _field(line, "groupId"),
        "generation": (_field(line, "generationId").try_cast("int") - 1).cast("string"),
        "reason": _field(line, "reason"),
        "new_member_id": _field(line, "leaderId"),
        "n_members": members.cast("string"),
    }


def node(line: Column) -> Column:
    """Return the broker."""
    return _field(line, "coordinatorId").try_cast("int")


def _field(line: Column, name: str) -> Column:
    return F.get_json_object(line, f"$.message.{name}")
