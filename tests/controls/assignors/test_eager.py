"""range and roundrobin: as kafka-python has them, and as Kafka does where kafka-python does not."""

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


@patient
@given(members=groups() | groups(instances=True), partitions=sizes)
def test_range_is_kafka_pythons(members: list[Candidate], partitions: dict[str, int]) -> None:
    assert RANGE.assign(members, partitions) == by_kafka_python("range", members, partitions)


@patient
@given(members=groups(equal=True) | groups(instances=True, equal=True), partitions=sizes)
def test_roundrobin_is_kafka_pythons_where_all_want_the_same(
    members: list[Candidate], partitions: dict[str, int]
) -> None:
    """Where they do not, kafka-python 3.0.12 raises KeyError when it should pass a member over."""
    assert ROUND_ROBIN.assign(members, partitions) == by_kafka_python("roundrobin", members, partitions)


@EAGER
@patient
@given(members=groups(instances=None), partitions=sizes)
def test_every_partition_is_owned_by_one_subscriber(
    name: str, members: list[Candidate], partitions: dict[str, int]
) -> None:
    """kafka-python 3.0.12 leaves members out where static and dynamic ones come mixed: it is not asked here."""
    assert owned_exactly_once(ASSIGNORS[name].assign(members, partitions), members, partitions)


@EAGER
@patient
@given(members=groups(instances=None, equal=True), partitions=st.fixed_dictionaries({TOPICS[0]: st.integers(1, 40)}))
def test_one_topic_is_shared_out_to_within_one(name: str, members: list[Candidate], partitions: dict[str, int]) -> None:
    shares = counts(ASSIGNORS[name].assign(members, partitions))
    assert max(shares) - min(shares) <= 1


@EAGER
@patient
@given(st.data(), groups(instances=None), sizes)
def test_the_order_in_which_members_joined_changes_nothing(
    name: str, data: st.DataObject, members: list[Candidate], partitions: dict[str, int]
) -> None:
    again = data.draw(st.permutations(members))
    assert ASSIGNORS[name].assign(again, partitions) == ASSIGNORS[name].assign(members, partitions)


def test_the_first_of_a_range_have_one_more() -> None:
    members = [Candidate(m, topics=["t"]) for m in "cab"]
    assigned = RANGE.assign(members, {"t": 8})
    assert assigned == {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4, 5]}, "c": {"t": [6, 7]}}


def test_a_range_starts_anew_with_every_topic() -> None:
    """The example of Kafka's RangeAssignor: two topics of three partitions, and C0 has four of the six."""
    members = [Candidate(m, topics=["t0", "t1"]) for m in ("C0", "C1")]
    assigned = RANGE.assign(members, {"t0": 3, "t1": 3})
    assert assigned == {"C0": {"t0": [0, 1], "t1": [0, 1]}, "C1": {"t0": [2], "t1": [2]}}


def test_roundrobin_passes_over_who_is_not_subscribed() -> None:
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


def test_kip_345_nine_partitions_stay_where_they_are_when_a_has_a_new_member_id() -> None:
    before = RANGE.assign([Candidate(str(n), i, ["t"]) for n, i in ((1, "A"), (2, "B"), (3, "C"))], {"t": 9})
    assert before == {"1": {"t": [0, 1, 2]}, "2": {"t": [3, 4, 5]}, "3": {"t": [6, 7, 8]}}
    after = RANGE.assign([Candidate(str(n), i, ["t"]) for n, i in ((2, "B"), (3, "C"), (4, "A"))], {"t": 9})
    assert after == {"4": {"t": [0, 1, 2]}, "2": {"t": [3, 4, 5]}, "3": {"t": [6, 7, 8]}}


@EAGER
def test_a_topic_that_does_not_exist_is_nobodys(name: str) -> None:
    assert ASSIGNORS[name].assign([Candidate("a", topics=["t", "no-such"])], {"t": 1}) == {"a": {"t": [0]}}
    assert ASSIGNORS[name].assign([Candidate("a", topics=["no-such"])], {}) == {"a": {}}


@EAGER
def test_a_thousand_members_and_five_thousand_partitions_take_less_than_a_second(name: str) -> None:
    members = [Candidate(f"m-{n:04}", topics=["t"]) for n in range(1000)]
    start = time.perf_counter()
    assigned = ASSIGNORS[name].assign(members, {"t": 5000})
    assert time.perf_counter() - start < 1
    assert counts(assigned) == [5] * 1000
