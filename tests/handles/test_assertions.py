"""Waits and assertions on a group of puppets on virtual time: when they hold, and their failure messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from koordinator import Simulation
from koordinator.handles.checks import GroupTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator import Cluster, Group
    from koordinator.handles.puppets import Puppet


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(topics={"t": 4}, seed=3)


@pytest.fixture
def cluster(simulation: Simulation) -> Iterator[Cluster]:
    with simulation as cluster:
        yield cluster


@pytest.fixture
def group(cluster: Cluster) -> Group:
    return cluster.group("g")


@pytest.fixture
def member(group: Group) -> Callable[..., Puppet]:
    """Return a function that joins a puppet and waits until the group is stable with it."""

    def join(name: str, instance: str | None = None) -> Puppet:
        generation = group.generation
        puppet = group.create_puppet(name, topics=["t"], instance_id=instance, heartbeat_interval=2).join()
        group.wait_stable(all_owned=True, after_generation=generation)
        return puppet

    return join


def says(call: Callable[[], object], *expected: str, kind: type[AssertionError] = AssertionError) -> str:
    """Check the message of a failing assertion: the expected lines, then the group's state and its last events."""
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    told, _, rest = text.partition("\nnow: ")
    assert plain(told).split("\n") == list(expected)
    events = r"(its last events:\n|no client has connected to .*\nit has no events)"
    assert re.match(rf"\w+, generation -?\d+, \d+ members?.*\n{events}", rest)
    return text


def plain(text: str) -> str:
    """Return the text without sequence numbers and the random ends of member ids."""
    return re.sub(r"#\d+", "#", re.sub(r"-[0-9a-f]{8}-[0-9a-f-]{27}", "-…", text))


# -- waits ---------------------------------------------------------------------------------------------------


def test_a_wait_for_stable_may_ask_for_members_owners_and_a_newer_generation(
    group: Group, member: Callable[..., Puppet]
) -> None:
    member("a")
    assert group.wait_stable(members=1, all_owned=True, after_generation=0) is group
    says(
        lambda: group.wait_stable(members=2, timeout=1, all_owned=True, after_generation=1),
        "group 'g' was not stable with 2 members, every partition owned, after generation 1 within 1 s",
        kind=GroupTimeout,
    )


def test_all_owned_means_every_partition_has_an_owner(group: Group) -> None:
    # to the coordinator a group is stable even if its leader omits members
    leader = group.create_puppet("leader", topics=["t"], behaviour="omits_members").join()
    group.wait_stable(members=1)
    group.create_puppet("left-out", topics=["t"]).join()
    group.wait_stable(members=2)
    assert leader.is_leader
    says(
        lambda: group.wait_stable(members=2, all_owned=True, timeout=60),
        "group 'g' was not stable with 2 members, every partition owned within 60 s",
        kind=GroupTimeout,
    )
    says(
        group.assert_owned_exactly_once,
        "group 'g': expected every partition to be owned exactly once, but t [2, 3] has no owner",
        "  wait_stable(all_owned=True) waits for it, and so does timeout=",
    )


def test_a_wait_for_a_state(group: Group, member: Callable[..., Puppet]) -> None:
    assert group.wait_state("Dead") is group
    puppet = member("a")
    group.wait_state("Stable")
    puppet.leave()
    group.wait_state("Empty")
    says(lambda: group.wait_state("Stable", timeout=2), "group 'g' was not Stable within 2 s", kind=GroupTimeout)
    for wrong, near in (("stable", "Stable"), ("preparing_rebalance", "PreparingRebalance"), ("Emty", "Empty")):
        with pytest.raises(ValueError, match=f"the state of a group '{wrong}' is not known; did you mean '{near}'"):
            group.wait_state(wrong)


# -- rebalances ----------------------------------------------------------------------------------------------


def test_an_expected_rebalance_is_returned(group: Group, member: Callable[..., Puppet]) -> None:
    member("a")
    with group.expect_rebalance(cause="member_join") as expected:
        with pytest.raises(RuntimeError, match="known after the block of expect_rebalance"):
            _ = expected.rebalance
        group.create_puppet("b", topics=["t"], instance_id="one").join()
    rebalance = expected.rebalance
    assert (rebalance.cause, rebalance.trigger) == ("member_join", "one")
    assert (rebalance.generation_before, rebalance.generation, rebalance.outcome) == (1, 2, "completed")
    # "a" learns of the rebalance from its next heartbeat
    assert (rebalance.straggler, rebalance.straggler_wait_ms, rebalance.join_ms) == (rebalance.members[0], 2000, 2000)
    assert rebalance.members[1:] == ("one",)
    assert group.rebalances()[-1] == rebalance


