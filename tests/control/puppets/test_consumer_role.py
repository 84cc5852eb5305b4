"""Subscriptions and assignments of the consumer role."""

from __future__ import annotations

import pytest
from brokers.cluster import Nodes

from koordinator.emulator.control.assignors import ASSIGNORS
from koordinator.emulator.control.puppets.consumer_role import ConsumerRole
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    read_subscription,
    write_assignment,
)
from koordinator.wire.messages.join_group import JoinGroupResponseMember


def role(*protocols: str, topics: tuple[str, ...] | None = ("t",), **owned: tuple[int, ...]) -> ConsumerRole:
    return ConsumerRole(Nodes(1).cluster, protocols, topics, owned, {})


def encoded(*partitions: int) -> bytes:
    return write_assignment(
        ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="t", partitions=partitions),))
    )


def test_an_eager_consumer_revokes_all_but_the_sticky_assignor_sends_the_last_assignment() -> None:
    one = role("sticky")
    assert one.take(0, "sticky", 3, encoded(1, 2)) is None
    one.prepare("sticky")
    ((_, metadata),) = one.offers()
    subscription = read_subscription(metadata)
    assert (one.holds, subscription.owned_partitions, subscription.generation_id) == ({}, (), -1)
    # KIP-54
    assert subscription.user_data == ASSIGNORS["sticky"].user_data({"t": (1, 2)}, 3)


def test_a_cooperative_consumer_keeps_and_reports_its_partitions() -> None:
    one = role("cooperative-sticky")
    one.take(0, "cooperative-sticky", 3, encoded(1, 2))
    one.prepare("cooperative-sticky")
    ((_, metadata),) = one.offers()
    subscription = read_subscription(metadata)
    assert one.holds == {"t": [1, 2]}
    # KIP-429, KIP-792
    assert subscription.owned_partitions == (TopicPartition(topic="t", partitions=(1, 2)),)
    assert subscription.generation_id == 3


@pytest.mark.parametrize(
    ("protocols", "keeps"), [(("cooperative-sticky",), True), (("cooperative-sticky", "range"), False)]
)
def test_a_consumer_is_cooperative_only_if_all_its_assignors_are(protocols: tuple[str, ...], *, keeps: bool) -> None:
    one = role(*protocols)
    one.take(0, "cooperative-sticky", 3, encoded(1, 2))
    # KIP-429: a consumer with revoked partitions rejoins for a second round
    assert one.take(0, "cooperative-sticky", 4, encoded(1)) == (0 if keeps else None)
    one.prepare("cooperative-sticky")
    assert bool(one.holds) == keeps


def test_a_consumer_without_revoked_partitions_does_not_rejoin() -> None:
    one = role("cooperative-sticky")
    one.take(0, "cooperative-sticky", 3, encoded(1))
    assert one.take(0, "cooperative-sticky", 4, encoded(1, 2)) is None


def test_initial_claims_are_sent_without_a_generation() -> None:
    ((_, metadata),) = role("cooperative-sticky", t=(0, 3)).offers()
    subscription = read_subscription(metadata)
    assert subscription.owned_partitions == (TopicPartition(topic="t", partitions=(0, 3)),)
    assert subscription.generation_id == -1


def test_a_member_with_an_unreadable_subscription_gets_no_partitions() -> None:
    one = role("range")
    ((_, metadata),) = one.offers()
    members = (
        JoinGroupResponseMember(member_id="a", metadata=metadata),
        JoinGroupResponseMember(member_id="b", metadata=b"?"),
    )
    assigned = one.assign(0, "range", 1, "a", members)
    one.take(0, "range", 1, assigned["b"])
    assert one.holds == {}
    one.take(0, "range", 1, assigned["a"])
    assert one.holds == {"t": [0, 1, 2, 3]}


def test_empty_bytes_are_an_empty_assignment() -> None:
    one = role("range")
    assert one.take(0, "range", 1, b"") is None
    assert one.holds == {}


def test_a_subscription_to_all_topics_excludes_internal_topics() -> None:
    nodes = Nodes(1)
    nodes.cluster.internal_topic()
    nodes.cluster.create_topic("u", 1)
    ((_, metadata),) = ConsumerRole(nodes.cluster, ("range",), None, {}, {}).offers()
    assert read_subscription(metadata).topics == ("t", "u")


def test_the_metadata_of_an_assignor_replaces_its_subscription() -> None:
    role = ConsumerRole(Nodes(1).cluster, ("mine", "range"), ("t",), {}, {"mine": b"mine"})
    (mine, metadata), (_, subscription) = role.offers()
    assert (mine, metadata) == ("mine", b"mine")
    assert read_subscription(subscription).topics == ("t",)
