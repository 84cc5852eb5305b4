"""SyncGroup (14), versions 0-5.

v3 group_instance_id (KIP-345) | v4 flexible | v5 protocol_type and protocol_name, required of clients (KIP-559).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.sync_group import SyncGroupResponse

    from .numbering import Numbering


def answer(response: SyncGroupResponse, version: int, numbering: Numbering) -> SyncGroupResponse:
    """The same in every version."""
    del version
    return replace(response, error_code=numbering(response.error_code)) if response.error_code else response
