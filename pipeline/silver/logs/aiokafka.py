"""Log of an aiokafka consumer: aiokafka.consumer.group_coordinator, in any format with a time."""

from __future__ import annotations

from .patterns import client_line

MARK = r"aiokafka\.consumer\.group_coordinator|Joined group '.*' \(generation \d+\) with member_id "
"""Its logger, or a message that only aiokafka writes."""

_GROUP = r"(?P<group_id>\S+)"


KNOWN = (
    client_line(rf"\(Re-\)joining group {_GROUP}", "joining"),
    client_line(
        r"Joined group '(?P<group_id>.*)' \(generation (?P<generation>\d+)\) with member_id (?P<member_id>\S+)",
        "joined",
    ),
    client_line(rf"Setting newly assigned partitions .* for group {_GROUP}", "assigned"),
    client_line(rf"Revoking previously assigned partitions .* for group {_GROUP}", "revoked"),
    client_line(
        rf"Heartbeat failed for group {_GROUP} because it is rebalancing", "rejoins", "group is already rebalancing"
    ),
    client_line(r"Metadata for topic has changed from", "rejoins", "metadata changed"),
    client_line(rf"Heartbeat failed for group {_GROUP}: (?P<reason>.*)", "failed"),
    client_line(r"Heartbeat failed: (?P<reason>.*)", "failed"),
    client_line(r"LeaveGroup request succeeded", "left"),
)
