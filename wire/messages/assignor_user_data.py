"""The user data of the sticky assignors in a subscription: the previous assignment, because assignors are stateless.

It has no version number. Readers try the newest version first and ignore data that fits none, as Kafka's
StickyAssignor does.
"""

import struct

from ..codec import decode, encode
from ..primitives import Malformed
from ..schema import array, int32, message
from .consumer_protocol import TopicPartition


@message(key=None, versions="0-1", flexible="none")
class StickyAssignorUserData:
    """A member's previous assignment (KIP-54) and its generation (v1; -1 if unknown)."""

    previous_assignment: tuple[TopicPartition, ...] = array(TopicPartition)
    generation: int = int32("1+", default=-1, ignorable=True)


def read_sticky(data: bytes | None) -> StickyAssignorUserData:
    """Return the user data of the sticky assignor, version 1 or 0; an empty assignment for any other data."""
    for version in (1, 0):
        try:
            return decode(StickyAssignorUserData, version, data or b"")
        except Malformed:
            continue
    return StickyAssignorUserData(previous_assignment=())


def write_sticky(data: StickyAssignorUserData, version: int = 1) -> bytes:
    """Return the user data of the sticky assignor; Kafka writes version 1."""
    return encode(data, version)


def read_cooperative_generation(data: bytes | None) -> int:
    """Return the generation in the user data of the cooperative sticky assignor, an int32; -1 without one.

    From version 2 on (KIP-792) a subscription says it itself, and this is no longer looked at.
    """
    if data is None or len(data) < struct.calcsize(">i"):
        return -1
    generation: int = struct.unpack_from(">i", data)[0]
    return generation


def write_cooperative_generation(generation: int) -> bytes:
    """Return the user data of the cooperative sticky assignor."""
    return struct.pack(">i", generation)