def test_a_rebalance_that_does_not_come(group: Group, member: Callable[..., Puppet]) -> None:
    puppet = member("a")

    def expect(cause: str | None, *, leave: bool) -> None:
        with group.expect_rebalance(cause, timeout=3):
            if leave:
                puppet.leave()

    says(
        lambda: expect(None, leave=False),
        "group 'g', within 3 s: expected a rebalance, but none has begun",
    )
    says(
        lambda: expect("member_join", leave=True),
        "group 'g', within 3 s: expected a rebalance with the cause member_join, but only began:",
        "  # member_leave of a-…, generation 1 to 2, emptied",
    )
    with pytest.raises(ValueError, match="rebalance 'member_left' is not known; did you mean 'member_leave'"):
        expect("member_left", leave=False)


def test_a_rebalance_that_does_not_complete(group: Group) -> None:
    def expect() -> None:
        with group.expect_rebalance(timeout=3):
            group.create_puppet("leader", topics=["t"], behaviour="never_syncs").join()

    says(
        expect,
        "group 'g', within 3 s: expected a rebalance to complete, but it has not: "
        "# member_join of leader-…, generation 0 to 1, open",
    )


def test_an_error_inside_the_block_is_not_hidden_by_the_expectation(group: Group) -> None:
    def expect() -> None:
        with group.expect_rebalance():
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        expect()


def test_no_rebalance(group: Group, member: Callable[..., Puppet]) -> None:
    member("a")
    puppet = member("b", "one")
    with group.assert_no_rebalance():
        puppet.stop()
        puppet.join()
        puppet.wait_state("stable")

    def leave() -> None:
        with group.assert_no_rebalance():
            puppet.leave()

    says(
        leave,
        "group 'g': expected no rebalance, seen 1:",
        "  # member_leave of one, generation 2, open",
    )


def test_the_number_of_rebalances(group: Group, member: Callable[..., Puppet]) -> None:
    group.assert_rebalances(exactly=0)
    member("a")
    member("b", "one")
    assert group.assert_rebalances(exactly=2) is group
    assert [each.number for each in group.rebalances()] == [1, 2]
    says(
        lambda: group.assert_rebalances(exactly=1),
        "group 'g': expected 1 rebalance, seen 2:",
        "  # member_join of a-…, generation 0 to 1, completed",
        "  # member_join of one, generation 1 to 2, completed",
    )


# -- ownership -----------------------------------------------------------------------------------------------


def test_the_assignment_by_instance_id_client_id_or_member_id(group: Group, member: Callable[..., Puppet]) -> None:
    puppet = member("a")
    member("b", "one")
    group.assert_assignment({"a": {"t": [3, 2]}, "one": {"t": (0, 1)}})
    group.assert_assignment({puppet.member_id: {"t": [2, 3], "other": []}, "one": {"t": {0, 1}}})
    says(
        lambda: group.assert_assignment({"a": {"t": [2]}, "two": {}}),
        "group 'g': the assignment differs:",
        "  a: expected t [2], owns t [2, 3]",
        "  one: unexpected member, owns t [0, 1]",
        "  two: expected nothing, but there is no such member",
    )


def test_owned_exactly_once(group: Group, member: Callable[..., Puppet]) -> None:
    member("a")
    group.assert_owned_exactly_once()
    says(
        lambda: group.assert_owned_exactly_once(["t", "tt"], timeout=1),
        "group 'g', within 1 s: expected every partition to be owned exactly once, but there is no topic 'tt'"
        "; did you mean 't'?",
    )
    group.puppets["a"].leave()
    says(
        group.assert_owned_exactly_once,
        "group 'g': expected a Stable group, but it is Empty",
    )


def test_a_partition_that_two_own(cluster: Cluster, group: Group) -> None:
    everything = {"t": [0, 1, 2, 3]}
    two = [{"instance_id": name, "assignment": everything} for name in ("one", "two")]
    cluster.load_groups([{"group_id": "g", "members": two}])
    says(
        lambda: group.assert_owned_exactly_once(["t"]),
        "group 'g': expected every partition to be owned exactly once, but t 0 is owned by one and two; "
        "t 1 is owned by one and two; t 2 is owned by one and two; t 3 is owned by one and two",
    )


