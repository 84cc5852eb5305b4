"""Assignors `range` and `roundrobin`, compared with kafka-python, or with Kafka where the two differ."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from builders.assignment_groups import TOPICS, counts, groups, kafka_python, owned_exactly_once, patient, sizes
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.control.assignors import ASSIGNORS, Candidate

RANGE, ROUND_ROBIN = ASSIGNORS["range"], ASSIGNORS["roundrobin"]
EAGER = pytest.mark.parametrize("name", ["range", "roundrobin"])


def theirs(name: str) -> Any:
    module = pytest.importorskip(f"kafka.coordinator.assignors.{name}", reason="kafka-python is not installed")
    return {"range": "RangePartitionAssignor", "roundrobin": "RoundRobinPartitionAssignor"}[name], module


def by_kafka_python(name: str, members: list[Candidate], partitions: Mapping[str, int]) -> Any:
    cls, module = theirs(name)
    return kafka_python(getattr(module, cls)(), members, partitions)


@pytest.mark.slow
@patient
@given(members=groups() | groups(instances=True), partitions=sizes)
def test_range_matches_kafka_python(members: list[Candidate], partitions: dict[str, int]) -> None:
    assert RANGE.assign(members, partitions) == by_kafka_python("range", members, partitions)


@pytest.mark.slow
@patient
@given(members=groups(equal=True) | groups(instances=True, equal=True), partitions=sizes)
def test_roundrobin_matches_kafka_python_for_equal_subscriptions(
    members: list[Candidate], partitions: dict[str, int]
) -> None:
    """For other subscriptions, kafka-python 3.0.12 raises KeyError where it should skip a member."""
    assert ROUND_ROBIN.assign(members, partitions) == by_kafka_python("roundrobin", members, partitions)


@pytest.mark.slow
@EAGER
@patient
@given(members=groups(instances=None), partitions=sizes)
def test_every_partition_is_owned_by_one_subscriber(
    name: str, members: list[Candidate], partitions: dict[str, int]
) -> None:
    """kafka-python 3.0.12 omits members if static and dynamic ones are mixed, so this test does not compare with it."""
    assert owned_exactly_once(ASSIGNORS[name].assign(members, partitions), members, partitions)


@pytest.mark.slow
@EAGER
@patient
@given(members=groups(instances=None, equal=True), partitions=st.fixed_dictionaries({TOPICS[0]: st.integers(1, 40)}))
def test_shares_of_one_topic_differ_by_one_at_most(
    name: str, members: list[Candidate], partitions: dict[str, int]
) -> None:
    shares = counts(ASSIGNORS[name].assign(members, partitions))
    assert max(shares) - min(shares) <= 1


@pytest.mark.slow
@EAGER
@patient
@given(st.data(), groups(instances=None), sizes)
def test_the_join_order_does_not_matter(
    name: str, data: st.DataObject, members: list[Candidate], partitions: dict[str, int]
) -> None:
    again = data.draw(st.permutations(members))
    assert ASSIGNORS[name].assign(again, partitions) == ASSIGNORS[name].assign(members, partitions)


def test_range_gives_the_remainder_to_the_first_members() -> None:
    members = [Candidate(m, topics=["t"]) for m in "cab"]
    assigned = RANGE.assign(members, {"t": 8})
    assert assigned == {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4, 5]}, "c": {"t": [6, 7]}}


def test_range_assigns_each_topic_separately() -> None:
    """The example of Kafka's RangeAssignor: of two topics with three partitions each, C0 gets four."""
    members = [Candidate(m, topics=["t0", "t1"]) for m in ("C0", "C1")]
    assigned = RANGE.assign(members, {"t0": 3, "t1": 3})
    assert assigned == {"C0": {"t0": [0, 1], "t1": [0, 1]}, "C1": {"t0": [2], "t1": [2]}}


def test_roundrobin_skips_unsubscribed_members() -> None:
    """The example of Kafka's RoundRobinAssignor."""
    members = [Candidate(f"C{n}", topics=[f"t{t}" for t in range(n + 1)]) for n in range(3)]
    assigned = ROUND_ROBIN.assign(members, {"t0": 1, "t1": 2, "t2": 3})
    assert assigned == {"C0": {"t0": [0]}, "C1": {"t1": [0]}, "C2": {"t1": [1], "t2": [0, 1, 2]}}


@EAGER
def test_static_members_come_first_and_by_their_instance_ids(name: str) -> None:
    members = [
        Candidate("a", None, ["t"]),
        Candidate("z", "1", ["t"]),
        Candidate("b", None, ["t"]),
        Candidate("y", "2", ["t"]),
    ]
    assigned = ASSIGNORS[name].assign(members, {"t": 4})
    assert assigned == {"z": {"t": [0]}, "y": {"t": [1]}, "a": {"t": [2]}, "b": {"t": [3]}}


def test_a_new_member_id_of_a_static_member_moves_no_partition() -> None:
    before = RANGE.assign([Candidate(str(n), i, ["t"]) for n, i in ((1, "A"), (2, "B"), (3, "C"))], {"t": 9})
    assert before == {"1": {"t": [0, 1, 2]}, "2": {"t": [3, 4, 5]}, "3": {"t": [6, 7, 8]}}
    after = RANGE.assign([Candidate(str(n), i, ["t"]) for n, i in ((2, "B"), (3, "C"), (4, "A"))], {"t": 9})
    assert after == {"4": {"t": [0, 1, 2]}, "2": {"t": [3, 4, 5]}, "3": {"t": [6, 7, 8]}}


@EAGER
def test_a_topic_that_does_not_exist_is_ignored(name: str) -> None:
    assert ASSIGNORS[name].assign([Candidate("a", topics=["t", "no-such"])], {"t": 1}) == {"a": {"t": [0]}}
    assert ASSIGNORS[name].assign([Candidate("a", topics=["no-such"])], {}) == {"a": {}}


@EAGER
def test_a_thousand_members_and_five_thousand_partitions_take_less_than_a_second_of_processor_time(name: str) -> None:
    members = [Candidate(f"m-{n:04}", topics=["t"]) for n in range(1000)]
    start = time.process_time()
    assigned = ASSIGNORS[name].assign(members, {"t": 5000})
    assert time.process_time() - start < 1
    assert counts(assigned) == [5] * 1000
