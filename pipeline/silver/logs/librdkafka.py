"""Log of a librdkafka client with debug=cgrp: its own format, or a logger with date and time."""

from __future__ import annotations

from .patterns import client_line

MARK = r"\[thrd:[^\]]*\]: "
"""The prefix of every librdkafka message: the thread."""

_CLIENT = r"(?:\|\w+\||\[|\s|^)(?P<client_id>[^|\s]+?)#\w+-\d+\]?\|? \[thrd:[^\]]*\]: (?:\S+: )?"
_GROUP = r'[Gg]roup "(?P<group_id>[^"]*)"'


KNOWN = (
    client_line(_CLIENT + rf"Joining {_GROUP} with \d+ subscribed topic", "joining"),
    client_line(
        _CLIENT
        + r"JoinGroup response: GenerationId (?P<generation>\d+), .* my MemberId (?P<member_id>[^,]*), .*\(no error\)",
        "joined",
    ),
    client_line(
        _CLIENT + r"JoinGroup response: GenerationId -1, .* my MemberId (?P<member_id>[^,]*), [^:]*: (?P<reason>.*)",
        "failed",
    ),
    client_line(_CLIENT + r"SyncGroup response: Success", "assigned"),
    client_line(
        _CLIENT
        + rf"{_GROUP} (?:is rebalancing|initiating rebalance) \(.*\) in state .* partition\(s\)[^:]*: (?P<reason>.*)",
        "rejoins",
    ),
    client_line(_CLIENT + rf"{_GROUP} \(re\)joining in join-state .* partition\(s\)[^:]*: (?P<reason>.*)", "rejoins"),
    client_line(_CLIENT + rf"{_GROUP}: leave \(in state ", "left"),
    client_line(
        _CLIENT + r"Application maximum poll interval \(\d+ms\) exceeded", "left", "max.poll.interval.ms exceeded"
    ),
)
