"""A member of a share group. Kafka: `ShareGroupMember`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.values import value

from ..modern.member import ModernMember

if TYPE_CHECKING:
    from uuid import UUID

Partitions = dict["UUID", tuple[int, ...]]
"""Partitions by topic id; several members may have the same."""


@value
class ShareMember(ModernMember):
    """A member with its subscription, its epochs, and the partitions from which it fetches.

    It is never static, and takes its target at once.
    """

    assigned: Partitions = field(default_factory=dict)
