"""The differences between releases: each rule that changed, on every supported broker.

A test lists its expectations by broker, each valid from that broker on. Brokers older than the first entry lack the API
version and are skipped.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from scenes.play import CHANGED, RANGE, SUBSCRIBED_TO_T, Play

from koordinator.emulator.config.settings import RELEASES
from koordinator.emulator.core.dialect import Dialect
from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import GroupMetadataValue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BROKERS: dict[str, dict[str, object]] = {
    "2.4": {"kafka_version": "2.4"},
    "2.8": {"kafka_version": "2.8"},
    "3.9 OLD": {"kafka_version": "3.9"},
    "3.9 NEW": {"kafka_version": "3.9", "group_coordinator_new_enable": True},
    "4.0": {"kafka_version": "4.0"},
    "4.3": {"kafka_version": "4.3"},
}
"""Broker settings by name, in order of release."""

T, U = ("t", 0), ("u", 0)
RANGE_AND_OTHER = (*RANGE, ("roundrobin", SUBSCRIBED_TO_T))
OTHER = (("roundrobin", SUBSCRIBED_TO_T),)
FAILURE = Error.NOT_ENOUGH_REPLICAS
AWAY = [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR]


def by_broker(changes: Mapping[str, object]) -> pytest.MarkDecorator:
    """Parametrize `on`, a factory of plays on a broker, and the expectation `seen`."""
    rows, seen = [], None
    for broker in BROKERS:
        seen = changes.get(broker, seen)
        if rows or broker in changes:
            rows.append(pytest.param(on_broker(broker), seen, id=broker))
    return pytest.mark.parametrize(("on", "seen"), rows)


def old_and_new(old: object, new: object) -> pytest.MarkDecorator:
    """Parametrize for a rule that changed with the group coordinator."""
    return by_broker({"2.4": old, "3.9 NEW": new})


def on_broker(broker: str) -> Callable[..., Play]:
    return lambda **settings: Play(**BROKERS[broker], **settings)


On = Any
"""Creates a play on the broker of the test; its arguments are further settings."""


def test_every_release_has_a_dialect_and_one_has_two() -> None:
    dialects = {broker: on_broker(broker)().coordinator.store.dialect for broker in BROKERS}
    assert dialects["4.3"] == Dialect()
    assert {each.partition(" ")[0] for each in BROKERS} == set(RELEASES)
    assert len(set(dialects.values())) == len(BROKERS)


def test_every_behaviour_differs_somewhere() -> None:
    dialects = [on_broker(broker)().coordinator.store.dialect for broker in BROKERS]
    for each in dataclasses.fields(Dialect):
        assert len({getattr(dialect, each.name) for dialect in dialects}) > 1, each.name


def send_away(play: Play, why: Error) -> None:
    """Make the node stop serving group g."""
    partition = play.coordinator.store.partition_of("g")
    if why is Error.COORDINATOR_LOAD_IN_PROGRESS:
        play.coordinator.store.loading.add(partition)
    else:
        play.coordinator.store.owned.remove(partition)


@old_and_new(Error.REBALANCE_IN_PROGRESS, Error.COORDINATOR_LOAD_IN_PROGRESS)
def test_sync_while_loading(on: On, seen: Error) -> None:
    play = on()
    a = play.stable_member()
    send_away(play, Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert play.sync(1, a).error is seen


@old_and_new(old=True, new=False)
@pytest.mark.parametrize("why", AWAY)
def test_a_join_at_the_wrong_node_echoes_its_id(on: On, *, seen: bool, why: Error) -> None:
    play = on()
    a = play.stable_member()
    send_away(play, why)
    refused = play.join(a).response
    assert (refused.error_code, refused.member_id) == (why, a if seen else "")


@old_and_new(old=False, new=True)
@pytest.mark.parametrize("why", AWAY)
def test_the_session_timeout_is_checked_before_the_coordinator(on: On, *, seen: bool, why: Error) -> None:
    play = on()
    send_away(play, why)
    refused = play.join("ghost", session=1_800_001).response
    assert (refused.error_code, refused.member_id) == (Error.INVALID_SESSION_TIMEOUT if seen else why, "ghost")


@old_and_new(["h"], [])
def test_listing_while_one_partition_is_loaded(on: On, seen: list[str]) -> None:
    play = on()
    play.stable_member()
    play.stable_member(group="h")
    send_away(play, Error.COORDINATOR_LOAD_IN_PROGRESS)
    answer = play.list_groups(version=2)
    assert answer.error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert [group.group_id for group in answer.groups] == seen


@old_and_new(old=0, new=1)
def test_a_group_made_by_a_join_is_written(on: On, seen: int) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    play.join("", version=3)
    records = [record for append in play.appended for record in append.records]
    assert len(records) == seen
    for record in records:
        value = record.value
        assert isinstance(value, GroupMetadataValue)
        assert (value.protocol_type, value.generation, value.protocol, value.leader, value.members) == (
            ("", 0, None, None, ())
        )


@old_and_new("Empty", "Dead")
def test_a_new_group_is_visible_before_it_is_in_the_log(on: On, seen: str) -> None:
    play = on()
    play.writes = None
    x = play.new_id()
    play.commit(group="h")
    assert (play.state(), play.state("h")) == (seen, seen)
    assert play.list_groups(version=2).groups == () if seen == "Dead" else len(play.listed()) == 2
    play.complete_writes()
    assert (play.state(), play.state("h"), len(play.listed())) == ("Empty", "Empty", 2)
    assert play.join(x).parked


@old_and_new("Empty", "Dead")
def test_a_failed_first_commit_removes_the_simple_group(on: On, seen: str) -> None:
    play = on()
    play.writes = FAILURE
    assert play.commit_errors() == [Error.COORDINATOR_NOT_AVAILABLE]
    assert play.state() == seen


@old_and_new(old=False, new=True)
def test_the_last_leave_waits_for_the_log(on: On, *, seen: bool) -> None:
    play = on()
    a, b = play.stable_pair()
    play.writes = None
    assert not play.start_leave(b).parked
    leaving = play.start_leave(a)
    assert leaving.parked is seen
    play.complete_writes(FAILURE)
    assert leaving.response.error_code == (Error.COORDINATOR_NOT_AVAILABLE if seen else Error.NONE)
    assert play.state() == "Empty"


@old_and_new(old=False, new=True)
def test_deleting_a_group_waits_for_the_log(on: On, *, seen: bool) -> None:
    play = on()
    play.commit(offsets={T: 7})
    play.writes = None
    deleting = play.start_delete("g", "unknown")
    assert deleting.parked is seen
    play.complete_writes(FAILURE)
    told = Error.COORDINATOR_NOT_AVAILABLE if seen else Error.NONE
    assert [row.error_code for row in deleting.response.results] == [told, Error.GROUP_ID_NOT_FOUND]
    assert (play.state(), play.offset(*T)) == (("Empty", 7) if seen else ("Dead", -1))


@old_and_new(old=False, new=True)
def test_deleting_offsets_waits_for_the_log(on: On, *, seen: bool) -> None:
    play = on()
    play.commit(offsets={T: 7, U: 8})
    play.writes = FAILURE
    told = (Error.COORDINATOR_NOT_AVAILABLE, []) if seen else (Error.NONE, [Error.NONE])
    assert play.delete_offsets(T) == told
    assert (play.offset(*T), play.offset(*U)) == (7 if seen else -1, 8)


@by_broker({"2.8": False, "3.9 NEW": True})
def test_kip_447_stable_offsets_wait_for_a_commit_that_is_being_written(on: On, *, seen: bool) -> None:
    play = on()
    play.commit(offsets={T: 1, U: 1})
    play.writes = None
    play.commit(offsets={T: 2})
    asked = play.start_fetch("g", topics={"t": (0,), "u": (0,)}, version=7)
    assert asked.parked is seen
    play.complete_writes()
    rows = [(topic.partitions[0].committed_offset, topic.partitions[0].error_code) for topic in asked.response.topics]
    assert rows == [(2, Error.NONE) if seen else (-1, Error.UNSTABLE_OFFSET_COMMIT), (1, Error.NONE)]
    assert play.fetch(T, stable=True) == {T: (2, -1, "", 0)}


@pytest.mark.parametrize(
    ("failure", "old", "new"),
    [
        (Error.REQUEST_TIMED_OUT, Error.REBALANCE_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE),
        (
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ),
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
        (Error.MESSAGE_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR, Error.UNKNOWN_SERVER_ERROR),
        (Error.POLICY_VIOLATION, Error.POLICY_VIOLATION, Error.POLICY_VIOLATION),
    ],
)
@old_and_new("old", "new")
def test_the_error_when_an_assignment_cannot_be_written(
    on: On, seen: str, failure: Error, old: Error, new: Error
) -> None:
    play = on()
    a, _ = play.unsynced_pair()
    play.writes = failure
    assert play.sync(2, a).error is {"old": old, "new": new}[seen]


@pytest.mark.parametrize(
    ("failure", "old", "new"),
    [
        (Error.REQUEST_TIMED_OUT, Error.REQUEST_TIMED_OUT, Error.COORDINATOR_NOT_AVAILABLE),
        (
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ),
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
        (Error.MESSAGE_TOO_LARGE, Error.INVALID_COMMIT_OFFSET_SIZE, Error.UNKNOWN_SERVER_ERROR),
        (Error.RECORD_LIST_TOO_LARGE, Error.INVALID_COMMIT_OFFSET_SIZE, Error.UNKNOWN_SERVER_ERROR),
        (Error.INVALID_FETCH_SIZE, Error.INVALID_COMMIT_OFFSET_SIZE, Error.UNKNOWN_SERVER_ERROR),
        (Error.POLICY_VIOLATION, Error.POLICY_VIOLATION, Error.POLICY_VIOLATION),
    ],
)
@old_and_new("old", "new")
def test_the_error_when_offsets_cannot_be_written(on: On, seen: str, failure: Error, old: Error, new: Error) -> None:
    play = on()
    play.writes = failure
    assert play.commit_errors() == [{"old": old, "new": new}[seen]]


@old_and_new(old=1, new=2)
def test_the_removal_of_a_simple_group_is_written(on: On, seen: int) -> None:
    play = on()
    play.commit()
    play.delete("g")
    assert [record.value for record in play.appended[-1].records] == [None] * seen


@old_and_new(old=0, new=1)
def test_the_removal_of_a_group_at_generation_0_is_written(on: On, seen: int) -> None:
    play = on(offsets_retention_check_interval_ms=60_000)
    play.new_id(session=1_800_000)
    written = len(play.appended)
    play.wait(60_000)
    assert play.state() == "Dead"
    assert len(play.appended) - written == seen


@old_and_new(Error.NONE, Error.UNKNOWN_MEMBER_ID)
def test_a_sync_to_a_stable_group_restarts_the_session(on: On, seen: Error) -> None:
    play = on()
    a = play.stable_member(session=6_000)
    play.wait(4_000)
    assert play.sync(1, a).response.assignment == b"a1"
    play.wait(4_000)
    assert play.heartbeat(1, a) is seen


@by_broker({"2.8": Error.INCONSISTENT_GROUP_PROTOCOL, "3.9 NEW": Error.REBALANCE_IN_PROGRESS})
def test_kip_559_a_sync_that_names_a_protocol_before_the_group_has_one(on: On, seen: Error) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    x = play.new_id()
    play.join(x)
    assert play.sync(0, x, version=5, protocol_type="consumer", protocol_name="range").error is seen
    assert play.sync(0, x).error is Error.REBALANCE_IN_PROGRESS


@by_broker({"3.9 OLD": Error.ILLEGAL_GENERATION, "3.9 NEW": Error.GROUP_ID_NOT_FOUND})
def test_kip_848_a_members_commit_to_a_group_that_is_not_there(on: On, seen: Error) -> None:
    play = on()
    assert play.commit_errors(0, "ghost", version=9) == [seen]
    assert play.commit_errors(0, "ghost", version=8) == [Error.ILLEGAL_GENERATION]
    assert play.state() == "Dead"


@old_and_new(Error.REBALANCE_IN_PROGRESS, Error.NONE)
def test_a_batch_of_leaves_is_evaluated_after_each_member(on: On, seen: Error) -> None:
    play = on()
    a, b, c = play.stable_trio()
    leader, follower = play.join(a), play.join(c)
    assert leader.parked
    assert play.leave_errors(b, c) == [Error.NONE, Error.NONE]
    assert leader.response.generation_id == 4
    assert follower.error is (Error.UNKNOWN_MEMBER_ID if seen is Error.NONE else Error.NONE)
    assert play.heartbeat(4, a) is seen


@old_and_new("as it was", "PreparingRebalance")
@pytest.mark.parametrize("state", ["Stable", "CompletingRebalance"])
def test_kip_394_a_pending_member_leaves(on: On, seen: str, state: str) -> None:
    play = on()
    play.stable_member() if state == "Stable" else play.unsynced_pair()
    assert play.leave_errors(play.new_id()) == [Error.NONE]
    assert play.state() == (state if seen == "as it was" else seen)


@by_broker({"2.4": 2})
def test_kip_394_a_join_phase_ends_when_the_last_pending_member_leaves(on: On, seen: int) -> None:
    play = on()
    a = play.stable_member()
    x = play.new_id()
    waiting = play.join(a)
    assert waiting.parked
    assert play.leave_errors(x) == [Error.NONE]
    assert waiting.response.generation_id == seen


@old_and_new(old=3_000, new=6_000)
def test_kip_134_the_initial_delay_of_a_later_join_phase_is_extended(on: On, seen: int) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    a = play.new_id()
    play.join(a)
    play.wait(3_000)
    play.leave(a)
    asks = [play.join("", version=3)]
    play.wait(1_000)
    asks.append(play.join("", version=3))
    assert seconds_until_answered(play, asks) == seen // 1_000 - 1
    assert {asked.response.generation_id for asked in asks} == {3}


@by_broker({"2.4": 5})
def test_kip_134_the_first_initial_delay_of_a_group_is_extended(on: On, seen: int) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    asks = [play.join("", version=3)]
    play.wait(1_000)
    asks.append(play.join("", version=3))
    assert seconds_until_answered(play, asks) == seen


@old_and_new(old=3, new=1)
def test_kip_134_the_initial_delay_ends_with_the_last_id_that_is_waited_for(on: On, seen: int) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    play.new_id(session=1_000)
    assert seconds_until_answered(play, [play.join("", version=3)]) == seen


def seconds_until_answered(play: Play, asks: list[Any]) -> int:
    """Return how long all of them are parked, in seconds."""
    for seconds in range(60):
        if not any(asked.parked for asked in asks):
            return seconds
        play.wait(1_000)
    raise AssertionError("not answered within a minute")


@pytest.mark.parametrize(
    ("one", "other", "old", "new"),
    [
        ("range", "roundrobin", "roundrobin", "range"),
        ("range", "sticky", "range", "sticky"),
        ("range", "cooperative-sticky", "cooperative-sticky", "range"),
        ("roundrobin", "sticky", "roundrobin", "sticky"),
        ("roundrobin", "cooperative-sticky", "cooperative-sticky", "roundrobin"),
        ("sticky", "cooperative-sticky", "cooperative-sticky", "sticky"),
    ],
)
@pytest.mark.parametrize("leader_likes", ["one", "other"])
@old_and_new("old", "new")
def test_a_tie_of_the_vote_is_broken_by_the_order_of_a_hash_table(
    on: On, seen: str, leader_likes: str, one: str, other: str, old: str, new: str
) -> None:
    """The winner depends on the names alone, not on the voters or the time."""
    play = on()
    protocols = [((one, b""), (other, b"")), ((other, b""), (one, b""))]
    leading, following = protocols if leader_likes == "one" else protocols[::-1]
    p = play.join("", "i1", protocols=leading)
    play.settle()
    second = play.join("", "i2", protocols=following)
    first = play.join(p.response.member_id, "i1", protocols=leading)
    chosen = {"old": old, "new": new}[seen]
    assert first.response.protocol_name == second.response.protocol_name == chosen


@old_and_new({b""}, {b"a2", b"b2"})
def test_the_assignments_of_a_group_that_rebalances_are_shown(on: On, seen: set[bytes]) -> None:
    play = on()
    _, b = play.stable_pair()
    assert {member.member_assignment for member in play.describe().members} == {b"a2", b"b2"}
    play.join(b, protocols=CHANGED)
    assert {member.member_assignment for member in play.describe().members} == seen


@old_and_new("Dead", "Empty")
def test_an_empty_group_is_removed_with_its_last_offset(on: On, seen: str) -> None:
    play = on()
    play.commit(offsets={T: 1, U: 2})
    assert play.delete_offsets(T) == (Error.NONE, [Error.NONE])
    assert play.state() == "Empty"
    assert play.delete_offsets(U) == (Error.NONE, [Error.NONE])
    assert play.state() == seen


@old_and_new("Dead", "Empty")
def test_deleting_a_topic_removes_empty_groups_without_offsets(on: On, seen: str) -> None:
    play = on()
    play.emptied()
    play.commit(offsets={T: 1, U: 2}, group="two")
    play.stable_member(group="members")
    play._perform(play.coordinator.topics_deleted(play.now, ["t"]))
    assert (play.state(), play.state("two"), play.state("members")) == (seen, "Empty", "Stable")
    assert (play.offset(*T, group="two"), play.offset(*U, group="two")) == (-1, 2)


def lower_the_limit(play: Play, size_max: int) -> None:
    """Change the limit, as a restart of the broker with another setting would."""
    store = play.coordinator.store
    store.settings = dataclasses.replace(store.settings, group_max_size=size_max)


@by_broker({"2.8": "completed", "3.9 NEW": "waiting"})
def test_kip_389_a_rejection_ends_the_wait_for_the_rejected_member(on: On, seen: str) -> None:
    play = on()
    a, b, c = play.stable_trio()
    lower_the_limit(play, 2)
    asks = [play.join(a), play.join(b)]
    assert play.join(c).error is Error.GROUP_MAX_SIZE_REACHED
    assert {"waiting" if asked.parked else "completed" for asked in asks} == {seen}
    play.wait(30_000)
    assert [asked.response.generation_id for asked in asks] == [4, 4]


@by_broker({"2.8": "waiting", "3.9 OLD": "completed", "3.9 NEW": "waiting"})
def test_kip_389_an_id_that_is_refused_is_forgotten(on: On, seen: str) -> None:
    play = on(group_max_size=2)
    a = play.stable_member()
    b, c = play.new_id(session=6_000), play.new_id(session=6_000)
    asks = [play.join(b), play.join(a)]
    assert play.join(c).error is Error.GROUP_MAX_SIZE_REACHED
    assert {"waiting" if asked.parked else "completed" for asked in asks} == {seen}
    # while it is pending, its rejection is repeated
    known = play.coordinator.store.dialect.rejection_removes_pending_id
    assert (c not in play.group().pending_members) is known


@by_broker({"2.4": Error.GROUP_MAX_SIZE_REACHED, "2.8": Error.MEMBER_ID_REQUIRED})
def test_kafka_9885_parked_joins_count_during_a_join_phase(on: On, seen: Error) -> None:
    play = on(group_max_size=2)
    a, _ = play.stable_pair()
    play.join(a)
    assert play.join("").error is seen


@by_broker({"2.4": Error.NONE, "2.8": Error.GROUP_MAX_SIZE_REACHED})
def test_kafka_9885_an_id_handed_out_is_counted_when_it_joins(on: On, seen: Error) -> None:
    play = on(group_max_size=2)
    a = play.stable_member()
    b, c = play.new_id(), play.new_id()
    play.join(a)
    play.join(b)
    assert play.join(c).error is seen


@by_broker({"2.4": ["a"], "2.8": ["c"]})
def test_kafka_9885_of_too_many_the_last_to_rejoin_is_shed(on: On, seen: list[str]) -> None:
    play = on()
    a, b, c = play.stable_trio()
    lower_the_limit(play, 2)
    asks = {"a": play.join(a), "b": play.join(b), "c": play.join(c)}
    play.wait(30_000)
    assert [name for name, asked in asks.items() if asked.error is Error.GROUP_MAX_SIZE_REACHED] == seen
    assert {asked.response.generation_id for name, asked in asks.items() if name not in seen} == {4}


@by_broker({"2.4": Error.GROUP_MAX_SIZE_REACHED})
def test_kip_389_a_group_that_is_full_is_full(on: On, seen: Error) -> None:
    play = on(group_max_size=2)
    p, q = play.static_pair()
    assert play.join("").error is seen
    assert play.join("", "i1").error is seen
    assert play.heartbeat(2, p, "i1") is play.heartbeat(2, q, "i2") is Error.NONE


@by_broker({"2.4": 328, "4.0": 3400})
def test_kip_430_authorized_operations_of_a_group(on: On, seen: int) -> None:
    play = on()
    play.stable_member()
    assert play.describe(operations=True).authorized_operations == seen


@by_broker({"2.4": 0, "2.8": -(2**31)})
def test_kip_430_operations_are_omitted_unless_requested(on: On, seen: int) -> None:
    play = on()
    assert play.describe().authorized_operations == seen
    assert play.describe(version=2).authorized_operations == -(2**31)
    send_away(play, Error.NOT_COORDINATOR)
    assert play.describe(operations=True).authorized_operations == seen


@by_broker({"2.4": 2, "2.8": 1})
def test_kip_496_how_often_a_topic_is_named_in_the_answer(on: On, seen: int) -> None:
    play = on()
    play.commit(offsets={T: 1, ("t", 1): 2, U: 3})
    _, errors = play.delete_offsets(T, ("t", 1), U)
    assert errors == [Error.NONE] * (2 * seen + 1)


@by_broker({"2.8": [], "3.9 OLD": ["g"]})
def test_kip_518_states_to_be_listed_are_spelled_anyhow(on: On, seen: list[str]) -> None:
    play = on()
    play.stable_member()
    assert play.listed(["stable"]) == seen
    assert play.listed(["Stable"]) == ["g"]


@by_broker({"2.4": Error.UNKNOWN_MEMBER_ID, "3.9 OLD": Error.NONE})
@pytest.mark.parametrize("instance_id", [None, "i1"])
def test_kafka_14009_a_rejoin_changes_the_timeouts(on: On, seen: Error, instance_id: str | None) -> None:
    play = on()
    member = play.stable_member() if instance_id is None else play.static_member()
    again = play.join("" if instance_id else member, instance_id, session=20_000, rebalance=60_000).response
    play.sync(again.generation_id, again.member_id, {}, instance_id=instance_id)
    play.heartbeat(again.generation_id, again.member_id, instance_id)
    play.wait(15_000)
    assert play.heartbeat(again.generation_id, again.member_id, instance_id) is seen


@by_broker({"2.4": 4, "3.9 OLD": 9})
def test_kafka_14009_a_rejoin_changes_how_long_is_waited_for_others(on: On, seen: int) -> None:
    play = on()
    a, b = play.stable_pair(rebalance=5_000, session=60_000)
    asks = [play.join(a, rebalance=10_000, session=60_000), play.join(b, rebalance=10_000, session=60_000)]
    play.sync(3, a, {})
    play.sync(3, b)
    waiting = play.join(a, rebalance=10_000, session=60_000)
    assert all(asked.response.generation_id == 3 for asked in asks)
    play.wait(seen * 1_000)
    assert waiting.parked
    play.wait(1_000)
    assert waiting.response.generation_id == 4


INSTANCE_NOBODY_HAS: dict[str, Callable[[Play, str], Error]] = {
    "Heartbeat": lambda play, a: play.heartbeat(1, a, "i9"),
    "SyncGroup": lambda play, a: play.sync(1, a, instance_id="i9").error,
    "OffsetCommit": lambda play, a: Error(play.commit_errors(1, a, "i9")[0]),
    "LeaveGroup": lambda play, a: Error(play.leave_errors((a, "i9"))[0]),
}


@by_broker({"2.4": Error.NONE, "3.9 OLD": Error.UNKNOWN_MEMBER_ID})
@pytest.mark.parametrize("api", INSTANCE_NOBODY_HAS)
def test_kip_345_an_unknown_instance_id(on: On, seen: Error, api: str) -> None:
    play = on()
    a = play.stable_member()
    assert play.join(a, "i9").error is Error.UNKNOWN_MEMBER_ID
    assert INSTANCE_NOBODY_HAS[api](play, a) is seen
    assert INSTANCE_NOBODY_HAS[api](play, "ghost") is Error.UNKNOWN_MEMBER_ID


@by_broker({"2.4": Error.FENCED_INSTANCE_ID})
def test_kip_345_a_replaced_member_is_fenced(on: On, seen: Error) -> None:
    play = on()
    p = play.static_member()
    play.join("", "i1")
    assert play.heartbeat(99, p, "i1") is play.sync(99, p, instance_id="i1").error is seen
    assert play.commit_errors(99, p, "i1") == play.leave_errors((p, "i1")) == [seen]


@by_broker({"2.4": Error.NONE, "2.8": Error.REBALANCE_IN_PROGRESS})
def test_kafka_12890_a_member_without_a_sync_is_removed(on: On, seen: Error) -> None:
    play = on()
    a, b = play.unsynced_pair(rebalance=5_000, session=60_000)
    play.sync(2, a, {a: b"a", b: b"b"})
    play.wait(5_000)
    assert play.heartbeat(2, a) is seen
    assert play.heartbeat(2, b) is (Error.NONE if seen is Error.NONE else Error.UNKNOWN_MEMBER_ID)


@by_broker({"2.4": -1, "2.8": 7})
def test_kafka_13636_offsets_of_a_group_that_rebalances_do_not_expire(on: On, seen: int) -> None:
    play = on(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
    a, b = play.stable_pair(rebalance=300_000, session=300_000)
    play.commit(2, a, offsets={T: 6, U: 7})
    play.join(b, protocols=CHANGED, rebalance=300_000, session=300_000)
    play.wait(80_000)
    assert play.state() == "PreparingRebalance"
    assert (play.offset(*T), play.offset(*U)) == (6, seen)


@by_broker({"2.4": Error.REBALANCE_IN_PROGRESS, "2.8": Error.NONE})
def test_kafka_10134_a_heartbeat_before_the_sync_is_fine(on: On, seen: Error) -> None:
    play = on()
    a, b = play.unsynced_pair(session=6_000)
    assert play.heartbeat(2, a) is play.heartbeat(2, b) is seen
    assert play.heartbeat(1, a) is Error.ILLEGAL_GENERATION


@by_broker({"2.4": Error.UNKNOWN_MEMBER_ID, "2.8": Error.NONE})
def test_kafka_10134_a_heartbeat_before_the_sync_is_a_sign_of_life(on: On, seen: Error) -> None:
    play = on()
    a, _ = play.unsynced_pair(session=6_000)
    play.wait(4_000)
    play.heartbeat(2, a)
    play.wait(4_000)
    assert play.heartbeat(2, a) is (seen if seen is not Error.NONE else Error.REBALANCE_IN_PROGRESS)


@by_broker({"2.4": 0, "2.8": 1})
def test_kafka_10284_the_new_id_of_a_static_member_is_written(on: On, seen: int) -> None:
    play = on()
    p = play.static_member()
    written = len(play.appended)
    back = play.join("", "i1").response
    assert (back.error_code, back.generation_id, back.leader, back.members) == (Error.NONE, 1, p, ())
    assert len(play.appended) - written == seen
    assert play.sync(1, back.member_id, instance_id="i1").response.assignment == b"p1"


@by_broker({"2.4": (1, "range"), "2.8": (2, "roundrobin")})
def test_kafka_10284_the_protocols_of_a_returning_static_member_are_compared(on: On, seen: tuple[int, str]) -> None:
    play = on()
    play.static_member(protocols=RANGE_AND_OTHER)
    back = play.join("", "i1", protocols=OTHER).response
    assert (back.generation_id, back.protocol_name) == seen


@by_broker({"2.4": False, "2.8": True})
def test_kafka_9801_a_static_member_that_is_back_before_the_sync_starts_a_rebalance(on: On, *, seen: bool) -> None:
    play = on()
    p, q = play.static_pair(synced=False)
    waiting = play.sync(2, q, instance_id="i2")
    back = play.join("", "i2")
    assert waiting.error is Error.FENCED_INSTANCE_ID
    assert back.parked is seen
    assert play.state() == ("PreparingRebalance" if seen else "CompletingRebalance")
    if not seen:
        assert (back.response.generation_id, back.response.leader, back.response.members) == (2, p, ())
        play.sync(2, p, {p: b"p", q: b"for the id that is gone"}, instance_id="i1")
        assert play.sync(2, back.response.member_id, instance_id="i2").response.assignment == b""


@by_broker({"2.4": "waiting", "2.8": "removed", "3.9 NEW": "waiting"})
def test_kip_345_a_static_member_that_is_replaced_before_it_ever_joined(on: On, seen: str) -> None:
    play = on()
    a = play.stable_member()
    first = play.join("", "i1", session=6_000)
    play.wait(2_000)
    second = play.join("", "i1", session=6_000)
    assert first.error is Error.FENCED_INSTANCE_ID
    assert play.keep_alive(6_000, (1, a)) is Error.REBALANCE_IN_PROGRESS
    if seen == "removed":
        assert (second.error, second.response.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    else:
        assert second.parked
        assert play.join(a).response.generation_id == second.response.generation_id == 2


@by_broker({"2.4": "CompletingRebalance", "2.8": "Empty"})
def test_kafka_9752_the_session_of_a_new_member_begins_with_its_first_join(on: On, seen: str) -> None:
    play = on()
    a = play.new_id(session=6_000)
    joining = play.join(a, session=6_000)
    play.settle()
    assert joining.response.generation_id == 1
    play.wait(20_000)
    assert play.state() == seen
    if seen != "Empty":
        # after its first request the session is watched
        play.sync(1, a, {a: b"a"})
        play.wait(6_000)
        assert play.state() == "Empty"
