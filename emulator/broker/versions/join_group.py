"""JoinGroup (11), versions 0-9.

v0 no rebalance timeout: the session timeout stands in | v1 rebalance_timeout_ms (KIP-62) | v4 MEMBER_ID_REQUIRED
(KIP-394) | v5 group_instance_id (KIP-345) | v6 flexible | v7 protocol_type, null protocol_name (KIP-559) |
v8 reason (KIP-800) | v9 skip_assignment (KIP-814). Not emulated: -1 for two protocols of one name (the first counts).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

    from .numbering import Numbering


def ask(request: JoinGroupRequest, version: int) -> JoinGroupRequest:
    """Before KIP-62 one timeout served for both."""
    return replace(request, rebalance_timeout_ms=request.session_timeout_ms) if version == 0 else request


def answer(response: JoinGroupResponse, version: int, numbering: Numbering) -> JoinGroupResponse:
    """No protocol is null from v7 on, and an empty name before."""
    name = response.protocol_name or ("" if version < 7 else None)
    return replace(response, error_code=numbering(response.error_code), protocol_name=name)
