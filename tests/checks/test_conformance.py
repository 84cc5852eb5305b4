"""The client checks C01 to C10 over hand-written trace lines: passes, failures and inconclusive cases."""

from __future__ import annotations

import pytest
from scenes.trace_tales import PREPARING, REBALANCE_MS, SESSION_MS, STABLE, Tale

from koordinator.emulator.trace.vocabulary import CHECKS
from koordinator.emulator.verify.conformance import Verdict, conformance
from koordinator.emulator.verify.ownership import MemberAssignment

Stable = tuple[tuple[MemberAssignment, ...], dict[str, int]]


def judge(
    tale: Tale, check: str, current: Stable | None = None, *, auto_commit: bool | None = None
) -> Verdict:
    verdicts = {each.id: each for each in conformance(tale.trace, current, auto_commit=auto_commit)}
    return verdicts[check]


@pytest.fixture
def tale() -> Tale:
    return Tale()


def test_there_are_ten_checks_and_each_can_be_ignored(tale: Tale) -> None:
    assert [each.id for each in conformance(tale.trace)] == list(CHECKS)
    assert [each.id for each in conformance(tale.trace, ignore=["C05", "C01"])] == [
        each for each in CHECKS if each not in ("C01", "C05")
    ]
    with pytest.raises(ValueError, match="the check 'C11' is not known; did you mean 'C10'"):
        conformance(tale.trace, ignore=["C11"])


def test_no_check_applies_to_an_empty_trace(tale: Tale) -> None:
    assert {each.status for each in conformance(tale.trace)} == {"not_applicable"}


def test_a_pass_is_inconclusive_if_the_ring_dropped_events(tale: Tale) -> None:
    tale.line("dropped", of_group=False, count=7)
    tale.forms({"a": [0]})
    tale.beat("a")
    verdict = judge(tale, "C04")
    assert (verdict.status, verdict.message) == ("inconclusive", "the trace lacks its first 7 events")


# -- C01: the assigned member id -----------------------------------------------------------------------------


def required(tale: Tale, given: str = "a-1") -> int:
    asked = tale.asks("JoinGroup", "a", body={"session_timeout_ms": SESSION_MS})
    tale.answers(asked, "MEMBER_ID_REQUIRED", member_id=given)
    return int(asked["seq"])


def test_c01_an_id_that_is_used_in_time(tale: Tale) -> None:
    first = required(tale)
    tale.passes(SESSION_MS)
    second = tale.call("JoinGroup", "a", member_id="a-1")
    verdict = judge(tale, "C01")
    assert (verdict.status, verdict.evidence) == ("pass", (first, second))


@pytest.mark.parametrize("used", [True, False])
def test_c01_an_id_that_is_not_used_in_time(tale: Tale, used: bool) -> None:  # noqa: FBT001 - a case
    first = required(tale)
    tale.passes(SESSION_MS + 1)
    tale.line("timer", timer="PendingMemberExpiry", member_id="a-1")
    if used:
        tale.call("JoinGroup", "a", "UNKNOWN_MEMBER_ID", member_id="a-1")
    verdict = judge(tale, "C01")
    assert verdict.status == "fail"
    assert first in verdict.evidence
    said = "a-1 used its id 6.001 s after it was assigned" if used else "a-1 has never used the id that was assigned by"
    assert said in verdict.message


def test_c01_an_id_that_is_replaced_by_another(tale: Tale) -> None:
    # librdkafka #5569
    first, second = required(tale, "a-1"), required(tale, "a-2")
    tale.call("JoinGroup", "a", member_id="a-2")
    verdict = judge(tale, "C01")
    assert (verdict.status, verdict.evidence) == ("fail", (first, second))
    assert f"a-1 was assigned this id by #{first} JoinGroup v9 from a -> MEMBER_ID_REQUIRED, and joined without it" in (
        verdict.message
    )


