"""What the trace keeps of messages, and how many bytes that is, so that its ring is bounded in bytes.

An event keeps its messages until it is rendered, or falls off the ring. Of a message that has no body in its line
(records of a Fetch, …) only the plain fields are kept, and so of one whose body would be out of all proportion: a
JoinGroup of 100 MB must not stay in memory for the sake of one line.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from koordinator.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from koordinator.wire.messages.sync_group import SyncGroupRequest

from .lines import RequestReceived, ResponseSent
from .messages import BODY_BYTES_MAX, WITH_BODY

if TYPE_CHECKING:
    from koordinator.wire.schema import Message

    from .lines import TraceEvent

SMALL_BYTES = 512
"""A message of so many bytes is kept as it is: there is nothing to be gained."""

ELEMENT_BYTES = 200
"""What an element of an array takes in memory besides its bytes, roughly."""

PLAIN_BYTES = 100
"""A message without elements, roughly."""

M = TypeVar("M", bound="Message")


def kept(message: M, size: int, client_id: str) -> tuple[M, int]:
    """The message, of `size` bytes, as the trace keeps it, and how many bytes that takes, roughly.

    It cannot be more than was received or is sent.
    """
    if size <= SMALL_BYTES:
        return message, size
    if size <= BODY_BYTES_MAX and type(message) in WITH_BODY:
        return message, size + ELEMENT_BYTES * _elements(message)
    texts = (getattr(message, each.name) for each in fields(message))
    weight = SMALL_BYTES + len(client_id) + sum(len(text) for text in texts if isinstance(text, str))
    return _plain(message), weight


def rough_size(message: Message) -> int:
    """How many bytes a message would be, roughly, that is never encoded: what a puppet asks, and is told."""
    return PLAIN_BYTES + ELEMENT_BYTES * _elements(message)


def _plain(message: M) -> M:
    plain = {each.name: getattr(message, each.name) for each in fields(message)}
    plain = {name: value for name, value in plain.items() if not isinstance(value, tuple | list | bytes)}
    if isinstance(message, OffsetFetchRequest) and len(message.groups) == 1:
        plain["groups"] = (OffsetFetchRequestGroup(group_id=message.groups[0].group_id),)
    return type(message)(**plain)


def weight(happening: TraceEvent) -> int:
    """Bytes, roughly, that an event takes besides what every event takes."""
    if isinstance(happening, RequestReceived | ResponseSent):
        return happening.weight
    # a fact's texts, and those of the timer or call it names
    inner = getattr(happening, "key", getattr(happening, "call", None))
    return _texts(happening) + (_texts(inner) if inner is not None else 0)


def _texts(thing: object) -> int:
    size = 0
    # a loop, because it is done for every fact, and takes half as long as a sum of generators
    for name in getattr(thing, "__slots__", ()):
        value = getattr(thing, name)
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, tuple):
            size += ELEMENT_BYTES * len(value)
    return size


def _elements(message: Message) -> int:
    match message:
        case JoinGroupRequest():
            return len(message.protocols)
        case SyncGroupRequest():
            return len(message.assignments)
        case JoinGroupResponse() | LeaveGroupRequest() | LeaveGroupResponse():
            return len(message.members)
        case OffsetCommitRequest() | OffsetCommitResponse():
            return sum(1 + len(topic.partitions) for topic in message.topics)
        case _:
            return 0