def test_committed(group: Group, member: Callable[..., Puppet]) -> None:
    puppet = member("a")
    puppet.commit({("t", 0): 5})
    assert group.assert_committed({("t", 0): 5}) is group
    says(
        lambda: group.assert_committed({("t", 0): 6, ("t", 1): 0}),
        "group 'g': the committed offsets differ:",
        "  t 0: expected 6, committed is 5; last: # OffsetCommit v9 from a as member a-… (generation 1) -> OK",
        "  t 1: expected 0, nothing is committed",
    )


# -- requests ------------------------------------------------------------------------------------------------


def test_the_number_of_requests(group: Group, member: Callable[..., Puppet]) -> None:
    member("a")
    b = member("b", "one")
    for at in range(7):
        b.commit({("t", 0): at})
    group.assert_request("OffsetCommit").assert_request("OffsetCommit", times=7, error="NONE", generation=2)
    group.assert_request("OffsetCommit", member="b").assert_request("OffsetCommit", member="one", client_id="[bc]*")
    group.assert_request("OffsetCommit", member="a", times=0)
    group.assert_request("JoinGroup", instance_id="one", times=1, generation=2)
    group.assert_request("OffsetCommit", at_least=7)
    with pytest.raises(AssertionError, match="expected at least 8 OffsetCommit, seen 7:"):
        group.assert_request("OffsetCommit", at_least=8)
    says(
        lambda: group.assert_request("OffsetCommit", times=0),
        "group 'g': expected 0 OffsetCommit, seen 7:",
        *["  # OffsetCommit v9 from one as member one-… (generation 2) -> OK"] * 5,
        "  and 2 before",
    )


def test_a_missing_request_is_reported_with_the_nearest_one(group: Group, member: Callable[..., Puppet]) -> None:
    a, b = member("a"), member("b", "one")
    for puppet in (b, a, b):
        puppet.commit({("t", 0): 1})
    says(
        lambda: group.assert_request("OffsetCommit", member="a", error="UNKNOWN_MEMBER_ID", times=2, timeout=1),
        "group 'g', within 1 s: expected 2 OffsetCommit from member a answered with UNKNOWN_MEMBER_ID, seen 0",
        "  3 OffsetCommit seen, none answered with UNKNOWN_MEMBER_ID; closest:",
        "  # OffsetCommit v9 from a as member a-… (generation 2) -> OK",
    )
    says(
        lambda: group.assert_request("OffsetCommit", member="x"),
        "group 'g': expected at least 1 OffsetCommit from member x, seen 0",
        "  3 OffsetCommit seen, none from member x; closest:",
        "  # OffsetCommit v9 from one as member one-… (generation 2) -> OK",
    )
    says(
        lambda: group.assert_request("OffsetCommit", client_id="a", instance_id="one"),
        "group 'g': expected at least 1 OffsetCommit with client id a from instance one, seen 0",
        "  3 OffsetCommit seen, but none meets every condition; closest:",
        "  # OffsetCommit v9 from one as member one-… (generation 2) -> OK",
    )
    says(
        lambda: group.assert_request("OffsetDelete"),
        "group 'g': expected at least 1 OffsetDelete, seen 0",
        "  no OffsetDelete at all; seen: 4 JoinGroup, 3 SyncGroup, 3 OffsetCommit, 2 FindCoordinator, 1 Heartbeat",
    )


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"api": "offset_commit"}, "the API 'offset_commit' is not known; did you mean 'OffsetCommit'"),
        ({"api": "JoinGroup", "error": "MEMBERID_REQUIRED"}, "did you mean 'MEMBER_ID_REQUIRED'"),
        ({"api": "JoinGroup", "times": -1}, "JoinGroup cannot be seen -1 times"),
        ({"api": "JoinGroup", "at_least": -2}, "JoinGroup cannot be seen -2 times"),
        ({"api": "JoinGroup", "times": 1, "at_least": 1}, "JoinGroup: either times=1, exactly, or at_least=1"),
        (
            {"api": "JoinGroup", "member": "worker1", "times": 0},
            "'worker1' is not known; did you mean 'worker'",
        ),
    ],
)
def test_unknown_names_are_refused_at_once(
    group: Group, member: Callable[..., Puppet], wanted: dict[str, object], message: str
) -> None:
    member("worker")
    with pytest.raises(ValueError, match=message):
        group.assert_request(**wanted, timeout=600)  # type: ignore[arg-type]


# -- members -------------------------------------------------------------------------------------------------


