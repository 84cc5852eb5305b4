"""Members whose client is gone or silent: `silent_members`, and their lines in failures."""

from __future__ import annotations

import pytest
from clients.raw_member import Rival

from koordinator import Cluster, Simulation


@pytest.mark.parametrize("protocol", ["classic", "consumer", "share"])
def test_a_stopped_member_has_no_connection_until_its_session_ends(protocol: str) -> None:
    with Simulation({"t": 2}) as simulation:
        group = simulation.group("g")
        stopped, kept = (group.create_puppet(name, topics=["t"], group_protocol=protocol).join() for name in ("a", "b"))
        group.wait_stable(members=2)
        assert group.silent_members() == []
        member_id, session_ms = stopped.member_id, group.members[0].session_timeout_ms
        stopped.stop()
        simulation.pass_time("4s")
        (silent,) = group.silent_members()
        assert (silent.member_id, silent.instance_id, silent.is_connected) == (member_id, None, False)
        assert silent.session_ends_ms is not None
        assert silent.silent_ms + silent.session_ends_ms == session_ms
        assert silent.silent_ms >= 4_000
        assert f"{silent}" == (
            f"{member_id} has closed its connection without leaving the group; it was last heard from"
            f" {silent.silent_ms / 1000:.1f} s ago; its session ends in {silent.session_ends_ms / 1000:.1f} s"
        )
        simulation.pass_time(session_ms / 1000)
        assert group.silent_members() == []
        assert [each.member_id for each in group.members] == [kept.member_id]


def test_a_connected_member_is_silent_after_two_heartbeats_that_do_not_come() -> None:
    with Simulation({"t": 1}) as simulation:
        group = simulation.group("g")
        group.create_puppet("a", topics=["t"], instance_id="a-0", behaviour="silent", session_timeout="45s").join()
        group.wait_stable(members=1)
        simulation.pass_time("5999ms")
        assert group.silent_members() == []
        simulation.pass_time("1ms")
        assert [f"{each}" for each in group.silent_members()] == [
            "a-0 was last heard from 6.0 s ago; its session ends in 39.0 s"
        ]


def test_a_member_that_waits_for_the_others_is_not_silent() -> None:
    with Simulation({"t": 1}) as simulation:
        group = simulation.group("g")
        group.create_puppet("a", topics=["t"], session_timeout="60s").join()
        group.wait_stable(members=1)
        group.create_puppet("b", topics=["t"], behaviour="silent", session_timeout="60s").join()
        group.wait_stable(members=2)
        group.create_puppet("c", topics=["t"], session_timeout="60s").join()
        simulation.pass_time("20s")
        assert group.state == "PreparingRebalance"
        assert [each.client_id for each in group.silent_members()] == ["b"]


def test_a_loaded_member_is_not_silent(koordinator: Cluster) -> None:
    koordinator.load_groups([{"group_id": "g", "members": [{"member_id": "m"}]}])
    assert len(koordinator.group("g").members) == 1
    assert koordinator.group("g").silent_members() == []


def test_a_failed_assertion_tells_of_a_member_whose_process_was_killed(koordinator: Cluster) -> None:
    with Rival(koordinator.bootstrap_servers) as killed:
        killed.join()
    with pytest.raises(AssertionError, match="has closed its connection without leaving the group; it was last heard"):
        koordinator.group("g").assert_committed({("t", 0): 1}, timeout="1s")


def test_the_report_of_a_failed_test_tells_of_a_silent_member(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_it(koordinator):
            koordinator.create_topic("t", partitions=1)
            group = koordinator.group("g")
            puppet = group.create_puppet("a", topics=["t"], instance_id="a-0").join()
            group.wait_stable(members=1)
            puppet.stop()
            assert False
    """)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=170)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["a-0 has closed its connection without leaving the group; it was last heard from *"])
