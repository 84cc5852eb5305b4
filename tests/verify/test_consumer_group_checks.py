"""The client checks of consumer groups (KIP-848) over hand-written trace lines: C04 to C06, C11 and C12."""

from __future__ import annotations

import pytest
from scenes.trace_tales import FULL, INTERVAL_MS, Tale, judge

LATE_MS = INTERVAL_MS + 1_000


# -- C04: heartbeats within the interval ---------------------------------------------------------------------


def test_c04_heartbeats_within_the_interval_pass(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    for _ in range(3):
        tale.passes(INTERVAL_MS)
        tale.beats("a", 2)
    assert judge(tale, "C04").status == "pass"


def test_c04_a_heartbeat_after_the_interval_fails(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.passes(LATE_MS)
    late = tale.beats("a", 2)
    verdict = judge(tale, "C04")
    assert (verdict.status, verdict.evidence[-1]) == ("fail", late["seq"])
    assert "sent no heartbeat for 6 s" in verdict.message
    assert "its heartbeat interval is 5 s" in verdict.message


def test_c04_a_silent_member_fails_at_its_removal(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.passes(45_000)
    tale.member("removed", "a", "session_expired")
    assert judge(tale, "C04").status == "fail"


def test_c04_a_member_that_left_owes_no_heartbeat(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.beats("a", -1)
    tale.passes(LATE_MS)
    tale.enters("b", 4, [0])
    assert judge(tale, "C04").status == "pass"


# -- C05: leaving --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("instance", "epoch", "status"), [(None, -1, "pass"), ("i", -2, "pass"), ("i", -1, "fail")])
def test_c05_a_static_member_leaves_for_a_while_only(tale: Tale, instance: str | None, epoch: int, status: str) -> None:
    tale.enters("a", 2, [0], instance)
    tale.beats("a", epoch, instance=instance)
    tale.closes("a")
    assert judge(tale, "C05").status == status


# -- C06: nothing owned without an assignment ----------------------------------------------------------------


def test_c06_a_member_that_reports_its_assignment_passes(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, given=[0])
    tale.beats("a", 2, 3, owned={"t": [0]})
    assert judge(tale, "C06").status == "pass"


def test_c06_a_member_may_report_an_assignment_after_it_has_received_the_next(tale: Tale) -> None:
    tale.beats("a", 0, 2, given=[0, 1], **FULL, owned={})
    tale.beats("a", 2, given=[0])
    tale.beats("a", 2, owned={"t": [0, 1]})
    tale.beats("a", 2, 3, owned={"t": [0]})
    assert judge(tale, "C06").status == "pass"


def test_c06_a_partition_that_was_given_up_is_not_owned_again(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, given=[0])
    tale.beats("a", 2, 3, owned={"t": [0]})
    again = tale.beats("a", 3, owned={"t": [0, 1]}, **FULL)
    verdict = judge(tale, "C06")
    assert (verdict.status, verdict.evidence) == ("fail", (again["seq"],))
    assert "a reports t 1, which it was not assigned" in verdict.message


def test_c06_a_partition_is_not_owned_before_it_is_assigned(tale: Tale) -> None:
    tale.beats("a", 0, 2, given=[], **FULL, owned={})
    tale.beats("a", 2, owned={"t": [3]})
    assert judge(tale, "C06").status == "fail"


# -- C11: everything again after an error --------------------------------------------------------------------


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "TOPIC_AUTHORIZATION_FAILED"])
def test_c11_everything_is_repeated_after_an_error(tale: Tale, error: str) -> None:
    tale.enters("a", 2, [0])
    tale.beats("a", 2, error=error)
    tale.beats("a", 2, owned={"t": [0]}, **FULL)
    assert judge(tale, "C11").status == "pass"


def test_c11_a_bare_heartbeat_after_an_error_fails(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    failed = tale.beats("a", 2, error="NOT_COORDINATOR")
    bare = tale.beats("a", 2)
    verdict = judge(tale, "C11")
    assert (verdict.status, verdict.evidence) == ("fail", (failed["seq"], bare["seq"]))
    assert "did not repeat everything" in verdict.message


def test_c11_a_lost_membership_is_followed_by_a_join(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.beats("a", 2, error="FENCED_MEMBER_EPOCH")
    tale.enters("a", 4, [0])
    assert judge(tale, "C11").status == "pass"


@pytest.mark.parametrize("error", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
def test_c11_a_refused_epoch_is_not_used_again(tale: Tale, error: str) -> None:
    tale.enters("a", 2, [0])
    tale.beats("a", 2, error=error)
    tale.beats("a", 2, owned={"t": [0]}, **FULL)
    verdict = judge(tale, "C11")
    assert verdict.status == "fail"
    assert "did not join again" in verdict.message


# -- C12: the latest epoch -----------------------------------------------------------------------------------


def test_c12_heartbeats_follow_the_epochs_of_their_responses(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, 3, owned={"t": [0]})
    tale.beats("a", 3)
    assert judge(tale, "C12").status == "pass"


def test_c12_an_epoch_never_goes_back(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, 3, owned={"t": [0]})
    tale.beats("a", 2)
    verdict = judge(tale, "C12")
    assert verdict.status == "fail"
    assert "a was at epoch 3, and sent" in verdict.message


def test_c12_a_response_may_be_lost_with_its_connection(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, 3, owned={"t": [0]})
    asked = tale.asks(
        "ConsumerGroupHeartbeat", "a", connection="other", member_id="a", generation=2, body={**FULL, "owned": {}}
    )
    tale.answers(asked, generation=3, body={"heartbeat_interval_ms": INTERVAL_MS})
    assert judge(tale, "C12").status == "pass"
