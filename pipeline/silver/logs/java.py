"""Log of a Java consumer or a Connect worker, 2.4 to 4.x: its coordinators' messages, in any layout with a time."""

from __future__ import annotations

from .patterns import client_line

MARK = r"\[(?:Consumer|Worker) (?:instanceId=.*, )?clientId=.*, groupId=.*\]"
"""The prefix of every message of a consumer with a group, or of a Connect worker."""

_CONSUMER = (
    r"\[(?:Consumer|Worker) (?:instanceId=(?P<instance_id>.*?), )?"
    r"clientId=(?P<client_id>.*?), groupId=(?P<group_id>.*?)\] "
)
_GENERATION = r"(?:Generation\{generationId=)?(?P<generation>\d+)(?:, memberId='(?P<member_id>[^']*)')?"
_LOGGER = r"(?: \((?!\w+Exception\))[\w.$]+(?::\d+)?\))?\s*\Z"
"""The end of a message: its logger, and not the exception that a reason ends with."""


KNOWN = (
    client_line(_CONSUMER + r"\(Re-\)joining group", "joining"),
    client_line(_CONSUMER + rf"Successfully joined group with generation {_GENERATION}", "joined"),
    client_line(_CONSUMER + rf"Successfully synced group in generation {_GENERATION}", "assigned"),
    client_line(_CONSUMER + r"Adding newly assigned partitions", "assigned"),
    client_line(_CONSUMER + r"Rev(?:oke|oking) previously assigned partitions", "revoked"),
    client_line(_CONSUMER + r"Giving away all assigned partitions as lost", "lost"),
    client_line(_CONSUMER + rf"Request joining group due to: (?P<reason>.*?){_LOGGER}", "rejoins"),
    # before 3.0
    client_line(
        _CONSUMER + r"Attempt to heartbeat failed since group is rebalancing", "rejoins", "group is already rebalancing"
    ),
    client_line(_CONSUMER + rf"Attempt to heartbeat .*failed (?P<reason>.*?){_LOGGER}", "failed"),
    client_line(
        _CONSUMER + rf"Member (?P<member_id>\S+) sending LeaveGroup request .*? due to (?P<reason>.*?){_LOGGER}", "left"
    ),
    client_line(
        _CONSUMER + rf"(?:Join group|JoinGroup|SyncGroup) failed(?: due to|: | with) ?(?P<reason>.*?){_LOGGER}",
        "failed",
    ),
)
