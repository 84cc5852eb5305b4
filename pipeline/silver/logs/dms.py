"""coordinator.log of Huawei Cloud DMS for Kafka: a JSON object for every rebalance that has ended.

    {"level": "INFO", "timestamp": "2023-03-23 17:23:22,906", "message": {"type": "END_REBALANCE", "groupId": …,
     "generationId": "1", "leaderId": …, "coordinatorId": …, "reason": …, "group": "GroupMetadata(…members=Map(…))"}}

It says when a rebalance ended, not when it began: so what it becomes has no time of the group's clock, and no duration.
(https://support.huaweicloud.com/intl/en-us/usermanual-kafka/kafka-ug-0037.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from pyspark.sql import Column

MARK = r'^\s*\{.*"type"\s*:\s*"\w+_REBALANCE"'
"""What only these lines say."""

OURS = MARK


def fields(line: Column) -> dict[str, Column]:
    """What a line says, by the fields of `said.FIELDS`: of the begin of its rebalance, and of the leader it has."""
    is_over = _field(line, "type") == "END_REBALANCE"
    members = F.size(F.split(_field(line, "group"), r"\bmemberId=")) - 1
    return {
        "kind": F.when(is_over, "state"),
        "state_to": F.when(is_over, "PreparingRebalance"),
        "group_id": _field(line, "groupId"),
        "generation": (_field(line, "generationId").try_cast("int") - 1).cast("string"),
        "reason": _field(line, "reason"),
        "new_member_id": _field(line, "leaderId"),
        "n_members": members.cast("string"),
    }


def node(line: Column) -> Column:
    """The broker."""
    return _field(line, "coordinatorId").try_cast("int")


def _field(line: Column, name: str) -> Column:
    return F.get_json_object(line, f"$.message.{name}")