def test_c01_a_jump_of_the_groups_clock_is_no_fault_of_the_client(tale: Tale) -> None:
    required(tale)
    tale.jumps(SESSION_MS * 10)
    tale.call("JoinGroup", "a", "UNKNOWN_MEMBER_ID", member_id="a-1")
    assert judge(tale, "C01").status == "pass"


def test_c01_a_closed_client_uses_nothing(tale: Tale) -> None:
    required(tale)
    assert judge(tale, "C01").status == "inconclusive"
    tale.closes("a")
    tale.passes(SESSION_MS + 1)
    tale.beat("b", 0)
    assert judge(tale, "C01").status == "pass"


# -- C02: coordinator lookup ---------------------------------------------------------------------------------


def test_c02_the_coordinator_is_looked_up(tale: Tale) -> None:
    beat = tale.beat("a", error="NOT_COORDINATOR")
    # librdkafka looks up at most twice a second, and keeps sending heartbeats
    tale.passes(500)
    tale.commits("a", 1, error="NOT_COORDINATOR")
    lookup = tale.call("FindCoordinator", "a", connection="another")
    tale.passes(1500)
    tale.beat("a")
    verdict = judge(tale, "C02")
    assert verdict.status == "pass"
    assert {beat, lookup} <= set(verdict.evidence)


def test_c02_a_retry_without_a_lookup(tale: Tale) -> None:
    first = tale.beat("a", error="NOT_COORDINATOR")
    tale.passes(1001)
    second = tale.beat("a", error="NOT_COORDINATOR")
    verdict = judge(tale, "C02")
    assert (verdict.status, verdict.evidence) == ("fail", (first, second))
    assert verdict.message.startswith(
        f"#{first} Heartbeat v9 from a (generation 0) -> NOT_COORDINATOR, and retried without a FindCoordinator"
    )


def test_c02_a_lookup_by_another_client_does_not_count(tale: Tale) -> None:
    tale.beat("a", error="NOT_COORDINATOR")
    tale.call("FindCoordinator", "b")
    tale.passes(1001)
    tale.beat("a")
    assert judge(tale, "C02").status == "fail"


def test_c02_an_endless_ping_pong(tale: Tale) -> None:
    # librdkafka #3396
    for _ in range(15):
        tale.call("JoinGroup", "a", "NOT_COORDINATOR")
        tale.call("FindCoordinator", "a", connection="another")
        tale.passes(50)
    verdict = judge(tale, "C02")
    assert verdict.status == "fail"
    assert verdict.message.startswith("a sent 15 requests within 1000 ms to a node that is not the coordinator")


def test_c02_a_client_without_a_new_request_may_still_look_up(tale: Tale) -> None:
    tale.beat("a", error="NOT_COORDINATOR")
    assert judge(tale, "C02").status == "inconclusive"
    tale.closes("a")
    assert judge(tale, "C02").status == "not_applicable"


# -- C03: commits of an old generation -----------------------------------------------------------------------


