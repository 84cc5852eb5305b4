"""Metadata (3), versions 0-13: brokers and topics.

v0 an empty list means all topics; from v1 null does | v4 allow_auto_topic_creation; before, asking creates
| v8 authorized operations (KIP-430) | v10 topic_id | v11 no more cluster operations | v12 lookup by id (10
and 11: 42, in the core) | v13 top-level error_code. Not emulated: v13 REBOOTSTRAP_REQUIRED (KIP-1102).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.metadata import MetadataRequest


def ask(request: MetadataRequest, version: int) -> MetadataRequest:
    """No topics at v0 are all topics. That v0-3 may create is the default of the field they lack."""
    return replace(request, topics=None) if version == 0 and request.topics == () else request
