"""Log of a kafka-python consumer, 2.x and 3.x: kafka.coordinator, in any format with a time."""

from __future__ import annotations

from .patterns import client_line

MARK = r"kafka\.coordinator|Successfully joined group \S+ (?:<Generation|with generation) "
"""Its logger, or a message that only kafka-python writes."""

_GROUP = r"(?P<group_id>\S+)"


KNOWN = (
    client_line(rf"\(Re-\)joining group {_GROUP}", "joining"),
    client_line(
        rf"Successfully joined group {_GROUP} (?:<Generation|with generation) (?P<generation>\d+)"
        r"(?: \(member_id: (?P<member_id>[^,]*))?",
        "joined",
    ),
    client_line(rf"Setting newly assigned partitions .* for group {_GROUP}", "assigned"),
    client_line(rf"Cooperative rebalance complete for group {_GROUP}:", "assigned"),
    client_line(rf"Revoking previously assigned partitions .* for group {_GROUP}", "revoked"),
    client_line(rf"Group {_GROUP} lost membership", "lost"),
    client_line(rf"Group {_GROUP} is rebalancing; rejoining", "rejoins", "group is already rebalancing"),
    client_line(
        rf"Heartbeat failed for group {_GROUP} because it is rebalancing", "rejoins", "group is already rebalancing"
    ),
    client_line(
        rf"Triggering follow-up rebalance for group {_GROUP} to complete cooperative move",
        "rejoins",
        "need to revoke partitions and re-join",
    ),
    client_line(rf"Heartbeat .*failed for group {_GROUP}:? (?P<reason>.*)", "failed"),
    client_line(rf"(?:Attempt to join|SyncGroup for) group {_GROUP} (?P<reason>.*)", "failed"),
    client_line(r"[Pp]oll (?:timeout has )?expired", "left", "consumer poll timeout has expired"),
    client_line(rf"Leaving consumer group {_GROUP} \(member (?P<member_id>.*)\)\.", "left"),
)