def test_c03_commits_in_the_generation_the_member_is_in(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.commits("a", 1)
    asked = tale.joins("a")
    tale.state(STABLE, PREPARING, 1, "leader_rejoin")
    # before the JoinGroup response the member is still in its old generation
    tale.call("OffsetCommit", "a", connection="other", member_id="a", generation=1, body={"offsets": [["t", 0, 9]]})
    tale.completes({"a": asked}, {"a": [0]})
    tale.commits("a", 2)
    assert judge(tale, "C03").status == "pass"


def test_c03_a_zombie_commit(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.forms({"a": [0]}, before=STABLE)
    seq = tale.commits("a", 1, error="ILLEGAL_GENERATION")
    verdict = judge(tale, "C03")
    assert verdict.status == "fail"
    assert verdict.evidence[-1] == seq
    assert f"#{seq} OffsetCommit v9 from a (generation 1) -> ILLEGAL_GENERATION, after #" in verdict.message


def test_c03_is_not_about_commits_without_a_generation(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.call("OffsetCommit", "admin", generation=-1)
    assert judge(tale, "C03").status == "not_applicable"


# -- C04: heartbeats -----------------------------------------------------------------------------------------


def test_c04_heartbeats_in_time(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    for _ in range(5):
        tale.passes(SESSION_MS / 2 - 1)
        tale.beat("a")
        tale.beat("b")
    verdict = judge(tale, "C04")
    assert (verdict.status, len(verdict.evidence)) == ("pass", 10)


def test_c04_a_gap_between_heartbeats(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    answered = tale.seq
    tale.passes(SESSION_MS / 2)
    seq = tale.beat("a")
    verdict = judge(tale, "C04")
    assert (verdict.status, verdict.evidence) == ("fail", (answered, seq))
    assert verdict.message == f"a sent no heartbeat for 3 s after #{answered}; its session timeout is 6 s"


def test_c04_a_member_that_goes_silent(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.passes(SESSION_MS)
    tale.member("removed", "a", "session_expired")
    assert judge(tale, "C04").status == "fail"


def test_c04_a_member_that_is_still_silent(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    for _ in range(2):
        tale.passes(SESSION_MS / 3)
        tale.beat("b")
    verdict = judge(tale, "C04")
    assert verdict.status == "fail"
    assert verdict.message.startswith("a sent no heartbeat for 4 s")


@pytest.mark.parametrize("excuse", ["jump", "closed", "node", "held", "told", "left"])
def test_c04_when_a_member_owes_no_heartbeat(tale: Tale, excuse: str) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    match excuse:
        case "jump":
            tale.jumps(SESSION_MS)
            tale.member("removed", "a", "session_expired")
        case "closed":
            tale.closes("a")
        case "node":
            tale.line("node", of_group=False, change="killed")
        case "held":
            asked = tale.asks("Heartbeat", "a", member_id="a", generation=1)
            tale.passes(SESSION_MS)
            tale.answers(asked)
        case "told":
            tale.beat("a", error="REBALANCE_IN_PROGRESS")
        case "left":
            tale.call("LeaveGroup", "a", member_id="a")
    if excuse not in ("jump", "held"):
        tale.passes(SESSION_MS)
        tale.call("OffsetFetch", "b")
    assert judge(tale, "C04").status == "pass"


def test_c04_heartbeats_behind_a_held_request_are_not_late(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    asked = tale.asks("OffsetCommit", "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})
    tale.passes(SESSION_MS)
    tale.call("OffsetFetch", "b")
    assert judge(tale, "C04").status == "pass"
    tale.answers(asked)
    tale.passes(SESSION_MS / 2 - 1)
    tale.beat("a")
    assert judge(tale, "C04").status == "pass"
    # the client's own delay counts
    tale.passes(SESSION_MS / 2)
    tale.beat("a")
    assert judge(tale, "C04").status == "fail"


def test_c04_a_storm_of_heartbeats(tale: Tale) -> None:
    tale.forms({"a": [0]})
    for _ in range(51):
        tale.passes(19)
        tale.beat("a")
    verdict = judge(tale, "C04")
    assert (verdict.status, verdict.message) == ("fail", "a sent 51 heartbeats within 1000 ms")


def test_c04_heartbeats_of_many_hours_within_one_jump_are_no_storm(tale: Tale) -> None:
    tale.forms({"a": [0]})
    for _ in range(200):
        tale.jumps(2000)
        tale.beat("a")
    assert judge(tale, "C04").status == "pass"


@pytest.mark.parametrize("api", ["Heartbeat", "SyncGroup", "OffsetCommit"])
def test_c04_generation_minus_one_after_a_sync(tale: Tale, api: str) -> None:
    # aiokafka #727
    tale.forms({"a": [0]})
    seq = tale.call(api, "a", "ILLEGAL_GENERATION", member_id="a", generation=-1)
    verdict = judge(tale, "C04")
    assert verdict.status == "fail"
    assert seq in verdict.evidence
    assert verdict.message.endswith("-> ILLEGAL_GENERATION: generation -1 after a SyncGroup")


# -- C05: leaving --------------------------------------------------------------------------------------------


def test_c05_a_dynamic_member_leaves_and_a_static_one_does_not(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]}, instances={"b": "one"})
    leave = tale.call("LeaveGroup", "a", member_id="a")
    tale.member("removed", "a", "member_leave")
    tale.closes("a")
    closed = tale.closes("b")
    verdict = judge(tale, "C05")
    assert (verdict.status, verdict.evidence) == ("pass", (leave, closed["seq"]))


def test_c05_a_static_member_that_leaves(tale: Tale) -> None:
    # kafka_ex #561
    tale.forms({"b": [1]}, instances={"b": "one"})
    leave = tale.call("LeaveGroup", "b", member_id="b", instance_id="one")
    verdict = judge(tale, "C05")
    assert (verdict.status, verdict.evidence) == ("fail", (leave,))
    assert verdict.message.startswith(f"one is a static member and has sent #{leave} LeaveGroup")


def test_c05_an_administrator_may_remove_a_static_member(tale: Tale) -> None:
    tale.forms({"b": [1]}, instances={"b": "one"})
    tale.call("LeaveGroup", "admin", member_id="b", instance_id="one")
    tale.member("removed", "b", "member_leave", "one")
    assert judge(tale, "C05").status == "not_applicable"


def test_c05_a_dynamic_member_that_vanishes_was_killed_or_does_not_leave(tale: Tale) -> None:
    tale.forms({"a": [0]})
    closed = tale.closes("a")
    verdict = judge(tale, "C05")
    assert (verdict.status, verdict.evidence) == ("inconclusive", (closed["seq"],))
    assert verdict.message.endswith("it was killed, or it never leaves")


def test_c05_a_removed_member_need_not_leave(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.member("removed", "a", "session_expired")
    tale.closes("a")
    assert judge(tale, "C05").status == "not_applicable"


# -- C06: cooperative ----------------------------------------------------------------------------------------

COOPERATIVE = "cooperative-sticky"


def test_c06_a_moved_partition_has_no_owner_for_a_generation(tale: Tale) -> None:
    tale.forms({"a": [0, 1]}, protocol=COOPERATIVE)
    tale.forms({"a": [0], "b": []}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0, 1]})
    # in the second generation it commits a revoked partition, which has no owner
    tale.commits("a", 2, 1)
    tale.forms({"a": [0], "b": [1]}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0]})
    assert judge(tale, "C06").status == "pass"


def test_c06_a_partition_assigned_before_its_revocation(tale: Tale) -> None:
    tale.forms({"a": [0, 1]}, protocol=COOPERATIVE)
    tale.forms({"a": [0], "b": [1]}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0, 1]})
    verdict = judge(tale, "C06")
    assert verdict.status == "fail"
    assert verdict.message.startswith("a leads, and gave t 1 to b while a owned it: #")


def test_c06_a_claim_to_unowned_partitions_is_ignored(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]}, protocol=COOPERATIVE)
    tale.forms({"a": [0], "b": [1]}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0, 1], "b": [1]})
    assert judge(tale, "C06").status == "pass"


