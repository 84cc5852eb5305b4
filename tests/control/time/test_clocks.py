"""Advances of a group's clock: the timers that fire, the sessions that are kept, and invalid calls."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from brokers.cluster import FORMING_MS, GROUP, SESSION_MS, joining, syncing
from brokers.group_broker import GroupBroker
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.emulator.control.results import Timer
from koordinator.emulator.control.time.clock_advance import TimerLoop
from koordinator.emulator.core.timers import SessionExpiry
from koordinator.wire.errors import Error

NODE = 2
DAY_MS = 86_400_000
REBALANCE_MS = 30_000


@pytest.fixture
def here() -> GroupBroker:
    return GroupBroker()


def test_members_that_are_connected_and_heart_beating_live_through_a_week(here: GroupBroker) -> None:
    here.form("a", "b")
    here.commit(here.node, 1, here.group.static_members["a"])
    assert here.advance("7d") == []
    assert sorted(here.group.static_members) == ["a", "b"]
    here.wait(SESSION_MS - 1)
    assert here.group.members
    here.wait(1)
    assert not here.group.members


def test_a_disconnected_member_expires_in_order(here: GroupBroker) -> None:
    a, b = here.form("a", "b")
    here.wait(1_000)
    here.heartbeat(here.node, a)
    here.disconnect_all()
    first, second = here.run(here.clocks.advance(here.now, group=GROUP, by="60s"))
    assert (first.kind, first.member_id, first.instance_id, first.generation) == ("session", b, "b", 1)
    assert (second.member_id, second.deadline_ms - here.now) == (a, SESSION_MS)


def test_a_connected_member_silent_in_real_time_expires(here: GroupBroker) -> None:
    here.form("a")
    here.clocks.set_mode(here.now, group=GROUP, mode="manual")
    here.wait(SESSION_MS)
    assert here.group.members
    assert here.advance(10) == [("session", "a")]


def test_a_named_victim_expires_and_the_others_live_on(here: GroupBroker) -> None:
    here.form("a", "b")
    assert here.advance("7d", expire=["b"]) == [("session", "b")]
    assert list(here.group.static_members) == ["a"]
    # to the client of a no time has passed, so it could not join again
    assert here.group.state.value == "PreparingRebalance"


def test_without_keep_alive_all_members_expire(here: GroupBroker) -> None:
    here.form("a", "b")
    assert sorted(here.advance(60, keep_alive="none")) == [("session", "a"), ("session", "b")]


def test_a_wait_that_had_begun_before_is_over_and_one_that_begins_on_the_way_is_not(here: GroupBroker) -> None:
    (a, _) = here.form("a", "b")
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a", a), 5))
    assert here.group.state.value == "PreparingRebalance"
    # b beats, but does not join: KIP-62
    assert here.heartbeat(here.node, here.group.static_members["b"]) is Error.REBALANCE_IN_PROGRESS
    assert here.advance("5m") == [("join", None)]
    assert here.group.generation == 2
    assert here.group.state.value == "CompletingRebalance"


def test_expire_session_ends_one_session_only(here: GroupBroker) -> None:
    (a, _) = here.form("a", "b")
    here.disconnect_all()
    assert here.control("expire_session", member="b") == [("session", "b")]
    assert list(here.group.static_members) == ["a"]
    assert a in here.group.members


@pytest.mark.parametrize("name", ["a", "member id"])
def test_a_member_is_named_by_instance_or_member_id(here: GroupBroker, name: str) -> None:
    (a, _) = here.form("a", "b")
    assert here.control("expire_session", member=a if name == "member id" else name) == [("session", "a")]


def test_expire_join_phase_keeps_all_sessions(here: GroupBroker) -> None:
    dynamic = joining()
    ids = []
    for _ in range(2):
        peer = here.connect(here.node)
        ids.append(here.ask(peer, dynamic, 5).member_id)
        here.send(peer, here.request(peer, joining(None, ids[-1]), 5))
    here.wait(2 * FORMING_MS)
    peer = here.connect(here.node)
    for member_id in ids:
        here.request_at(here.node, syncing(member_id), 3)
    here.send(peer, here.request(peer, joining(None, ids[0]), 5))
    assert here.group.state.value == "PreparingRebalance"
    here.disconnect_all()
    assert here.control("expire_join_phase") == [("join", None)]
    assert list(here.group.members) == [ids[0]]


def test_an_initial_delay_is_a_join_barrier_however_often_it_is_extended() -> None:
    here = GroupBroker(group_initial_rebalance_delay_ms=3_000)
    for instance in ("a", "b"):
        peer = here.connect(here.node)
        here.send(peer, here.request(peer, joining(instance), 5))
    assert here.control("expire_join_phase") == [("initial_delay", None), ("initial_delay", None)]
    assert here.group.generation == 1


def test_a_member_that_does_not_sync_is_removed(here: GroupBroker) -> None:
    here.formed(here.node, "a", "b")
    assert here.control("expire_sync") == [("sync", None)]
    assert not here.group.members


def test_expire_pending_removes_a_pending_member_id(here: GroupBroker) -> None:
    handed_out = here.request_at(here.node, joining(), 5).member_id
    assert here.run(here.clocks.expire_pending(here.now, group=GROUP, member=handed_out))[0].member_id == handed_out
    assert not here.group.pending_members


def test_the_offsets_of_an_empty_group_are_made_to_expire(here: GroupBroker) -> None:
    here.commit(here.node, 5)
    assert here.control("expire_offsets") == [("offsets", None)]
    assert GROUP not in here.runtime.groups()


def test_timers_are_listed_by_deadline(here: GroupBroker) -> None:
    (a,) = here.form("a")
    session, check = here.clocks.timers(here.now, group=GROUP)
    assert session == Timer("session", a, "a", here.now + SESSION_MS, SESSION_MS, 1)
    assert check.kind == "offsets"
    assert here.clocks.timers(here.now, group="no such group") == []


def test_the_trace_has_the_origin_and_range_of_a_clock_advance(here: GroupBroker) -> None:
    here.form("a")
    start = here.now
    here.advance("1m", keep_alive="none")
    here.clocks.set_mode(here.now, group=GROUP, mode="manual")
    moves = [line for line in here.trace.events(group=GROUP) if line["kind"] == "clock"]
    assert [(line["cause"], line["mode"], line["body"], line["group_ts_us"]) for line in moves] == [
        ("advance", "real", {"from_ms": start, "to_ms": start + 60_000}, start * 1000),
        ("set_clock", "manual", {"from_ms": start + 60_000, "to_ms": start + 60_000}, (start + 60_000) * 1000),
    ]


def test_a_week_of_checks_that_find_nothing_is_no_event(here: GroupBroker) -> None:
    here.form("a")
    before = here.trace.last_seq
    here.advance("7d")
    assert [line["kind"] for line in here.trace.events(before)] == ["clock"]


def test_an_endless_instant_is_aborted(here: GroupBroker) -> None:
    class Endless:
        """A ticker that always has something to do."""

        def deadline(self) -> int:
            return here.now

        def tick(self, now: int) -> list[Any]:
            assert now == here.now
            return []

        def group_deadline(self, group_id: str) -> None:
            assert group_id == GROUP

        def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
            assert (now, group_id, shift_ms) == (here.now, GROUP, 0)

    here.form("a")
    here.runtime.tickers[Endless()] = None
    with pytest.raises(TimerLoop, match=r"group 'g': actions at .* ms repeat without end"):
        here.run(here.clocks.advance(here.now, group=GROUP, by=1))


def test_a_timer_that_fires_again_and_again_at_one_instant_is_given_up(here: GroupBroker) -> None:
    class Rearming:
        """A ticker that lets a member's session end again at once, whenever it has ended."""

        def deadline(self) -> None:
            return None

        def tick(self, now: int) -> list[Any]:
            raise AssertionError(now)

        def group_deadline(self, group_id: str) -> int:
            assert group_id == GROUP
            here.group.timers.set(SessionExpiry("nobody"), here.group.now)
            return int(here.group.now)

        def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
            assert (now, group_id, shift_ms) == (here.now, GROUP, 0)

    here.form("a")
    here.runtime.tickers[Rearming()] = None
    with pytest.raises(TimerLoop, match=r"SessionExpiry.* has fired 100 times at"):
        here.run(here.clocks.advance(here.now, group=GROUP, by=0))


