"""Messages of magic 0 and 1 for clients before Fetch v4, made from batches (`RecordsUtil.downConvert`)."""

from __future__ import annotations

from koordinator.wire.compression import Codec
from koordinator.wire.errors import Error
from koordinator.wire.message_sets import write_message_set, write_overflow
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import read_records, whole_batches

OVERFLOW_BYTES_MIN = 12
"""The size of a response without messages that stands for markers (`MIN_OVERFLOW_MESSAGE_LENGTH`)."""


def down_converted(data: bytes, offset: int, magic: int) -> bytes | Error:
    """Return batches as messages of magic 0 or 1, from an offset on.

    Markers are left out, and the last batch if it is cut. A compressed batch is converted as a whole. zstd came after
    these versions: 76, or after the first batch the rest of the size, which is promised by then, without messages
    (`LazyDownConversionRecordsSend`).
    """
    converted: list[bytes] = []
    is_empty = True
    for header, batch in whole_batches(data):
        is_empty = False
        if header.is_control:
            continue
        if header.codec is Codec.ZSTD:
            if not converted:
                return Error.UNSUPPORTED_COMPRESSION_TYPE
            del converted[1:]
            break
        try:
            records = read_records(batch)
        except (Malformed, ImportError):
            return Error.UNKNOWN_SERVER_ERROR
        if header.codec is Codec.NONE:
            records = [record for record in records if record.offset >= offset]
        converted.append(write_message_set(records, magic, header.codec, is_append_time=header.is_append_time))
    # the response has the size of the batches, or of the first message set if that is larger (KIP-283)
    least = 0 if is_empty else OVERFLOW_BYTES_MIN
    size = max(len(data), len(converted[0])) if converted else least
    messages = b"".join(converted)[:size]
    return messages + write_overflow(size - len(messages))
