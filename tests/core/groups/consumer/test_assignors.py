"""Properties of the assignors on random groups; `test_recorded_groups` compares their results with Kafka's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.emulator.core.groups.consumer.assignment import GroupSpec, MemberSpec, Target
from koordinator.emulator.core.groups.consumer.range_assignor import assign_ranges
from koordinator.emulator.core.groups.consumer.uniform import assign_equal_subscriptions
from koordinator.emulator.core.groups.consumer.uniform_mixed import assign_mixed_subscriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Assign = Callable[[GroupSpec], dict[str, Target]]

TOPICS = [UUID(int=(number << 64) + 7 * number) for number in range(1, 5)]


def equal(group: GroupSpec) -> dict[str, Target]:
    """Assign as `uniform` does with equal subscriptions."""
    return assign_equal_subscriptions(group, extra_stays=True)


def of(members: Mapping[str, MemberSpec], partitions: Mapping[UUID, int]) -> GroupSpec:
    """Return a group, with the partitions that its members had."""
    taken = {
        (topic, partition)
        for member in members.values()
        for topic, listed in member.previous.items()
        for partition in listed
    }
    return GroupSpec(members, partitions, taken, is_equal=len({member.topics for member in members.values()}) == 1)


def moved_on(group: GroupSpec, targets: Mapping[str, Target], left: int) -> GroupSpec:
    """Return the group after its targets, without its first `left` members."""
    members = {name: replace(member, previous=targets[name]) for name, member in group.members.items()}
    return of(dict(list(members.items())[left:]), group.partitions)


@st.composite
def groups(draw: st.DrawFn, *, is_equal: bool) -> GroupSpec:
    """Return a new group of up to eight members."""
    partitions = {topic: draw(st.integers(1, 9)) for topic in TOPICS}
    shared = draw(st.lists(st.sampled_from(TOPICS), unique=True, min_size=1))
    members = {}
    for number in range(draw(st.integers(1, 8))):
        topics = shared if is_equal else draw(st.lists(st.sampled_from(TOPICS), unique=True))
        members[f"m{number}"] = MemberSpec(tuple(topics), len(topics), {})
    return of(members, partitions)


def owners(targets: Mapping[str, Target]) -> dict[tuple[UUID, int], str]:
    """Return the owner of each partition; fail if one has two."""
    found: dict[tuple[UUID, int], str] = {}
    for name, target in targets.items():
        for topic, listed in target.items():
            for partition in listed:
                assert (topic, partition) not in found
                found[topic, partition] = name
    return found


def sizes(targets: Mapping[str, Target]) -> list[int]:
    """Return the number of partitions of each member."""
    return [sum(map(len, target.values())) for target in targets.values()]


@pytest.mark.slow
@pytest.mark.parametrize("assign", [equal, assign_mixed_subscriptions, assign_ranges])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_subscribed_partition_has_one_owner_who_subscribes_to_it(assign: Assign, data: st.DataObject) -> None:
    group = data.draw(groups(is_equal=assign is equal))
    for left in (0, 1):
        targets = assign(group)
        subscribed = {topic for member in group.members.values() for topic in member.topics}
        expected = {(topic, partition) for topic in subscribed for partition in range(group.partitions[topic])}
        assert owners(targets).keys() == expected
        assert all(set(target) <= set(group.members[name].topics) for name, target in targets.items())
        if len(group.members) == 1:
            break
        group = moved_on(group, targets, left + 1)
        if not group.members:
            break


@settings(max_examples=40, deadline=None)
@given(group=groups(is_equal=True))
def test_uniform_sizes_differ_by_one_at_most(group: GroupSpec) -> None:
    for assign in (equal, assign_mixed_subscriptions):
        found = sizes(assign(group))
        assert max(found) - min(found) <= 1


@settings(max_examples=40, deadline=None)
@given(group=groups(is_equal=True))
def test_uniform_changes_nothing_without_a_reason(group: GroupSpec) -> None:
    for assign in (equal, assign_mixed_subscriptions):
        targets = assign(group)
        assert owners(assign(moved_on(group, targets, 0))) == owners(targets)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(group=groups(is_equal=True))
def test_uniform_moves_only_what_the_leaving_member_had(group: GroupSpec) -> None:
    targets = equal(group)
    if len(targets) > 1:
        before, after = owners(targets), owners(equal(moved_on(group, targets, 1)))
        gone = next(iter(targets))
        assert all(after[at] == owner for at, owner in before.items() if owner != gone)


@settings(max_examples=40, deadline=None)
@given(group=groups(is_equal=True))
def test_range_gives_the_same_indexes_of_equal_topics_to_the_same_member(group: GroupSpec) -> None:
    same = replace(group, partitions=dict.fromkeys(TOPICS, 5))
    for target in assign_ranges(same).values():
        assert len(set(target.values())) <= 1
