"""The handle of a consumer group (KIP-848): properties, waits, levers, snapshots and the timeline, on virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator import Simulation
from koordinator.emulator.pages.lanes import lanes_of
from koordinator.emulator.pages.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster
    from koordinator.handles.group import Group

CONFIG = {"group.consumer.assignment.interval.ms": 0}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Simulation(topics={"orders": 4}, brokers=2, config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def group(cluster: Cluster) -> Group:
    """Return a group in which `a` owns four partitions and has to give two of them to `b`."""
    group = cluster.group("svc")
    group.create_puppet("a", group_protocol="consumer", behaviour="manual").join().sync()
    group.create_puppet("b", group_protocol="consumer").join()
    group.puppets["a"].heartbeat()
    return group


def test_epochs_targets_and_pending_revocations_are_properties(group: Group) -> None:
    first, second = group.members
    assert (group.type, group.state, group.epoch, group.protocol) == ("consumer", "Reconciling", 3, "uniform")
    assert (first.epoch, first.assignment, first.target) == (2, {"orders": [0, 1]}, {"orders": [0, 1]})
    assert first.pending_revocation == {"orders": [2, 3]}
    assert (second.epoch, second.assignment, second.target) == (3, {}, {"orders": [2, 3]})


def test_a_wait_names_the_members_that_lack_their_target(group: Group) -> None:
    with pytest.raises(AssertionError, match=r"(?s)Reconciling, epoch 3, 2 members.*not at its target yet"):
        group.wait_stable(members=2, timeout=1)
    with pytest.raises(AssertionError, match="expected a Stable group, but it is Reconciling"):
        group.assert_owned_exactly_once()
    group.puppets["a"].sync()
    group.wait_stable(members=2, all_owned=True).assert_owned_exactly_once()
    group.assert_assignment({"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}})


def test_levers_end_sessions_and_memberships(group: Group) -> None:
    group.puppets["a"].sync()
    group.wait_stable(members=2)
    with group.expect_rebalance("session_expired"):
        group.expire_session("a")
    group.wait_stable(members=1).assert_owned_exactly_once()
    # the puppet joins again at once
    with group.expect_rebalance("member_join"):
        group.evict("b")
    group.wait_stable(members=1).assert_left("b")


def test_a_member_that_does_not_give_up_its_partitions_is_removed_at_its_timeout(group: Group) -> None:
    (fired,) = group.expire_revocation("a")
    assert fired.kind == "revocation"
    group.wait_stable(members=1, all_owned=True)
    with pytest.raises(AssertionError, match="group 'svc' did not tell b to give partitions up within 1 s"):
        group.expire_revocation("b", timeout=1)


def test_a_forced_rebalance_raises_the_epoch_without_moving_partitions(group: Group) -> None:
    group.puppets["a"].sync()
    before = group.wait_stable(members=2).assignment
    with group.expect_rebalance("forced"):
        group.rebalance()
        group.wait_state("Reconciling")
        group.puppets["a"].heartbeat()
    assert group.assignment == before


def test_a_snapshot_has_the_group(cluster: Cluster, group: Group) -> None:
    group.puppets["a"].sync()
    group.wait_stable(members=2)
    before, saved = group.describe(), cluster.snapshot()
    cluster.reset("puppets", "groups")
    assert group.state == "Dead"
    cluster.restore(saved)
    after = group.describe()
    assert (after.type, after.state, after.epoch) == ("consumer", "Stable", before.epoch)
    assert [(each.member_id, each.epoch, each.assignment) for each in after.members] == [
        (each.member_id, each.epoch, each.assignment) for each in before.members
    ]


def test_an_advance_keeps_members_that_send_heartbeats_and_expires_the_others(group: Group) -> None:
    group.puppets["a"].sync()
    group.wait_stable(members=2)
    silent = group.puppets["a"].member_id
    (fired,) = group.advance("1h")
    assert (fired.kind, fired.member_id) == ("session", silent)
    group.wait_stable(members=1).assert_owned_exactly_once()
    # its heartbeats are skipped: a hundred thousand of them would take long
    assert group.advance("7d") == []
    assert len(group.members) == 1


def test_the_timeline_shows_the_steps_of_members_by_client(cluster: Cluster, group: Group) -> None:
    group.puppets["a"].sync()
    group.wait_stable(members=2)
    shown = "\n".join(timeline([line for line in cluster.events() if line.get("group_id") == "svc"], 100))
    steps = [
        "b                   unreleased partitions, generation 3, owns nothing",
        "a                   unrevoked partitions, generation 2, orders [0, 1], gives up orders [2, 3]",
        "a                   stable, generation 3, orders [0, 1]",
        "b                   stable, generation 3, orders [2, 3]",
    ]
    places = [shown.find(step) for step in steps]
    assert places == sorted(places)
    assert -1 not in places


def test_the_pages_have_the_steps_as_spans_and_each_rebalance_as_a_sentence(cluster: Cluster, group: Group) -> None:
    group.puppets["a"].sync()
    group.wait_stable(members=2)
    lanes = lanes_of(cluster.events())["svc"]
    assert {name: [span.state for span in lane.spans] for name, lane in lanes.lanes.items()} == {
        "a": ["joining", "stable", "revoking", "stable"],
        "b": ["joining", "syncing", "stable"],
    }
    (second,) = [row for row in lanes.take() if row[0] == "story" and "(b)" in row[3]]
    assert second[3] == "a new member joins (b): epoch 3, in 200 ms"
    assert second[4].endswith("→ b, after 200 ms without an owner. 2 partitions continued without a pause.")


def test_the_pages_keep_the_lane_of_a_static_member_that_returns(cluster: Cluster) -> None:
    group = cluster.group("svc")
    static = group.create_puppet("s", group_protocol="consumer", instance_id="i1").join()
    static.leave(temporarily=True).join()
    group.wait_stable(members=1)
    lanes = lanes_of(cluster.events())["svc"]
    assert {name: [span.state for span in lane.spans] for name, lane in lanes.lanes.items()} == {
        "i1": ["joining", "stable", "away", "joining", "stable"]
    }
    assert "i1 left for a while" in [row[3] for row in lanes.take() if row[0] == "story"]


def test_a_frozen_group_keeps_its_state_until_it_is_thawed(group: Group) -> None:
    group.freeze()
    acknowledging = group.puppets["a"].sync()
    group.puppets["b"].leave()
    # two minutes: neither the rebalance timeout of 30 s nor a session of 45 s ends
    assert group.advance("2m", keep_alive="none") == []
    assert (group.state, acknowledging.waits_for, len(group.members)) == ("Reconciling", "ConsumerGroupHeartbeat", 2)
    with pytest.raises(ValueError, match="is frozen in Reconciling: thaw it first"):
        group.evict("a")
    group.thaw()
    assert acknowledging.waits_for is None
    group.wait_state("Assigning")
    assert [member.client_id for member in group.members] == ["a"]


def test_a_group_freezes_in_a_state_in_which_it_will_rest(cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.freeze("Reconciling")
    group.create_puppet("a", group_protocol="consumer").join()
    group.wait_stable(members=1)
    newcomer = group.create_puppet("b", group_protocol="consumer").join()
    group.wait_state("Reconciling")
    group.advance("1h", keep_alive="none")
    assert (group.state, newcomer.assignment) == ("Reconciling", {})
    group.thaw()
    group.wait_stable(members=2, all_owned=True)


def test_a_frozen_group_answers_heartbeats_that_change_nothing(group: Group) -> None:
    group.puppets["a"].sync()
    group.wait_stable(members=2)
    group.freeze("Stable")
    assert group.puppets["a"].heartbeat().waits_for is None
    newcomer = group.create_puppet("c", group_protocol="consumer").join()
    assert (newcomer.waits_for, len(group.members)) == ("ConsumerGroupHeartbeat", 2)
    group.thaw()
    assert len(group.members) == 3