@pytest.mark.slow
@settings(max_examples=40)
@given(
    mode=st.sampled_from(["real", "manual"]),
    cuts=st.lists(st.integers(0, 3 * DAY_MS), max_size=6),
    offset=st.integers(0, 2 * SESSION_MS),
)
def test_an_advance_in_any_number_of_pieces_gives_the_same_facts(mode: str, cuts: list[int], offset: int) -> None:
    def told(pieces: list[int]) -> list[tuple[object, ...]]:
        here = GroupBroker(offsets_retention_minutes=600)
        (a, _) = here.form("a", "b")
        here.commit(here.node, 1, a)
        here.clocks.set_mode(here.now, group=GROUP, mode=mode)
        here.advance(offset / 1000, keep_alive="none")
        for piece in pieces:
            here.advance(f"{piece}ms", keep_alive="none")
        return here.facts()

    ends = [*sorted(cuts), 3 * DAY_MS]
    whole = told([3 * DAY_MS])
    assert whole[-1][3] == "Dead"
    assert told([after - before for before, after in pairwise([0, *ends])]) == whole


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_an_advance_never_expires_connected_members_with_heartbeats(data: st.DataObject) -> None:
    here = GroupBroker()
    names = ["a", "b", "c"]
    ids = dict(zip(names, here.form(*names), strict=True))
    for _ in range(data.draw(st.integers(1, 5))):
        here.wait(data.draw(st.integers(0, SESSION_MS - 1)))
        for member_id in [each for each in ids.values() if each in here.group.members]:
            assert here.heartbeat(here.node, member_id, here.group.generation) in {
                Error.NONE,
                Error.REBALANCE_IN_PROGRESS,
            }
        victims = data.draw(st.lists(st.sampled_from(sorted(here.group.static_members)), max_size=1))
        ms = data.draw(st.integers(SESSION_MS, DAY_MS))
        fired = here.advance(f"{ms}ms", expire=victims)
        assert fired == [("session", victim) for victim in victims]
        if victims:
            break