def test_c06_a_partition_that_two_use(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]}, protocol=COOPERATIVE)
    seq = tale.commits("a", 1, 1)
    verdict = judge(tale, "C06")
    assert (verdict.status, verdict.evidence) == ("fail", (seq,))
    assert verdict.message == f"#{seq} OffsetCommit v9 from a (generation 1) -> OK: it commits t 1 of b"


def test_c06_eager_members_revoke_everything_first(tale: Tale) -> None:
    tale.forms({"a": [0, 1]})
    tale.forms({"a": [0], "b": [1]}, before=STABLE)
    assert judge(tale, "C06").status == "not_applicable"


# -- C07: every partition once -------------------------------------------------------------------------------


def stable(partitions: int = 2, **held: list[int]) -> Stable:
    owners = tuple(MemberAssignment(label, {"t": numbers}, ["t"]) for label, numbers in held.items())
    return owners, {"t": partitions}


def test_c07_every_partition_is_owned(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    assert judge(tale, "C07", stable(a=[0], b=[1])).status == "pass"


def test_c07_a_partition_given_to_two(tale: Tale) -> None:
    tale.forms({"a": [0, 1], "b": [1]})
    tale.forms({"a": [0], "b": [1]}, before=STABLE)
    verdict = judge(tale, "C07", stable(a=[0], b=[1]))
    assert (verdict.status, verdict.message) == ("fail", "in generation 1 t 1 was given to a and b")


def test_c07_a_partition_without_an_owner(tale: Tale) -> None:
    tale.forms({"a": [0], "b": []})
    verdict = judge(tale, "C07", stable(a=[0], b=[]))
    assert (verdict.status, verdict.message) == ("fail", "the group is stable, and t [1] has no owner")


def test_c07_a_cooperative_group_before_its_second_round(tale: Tale) -> None:
    tale.forms({"a": [0, 1]}, protocol=COOPERATIVE)
    tale.forms({"a": [0], "b": []}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0, 1]})
    verdict = judge(tale, "C07", stable(a=[0], b=[]))
    assert verdict.status == "inconclusive"
    assert verdict.message == "t [1] has no owner: the follow-up rebalance has not started yet"
    tale.forms({"a": [0], "b": []}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0]})
    assert judge(tale, "C07", stable(a=[0], b=[])).status == "fail"


