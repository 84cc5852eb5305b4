"""Tests of rebalances, time and transactions, as a user writes them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from koordinator import (
    Emulator,
    ExpectedRebalance,
    Fired,
    Group,
    GroupInfo,
    Hold,
    HoldTimeout,
    InvalidArgument,
    KoordinatorTimeout,
    Node,
    PuppetProducer,
    Rebalance,
    Request,
    RuleError,
    Simulation,
    Transaction,
    aio,
    faults,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Simulation(topics={"orders": 2}, seed=7, profile="fast") as cluster:
        yield cluster


def joined(group: Group, *names: str) -> GroupInfo:
    for name in names:
        group.create_puppet(name, topics=["orders"]).join()
    return group.wait_stable(members=len(names), timeout="1m").describe()


def test_a_crashed_member_expires(cluster: Cluster) -> None:
    group = cluster.group("svc")
    info = joined(group, "a", "b")
    assert info.state == "Stable"
    group.puppets["b"].stop()
    cluster.pass_time("10s")
    assert [member.client_id for member in group.members] == ["a"]


def test_an_advance_returns_the_timers_that_fired(cluster: Cluster) -> None:
    group = cluster.group("svc")
    joined(group, "a")
    fired: list[Fired] = group.advance(timedelta(seconds=5)) + group.expire_session("a")
    assert [timer.kind for timer in fired] == ["session"]


def test_a_rebalance_is_described(cluster: Cluster) -> None:
    group = cluster.group("svc")
    joined(group, "a")
    expected: ExpectedRebalance
    with group.expect_rebalance(cause="member_join", timeout="1m") as expected:
        group.create_puppet("b", topics=["orders"]).join()
    rebalance: Rebalance = expected.rebalance
    assert rebalance.generation == 2


def test_a_held_request_is_parked(cluster: Cluster) -> None:
    group = cluster.group("svc")
    hold: Hold
    with group.hold("JoinGroup") as hold:
        group.create_puppet("a", topics=["orders"]).join()
        request: Request = hold.wait_entered(timeout="5s")
        assert hold.parked == [request]
    with group.hold("SyncGroup", client_id="nobody", optional=True) as hold, pytest.raises(HoldTimeout):
        hold.wait_entered("1s")


def test_every_timeout_has_one_base(cluster: Cluster) -> None:
    with pytest.raises(KoordinatorTimeout):
        cluster.group("svc").create_puppet("a").wait_state("stable", timeout="1s")


def test_a_coordinator_is_a_node(cluster: Cluster) -> None:
    group = cluster.group("svc")
    node: Node | None = group.coordinator
    assert node is not None
    assert node == cluster.coordinator(group) == cluster.nodes[1]
    assert node.pause().resume() == node
    assert cluster.assert_rules_used().assert_no_open_transactions().assert_transactions_isolated() is cluster


def test_a_zombie_producer_is_fenced(cluster: Cluster) -> None:
    zombie: PuppetProducer = cluster.create_producer("old", "tx", transaction_timeout="30s")
    zombie.init().wait_answered("5s")
    zombie.produce("orders", "a").wait_answered("5s")
    cluster.create_producer("new", "tx").init().wait_answered("5s")
    transaction: Transaction = cluster.transaction("tx").wait_state("CompleteAbort", timeout="5s")
    assert zombie.produce("orders", "late").wait_answered("5s").error == "INVALID_PRODUCER_EPOCH"
    assert transaction.state == "CompleteAbort"
    cluster.create_producer("third", "tx").init().wait_answered("5s").produce("orders", "a").wait_answered("5s")
    # mypy would hold this for impossible if the states were literals
    assert transaction.state == "Ongoing"


def test_wrong_arguments_say_where_and_why(cluster: Cluster) -> None:
    with pytest.raises(RuleError, match="OffsetComit"):
        cluster.add_rule("OffsetComit", faults.drop())
    with pytest.raises(InvalidArgument, match="members='two'"):
        cluster.group("svc").wait_stable(members="two")  # type: ignore[arg-type]


def test_an_asynchronous_test_awaits() -> None:
    async def story() -> None:
        async with aio.Emulator(topics={"orders": 2}) as cluster:
            group: aio.Group = cluster.group("svc")
            puppet = await group.create_puppet("a", topics=["orders"])
            await puppet.join()
            await group.wait_stable(members=1, timeout="30s")
            assert await group.state == "Stable"
            async with group.add_rule("Heartbeat", faults.delay("1ms"), optional=True) as rule:
                assert await rule.hits >= 0
            with pytest.raises(TypeError, match="not awaited"):
                assert group.members

    asyncio.run(story())


def test_a_cluster_is_started_by_hand() -> None:
    with Emulator(topics={"orders": 1}, clock="manual", security="plaintext") as cluster:
        assert cluster.produce("orders", "a", "b") == 2
        assert cluster.group("svc").clock == "manual"
