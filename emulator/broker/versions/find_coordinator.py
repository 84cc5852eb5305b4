"""FindCoordinator: before v4 a request has one key, and its response one coordinator at the top level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

    from .error_numbering import Numbering

KEYS_SINCE = 4


def normalize_request(request: FindCoordinatorRequest, version: int) -> FindCoordinatorRequest:
    """Convert the single key into a list."""
    return request if version >= KEYS_SINCE else replace(request, coordinator_keys=(request.key,))


def render_response(response: FindCoordinatorResponse, version: int, numbering: Numbering) -> FindCoordinatorResponse:
    """Move a single coordinator to the top level, where success has the message "NONE"."""
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
