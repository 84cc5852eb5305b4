"""The time of a group by its handle, with puppets: these live in the group's own time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from koordinator import Simulation
from koordinator.handles.checks import GroupTimeout
from koordinator.handles.clocks import Fired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.handles.cluster import Cluster
    from koordinator.handles.group import Group

SESSION_MS = 6_000


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Simulation(topics={"t": 100}) as cluster:
        yield cluster


def stable(cluster: Cluster, *names: str, **arguments: object) -> Group:
    """A stable group of healthy puppets with these names."""
    group = cluster.group("svc")
    for name in names:
        group.create_puppet(name, topics=["t"], **arguments).join()  # type: ignore[arg-type]
    return group.wait_stable(members=len(names))


def beats(group: Group, since: int = 0) -> int:
    events = group.events()[since:]
    return sum(line["kind"] == "request" and line["api"] == "Heartbeat" for line in events)


@pytest.mark.slow
def test_a_week_of_fifty_puppets_is_not_a_week_of_their_heartbeats(cluster: Cluster) -> None:
    group = stable(cluster, *(f"p{number}" for number in range(50)))
    before, start = len(group.events()), group.now_ms
    assert group.advance("7d") == []
    assert (group.now_ms - start, len(group.members)) == (7 * 86_400_000, 50)
    assert beats(group, before) <= 100
    # and they live on as before
    assert group.advance("1m", keep_alive="none") == []


def test_without_keep_alive_puppets_survive_by_their_heartbeats(cluster: Cluster) -> None:
    group = stable(cluster, "a", "b")
    before = len(group.events())
    assert group.advance("1m", keep_alive="none") == []
    assert beats(group, before) == 2 * 30


def test_a_puppet_that_is_to_expire_sends_no_heartbeat_and_learns_of_it_by_its_next_one(cluster: Cluster) -> None:
    group = stable(cluster, "a", "b")
    (fired,) = group.advance("1m", expire=["b"])
    assert fired.kind == "session"
    group.wait_stable(members=2)
    assert group.generation > 2


def test_expire_session_ends_the_session_of_a_healthy_puppet(cluster: Cluster) -> None:
    group = stable(cluster, "a", "b", session_timeout=SESSION_MS / 1000)
    (fired,) = group.expire_session("b")
    assert fired.kind == "session"
    assert [member.client_id for member in group.members] == ["a"]


def test_a_silent_puppet_expires_and_its_neighbour_rejoins(cluster: Cluster) -> None:
    group = stable(cluster, "a")
    group.create_puppet("mute", topics=["t"], behaviour="silent").join()
    group.wait_stable(members=2)
    kinds = [fired.kind for fired in group.advance("10s")]
    assert kinds == ["session"]
    group.wait_stable(members=1)


def test_a_straggler_is_thrown_out_when_the_join_barrier_ends(cluster: Cluster) -> None:
    group = stable(cluster, "a")
    group.create_puppet("late", topics=["t"], behaviour={"kind": "straggler", "delay_s": 3_600}).join()
    group.wait_stable(members=2)
    group.rebalance("deploy")
    group.advance("5s")
    fired = group.expire_join_phase(without="late")
    assert [each.kind for each in fired] == ["join"]
    (gone,) = [line for line in group.events() if line.get("cause") == "join_timeout"]
    assert str(gone["member_id"]).startswith("late-")


def test_a_member_to_expire_must_be_the_only_missing_one(cluster: Cluster) -> None:
    group = stable(cluster, "a", "b")
    group.freeze()
    with pytest.raises(GroupTimeout, match=r"did not wait for a alone within 0\.1 s, but for no member"):
        group.expire_sync(without="a", timeout=0.1)
    with pytest.raises(ValueError, match="has no member 'c'; there are 'a', 'b'"):
        group.expire_join_phase(without=["c"])


def test_durations_are_seconds_texts_or_timedeltas(cluster: Cluster) -> None:
    group = cluster.group("svc")
    start = group.now_ms
    for duration in (1, 0.5, "500ms", "1m", timedelta(hours=1, microseconds=1_999)):
        group.advance(duration)
    assert group.now_ms - start == 1_000 + 500 + 500 + 60_000 + 3_600_001


def test_a_negative_timedelta_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="is negative: a clock cannot go back"):
        cluster.group("svc").advance(timedelta(seconds=-1))


def test_timers_and_fired_timers_have_one_format(cluster: Cluster) -> None:
    group = stable(cluster, "a")
    timer = next(timer for timer in group.timers() if timer.kind == "session")
    (fired,) = group.expire_session("a")
    assert fired == Fired("session", timer.member_id, None, timer.deadline_ms, timer.generation)
    assert str(fired) == f"session of {timer.member_id}"


@pytest.mark.parametrize("mode", ["real", "manual", "auto"])
def test_the_argument_says_how_clocks_run(mode: str) -> None:
    with Simulation(clock=mode) as cluster:
        assert cluster.group("svc").clock == mode


def test_a_clock_that_stands_still_lets_nothing_of_the_group_be_due() -> None:
    with Simulation(topics={"t": 1}, clock="manual") as cluster:
        group = cluster.group("svc")
        group.create_puppet("mute", topics=["t"], behaviour="silent").join()
        group.wait_stable(members=1)
        cluster.pass_time(86_400)
        assert len(group.members) == 1
        assert group.advance("6s")[0].kind == "session"


def test_a_flapping_group_is_no_loop(cluster: Cluster) -> None:
    group = cluster.group("svc")
    for name in ("a", "b"):
        group.create_puppet(name, topics=["t"], behaviour={"kind": "flapping", "every_s": 10}).join()
    group.advance("5m")
    assert group.generation > 20


def test_verbs_by_handle(cluster: Cluster) -> None:
    group = stable(cluster, "a", "b")
    group.freeze("Stable")
    group.set_offsets({("t", 0): 5})
    assert (group.offsets, group.state) == ({("t", 0): 5}, "Stable")
    group.thaw()
    with group.expect_rebalance(cause="forced"):
        group.rebalance("deploy")
    group.evict("b")
    group.wait_stable(members=2, after_generation=2)
    cluster.set_group_max_size(2)
    group.create_puppet("c", topics=["t"]).join()
    group.assert_request("JoinGroup", error="GROUP_MAX_SIZE_REACHED")
    assert cluster.add_partitions("t", 1) == 101


def test_fenced_by_handle(cluster: Cluster) -> None:
    group = cluster.group("svc")
    peer = group.create_puppet("a", instance_id="svc-1", topics=["t"])
    peer.join()
    group.wait_stable(members=1)
    group.fence("svc-1")
    group.assert_fenced("svc-1", timeout=60)


def test_a_reset_thaws(cluster: Cluster) -> None:
    cluster.group("svc").freeze("Empty")
    cluster.reset("groups")
    with pytest.raises(ValueError, match="group 'svc' is not frozen; no group is"):
        cluster.group("svc").thaw()
