"""Log of a kafka-python consumer: what kafka.coordinator says, 2.x and 3.x, in any format with a time."""

from __future__ import annotations

from .said import of_client

MARK = r"kafka\.coordinator|Successfully joined group \S+ (?:<Generation|with generation) "
"""Its logger, or what only it says so."""

OURS = rf"{MARK}|[Gg]roup "

_GROUP = r"(?P<group_id>\S+)"


KNOWN = (
    of_client(rf"\(Re-\)joining group {_GROUP}", "joining"),
    of_client(
        rf"Successfully joined group {_GROUP} (?:<Generation|with generation) (?P<generation>\d+)"
        r"(?: \(member_id: (?P<member_id>[^,]*))?",
        "joined",
    ),
    of_client(rf"Setting newly assigned partitions .* for group {_GROUP}", "assigned"),
    of_client(rf"Cooperative rebalance complete for group {_GROUP}:", "assigned"),
    of_client(rf"Revoking previously assigned partitions .* for group {_GROUP}", "revoked"),
    of_client(rf"Group {_GROUP} lost membership", "lost"),
    of_client(rf"Group {_GROUP} is rebalancing; rejoining", "rejoins", "group is already rebalancing"),
    of_client(
        rf"Heartbeat failed for group {_GROUP} because it is rebalancing", "rejoins", "group is already rebalancing"
    ),
    of_client(
        rf"Triggering follow-up rebalance for group {_GROUP} to complete cooperative move",
        "rejoins",
        "need to revoke partitions and re-join",
    ),
    of_client(rf"Heartbeat .*failed for group {_GROUP}:? (?P<reason>.*)", "failed"),
    of_client(rf"(?:Attempt to join|SyncGroup for) group {_GROUP} (?P<reason>.*)", "failed"),
    of_client(r"[Pp]oll (?:timeout has )?expired", "left", "consumer poll timeout has expired"),
    of_client(rf"Leaving consumer group {_GROUP} \(member (?P<member_id>.*)\)\.", "left"),
)
