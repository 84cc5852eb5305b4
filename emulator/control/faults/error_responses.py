"""The places of errors in the responses to requests that a fault rule rejects.

A client without any brokers cannot retry, so Metadata is served, and its response has the error in every topic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages.metadata import MetadataResponse

from .actions import RuleError
from .kafka_errors import PLACES_OF

if TYPE_CHECKING:
    from koordinator.wire.apis import Message
    from koordinator.wire.errors import Error


def check_place(api: str, at: str | None) -> None:
    """Raise RuleError if the responses to an API have no errors at a place."""
    places = PLACES_OF[api]
    if at is not None and at not in places:
        raise RuleError(f"error at {at!r}: a response to {api} has errors at {' and '.join(places)}")


def is_served_first(api: str) -> bool:
    """Return whether a request is served although a rule adds an error to its response."""
    return api == "Metadata"


def add_topic_errors(response: Message, error: Error) -> Message:
    """Return a Metadata response with an error in every topic."""
    assert isinstance(response, MetadataResponse), "only Metadata is served first"
    topics = tuple(replace(topic, error_code=error, partitions=()) for topic in response.topics)
    return replace(response, topics=topics)
