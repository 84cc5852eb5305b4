"""Frames: a request or response after its length in bytes, a big-endian int32."""

import struct
from collections.abc import Iterator

from .primitives import Malformed

_LENGTH = struct.Struct(">i")

_COPIED_TWICE_MAX = 4096
"""Up to this size two copies of a frame take less time than a memoryview."""


class FrameBuffer:
    """The received bytes of a connection that are not consumed yet; `len()` returns their number.

    Memory grows with received bytes, never with an announced length. Each byte is moved a bounded number of times on
    average, whatever the sizes of the pieces.

    Args:
        limit: the maximum length of a frame in bytes: Kafka's socket.request.max.bytes.
    """

    __slots__ = ("_data", "_limit")

    def __init__(self, limit: int) -> None:
        self._data = bytearray()  # deleting its front does not move the rest
        self._limit = limit

    def __len__(self) -> int:
        return len(self._data)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add received bytes."""
        self._data += data

    def next_frame(self) -> bytes | None:
        """Consume the next frame and return it without its length; None while it is incomplete.

        Raises Malformed for a length that is negative or over the limit, and on every later call, because the frame
        boundaries are lost. Kafka closes the connection (NetworkReceive, InvalidReceiveException).
        """
        data = self._data
        if len(data) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(data)
        if not 0 <= length <= self._limit:
            raise Malformed(f"a frame of {length} bytes; 0 to {self._limit} are allowed")
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
        """Yield the complete frames without consuming them. Stop at an invalid frame length."""
        begin, data = 0, self._data
        while len(data) - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, begin)
            end = begin + _LENGTH.size + length
            if not 0 <= length <= self._limit or end > len(data):
                return
            yield bytes(data[begin + _LENGTH.size : end])
            begin = end
