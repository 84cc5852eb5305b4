"""Random groups for assignors, checks of assignments, and kafka-python's assignors on the same groups."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from koordinator.emulator.control.assignors import ASSIGNORS, Assignment, Candidate
from koordinator.wire.messages.assignor_user_data import read_sticky

TOPICS = ("t0", "t1", "t2", "t3")

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No deadline: examples are slow on a busy machine."""

sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1)
"""Topics with their numbers of partitions."""


@st.composite
def groups(
    draw: st.DrawFn, *, instances: bool | None = False, equal: bool = False, topics: Sequence[str] = TOPICS
) -> list[Candidate]:
    """Draw 1 to 8 subscribed members in any order; instances=None mixes static and dynamic ones."""
    everything = draw(st.sets(st.sampled_from(topics), min_size=1)) if equal else None
    ids = draw(st.lists(st.integers(0, 99), min_size=1, max_size=8, unique=True))
    static = [draw(st.booleans()) if instances is None else instances for _ in ids]
    names = draw(st.permutations(range(len(ids))))
    return [
        Candidate(
            member_id=f"m-{number:02}",
            instance_id=f"i-{name}" if is_static else None,
            topics=sorted(everything or draw(st.sets(st.sampled_from(topics), min_size=1))),
        )
        for number, name, is_static in zip(ids, names, static, strict=True)
    ]


def owned_exactly_once(assignment: Assignment, members: Sequence[Candidate], partitions: Mapping[str, int]) -> bool:
    """Whether each partition of each subscribed topic has exactly one owner, which subscribes to it."""
    wanted = set(chain.from_iterable(m.topics for m in members)) & set(partitions)
    assert all(set(assignment[m.member_id]) <= set(m.topics) for m in members)
    assert set(assignment) == {m.member_id for m in members}
    return sorted(flat(assignment)) == sorted((topic, p) for topic in wanted for p in range(partitions[topic]))


def flat(assignment: Assignment) -> list[tuple[str, int]]:
    """Return all partitions of an assignment."""
    return [(t, p) for of in assignment.values() for t, ps in of.items() for p in ps]


def counts(assignment: Assignment) -> list[int]:
    """Return the number of partitions of each member."""
    return [sum(map(len, of.values())) for of in assignment.values()]


def kafka_python(assignor: Any, members: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignment:
    """Return the assignment of kafka-python's assignor."""
    cluster = SimpleNamespace(
        topics=lambda: set(partitions),
        partitions_for_topic=lambda topic: set(range(partitions[topic])) if topic in partitions else None,
    )
    asking = [
        SimpleNamespace(member_id=m.member_id, group_instance_id=m.instance_id, metadata=metadata_of(m))
        for m in members
    ]
    assigned = assignor.assign(cluster, asking)
    return {
        member: {topic: list(ps) for topic, ps in assignment.assigned_partitions if ps}
        for member, assignment in assigned.items()
    }


def metadata_of(member: Candidate) -> Any:
    """Return the member's subscription as kafka-python decodes it.

    This function decodes the sticky assignor's user data: kafka-python 3.0.12 expects a leading version, as no other
    client does, and ignores other clients' data.
    """
    user_data = pytest.importorskip("kafka.coordinator.assignors.sticky.user_data", reason="no kafka-python")
    remembered = read_sticky(member.user_data)
    return SimpleNamespace(
        topics=list(member.topics),
        user_data=user_data.StickyAssignorUserData(
            [(each.topic, list(each.partitions)) for each in remembered.previous_assignment], remembered.generation
        ),
        owned_partitions=[SimpleNamespace(topic=t, partitions=list(ps)) for t, ps in member.owned.items()],
        generation_id=member.generation,
    )


def claiming(random: Random) -> tuple[list[Candidate], dict[str, int]]:
    """Draw members that claim, in the sticky user data, previous ownership of any subscribed partitions; and the
    topics.
    """
    sizes = {topic: random.randint(1, 6) for topic in TOPICS[: random.randint(1, 4)]}
    members = []
    for number in range(random.randint(2, 6)):
        topics = sorted(random.sample(sorted(sizes), random.randint(1, len(sizes))))
        had = {topic: [p for p in range(sizes[topic]) if random.random() < 0.35] for topic in topics}
        user_data = ASSIGNORS["sticky"].user_data({t: ps for t, ps in had.items() if ps}, random.choice([1, 1, 2]))
        members.append(Candidate(f"m{number}", None, topics, user_data=user_data))
    return members, sizes


def remembering(name: str, members: Sequence[Candidate], assignment: Assignment, generation: int) -> list[Candidate]:
    """Return the members one generation later, each with its assignment in its assignor's format."""
    user_data = ASSIGNORS[name].user_data
    return [
        replace(
            member,
            owned={t: tuple(ps) for t, ps in had.items()} if name == "cooperative-sticky" else {},
            generation=generation if name == "cooperative-sticky" else -1,
            user_data=user_data(had, generation),
        )
        if (had := assignment.get(member.member_id)) is not None
        else member
        for member in members
    ]


@contextmanager
def theirs_takes_the_smallest() -> Iterator[None]:
    """Make kafka-python take the smallest of a set; its own choice depends on a hash that varies between runs."""
    sticky = pytest.importorskip("kafka.coordinator.assignors.sticky.sticky_assignor", reason="no kafka-python")
    moves = pytest.importorskip("kafka.coordinator.assignors.sticky.partition_movements", reason="no kafka-python")

    class Smallest(set):  # type: ignore[type-arg]
        def pop(self) -> Any:
            self.remove(smallest := min(self))
            return smallest

        def intersection(self, *others: Any) -> "Smallest":
            return Smallest(super().intersection(*others))

        def __iter__(self) -> Iterator[Any]:
            return iter(sorted(super().__iter__()))

    with pytest.MonkeyPatch.context() as patch:
        for module in (sticky, moves):
            patch.setattr(module, "set", Smallest, raising=False)
        yield
