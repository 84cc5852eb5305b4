"""Overrides of groups: their events in the trace, and the responses that members receive."""

from __future__ import annotations

from typing import Any

import pytest
from brokers.cluster import FORMING_MS, GROUP, SESSION_MS, joining, syncing
from brokers.group_broker import GroupBroker

from koordinator.emulator.core.refusal import RefusedError
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity


@pytest.fixture
def here() -> GroupBroker:
    return GroupBroker()


def states(here: GroupBroker) -> list[tuple[object, ...]]:
    events = here.trace.events(group=GROUP)
    return [(line["state_to"], line["cause"], line["reason"]) for line in events if line["kind"] == "state"]


def removed(here: GroupBroker) -> list[tuple[object, ...]]:
    events = here.trace.events(group=GROUP)
    return [(line["change"], line["cause"], line["reason"]) for line in events if line["kind"] == "member"]


def dynamic(here: GroupBroker) -> str:
    """A stable group of one dynamic member, of client c; its id."""
    member_id = str(here.request_at(here.node, joining(), 5).member_id)
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining(None, member_id), 5))
    here.wait(2 * FORMING_MS)
    assert here.request_at(here.node, syncing(member_id), 3).error_code == 0
    return member_id


def test_a_forced_rebalance_has_the_reason_it_was_given(here: GroupBroker) -> None:
    (a,) = here.form("a")
    here.verbs.rebalance(here.now, group=GROUP, cause="because I say so")
    assert states(here)[-1] == ("PreparingRebalance", "forced", "because I say so")
    assert here.heartbeat(here.node, a) is Error.REBALANCE_IN_PROGRESS


def test_a_poll_timeout_eviction_looks_like_the_clients_leave(here: GroupBroker) -> None:
    a = dynamic(here)
    here.verbs.evict(here.now, group=GROUP, member=a)
    said = f"Removing member {a} on LeaveGroup; client reason: consumer poll timeout has expired."
    assert removed(here)[-1] == ("removed", "member_leave", said)
    assert here.heartbeat(here.node, a) is Error.UNKNOWN_MEMBER_ID


def test_a_session_eviction_is_immediate(here: GroupBroker) -> None:
    (a, _) = here.form("a", "b")
    here.verbs.evict(here.now, group=GROUP, member="a", as_if="session")
    assert removed(here)[-1] == ("removed", "session_expired", f"removing member {a} on heartbeat expiration.")
    assert here.group.state.value == "PreparingRebalance"
    assert here.clocks.read(here.now, group=GROUP).ahead_ms == 0


def test_the_previous_holder_of_an_instance_id_is_fenced(here: GroupBroker) -> None:
    (a, _) = here.form("a", "b")
    here.verbs.fence(here.now, group=GROUP, member="a")
    request = joining("a", a)
    assert here.request_at(here.node, request, 5).error_code == Error.FENCED_INSTANCE_ID
    assert here.group.state.value == "Stable"
    assert removed(here)[-1][:2] == ("replaced", "fenced")
    # the new process stays silent, so its session expires
    assert here.advance(f"{SESSION_MS}ms") == [("session", "a")]


def test_a_parked_member_is_fenced_at_once_by_its_replacement(here: GroupBroker) -> None:
    (a, _) = here.form("a", "b")
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a", a), 5))
    here.verbs.fence(here.now, group=GROUP, member="a")
    assert peer.answers()[-1][1].error_code == Error.FENCED_INSTANCE_ID


def test_the_trace_has_an_override_before_its_effects(here: GroupBroker) -> None:
    (a,) = here.form("a")
    here.verbs.evict(here.now, group=GROUP, member="a", as_if="session")
    here.verbs.add_partitions(here.now, topic="t", count=1)
    lines = [(line["kind"], line.get("verb"), line.get("body")) for line in here.trace.events()]
    evicted = lines.index(("verb", "evict", {"member": a, "as_if": "session"}))
    assert lines[evicted + 1][0] == "member"
    assert ("verb", "add_partitions", {"topic": "t", "count": 1}) in lines


