"""Two numberings of the group errors: as released, and as the KIPs print them.

KIP-389 prints GROUP_MAX_SIZE_REACHED(77) and KIP-345 FENCED_INSTANCE_ID(78), written before the numbers were fixed;
released brokers and clients use 81 and 82, and read 77 and 78 as something else. KIP-394's MEMBER_ID_REQUIRED is 79
in both.
"""

from __future__ import annotations

from collections.abc import Callable

from koordinator.wire.errors import Error

Numbering = Callable[[int], int]
"""From the error the core answers with to the code on the wire."""

_KIP = {Error.GROUP_MAX_SIZE_REACHED: 77, Error.FENCED_INSTANCE_ID: 78}


def kafka(error_code: int) -> int:
    """79, 81 and 82, as released brokers and clients use them."""
    return error_code


def kip(error_code: int) -> int:
    """79, 77 and 78, exactly as KIP-394, KIP-389 and KIP-345 print them."""
    return _KIP.get(Error(error_code), error_code)


NUMBERINGS: dict[str, Numbering] = {"kafka": kafka, "kip": kip}
"""By the value of the setting `error.codes`."""
