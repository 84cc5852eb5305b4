"""Invariants that hold for every sequence of requests and every result of writes.

Those of counters and tables are in `scenes.group_invariants`, and hold in every test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from builders.requests import RANGE
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scenes.play import Exchange, Play

from koordinator.emulator.core import overrides
from koordinator.emulator.core.groups.classic.group import ClassicGroup, ClassicGroupState
from koordinator.emulator.core.groups.facts import Superseded
from koordinator.emulator.core.timers import (
    InitialDelay,
    OffsetExpiryCheck,
    PendingMemberExpiry,
    PendingSyncExpiry,
    RebalanceTimeout,
)
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupResponse

GROUPS = st.sampled_from(["g", "h"])
INSTANCES = st.sampled_from([None, None, None, "i1", "i2"])
OFFERS = st.sampled_from(
    [
        RANGE,
        RANGE,
        (("range", b"other"),),
        (("rr", b"rr"), ("range", b"range")),
        (("range", b"range"), ("rr", b"rr")),
        (("rr", b"rr"),),
        (),
    ]
)
TIMEOUTS = st.sampled_from([0, 1_000, 6_000, 30_000])
# without 2.4, where a new member has no session until its second request (KAFKA-9752)
RELEASES: Any = st.sampled_from(
    [
        {"kafka_version": "2.8"},
        {"kafka_version": "3.9"},
        {"kafka_version": "3.9", "group_coordinator_new_enable": True},
        {"kafka_version": "4.0"},
        {"kafka_version": "4.4"},
    ]
)
HOWEVER = st.sampled_from([Error.NONE, Error.NONE, None, Error.NOT_ENOUGH_REPLICAS])
SILENCE = 4_000_000


class Clients(RuleBasedStateMachine):
    """Clients of two groups that reuse, and mix up, the ids and generations they received."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play()
        self.ids: list[str] = ["ghost"]
        self.joins: list[Exchange[JoinGroupResponse]] = []

    @initialize(release=RELEASES, delay=st.sampled_from([0, 3_000]), size_max=st.sampled_from([2, 3, 1_000]))
    def begin(self, release: dict[str, Any], delay: int, size_max: int) -> None:
        self.play = Play(
            **release,
            group_initial_rebalance_delay_ms=delay,
            group_max_size=size_max,
            offsets_retention_check_interval_ms=30_000,
            offsets_retention_minutes=1,
        )

    def somebody(self, data: st.DataObject) -> str:
        for sent in self.joins:
            if sent.responses and sent.responses[0].member_id and sent.responses[0].member_id not in self.ids:
                self.ids.append(sent.responses[0].member_id)
        return data.draw(st.sampled_from(self.ids[-6:]), label="who")

    def generation(self, data: st.DataObject, group: str) -> int:
        known = self.play.coordinator.groups.get(group)
        now = known.generation if known is not None else 0
        return data.draw(st.sampled_from([now, now, now, now - 1, -1]), label="generation")

    @rule(
        data=st.data(),
        group=GROUPS,
        instance_id=INSTANCES,
        protocols=OFFERS,
        session=TIMEOUTS,
        rebalance=TIMEOUTS,
        version=st.sampled_from([0, 3, 5, 9]),
        who=st.sampled_from(["somebody", "a newcomer"]),
    )
    def join(
        self,
        data: st.DataObject,
        group: str,
        instance_id: str | None,
        protocols: Any,
        session: int,
        rebalance: int,
        version: int,
        who: str,
    ) -> None:
        version = min(version, self.play.newest(ApiKey.JOIN_GROUP))
        self.joins.append(
            self.play.join(
                self.somebody(data) if who == "somebody" else "",
                instance_id if version >= 5 else None,
                group=group,
                version=version,
                session=session,
                rebalance=rebalance,
                protocols=protocols,
            )
        )

    @rule(group=GROUPS)
    def all_rejoin(self, group: str) -> None:
        known = self.play.coordinator.groups.get(group)
        for member in list(known.members.values()) if known is not None else []:
            self.joins.append(
                self.play.join(
                    member.id,
                    member.instance_id,
                    group=group,
                    session=member.session_timeout_ms,
                    rebalance=member.rebalance_timeout_ms,
                    protocols=member.protocols,
                )
            )

    @rule(data=st.data(), group=GROUPS, instance_id=INSTANCES)
    def sync(self, data: st.DataObject, group: str, instance_id: str | None) -> None:
        who = self.somebody(data)
        self.play.sync(
            self.generation(data, group), who, {who: b"mine"}, instance_id=instance_id, group=group, version=3
        )

    @rule(data=st.data(), group=GROUPS)
    def all_sync(self, data: st.DataObject, group: str) -> None:
        known = self.play.coordinator.groups.get(group)
        for member_id in list(known.members) if known is not None else []:
            self.play.sync(self.generation(data, group), member_id, group=group)

    @rule(data=st.data(), group=GROUPS, instance_id=INSTANCES)
    def heartbeat(self, data: st.DataObject, group: str, instance_id: str | None) -> None:
        self.play.heartbeat(self.generation(data, group), self.somebody(data), instance_id, group=group)

    @rule(data=st.data(), group=GROUPS, instances=st.lists(INSTANCES, max_size=2))
    def leave(self, data: st.DataObject, group: str, instances: list[str | None]) -> None:
        who = [(data.draw(st.sampled_from([self.somebody(data), ""])), instance_id) for instance_id in instances]
        self.play.start_leave(*who, group=group)

    @rule(data=st.data(), group=GROUPS, offset=st.integers(0, 9))
    def commit(self, data: st.DataObject, group: str, offset: int) -> None:
        who = data.draw(st.sampled_from(["", self.somebody(data)]))
        self.play.commit(self.generation(data, group), who, group=group, offsets={("t", offset % 4): offset})

    @rule(group=GROUPS, partition=st.integers(0, 3))
    def look(self, group: str, partition: int) -> None:
        self.play.describe(group)
        self.play.listed()
        self.play.fetch(("t", partition), group=group)

    @rule(group=GROUPS)
    def delete(self, group: str) -> None:
        self.play.start_delete(group)

    @rule(group=GROUPS, topic=st.sampled_from(["t", "u"]))
    def delete_offsets(self, group: str, topic: str) -> None:
        rows = (OffsetDeleteRequestPartition(partition_index=0),)
        topics = (OffsetDeleteRequestTopic(name=topic, partitions=rows),)
        self.play.send(OffsetDeleteRequest(group_id=group, topics=topics), 0)

    @rule()
    def delete_topic(self) -> None:
        self.play._perform(self.play.coordinator.topics_deleted(self.play.now, ["t"]))

    @rule(ms=st.sampled_from([0, 1, 999, 1_000, 3_000, 6_000, 29_999, 300_000]))
    def wait(self, ms: int) -> None:
        self.play.wait(ms)

    @rule(group=GROUPS, ms=st.sampled_from([1_000, 60_000]))
    def jump(self, group: str, ms: int) -> None:
        self.play.advance(ms, group)

    @rule(
        group=GROUPS,
        state=st.sampled_from([state for state in ClassicGroupState if state is not ClassicGroupState.DEAD]),
    )
    def freeze(self, group: str, state: ClassicGroupState) -> None:
        result = self.play.coordinator.groups.get(group)
        if result is None or not result.is_frozen:
            self.play.cluster.frozen_states[group] = state
            if result is not None and result.state is state:
                self.play._perform(self.play.coordinator.override(self.play.now, group, overrides.freeze))

    @rule(group=GROUPS)
    def thaw(self, group: str) -> None:
        self.play.cluster.frozen_states.pop(group, None)
        if group in self.play.coordinator.groups:
            self.play._perform(self.play.coordinator.override(self.play.now, group, overrides.thaw))

    @rule(writes=HOWEVER)
    def write(self, writes: Error | None) -> None:
        self.play.writes = writes
        if writes is not None:
            self.play.complete_writes(writes)

    @precondition(lambda self: self.play.coordinator.groups)
    @rule()
    def silence(self) -> None:
        """Long after the last request every call is answered, no group has members, and no timer is set."""
        play = self.play
        play.writes = Error.NONE
        play.complete_writes()
        for group_id in ("g", "h"):
            self.thaw(group_id)
        # long enough for every session to expire, short enough for some offsets to remain
        for _ in range(20):
            play.wait(SILENCE // 20)
        superseded = {fact.call for fact in play.facts_of(Superseded)}
        for sent in play._exchanges.values():
            assert sent.responses or sent.call in superseded
        for group in play.coordinator.groups.values():
            assert (group.state, group.members, group.pending_members) == (ClassicGroupState.EMPTY, {}, {})
            assert [key for _, key in group.timers.pending()] == [OffsetExpiryCheck()]
        assert play.coordinator.store.writes == {}
        assert not play.coordinator.groups or play.coordinator.deadline() is not None

    @invariant()
    def no_call_is_answered_twice(self) -> None:
        assert all(len(sent.responses) <= 1 for sent in self.play._exchanges.values())

    @invariant()
    def what_is_unanswered_is_parked_or_superseded_or_waits_for_a_write(self) -> None:
        parked = [
            call
            for group in self.play.coordinator.groups.values()
            for member in group.members.values()
            for call in (member.parked_join, member.parked_sync)
            if call is not None
        ]
        assert len(parked) == len(set(parked))
        waiting = [call for write in self.play.coordinator.store.writes.values() for call, _ in write.answers]
        superseded = {fact.call for fact in self.play.facts_of(Superseded)}
        unanswered = {sent.call for sent in self.play._exchanges.values() if sent.parked}
        held = [call for group in self.play.coordinator.groups.values() for call, _ in group.held_requests]
        assert {*parked, *held} <= unanswered
        assert unanswered <= {*parked, *waiting, *superseded, *held}

    @invariant()
    def groups_are_sound(self) -> None:
        for name, group in self.play.coordinator.groups.items():
            assert group.id == name
            members_are_alive(group)
            timers_are_wanted(group)

    @invariant()
    def the_deadlines_hold_the_next_deadline_of_every_group(self) -> None:
        deadlines = {group: at for at, group in self.play.coordinator.store.deadlines.pending()}
        groups = self.play.coordinator.groups.items()
        assert deadlines == {
            name: due - group.clock.origin for name, group in groups if (due := group.timers.next_deadline)
        }


def members_are_alive(group: ClassicGroup) -> None:
    match group.state:
        case ClassicGroupState.EMPTY:
            assert not group.members
            assert group.protocol_name is None
        case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.STABLE:
            assert group.members
            assert group.protocol_name is not None
        case ClassicGroupState.PREPARING_REBALANCE:
            assert not group.pending_sync_members
        case ClassicGroupState.DEAD:
            raise AssertionError("a dead group is not in the table")
    assert (group.leader_id in group.members) if group.members else (group.leader_id is None)
    for member in group.members.values():
        assert member.session in group.timers or member.parked_join is not None or member.parked_sync is not None
        assert member.parked_sync is None or group.state is ClassicGroupState.COMPLETING_REBALANCE
        assert member.is_new is False or group.state is ClassicGroupState.PREPARING_REBALANCE


def timers_are_wanted(group: ClassicGroup) -> None:
    keys = [key for _, key in group.timers.pending()]
    phases = [key for key in keys if isinstance(key, InitialDelay | RebalanceTimeout)]
    # a frozen group needs none: its phase ends with the thaw
    wanted = {
        group.state is ClassicGroupState.PREPARING_REBALANCE,
        not group.is_frozen and group.state is ClassicGroupState.PREPARING_REBALANCE,
    }
    assert len(phases) in wanted
    assert OffsetExpiryCheck() in keys
    syncs = [key for key in keys if isinstance(key, PendingSyncExpiry)]
    assert syncs == ([PendingSyncExpiry(group.generation)] if group.pending_sync_members else [])
    pending = {key.member_id for key in keys if isinstance(key, PendingMemberExpiry)}
    assert pending == set(group.pending_members)
    assert group.is_frozen or next(group.timers.pending())[0] >= group.now


TestClients = pytest.mark.slow(Clients.TestCase)
TestClients.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