def test_offsets_are_set_while_the_group_has_members(here: GroupBroker) -> None:
    here.form("a")
    here.verbs.set_offsets(here.now, group=GROUP, offsets=[{"topic": "t", "partition": 0, "offset": 7}])
    assert here.committed(here.node) == 7
    here.do(here.runtime.move_coordinator, GROUP, 3 - here.node)
    assert here.committed(3 - here.node) == 7


def test_offsets_of_a_group_that_is_not_there_make_it(here: GroupBroker) -> None:
    here.verbs.set_offsets(here.now, group=GROUP, offsets=[{"topic": "t", "partition": 3, "offset": 0}])
    assert (here.group.state.value, list(here.group.offsets)) == ("Empty", [("t", 3)])


def test_a_new_maximum_size_applies_to_later_joins(here: GroupBroker) -> None:
    here.form("a", "b")
    here.verbs.set_group_max_size(here.now, size=2)
    assert here.request_at(here.node, joining("c"), 5).error_code == Error.GROUP_MAX_SIZE_REACHED
    here.verbs.set_group_max_size(here.now, size=3)
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("c"), 5))
    assert here.group.state.value == "PreparingRebalance"


def test_a_new_largest_size_counts_at_nodes_that_come_up_later(here: GroupBroker) -> None:
    here.do(here.runtime.stop_node, here.node)
    here.verbs.set_group_max_size(here.now, size=1)
    here.do(here.runtime.start_node, here.node)
    assert here.runtime.broker(here.node).node.coordinator.store.settings.group_max_size == 1


def test_a_topic_gets_more_partitions(here: GroupBroker) -> None:
    assert here.verbs.add_partitions(here.now, topic="t", count=2) == 6
    assert here.cluster.topics.partition_count("t") == 6


