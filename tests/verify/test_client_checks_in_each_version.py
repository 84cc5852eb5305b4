"""Each client check (C01 to C14) has its failing scene in each version of the APIs that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.checks_in_versions import (
    assert_fails_in_each_version,
    assert_reads_no_other_api,
    cases_of,
    judged,
    of_each,
)
from scenes.lines_on_the_wire import GROUP_APIS, over_the_wire
from scenes.trace_tales import COMPLETING, FULL, INTERVAL_MS, PREPARING, REBALANCE_MS, SESSION_MS, STABLE

from koordinator.emulator.trace.vocabulary import CHECKS

if TYPE_CHECKING:
    from scenes.checks_in_versions import Scene
    from scenes.trace_tales import Tale

COOPERATIVE = "cooperative-sticky"

LOOKED_UP = [api for api in GROUP_APIS if api not in ("AddOffsetsToTxn", "FindCoordinator")]
"""The APIs that the group's coordinator serves."""


def unused_id(tale: Tale) -> None:
    asked = tale.asks("JoinGroup", "a", body={"session_timeout_ms": SESSION_MS})
    tale.answers(asked, "MEMBER_ID_REQUIRED", member_id="a-1")
    tale.passes(SESSION_MS + 1)
    tale.line("timer", timer="PendingMemberExpiry", member_id="a-1")


def no_lookup(tale: Tale, api: str) -> None:
    for _ in range(2):
        tale.call(api, "a", "NOT_COORDINATOR", member_id="a", generation=1)
        tale.passes(1001)


def one_lookup_of_two(tale: Tale) -> None:
    tale.beat("a", 1, "NOT_COORDINATOR")
    tale.call("FindCoordinator", "a")
    tale.passes(1001)
    no_lookup(tale, "Heartbeat")


def old_commit(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.forms({"a": [0]}, before=STABLE)
    tale.commits("a", 1, error="ILLEGAL_GENERATION")


def silence(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.passes(SESSION_MS)
    tale.beat("a")
    tale.passes(SESSION_MS)
    tale.beat("a")


def silence_in_a_consumer_group(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.passes(INTERVAL_MS + 1000)
    tale.beats("a", 2)


def silence_of_one_that_did_not_leave(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [0]})
    tale.call("LeaveGroup", "a", member_id="a")
    tale.passes(SESSION_MS)
    tale.call("OffsetFetch", "c")


def no_generation(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    tale.call(api, "a", "ILLEGAL_GENERATION", member_id="a", generation=-1)


def static_leave(tale: Tale) -> None:
    tale.forms({"a": [0]}, instances={"a": "one"})
    tale.call("LeaveGroup", "a", member_id="a", instance_id="one")


def static_leave_on_a_connection_for(tale: Tale, api: str) -> None:
    tale.line("member", change="added", member_id="a", instance_id="one", cause="member_join")
    tale.call(api, "a", member_id="a", generation=1)
    tale.call("LeaveGroup", "a", member_id="a")


def static_leave_of_a_consumer_group(tale: Tale) -> None:
    tale.enters("a", 2, [0], "one")
    tale.beats("a", -1, instance="one")


def taken_too_early(tale: Tale) -> None:
    tale.forms({"a": [0, 1]}, protocol=COOPERATIVE)
    tale.forms({"a": [0], "b": [1]}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0, 1]})


def foreign_commit(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]}, protocol=COOPERATIVE)
    tale.commits("a", 1, 1)


def owned_again(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, given=[0])
    tale.beats("a", 2, 3, owned={"t": [0]})
    tale.beats("a", 3, owned={"t": [0, 1]}, **FULL)


def owned_twice(tale: Tale) -> None:
    tale.forms({"a": [0, 1], "b": [1]})


def never_joined(tale: Tale) -> None:
    tale.passes(REBALANCE_MS + 1)
    tale.beat("c", 0)


