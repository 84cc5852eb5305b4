"""Log of a librdkafka client with debug=cgrp: as it writes it by itself, or through a logger with date and time."""

from __future__ import annotations

from .said import of_client

MARK = r"\[thrd:[^\]]*\]: "
"""What stands before whatever librdkafka says: the thread."""

OURS = r"\[thrd:[^\]]*\]: .*(?:[Gg]roup|rebalance|poll interval)"

_CLIENT = r"(?P<client_id>[^|\[\s]+)#\w+-\d+\]?\|? \[thrd:[^\]]*\]: (?:\S+: )?"
_GROUP = r'[Gg]roup "(?P<group_id>[^"]*)"'


KNOWN = (
    of_client(_CLIENT + rf"Joining {_GROUP} with \d+ subscribed topic", "joining"),
    of_client(
        _CLIENT
        + r"JoinGroup response: GenerationId (?P<generation>\d+), .* my MemberId (?P<member_id>[^,]*), .*\(no error\)",
        "joined",
    ),
    of_client(
        _CLIENT + r"JoinGroup response: GenerationId -1, .* my MemberId (?P<member_id>[^,]*), [^:]*: (?P<reason>.*)",
        "failed",
    ),
    of_client(_CLIENT + r"SyncGroup response: Success", "assigned"),
    of_client(
        _CLIENT
        + rf"{_GROUP} (?:is rebalancing|initiating rebalance) \(.*\) in state .* partition\(s\)[^:]*: (?P<reason>.*)",
        "rejoins",
    ),
    of_client(_CLIENT + rf"{_GROUP} \(re\)joining in join-state .* partition\(s\)[^:]*: (?P<reason>.*)", "rejoins"),
    of_client(_CLIENT + rf"{_GROUP}: leave \(in state ", "left"),
    of_client(
        _CLIENT + r"Application maximum poll interval \(\d+ms\) exceeded", "left", "max.poll.interval.ms exceeded"
    ),
)