class TestFrozen:
    """A frozen group stays where it is; what would end its state waits, and nothing is lost by that."""

    def describe(self, here: GroupBroker) -> Any:
        return here.request_at(here.node, DescribeGroupsRequest(groups=(GROUP,)), 3).groups[0]

    def joins(self, here: GroupBroker, instance: str) -> Any:
        peer = here.connect(here.node)
        here.send(peer, here.request(peer, joining(instance), 5))
        return peer

    def test_a_frozen_stable_group_holds_membership_changes_only(self, here: GroupBroker) -> None:
        a, b = here.form("a", "b")
        here.verbs.freeze(here.now, group=GROUP)
        newcomer, leaver = self.joins(here, "c"), here.connect(here.node)
        leave = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=b, group_instance_id="b"),))
        here.send(leaver, here.request(leaver, leave, 3))
        here.wait(10 * SESSION_MS)
        assert (newcomer.answers(), leaver.answers()) == ([], [])
        described = self.describe(here)
        assert (described.group_state, len(described.members)) == ("Stable", 2)
        assert here.heartbeat(here.node, a) is Error.NONE
        assert here.commit(here.node, 3, a) is Error.NONE
        here.verbs.thaw(here.now, group=GROUP)
        assert [answer.error_code for _, answer in leaver.answers()] == [0]
        assert here.group.state.value == "PreparingRebalance"
        assert sorted(here.group.static_members) == ["a", "c"]

    def test_in_a_join_phase_members_come_and_the_phase_does_not_end(self, here: GroupBroker) -> None:
        here.verbs.freeze(here.now, group=GROUP, state="PreparingRebalance")
        first, second = self.joins(here, "a"), self.joins(here, "b")
        here.wait(1_000_000)
        assert (first.answers(), self.describe(here).group_state) == ([], "PreparingRebalance")
        here.verbs.thaw(here.now, group=GROUP)
        here.wait(2 * FORMING_MS)
        assert {answer.generation_id for peer in (first, second) for _, answer in peer.answers()} == {1}

    def test_a_complete_join_phase_ends_when_it_thaws(self, here: GroupBroker) -> None:
        (a,) = here.form("a")
        here.verbs.rebalance(here.now, group=GROUP)
        here.verbs.freeze(here.now, group=GROUP)
        peer = here.connect(here.node)
        here.send(peer, here.request(peer, joining("a", a), 5))
        assert peer.answers() == []
        here.verbs.thaw(here.now, group=GROUP)
        assert peer.answers()[-1][1].generation_id == 2

    def test_before_the_assignment_the_leader_waits(self, here: GroupBroker) -> None:
        here.verbs.freeze(here.now, group=GROUP, state="CompletingRebalance")
        leader, *_ = here.formed(here.node, "a", "b")
        peer = here.connect(here.node)
        here.send(peer, here.request(peer, syncing(leader), 3))
        here.wait(1_000_000)
        assert (peer.answers(), self.describe(here).group_state) == ([], "CompletingRebalance")
        here.verbs.thaw(here.now, group=GROUP)
        assert peer.answers()[-1][1].error_code == 0
        assert here.group.state.value == "Stable"

    def test_an_empty_group_stays_empty_and_its_offsets_stay(self, here: GroupBroker) -> None:
        here.commit(here.node, 1)
        here.verbs.freeze(here.now, group=GROUP)
        here.run(here.clocks.advance(here.now, group=GROUP, by="30d"))
        newcomer = self.joins(here, "a")
        here.wait(1_000)
        assert (newcomer.answers(), here.committed(here.node)) == ([], 1)
        here.verbs.thaw(here.now, group=GROUP)
        here.wait(2 * FORMING_MS)
        assert newcomer.answers()[-1][1].generation_id == 1

    def test_timers_stand_still_meanwhile(self, here: GroupBroker) -> None:
        here.form("a")
        here.wait(1_000)
        here.verbs.freeze(here.now, group=GROUP)
        here.wait(60_000)
        here.verbs.thaw(here.now, group=GROUP)
        here.wait(SESSION_MS - 1_001)
        assert here.group.members
        here.wait(1)
        assert not here.group.members

    def test_a_freeze_survives_a_coordinator_move_and_held_requests_get_not_coordinator(
        self, here: GroupBroker
    ) -> None:
        here.form("a")
        here.verbs.freeze(here.now, group=GROUP)
        newcomer = self.joins(here, "b")
        there = 3 - here.node
        here.do(here.runtime.move_coordinator, GROUP, there)
        assert newcomer.answers()[-1][1].error_code == Error.NOT_COORDINATOR
        assert here.runtime.broker(there).node.coordinator.groups[GROUP].is_frozen

    def test_a_group_can_be_frozen_in_the_state_in_which_it_begins(self, here: GroupBroker) -> None:
        here.verbs.freeze(here.now, group=GROUP, state="Empty")
        newcomer = self.joins(here, "b")
        here.wait(1_000)
        assert (newcomer.answers(), here.group.state.value) == ([], "Empty")

    def test_a_frozen_group_is_not_replaced_by_one_of_another_kind_and_its_requests_are_answered(
        self, here: GroupBroker
    ) -> None:
        here.verbs.freeze(here.now, group=GROUP, state="Empty")
        join = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id="m", rebalance_timeout_ms=1_000, subscribed_topic_names=("t",),
            topic_partitions=(),
        )  # fmt: skip
        first, second = here.connect(here.node), here.connect(here.node)
        here.send(first, here.request(first, join, 1))
        here.send(second, here.request(second, joining("b"), 5))
        assert (here.group.kind, first.answers(), second.answers()) == ("consumer", [], [])
        here.verbs.thaw(here.now, group=GROUP)
        here.wait(2 * FORMING_MS)
        assert [len(peer.answers()) for peer in (first, second)] == [1, 1]


