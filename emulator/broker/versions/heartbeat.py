"""Heartbeat (12), versions 0-4.

v3 group_instance_id (KIP-345) | v4 flexible.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.heartbeat import HeartbeatResponse

    from .numbering import Numbering


def answer(response: HeartbeatResponse, version: int, numbering: Numbering) -> HeartbeatResponse:
    """The same in every version."""
    del version
    return replace(response, error_code=numbering(response.error_code)) if response.error_code else response
