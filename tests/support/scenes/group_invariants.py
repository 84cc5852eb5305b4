"""Invariants of the groups of a coordinator, checked after each of its inputs while the tests run.

Between inputs `recorded_state` sees who changes what records say.
"""

from __future__ import annotations

from collections import Counter
from functools import wraps

from koordinator.emulator.core.groups.classic.group import ClassicGroup
from koordinator.emulator.core.groups.consumer.group import ConsumerGroup
from koordinator.emulator.core.groups.group_store import GroupStore
from scenes import recorded_state

MEMBERS_MAX = 100
"""Larger groups are not checked: the tests that have them measure time."""


def install() -> None:
    """Check every group that an input or a timer has touched, in all tests of this process."""
    recorded_state.install()
    update_deadlines = GroupStore.update_deadlines

    @wraps(update_deadlines)
    def checked(store: GroupStore) -> None:
        for group in store._touched:
            if len(group.members) <= MEMBERS_MAX and store.groups.get(group.id) is group:
                check(group)
        update_deadlines(store)

    # type checkers take a method for constant
    setattr(GroupStore, "update_deadlines", checked)  # noqa: B010


def check(group: object) -> None:
    """Compare the tables and counters of a group with its members."""
    if isinstance(group, ClassicGroup):
        check_classic_group(group)
    elif isinstance(group, ConsumerGroup):
        check_consumer_group(group)


def check_classic_group(group: ClassicGroup) -> None:
    """Compare the tables and counters of a classic group with its members."""
    members = group.members.values()
    assert group.awaiting_join == sum(member.parked_join is not None for member in members), group
    assert group._protocol_counts == Counter(name for member in members for name, _ in member.protocols), group
    assert group.static_members == {each.instance_id: each.id for each in members if each.instance_id is not None}
    assert not group.pending_members.keys() & group.members.keys(), group


def check_consumer_group(group: ConsumerGroup) -> None:
    """Compare the tables and counters of a consumer group with its members."""
    members = group.members.values()
    held = [partition for member in members for partition in member.held()]
    assert group.held == set(held), group
    assert len(group.held) == len(held), f"{group}: two members hold a partition"
    assert group.static_members == {each.instance_id: each.id for each in members if each.instance_id is not None}
    assert not group.former_static_members.keys() & group.static_members.keys(), group
    assert group.subscribers == Counter(member.regex for member in members if member.regex), group
    assert sorted(group._order) == sorted(group.members), group