class TestBadInputOfVerbs:
    """Nothing has changed then."""

    @pytest.fixture(autouse=True)
    def _nothing_changes(self, here: GroupBroker) -> Any:
        here.form("a", "b")
        before = here.trace.events(), here.clocks.timers(here.now, group=GROUP), here.cluster.settings
        yield
        assert (here.trace.events(), here.clocks.timers(here.now, group=GROUP), here.cluster.settings) == before
        assert here.cluster.topics.partition_count("t") == 4
        assert here.cluster.frozen_states == {}

    @pytest.mark.parametrize(
        ("verb", "arguments", "said"),
        [
            ("rebalance", {"group": "h"}, "there is no group 'h'; there is 'g'"),
            ("evict", {"member": "x"}, "has no member 'x'; there are 'a', 'b'"),
            ("evict", {"member": "a"}, "member 'a' is static: its client does not leave the group at a poll timeout"),
            ("evict", {"member": "a", "as_if": "sesion"}, "must be 'poll_timeout' or 'session'; did you mean 'sess"),
            ("fence", {"member": "aa"}, "has no member 'aa'; there are 'a', 'b'; did you mean 'a'"),
            ("freeze", {"state": "stable"}, "Reconciling or NotReady; did you mean 'Stable'"),
            ("freeze", {"state": "Dead"}, "state 'Dead': must be Empty, PreparingRebalance"),
            ("freeze", {"group": "h"}, "there is no group 'h'"),
            ("thaw", {}, "group 'g' is not frozen; no group is"),
            ("set_offsets", {"offsets": [{"topic": "tt", "partition": 0, "offset": 1}]}, "no topic 'tt'"),
            ("set_offsets", {"offsets": [{"topic": "t", "partition": 4, "offset": 1}]}, "0 to 3, and no 4"),
            ("set_offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": -1}]}, "an integer from 0, not -1"),
        ],
    )
    def test_invalid_values_are_refused(
        self, here: GroupBroker, verb: str, arguments: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(ValueError, match=said):
            getattr(here.verbs, verb)(here.now, **{"group": GROUP, **arguments})

    @pytest.mark.parametrize(
        ("verb", "arguments", "said"),
        [
            ("set_group_max_size", {"size": 0}, "group.max.size=0: must be an integer from 1 to"),
            ("set_group_max_size", {"size": True}, "group.max.size=True: must be"),
            ("add_partitions", {"topic": "x", "count": 1}, "there is no topic 'x'"),
            ("add_partitions", {"topic": "t", "count": 0}, "count=0 partitions to add: must be an integer from 1"),
        ],
    )
    def test_impossible_cluster_options_are_refused(
        self, here: GroupBroker, verb: str, arguments: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(ValueError, match=said):
            here.perform(verb, **arguments)

    def test_more_partitions_than_kafka_allows_are_refused_as_by_kafka(self, here: GroupBroker) -> None:
        with pytest.raises(RefusedError, match="must not exceed 10000"):
            here.verbs.add_partitions(here.now, topic="t", count=10_000)


def test_a_group_in_a_join_phase_cannot_be_made_to_begin_one(here: GroupBroker) -> None:
    here.form("a")
    here.verbs.rebalance(here.now, group=GROUP)
    with pytest.raises(ValueError, match="is PreparingRebalance: only a Stable or CompletingRebalance group"):
        here.verbs.rebalance(here.now, group=GROUP)


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [("rebalance", {}), ("evict", {"member": "a", "as_if": "session"}), ("fence", {"member": "a"})],
)
def test_overrides_of_a_frozen_groups_state_are_refused(
    here: GroupBroker, verb: str, arguments: dict[str, Any]
) -> None:
    here.form("a")
    here.verbs.freeze(here.now, group=GROUP)
    with pytest.raises(ValueError, match="group 'g' is frozen in Stable: thaw it first"):
        getattr(here.verbs, verb)(here.now, group=GROUP, **arguments)
    with pytest.raises(ValueError, match="is frozen in Stable"):
        here.run(here.clocks.expire_session(here.now, group=GROUP, member="a"))
    with pytest.raises(ValueError, match="is frozen in Stable"):
        here.verbs.freeze(here.now, group=GROUP, state="Empty")
