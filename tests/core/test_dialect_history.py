"""The differences between releases of one coordinator, on every supported broker."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from builders.requests import CHANGED
from scenes.dialects import OTHER, RANGE_AND_OTHER, On, T, U, by_broker, send_away

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenes.play import Play


def lower_the_limit(play: Play, size_max: int) -> None:
    """Change the limit, as a restart of the broker with another setting would."""
    store = play.coordinator.store
    store.settings = dataclasses.replace(store.settings, group_max_size=size_max)


@by_broker({"2.8": "completed", "3.9 NEW": "waiting"})
def test_kip_389_a_rejection_ends_the_wait_for_the_rejected_member(on: On, seen: str) -> None:
    play = on()
    a, b, c = play.stable_trio()
    lower_the_limit(play, 2)
    joins = [play.join(a), play.join(b)]
    assert play.join(c).error is Error.GROUP_MAX_SIZE_REACHED
    assert {"waiting" if sent.parked else "completed" for sent in joins} == {seen}
    play.wait(30_000)
    assert [sent.response.generation_id for sent in joins] == [4, 4]


@by_broker({"2.8": "waiting", "3.9 OLD": "completed", "3.9 NEW": "waiting"})
def test_kip_389_an_id_that_is_refused_is_forgotten(on: On, seen: str) -> None:
    play = on(group_max_size=2)
    a = play.stable_member()
    b, c = play.new_id(session=6_000), play.new_id(session=6_000)
    joins = [play.join(b), play.join(a)]
    assert play.join(c).error is Error.GROUP_MAX_SIZE_REACHED
    assert {"waiting" if sent.parked else "completed" for sent in joins} == {seen}
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
    joins = {"a": play.join(a), "b": play.join(b), "c": play.join(c)}
    play.wait(30_000)
    assert [name for name, sent in joins.items() if sent.error is Error.GROUP_MAX_SIZE_REACHED] == seen
    assert {sent.response.generation_id for name, sent in joins.items() if name not in seen} == {4}


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
    joins = [play.join(a, rebalance=10_000, session=60_000), play.join(b, rebalance=10_000, session=60_000)]
    play.sync(3, a, {})
    play.sync(3, b)
    waiting = play.join(a, rebalance=10_000, session=60_000)
    assert all(sent.response.generation_id == 3 for sent in joins)
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
