"""Metadata: in v0 an empty list of topics means every topic; from v1 on null does.

Before v4 a lookup creates topics, which is the default of the missing field.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.metadata import MetadataRequest


def normalize_request(request: MetadataRequest, version: int) -> MetadataRequest:
    """Convert an empty list of v0 into null."""
    return replace(request, topics=None) if version == 0 and request.topics == () else request
