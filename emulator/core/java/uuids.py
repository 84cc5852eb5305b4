"""Kafka's text of a UUID (`org.apache.kafka.common.Uuid.toString`)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID


def uuid_text(uuid: UUID) -> str:
    """Return a UUID as 22 characters of base64url."""
    return urlsafe_b64encode(uuid.bytes).decode().rstrip("=")
