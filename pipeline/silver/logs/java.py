"""Log of a Java consumer, from 2.4 to 4.x: what its coordinators say, in any layout that has a date and a time."""

from __future__ import annotations

from .said import of_client

MARK = r"\[Consumer (?:instanceId=[^\]]*, )?clientId=[^\]]*, groupId=[^\]]*\]"
"""What stands before whatever a consumer with a group says."""

OURS = MARK

_CONSUMER = (
    r"\[Consumer (?:instanceId=(?P<instance_id>[^\]]*), )?"
    r"clientId=(?P<client_id>[^\]]*), groupId=(?P<group_id>[^\]]*)\] "
)
_GENERATION = r"(?:Generation\{generationId=)?(?P<generation>\d+)(?:, memberId='(?P<member_id>[^']*)')?"
_LOGGER = r"(?: \([\w.$]+\))?\s*\Z"


KNOWN = (
    of_client(_CONSUMER + r"\(Re-\)joining group", "joining"),
    of_client(_CONSUMER + rf"Successfully joined group with generation {_GENERATION}", "joined"),
    of_client(_CONSUMER + rf"Successfully synced group in generation {_GENERATION}", "assigned"),
    of_client(_CONSUMER + r"Adding newly assigned partitions", "assigned"),
    of_client(_CONSUMER + r"Rev(?:oke|oking) previously assigned partitions", "revoked"),
    of_client(_CONSUMER + r"Giving away all assigned partitions as lost", "lost"),
    of_client(_CONSUMER + rf"Request joining group due to: (?P<reason>.*?){_LOGGER}", "rejoins"),
    # before 3.0
    of_client(
        _CONSUMER + r"Attempt to heartbeat failed since group is rebalancing", "rejoins", "group is already rebalancing"
    ),
    of_client(_CONSUMER + rf"Attempt to heartbeat .*failed (?P<reason>.*?){_LOGGER}", "failed"),
    of_client(
        _CONSUMER + rf"Member (?P<member_id>\S+) sending LeaveGroup request .*? due to (?P<reason>.*?){_LOGGER}", "left"
    ),
    of_client(
        _CONSUMER + rf"(?:Join group|JoinGroup|SyncGroup) failed(?: due to|: | with) ?(?P<reason>.*?){_LOGGER}",
        "failed",
    ),
)
