"""The client checks of single members over hand-written trace lines: C01 to C05 and C09."""

from __future__ import annotations

import pytest
from scenes.trace_tales import PREPARING, SESSION_MS, STABLE, Tale, judge

from koordinator.emulator.trace.vocabulary import CHECKS
from koordinator.emulator.verify.conformance import conformance


def test_each_check_has_a_verdict_and_can_be_ignored(tale: Tale) -> None:
    assert [each.id for each in conformance(tale.trace)] == list(CHECKS)
    assert [each.id for each in conformance(tale.trace, ignore=["C05", "C01"])] == [
        each for each in CHECKS if each not in ("C01", "C05")
    ]
    with pytest.raises(ValueError, match="the check 'C15' is not known; did you mean 'C1"):
        conformance(tale.trace, ignore=["C15"])


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


def test_c02_is_not_about_the_coordinator_of_a_transactional_id(tale: Tale) -> None:
    # its FindCoordinator names no group
    for _ in range(2):
        tale.call("AddOffsetsToTxn", "a", "NOT_COORDINATOR")
        tale.passes(1001)
    assert judge(tale, "C02").status == "not_applicable"
    tale.beat("a", error="NOT_COORDINATOR")
    tale.passes(1001)
    tale.call("AddOffsetsToTxn", "a")
    assert judge(tale, "C02").status == "inconclusive"


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


@pytest.mark.parametrize(("lag_ms", "status"), [(2999, "fail"), (3001, "inconclusive")])
def test_c04_a_lag_of_the_emulator_does_not_count(tale: Tale, lag_ms: int, status: str) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    tale.passes(SESSION_MS)
    tale.member("removed", "a", "session_expired")
    # the loop measures its lag after the expiry that the lag caused
    tale.passes(1000)
    tale.line("lag", of_group=False, body={"lag_ms": lag_ms + 1000})
    verdict = judge(tale, "C04")
    assert verdict.status == status
    if status == "inconclusive":
        assert verdict.message.endswith("; the emulator itself was 3 s late, on a busy machine")


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
