"""DeleteTopics (20), versions 0-6.

v0-5 names | v3 73 where deletion is disabled, 42 before | v6 by name or id (KIP-516).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

if TYPE_CHECKING:
    from .numbering import Numbering

STATES_SINCE = 6
DISABLED_SINCE = 3


def ask(request: DeleteTopicsRequest, version: int) -> DeleteTopicsRequest:
    """A name is a topic without an id."""
    if version >= STATES_SINCE:
        return request
    return replace(request, topics=tuple(DeleteTopicState(name=name) for name in request.topic_names), topic_names=())


def answer(response: DeleteTopicsResponse, version: int, numbering: Numbering) -> DeleteTopicsResponse:
    """TOPIC_DELETION_DISABLED is an invalid request to clients that do not know it."""
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
