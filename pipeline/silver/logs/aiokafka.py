"""Log of an aiokafka consumer: what aiokafka.consumer.group_coordinator says, in any format with a time."""

from __future__ import annotations

from .said import of_client

MARK = r"aiokafka\.consumer\.group_coordinator|Joined group '.*' \(generation \d+\) with member_id "
"""Its logger, or what only it says so."""

OURS = rf"{MARK}|[Gg]roup "

_GROUP = r"(?P<group_id>\S+)"


KNOWN = (
    of_client(rf"\(Re-\)joining group {_GROUP}", "joining"),
    of_client(
        r"Joined group '(?P<group_id>.*)' \(generation (?P<generation>\d+)\) with member_id (?P<member_id>\S+)",
        "joined",
    ),
    of_client(rf"Setting newly assigned partitions .* for group {_GROUP}", "assigned"),
    of_client(rf"Revoking previously assigned partitions .* for group {_GROUP}", "revoked"),
    of_client(
        rf"Heartbeat failed for group {_GROUP} because it is rebalancing", "rejoins", "group is already rebalancing"
    ),
    of_client(r"Metadata for topic has changed from", "rejoins", "metadata changed"),
    of_client(rf"Heartbeat failed for group {_GROUP}: (?P<reason>.*)", "failed"),
    of_client(r"Heartbeat failed: (?P<reason>.*)", "failed"),
    of_client(r"LeaveGroup request succeeded", "left"),
)
