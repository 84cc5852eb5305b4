"""Frames: every request and every answer is an int32 length, big-endian, and so many bytes."""

import struct
from collections.abc import Iterator

from .primitives import Malformed

_LENGTH = struct.Struct(">i")

_COPIED_TWICE_MAX = 4096
"""A frame of so many bytes is copied twice in less time than a view of it is made."""


class FrameBuffer:
    """The bytes received on one connection that are not yet taken as frames; `len()` of it is their number.

    Nothing is allocated for what a length announces, only for what has come; each byte is moved a
    bounded number of times on average, in whatever pieces the bytes come.

    Args:
        limit: the longest frame in bytes, without its length: Kafka's socket.request.max.bytes.
    """

    __slots__ = ("_data", "_limit")

    def __init__(self, limit: int) -> None:
        self._data = bytearray()  # its front is cut off without moving the rest
        self._limit = limit

    def __len__(self) -> int:
        return len(self._data)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes that have been received."""
        self._data += data

    def next_frame(self) -> bytes | None:
        """Take the next frame, without its length; None while it is not complete.

        Raises Malformed as soon as a length is known that is negative or over the limit, and again each time:
        nothing that follows can be understood. Kafka closes the connection (NetworkReceive,
        InvalidReceiveException).
        """
        data = self._data
        if len(data) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(data)
        if not 0 <= length <= self._limit:
            raise Malformed(f"a frame of {length} bytes is announced, 0 to {self._limit} are allowed")
        end = _LENGTH.size + length
        if len(data) < end:
            return None
        if end <= _COPIED_TWICE_MAX:
            frame = bytes(data[_LENGTH.size : end])
        else:
            with memoryview(data) as view:
                frame = bytes(view[_LENGTH.size : end])
        del data[:end]
        return frame

    def complete(self) -> Iterator[bytes]:
        """The frames that have come whole, in order; they stay. It ends where a length is none that may be."""
        begin, data = 0, self._data
        while len(data) - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, begin)
            end = begin + _LENGTH.size + length
            if not 0 <= length <= self._limit or end > len(data):
                return
            yield bytes(data[begin + _LENGTH.size : end])
            begin = end
