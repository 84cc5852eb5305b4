"""coordinator.log of Huawei Cloud DMS for Kafka: a JSON object for every completed rebalance.

    {"level": "INFO", "timestamp": "2023-03-23 17:23:22,906", "message": {"type": "END_REBALANCE", "groupId": …,
     "generationId": "1", "leaderId": …, "coordinatorId": …, "reason": …, "group": "GroupMetadata(…members=Map(…))"}}

A line has the end of a rebalance but not its start. So its events have no group time, and the rebalance no duration.
(https://support.huaweicloud.com/intl/en-us/usermanual-kafka/kafka-ug-0037.html)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .layouts import valid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .patterns import Fields

MARK = r'^\s*\{.*"type"\s*:\s*"\w+_REBALANCE"'
"""Pattern of DMS lines."""

_MEMBER = re.compile(r"\bmemberId=")


def fields(message: Mapping[str, Any]) -> Fields | None:
    """Return the fields (`patterns.Fields`) of a message: the start of its rebalance, and the leader.

    None for a message that does not end a rebalance.
    """
    if message.get("type") != "END_REBALANCE":
        return None
    generation = number(message, "generationId")
    texts: dict[str, str | None] = {
        "group_id": _text(message, "groupId"),
        "generation": None if generation is None else str(generation - 1),
        "reason": _text(message, "reason"),
        "new_member_id": _text(message, "leaderId"),
        "n_members": str(len(_MEMBER.findall(_text(message, "group") or ""))),
    }
    named = {name: text for name, text in texts.items() if text is not None}
    return {"kind": "state", "state_to": "PreparingRebalance", **named}


def number(message: Mapping[str, Any], name: str) -> int | None:
    """Return a field that is a number; `coordinatorId` is the broker."""
    text = _text(message, name) or ""
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


def _text(message: Mapping[str, Any], name: str) -> str | None:
    value = message.get(name)
    return None if value is None or isinstance(value, dict | list) else valid(str(value))
