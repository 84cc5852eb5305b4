"""The names of members, as far as a trace shows them.

Kafka makes a member id of the client id, or of the `group.instance.id`, and a UUID (GroupMetadata.generateMemberId).
"""

from __future__ import annotations

import re

UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""The pattern of a UUID, for regular expressions of Python, Java and RE2."""

SUFFIX = f"-{UUID}$"
"""The pattern of what a member id has after the client id or the `group.instance.id`."""

_SUFFIX, _IN_TEXT = re.compile(SUFFIX), re.compile(f"-{UUID}")

DIGITS_SHOWN = 4


def without_uuid(member_id: str) -> str:
    """Return a member id without its UUID: the client id or the `group.instance.id` that it was made of."""
    return _SUFFIX.sub("", member_id)


def short(text: object) -> str:
    """Return a text whose member ids have the first digits of their UUIDs alone, which identify them."""
    return _IN_TEXT.sub(lambda match: match[0][: 1 + DIGITS_SHOWN], str(text))


def is_member_of(name: str, member_id: str) -> bool:
    """Return whether a member id was made of a client id or a `group.instance.id`."""
    return without_uuid(member_id) == name != member_id