def test_the_members_that_left(group: Group, member: Callable[..., Puppet]) -> None:
    a, b = member("a"), member("b", "one")
    group.assert_did_not_leave("a").assert_did_not_leave("one")
    says(
        lambda: group.assert_left("a"),
        "group 'g': member a has not left: it sent no LeaveGroup and was not removed",
    )
    member_id = a.member_id
    a.leave()
    group.assert_left("a").assert_left(member_id)
    says(
        lambda: group.assert_did_not_leave("a"),
        "group 'g': member a sent a LeaveGroup: # LeaveGroup v5 from a as member a-… -> OK",
    )
    b.stop()
    group.wait_state("Empty")
    group.assert_did_not_leave("one")
    says(
        lambda: group.assert_left("one"),
        "group 'g': member one has not left: it was removed, session_expired (#: removing member one-… on heartbeat "
        "expiration.)",
    )
    with pytest.raises(ValueError, match="in group 'g' the member 'onne' is not known; did you mean 'one'"):
        group.assert_did_not_leave("onne")


def test_the_fenced_members(cluster: Cluster, group: Group, member: Callable[..., Puppet]) -> None:
    member("a")
    member("b", "one")
    said = "group 'g': no member of instance one received FENCED_INSTANCE_ID: "
    says(lambda: group.assert_fenced("one"), f"{said}no new member replaced it")
    group.create_puppet("c", topics=["t"], instance_id="one").join().wait_state("stable")
    says(
        lambda: group.assert_fenced("one"),
        f"{said}# Static member one-… with instance id one was replaced by one-…, and one-… sent no request since",
    )
    cluster.pass_time(3)
    assert group.assert_fenced("one") is group
    with pytest.raises(ValueError, match=r"member 'a' of group 'g' is dynamic; static members: one"):
        group.assert_fenced("a")


def test_zombie_commits(group: Group, member: Callable[..., Puppet]) -> None:
    a, _ = member("a"), member("b", "one")
    a.commit({("t", 2): 1})
    assert group.assert_no_zombie_commits() is group
    a.commit({("t", 0): 1, ("t", 3): 1})
    says(
        group.assert_no_zombie_commits,
        "group 'g': expected no accepted commit from a removed member or for another member's partition; seen 1:",
        "  # OffsetCommit v9 from a as member a-… (generation 2) -> OK: it commits t 0 of one",
    )


# -- conformance ---------------------------------------------------------------------------------------------


def test_conformance(cluster: Cluster, group: Group, member: Callable[..., Puppet]) -> None:
    member("a")
    member("b", "one")
    cluster.pass_time(20)
    assert group.assert_conformant() is group
    verdicts = group.conformance()
    passed = {check for check, verdict in verdicts.items() if verdict.status == "pass"}
    assert passed == {"C01", "C04", "C07", "C08", "C14"}
    group.puppets["b"].leave()
    says(
        group.assert_conformant,
        "group 'g': 1 of 14 client checks failed:",
        "  C05 a dynamic member leaves when it is closed, a static member does not: fail: one is a static member and "
        "has sent # LeaveGroup v5 from one as member one-… -> OK",
    )
    group.assert_conformant(ignore=["C05"])
    assert group.conformance()["C05"].evidence
    with pytest.raises(ValueError, match="the check 'C5' is not known; did you mean 'C05'"):
        group.assert_conformant(ignore=["C5"])


def test_a_silent_member_is_not_conformant(group: Group) -> None:
    group.create_puppet("a", topics=["t"], behaviour="silent").join()
    group.wait_stable(members=1)
    group.wait_state("Empty")
    assert "sent no heartbeat for 6 s" in group.conformance()["C04"].message


def test_an_unknown_group_has_no_requests_and_no_members(group: Group) -> None:
    says(
        lambda: group.assert_request("JoinGroup"),
        "group 'g': expected at least 1 JoinGroup, seen 0",
        "  no JoinGroup at all; seen: nothing",
    )
    with pytest.raises(ValueError, match="the member 'a' is not known; known: none"):
        group.assert_left("a")


def test_the_trace_has_lookups_and_claimed_partitions(group: Group) -> None:
    for name in "ab":
        generation = group.generation
        group.create_puppet(name, ["cooperative-sticky"], topics=["t"]).join()
        group.wait_stable(all_owned=True, after_generation=generation)
    lookups = [event["body"] for event in group.events() if event.get("api") == "FindCoordinator" and "body" in event]
    assert lookups == [{"coordinator": 1}] * 2
    claimed = [event["body"].get("owned") for event in group.events() if is_join(event)]  # type: ignore[attr-defined]
    assert {"t": [0, 1, 2, 3]} in claimed
    assert claimed[0] is None
    assert group.conformance()["C06"].status == "pass"


def is_join(event: dict[str, object]) -> bool:
    return event["kind"] == "request" and event.get("api") == "JoinGroup"
