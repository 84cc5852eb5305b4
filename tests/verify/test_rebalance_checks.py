"""The client checks of rebalances over hand-written trace lines: C06 to C08 and C10."""

from __future__ import annotations

import pytest
from scenes.trace_tales import REBALANCE_MS, STABLE, StableAssignment, Tale, judge

from koordinator.emulator.verify.ownership import MemberAssignment

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


def stable(partitions: int = 2, **held: list[int]) -> StableAssignment:
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


def test_c10_a_fetch_that_was_refused_in_its_partition_has_no_records(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a", records=False)
    tale.call("LeaveGroup", "a", member_id="a")
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
