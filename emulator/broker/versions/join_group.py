"""JoinGroup: v0 has no rebalance timeout; before v7 the protocol name is not nullable."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

    from .error_numbering import Numbering


def normalize_request(request: JoinGroupRequest, version: int) -> JoinGroupRequest:
    """Use the session timeout as rebalance timeout in v0 (before KIP-62)."""
    return replace(request, rebalance_timeout_ms=request.session_timeout_ms) if version == 0 else request


def render_response(response: JoinGroupResponse, version: int, numbering: Numbering) -> JoinGroupResponse:
    """Render a missing protocol as null from v7 on, and as "" before."""
    name = response.protocol_name or ("" if version < 7 else None)
    return replace(response, error_code=numbering(response.error_code), protocol_name=name)
