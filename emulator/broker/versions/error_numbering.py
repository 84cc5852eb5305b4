"""Two numberings of the group errors: that of Kafka releases, and that of the KIPs.

KIP-389 prints GROUP_MAX_SIZE_REACHED(77) and KIP-345 FENCED_INSTANCE_ID(78). Released brokers and clients use 81 and 82
instead, and 77 and 78 for other errors. MEMBER_ID_REQUIRED of KIP-394 is 79 in both.
"""

from __future__ import annotations

from collections.abc import Callable

from koordinator.wire.errors import Error

Numbering = Callable[[int], int]
"""From the core's error code to the code on the wire."""

_KIP = {Error.GROUP_MAX_SIZE_REACHED: 77, Error.FENCED_INSTANCE_ID: 78}


def kafka(error_code: int) -> int:
    """Return the code of Kafka releases: 79, 81, 82."""
    return error_code


def kip(error_code: int) -> int:
    """Return the code of the KIPs: 79 (KIP-394), 77 (KIP-389), 78 (KIP-345)."""
    return _KIP.get(Error(error_code), error_code)


NUMBERINGS: dict[str, Numbering] = {"kafka": kafka, "kip": kip}
"""The numberings, by value of the setting `error.codes`."""
