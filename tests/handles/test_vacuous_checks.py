"""What would pass without looking at anything is refused: misspelled groups, holds without requests, other kinds."""

from __future__ import annotations

import pytest

from koordinator import Cluster, GroupTimeout, TransactionTimeout

pytestmark = pytest.mark.koordinator(topics={"jobs": 1})


def test_a_verdict_on_a_group_without_events_fails_with_the_nearest_name(koordinator: Cluster) -> None:
    koordinator.group("svc").create_puppet("a").join()
    koordinator.group("svc").assert_conformant().assert_no_zombie_commits()
    misspelled = koordinator.group("scv")
    for judge in (misspelled.assert_conformant, misspelled.assert_no_zombie_commits):
        with pytest.raises(AssertionError) as failed:
            judge()
        assert "no event concerns a group 'scv', so there is nothing to judge" in str(failed.value)
        assert "there is no group 'scv'; there is 'svc'" in str(failed.value)


def test_a_wait_names_the_existing_transaction(koordinator: Cluster) -> None:
    koordinator.create_producer("pipe").init()
    with pytest.raises(TransactionTimeout) as failed:
        koordinator.transaction("pip").wait_state("Ongoing", timeout=0)
    assert str(failed.value).splitlines()[1:] == ["there is no transaction 'pip'; there is 'pipe'", "it has no events"]


def test_offsets_of_a_misspelled_topic_are_missing_with_the_existing_name(koordinator: Cluster) -> None:
    group = koordinator.group("svc")
    group.set_offsets({("jobs", 0): 3})
    with pytest.raises(AssertionError, match=r"there is no topic 'job'; there are .*; did you mean 'jobs'\?"):
        group.assert_committed({("job", 0): 3})


def test_a_wait_says_that_no_client_has_connected(koordinator: Cluster) -> None:
    remark = f"no client has connected to {koordinator.bootstrap_servers}"
    with pytest.raises(GroupTimeout) as failed:
        koordinator.group("svc").wait_stable(timeout=0)
    assert remark in str(failed.value).splitlines()
    koordinator.create_producer("p").init()
    with pytest.raises(GroupTimeout) as failed:
        koordinator.group("svc").wait_stable(timeout=0)
    assert remark not in str(failed.value)


def test_a_hold_that_held_nothing_fails_unless_it_is_optional(koordinator: Cluster) -> None:
    group = koordinator.group("svc")
    nothing = r"nothing entered hold-1 on OffsetCommit\(group='svc'\) \(optional=True allows it\): no OffsetCommit"
    with pytest.raises(AssertionError, match=nothing), group.hold("OffsetCommit"):
        pass
    assert koordinator.holds == []
    with group.hold("OffsetCommit", optional=True):
        pass
    with pytest.raises(ZeroDivisionError), group.hold("OffsetCommit"):
        raise ZeroDivisionError


def test_a_hold_of_a_group_refuses_another_group(koordinator: Cluster) -> None:
    with pytest.raises(ValueError, match=r"group='other': this is for group 'svc'; call the method of the cluster"):
        koordinator.group("svc").hold("OffsetCommit", group="other")
    with pytest.raises(ValueError, match=r"transaction='other': this is for transaction 'tx'; call the method"):
        koordinator.transaction("tx").hold("EndTxn", transaction="other")


def test_members_of_a_share_group_have_their_client_ids_in_assertions(koordinator: Cluster) -> None:
    group = koordinator.group("workers")
    a, b = (group.create_puppet(name, topics=["jobs"], group_protocol="share") for name in "ab")
    a.join()
    b.join()
    group.wait_stable(members=2, all_owned=True)
    group.assert_assignment({"a": {"jobs": [0]}, "b": {"jobs": [0]}})
    a.leave()
    group.assert_left("a", timeout="5s")
    group.assert_did_not_leave("b")


def test_what_share_groups_do_not_have_is_refused(koordinator: Cluster) -> None:
    group = koordinator.group("workers")
    group.create_puppet("a", topics=["jobs"], group_protocol="share").join()
    with pytest.raises(ValueError, match=r"share group: any number of its members may own a partition"):
        group.assert_owned_exactly_once()
    with pytest.raises(ValueError, match=r"share group and commits no offsets: look at its share positions"):
        group.assert_committed({("jobs", 0): 1})
    with pytest.raises(ValueError, match=r"is a share group: it waits for no revocation"):
        group.expire_revocation("a")
    with pytest.raises(ValueError, match=r"is a share group: it has no join phase; this works on classic groups"):
        group.expire_join_phase()
    with pytest.raises(ValueError, match=r"'PreparingRebalance': group 'workers' is a share group, which has no such"):
        group.freeze("PreparingRebalance")


def test_a_wait_for_a_group_of_a_stopped_node_says_so(koordinator: Cluster) -> None:
    group = koordinator.group("svc")
    group.create_puppet("a").join()
    koordinator.nodes[1].stop()
    with pytest.raises(GroupTimeout, match="the node that coordinates group 'svc' is down"):
        group.wait_stable(timeout="100ms")