class TestBadInputOfClocks:
    """Nothing has changed then."""

    @pytest.fixture(autouse=True)
    def _nothing_changes(self, here: GroupBroker) -> Any:
        here.form("a", "b")
        here.wait(500)
        before = here.trace.events(), here.clocks.timers(here.now, group=GROUP)
        yield
        assert (here.trace.events(), here.clocks.timers(here.now, group=GROUP)) == before

    @pytest.mark.parametrize(
        ("lever", "arguments", "said"),
        [
            ("advance", {"by": -1}, "the duration -1 is negative"),
            ("advance", {"by": "-7d"}, "the duration '-7d' is negative"),
            ("advance", {"by": "7 days"}, "'7 days' is not a duration: use seconds as a number, or text such as '7d'"),
            ("advance", {"by": float("nan")}, "nan is not a duration"),
            ("advance", {"by": True}, "True is not a duration"),
            ("advance", {"by": "400000d"}, "longer than 1000 years"),
            ("advance", {"by": 1, "keep_alive": "all"}, "keep_alive='all': must be 'connected' or 'none'"),
            ("advance", {"by": 60, "expire": ["x"]}, "has no member 'x'; there are 'a', 'b'"),
            ("advance", {"by": 60, "expire": ["a"], "keep_alive": "none"}, "which keeps no session; leave it out"),
            ("advance", {"by": 1, "expire": ["a"]}, "the session of 'a' ends 8500 ms later; advance further"),
            ("expire_session", {"member": "aa"}, "has no member 'aa'; there are 'a', 'b'; did you mean 'a'"),
            ("expire_join_phase", {}, "is Stable: it has no join phase to expire"),
            ("expire_sync", {}, "is Stable and awaits no SyncGroup"),
            ("expire_pending", {"member": "a"}, "group 'g' has no pending member id for 'a'; there is none"),
            ("expire_offsets", {}, "which is Stable, can expire: there are none"),
            ("set_mode", {"mode": "off"}, "clock 'off': must be real, manual or auto"),
        ],
    )
    def test_invalid_values_are_refused(
        self, here: GroupBroker, lever: str, arguments: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(ValueError, match=said):
            here.control(lever, **arguments)

    def test_a_group_that_is_not_there_has_no_session_to_end(self, here: GroupBroker) -> None:
        with pytest.raises(ValueError, match="there is no group 'h'; there is 'g'"):
            here.run(here.clocks.expire_session(here.now, group="h", member="a"))


def test_a_member_that_waits_for_an_answer_has_no_session_that_could_end(here: GroupBroker) -> None:
    (a, _) = here.form("a", "b")
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a", a), 5))
    with pytest.raises(ValueError, match=r"the JoinGroup of member .* is parked"):
        here.control("expire_session", member="a")


def test_a_name_that_several_have_is_refused(here: GroupBroker) -> None:
    here.form("a", "b")
    (client_id,) = {member.client_id for member in here.group.members.values()}
    assert client_id == "c"
    with pytest.raises(ValueError, match="names several members of group 'g': use one of 'a', 'b'"):
        here.control("expire_session", member=client_id)


def test_while_its_coordinator_is_paused_a_clock_is_not_moved(here: GroupBroker) -> None:
    here.do(here.runtime.pause_node, here.node)
    with pytest.raises(ValueError, match="which coordinates group 'g', is paused: resume it first"):
        here.advance(1)