# -- C08: rejoining ------------------------------------------------------------------------------------------


def test_c08_a_member_that_rejoins_in_time(tale: Tale) -> None:
    tale.forms({"a": [0]})
    told = tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.passes(REBALANCE_MS)
    joined = tale.joins("a")
    verdict = judge(tale, "C08")
    assert (verdict.status, verdict.evidence) == ("pass", (told, joined["seq"]))


@pytest.mark.parametrize("way", ["late", "never", "silent"])
def test_c08_a_member_that_does_not_rejoin_in_time(tale: Tale, way: str) -> None:
    tale.forms({"a": [0]})
    told = tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.passes(REBALANCE_MS + 1)
    match way:
        case "late":
            tale.joins("a")
        case "never":
            tale.member("removed", "a", "join_timeout")
        case "silent":
            tale.beat("b", 0)
    verdict = judge(tale, "C08")
    assert verdict.status == "fail"
    assert told in verdict.evidence
    said = "joined again too late" if way == "late" else "has not joined again"
    assert f"-> REBALANCE_IN_PROGRESS, and {said}" in verdict.message
    assert verdict.message.endswith("its rebalance timeout is 30 s")


@pytest.mark.parametrize("excuse", ["jump", "closed", "left", "anew", "joining", "commit"])
def test_c08_when_a_member_need_not_rejoin(tale: Tale, excuse: str) -> None:
    tale.forms({"a": [0]})
    if excuse == "joining":
        # a heartbeat on another connection while the JoinGroup is parked
        tale.joins("a")
    if excuse == "commit":
        # during the rebalance, after the member has joined
        tale.commits("a", 1, error="REBALANCE_IN_PROGRESS")
    else:
        tale.call("Heartbeat", "a", "REBALANCE_IN_PROGRESS", member_id="a", generation=1, connection="second")
    match excuse:
        case "jump":
            tale.jumps(REBALANCE_MS * 2)
            tale.member("removed", "a", "join_timeout")
        case "closed":
            tale.closes("second")
        case "left":
            tale.call("LeaveGroup", "a", member_id="a")
        case "anew":
            tale.asks("JoinGroup", "a", connection="second")
    if excuse != "jump":
        tale.passes(REBALANCE_MS + 1)
        tale.call("OffsetFetch", "b")
    assert judge(tale, "C08").status in ("pass", "not_applicable")


