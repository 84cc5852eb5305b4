"""FindCoordinator (10), versions 0-6.

v0 groups only | v1 key_type | v3 flexible | v4 several keys (KIP-699) | v6 share groups (KIP-932).
Not emulated: share groups (INVALID_REQUEST). A transactional id is answered, so that its producer fails at
InitProducerId with a reason instead of asking for ever.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

    from .numbering import Numbering

KEYS_SINCE = 4


def ask(request: FindCoordinatorRequest, version: int) -> FindCoordinatorRequest:
    """One key is a list of one."""
    return request if version >= KEYS_SINCE else replace(request, coordinator_keys=(request.key,))


def answer(response: FindCoordinatorResponse, version: int, numbering: Numbering) -> FindCoordinatorResponse:
    """A list of one is answered at the top level, where success has the message "NONE"."""
    del numbering
    if version >= KEYS_SINCE:
        return response
    (row,) = response.coordinators
    return replace(
        response,
        coordinators=(),
        error_code=row.error_code,
        error_message=row.error_message or "NONE",
        node_id=row.node_id,
        host=row.host,
        port=row.port,
    )
