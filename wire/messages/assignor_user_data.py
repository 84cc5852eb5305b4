"""What the sticky assignors put into the user data of a subscription: their memory, since an assignor has none.

It has no version in front. Whoever reads it tries the newest version first; what none of them fits is ignored, as in
Kafka's StickyAssignor.
"""

import struct

from ..codec import decode, encode
from ..primitives import Malformed
from ..schema import array, int32, message
from .consumer_protocol import TopicPartition


@message(key=None, versions="0-1", flexible="none")
class StickyAssignorUserData:
    """What a member consumed last (KIP-54), and in which generation that was (v1; -1: it does not say)."""

    previous_assignment: tuple[TopicPartition, ...] = array(TopicPartition)
    generation: int = int32("1+", default=-1, ignorable=True)


def read_sticky(data: bytes | None) -> StickyAssignorUserData:
    """The user data of the sticky assignor, in version 1 or 0; nothing consumed, if it is neither."""
    for version in (1, 0):
        try:
            return decode(StickyAssignorUserData, version, data or b"")
        except Malformed:
            continue
    return StickyAssignorUserData(previous_assignment=())


def write_sticky(data: StickyAssignorUserData, version: int = 1) -> bytes:
    """The user data of the sticky assignor; Kafka writes version 1."""
    return encode(data, version)


def read_cooperative_generation(data: bytes | None) -> int:
    """The generation in the user data of the cooperative sticky assignor, an int32; -1 without.

    From version 2 on (KIP-792) a subscription says it itself, and this is no longer looked at.
    """
    if data is None or len(data) < struct.calcsize(">i"):
        return -1
    generation: int = struct.unpack_from(">i", data)[0]
    return generation


def write_cooperative_generation(generation: int) -> bytes:
    """The user data of the cooperative sticky assignor."""
    return struct.pack(">i", generation)