def test_c08_a_join_behind_a_held_request_is_not_late(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    asked = tale.asks("OffsetCommit", "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})
    tale.passes(REBALANCE_MS + 1)
    assert judge(tale, "C08").status == "inconclusive"
    tale.answers(asked)
    tale.joins("a")
    assert judge(tale, "C08").status == "pass"


def test_c08_a_member_that_has_just_learned_of_the_rebalance(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    verdict = judge(tale, "C08")
    assert verdict.status == "inconclusive"
    assert verdict.message.endswith("and has not joined again yet")


# -- C09: tight loops ----------------------------------------------------------------------------------------

FATAL = ["FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED", "INCONSISTENT_GROUP_PROTOCOL"]


@pytest.mark.parametrize("error", FATAL)
def test_c09_retries_with_backoff(tale: Tale, error: str) -> None:
    for _ in range(30):
        tale.call("JoinGroup", "a", error)
        tale.passes(72)
    assert judge(tale, "C09").status == "pass"


@pytest.mark.parametrize("error", FATAL)
def test_c09_a_tight_loop(tale: Tale, error: str) -> None:
    for _ in range(15):
        tale.call("JoinGroup", "a", error)
        tale.passes(71)
    verdict = judge(tale, "C09")
    assert (verdict.status, len(verdict.evidence)) == ("fail", 15)
    assert verdict.message == f"a sent 15 requests within 1000 ms: #29 JoinGroup v9 from a -> {error}"


def test_c09_many_clients_at_once_are_no_loop(tale: Tale) -> None:
    for number in range(30):
        tale.call("JoinGroup", f"client-{number}", FATAL[0])
    assert judge(tale, "C09").status == "pass"


# -- C10: commit before revoke -------------------------------------------------------------------------------


def consumed(tale: Tale, *, commits: bool) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.commits("a", 1)
    tale.fetches("a")
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    # the client discards records that arrive now
    tale.fetches("a")
    if commits:
        tale.commits("a", 1)
    tale.forms({"a": [0]}, before=STABLE)


@pytest.mark.parametrize("auto_commit", [True, None])
def test_c10_a_commit_before_the_revoke(tale: Tale, auto_commit: bool | None) -> None:  # noqa: FBT001
    consumed(tale, commits=True)
    assert judge(tale, "C10", auto_commit=auto_commit).status == "pass"


@pytest.mark.parametrize(("auto_commit", "status"), [(True, "fail"), (None, "inconclusive"), (False, "not_applicable")])
def test_c10_no_commit_before_the_revoke(tale: Tale, auto_commit: bool | None, status: str) -> None:  # noqa: FBT001
    consumed(tale, commits=False)
    verdict = judge(tale, "C10", auto_commit=auto_commit)
    assert verdict.status == status
    if status != "not_applicable":
        assert verdict.message.startswith("a gave up its partitions with #")
        assert "has committed nothing since it fetched at #" in verdict.message


def test_c10_no_commit_before_leaving(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.call("LeaveGroup", "a", member_id="a")
    assert judge(tale, "C10", auto_commit=True).status == "fail"
    # the client may never commit
    assert judge(tale, "C10").status == "not_applicable"


def test_c10_cooperative_members_revoke_nothing_to_join(tale: Tale) -> None:
    tale.forms({"a": [0]}, protocol=COOPERATIVE)
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE, protocol=COOPERATIVE)
    assert judge(tale, "C10", auto_commit=True).status == "not_applicable"


def test_c10_fetches_after_a_rebalance_notice_are_not_consumed(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)
    assert judge(tale, "C10", auto_commit=True).status == "not_applicable"


def test_c10_fetches_of_clients_sharing_a_name_are_not_attributed(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    tale.fetches("a")
    tale.call("LeaveGroup", "a", member_id="a")
    tale.call("LeaveGroup", "b", member_id="b")
    assert judge(tale, "C10", auto_commit=True).status == "fail"
    for line in tale.lines:
        if "client_id" in line:
            line["client_id"] = "same"
    assert judge(tale, "C10", auto_commit=True).status == "not_applicable"