def no_rejoin(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    tale.call(api, "a", "REBALANCE_IN_PROGRESS", member_id="a", generation=1)
    never_joined(tale)


def no_rejoin_of_one_that_did_not_leave(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    for name in ("a", "b"):
        tale.beat(name, error="REBALANCE_IN_PROGRESS")
    tale.call("LeaveGroup", "a", member_id="a")
    never_joined(tale)


def tight_loop(tale: Tale, api: str) -> None:
    for _ in range(15):
        tale.call(api, "a", "FENCED_INSTANCE_ID", member_id="a", generation=1)
        tale.passes(20)


def revoked_uncommitted(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)


def left_uncommitted(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.call("LeaveGroup", "a", member_id="a")


def one_commit_of_two(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.commits("a", 1)
    tale.forms({"a": [0]}, before=STABLE)
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)


def one_fetch_of_two_after_the_signal(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)


def not_everything_repeated(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.beats("a", 2, error="NOT_COORDINATOR")
    tale.beats("a", 2)


def epoch_gone_back(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, 3, owned={"t": [0]})
    tale.beats("a", 2)


def refused_commit(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    body = {"offsets": [["t", 0, 1]]}
    tale.call(api, "a", "ILLEGAL_GENERATION", member_id="a", generation=1, body=body)
    never_joined(tale)


def refused_commit_of_one_that_did_not_leave(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    for name in ("a", "b"):
        tale.commits(name, 1, error="ILLEGAL_GENERATION")
    tale.call("LeaveGroup", "a", member_id="a")
    never_joined(tale)


def late_leader(tale: Tale, api: str) -> None:
    request = tale.joins("a")
    tale.state(PREPARING, COMPLETING, 1, "joined")
    tale.answers(request, generation=1, body={"protocol": "range", "leader": "a", "members": ["a"]})
    tale.passes(REBALANCE_MS + 1)
    tale.call(api, "a", "UNKNOWN_MEMBER_ID", member_id="a", generation=1)


SCENES: dict[str, tuple[Scene, ...]] = {
    "C01": (unused_id,),
    "C02": (*of_each(no_lookup, LOOKED_UP), one_lookup_of_two),
    "C03": (old_commit,),
    "C04": (
        silence,
        silence_in_a_consumer_group,
        silence_of_one_that_did_not_leave,
        *of_each(no_generation, ("Heartbeat", "OffsetCommit", "SyncGroup")),
    ),
    "C05": (
        static_leave,
        *of_each(static_leave_on_a_connection_for, ("Heartbeat", "JoinGroup", "SyncGroup")),
        static_leave_of_a_consumer_group,
    ),
    "C06": (taken_too_early, foreign_commit, owned_again),
    "C07": (owned_twice,),
    "C08": (*of_each(no_rejoin, ("Heartbeat", "SyncGroup")), no_rejoin_of_one_that_did_not_leave),
    "C09": of_each(tight_loop, GROUP_APIS),
    "C10": (revoked_uncommitted, left_uncommitted, one_commit_of_two, one_fetch_of_two_after_the_signal),
    "C11": (not_everything_repeated,),
    "C12": (epoch_gone_back,),
    "C13": (*of_each(refused_commit, ("OffsetCommit", "TxnOffsetCommit")), refused_commit_of_one_that_did_not_leave),
    "C14": of_each(late_leader, ("JoinGroup", "LeaveGroup", "SyncGroup")),
}
"""The failing scenes of each check."""

WITHOUT_EFFECT = {
    ("C02", "AddOffsetsToTxn"): "it is left out: it asks the coordinator of a transactional id",
    ("C06", "LeaveGroup"): "`Exchange.leaves` covers both kinds of groups: a consumer group has no LeaveGroup",
    (
        "C07",
        "JoinGroup",
    ): "a member's claim decides only whether the follow-up rebalance is due; C06 has it in each version",
    ("C11", "LeaveGroup"): "as C06",
    ("C12", "LeaveGroup"): "as C06",
    ("C13", "ConsumerGroupHeartbeat"): "as C06: a classic group has no ConsumerGroupHeartbeat",
    ("C14", "ConsumerGroupHeartbeat"): "as C13",
}
"""The APIs that a check's code names, although no verdict depends on them, each with the reason."""


@pytest.mark.slow
@pytest.mark.parametrize(("check", "scene"), cases_of(SCENES))
def test_a_check_fails_in_each_version(check: str, scene: Scene) -> None:
    assert_fails_in_each_version(check, scene)


def test_each_check_has_a_failing_scene() -> None:
    assert {*SCENES} == {*CHECKS}


@pytest.mark.slow
def test_a_check_reads_no_api_without_a_failing_scene() -> None:
    assert_reads_no_other_api(SCENES, WITHOUT_EFFECT)


def test_a_join_without_a_rebalance_timeout_has_its_session_timeout(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.passes(SESSION_MS)
    tale.joins("a")
    over_the_wire(tale.lines, "JoinGroup", 0)
    assert judged("C08", tale.lines)[0] == "pass"
