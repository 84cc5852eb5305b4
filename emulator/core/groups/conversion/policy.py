"""Which way groups may be converted (`group.consumer.migration.policy`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..group_store import GroupStore

BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED = "bidirectional", "upgrade", "downgrade", "disabled"
"""The values of the setting."""


def migration_policy(store: GroupStore) -> str:
    """Return the value of the setting, or the release's default."""
    default = DISABLED if store.dialect.consumer_groups_are_a_preview else BIDIRECTIONAL
    return store.settings.group_consumer_migration_policy or default
