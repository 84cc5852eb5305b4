"""DeleteTopics: v0-5 name topics in another field; before v3 clients do not know TOPIC_DELETION_DISABLED."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

if TYPE_CHECKING:
    from .error_numbering import Numbering

STATES_SINCE = 6
DISABLED_SINCE = 3


def normalize_request(request: DeleteTopicsRequest, version: int) -> DeleteTopicsRequest:
    """Convert the names of v0-5 into topics without an id."""
    if version >= STATES_SINCE:
        return request
    return replace(request, topics=tuple(DeleteTopicState(name=name) for name in request.topic_names), topic_names=())


def render_response(response: DeleteTopicsResponse, version: int, numbering: Numbering) -> DeleteTopicsResponse:
    """Replace TOPIC_DELETION_DISABLED by INVALID_REQUEST before v3."""
    del numbering
    if version >= DISABLED_SINCE:
        return response
    return replace(
        response,
        responses=tuple(
            replace(row, error_code=Error.INVALID_REQUEST) if row.error_code == Error.TOPIC_DELETION_DISABLED else row
            for row in response.responses
        ),
    )
