"""Each case of a check is judged on its own: a pass hides no unclear or failed case of the same check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.trace_tales import REBALANCE_MS, SESSION_MS, STABLE, Tale, judge

from koordinator.emulator.verify.conformance import transaction_verdicts
from koordinator.emulator.verify.requests import RequestPattern, check_requests
from koordinator.emulator.verify.zombies import zombies

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSED = "NOT_COORDINATOR"


# -- C02 -----------------------------------------------------------------------------------------------------


def test_c02_a_late_lookup_says_nothing_about_an_earlier_refusal(tale: Tale) -> None:
    # KAFKA-13563
    silent = tale.beat("a", error=REFUSED)
    tale.passes(60_000)
    late = tale.call("FindCoordinator", "a", connection="bootstrap")
    verdict = judge(tale, "C02")
    assert (verdict.status, verdict.evidence) == ("inconclusive", (silent, late))
    assert f"and looked up the coordinator only 60 s later: #{late} FindCoordinator" in verdict.message


def test_c02_a_lookup_is_that_of_one_client(tale: Tale) -> None:
    # three processes with the default client id of their library, of which one never looks up
    for name in ("a", "b", "c"):
        tale.forms({name: [0]})
    for number, name in enumerate(("a", "b", "c")):
        tale.call("Heartbeat", "rdkafka", REFUSED, member_id=name, generation=3, connection=name)
        if name != "c":
            tale.call("FindCoordinator", "rdkafka", connection=f"bootstrap {number}")
    assert judge(tale, "C02").status == "inconclusive"
    tale.call("FindCoordinator", "rdkafka", connection="bootstrap 3")
    assert judge(tale, "C02").status == "pass"


def test_c02_a_repeated_lookup_is_not_that_of_another_client(tale: Tale) -> None:
    for name in ("a", "b"):
        tale.call("Heartbeat", "rdkafka", REFUSED, member_id=name, generation=3, connection=name)
    tale.call("FindCoordinator", "rdkafka", "COORDINATOR_NOT_AVAILABLE", connection="bootstrap")
    tale.call("FindCoordinator", "rdkafka", connection="bootstrap")
    assert judge(tale, "C02").status == "inconclusive"


def test_c02_a_lookup_that_another_request_has_caused_counts(tale: Tale) -> None:
    asked = tale.asks("OffsetCommit", "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})
    tale.call("Heartbeat", "a", REFUSED, member_id="a", generation=1, connection="heartbeats")
    tale.call("FindCoordinator", "a", connection="bootstrap")
    tale.answers(asked, REFUSED)
    assert judge(tale, "C02").status == "pass"


def test_c02_a_client_that_goes_on_after_it_closed_the_connection(tale: Tale) -> None:
    # Java's consumer closes the connection to an old coordinator
    tale.beat("a", error=REFUSED)
    tale.closes("a")
    assert judge(tale, "C02").status == "not_applicable"
    tale.asks("Fetch", "a", of_group=False, connection="fetches")
    assert judge(tale, "C02").status == "inconclusive"


# -- the other checks ----------------------------------------------------------------------------------------


def test_c01_an_id_that_was_unused_long_before_the_end_of_the_connection(tale: Tale) -> None:
    asked = tale.asks("JoinGroup", "a", body={"session_timeout_ms": SESSION_MS})
    tale.answers(asked, "MEMBER_ID_REQUIRED", member_id="a-1")
    tale.passes(SESSION_MS + 1)
    tale.beat("b")
    tale.closes("a")
    verdict = judge(tale, "C01")
    assert verdict.status == "fail"
    assert "a-1 has never used the id" in verdict.message


@pytest.mark.parametrize("way", ["closes", "joins as another member"])
def test_c08_a_member_that_came_back_long_after_its_timeout(tale: Tale, way: str) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.passes(REBALANCE_MS + 1)
    tale.beat("b", 0)
    if way == "closes":
        tale.closes("a")
    else:
        tale.asks("JoinGroup", "a")
    verdict = judge(tale, "C08")
    assert verdict.status == "fail"
    assert ("has not joined again" if way == "closes" else "joined again too late") in verdict.message


def test_c05_a_static_member_that_left_for_a_while_first(tale: Tale) -> None:
    tale.enters("a", 2, [0], "i")
    tale.beats("a", -2, instance="i")
    tale.enters("a", 3, [0], "i")
    tale.beats("a", -1, instance="i")
    assert judge(tale, "C05").status == "fail"


def test_c05_a_member_that_left_once_and_vanished_later(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.beats("a", -1)
    tale.enters("a", 3, [0])
    tale.closes("a")
    assert judge(tale, "C05").status == "inconclusive"


@pytest.mark.parametrize("check", ["C07", "C06", "zombies"])
def test_a_deleted_group_counts_its_generations_again(tale: Tale, check: str) -> None:
    tale.forms({"a": [0], "b": [1]}, protocol="cooperative-sticky")
    tale.state(STABLE, "Dead", 1, "removed")
    tale._generation = 0
    tale.forms({"a": [1], "b": [0, 1]} if check == "C07" else {"a": [1], "b": [0]}, protocol="cooperative-sticky")
    if check == "zombies":
        tale.commits("a", 1, 0)
        assert [each.kind for each in zombies(tale.trace)] == ["not_the_owner"]
        return
    if check == "C06":
        tale.commits("a", 1, 0)
    assert judge(tale, check).status == "fail"


def test_c06_a_foreign_offset_that_was_stored_beside_a_refused_one(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]}, protocol="cooperative-sticky")
    offsets = {"offsets": [["t", 9, 5], ["t", 1, 5]]}
    tale.call(
        "OffsetCommit",
        "a",
        "UNKNOWN_TOPIC_OR_PARTITION",
        {"refused": [["t", 9, 3]]},
        member_id="a",
        generation=1,
        body=offsets,
    )
    assert judge(tale, "C06").status == "fail"
    tale.lines[-1]["body"]["refused"].append(["t", 1, 3])
    assert judge(tale, "C06").status == "pass"


def test_t01_an_offset_of_an_earlier_transaction_does_not_count(tale: Tale) -> None:
    def decided(cause: str, outcome: str) -> None:
        tale.line("offsets", cause=cause, body={"producer_id": 7, outcome: [["t", 0, 5]]})

    body = {"transactional_id": "p", "producer_id": 7, "producer_epoch": 0, "offsets": [["t", 0, 5]]}
    tale.call("TxnOffsetCommit", "a", body=body)
    decided("transaction_aborted", "dropped")
    decided("transaction_committed", "committed")
    (verdict,) = (each for each in transaction_verdicts(tale.lines) if each.id == "T01")
    assert verdict.status == "fail"


# -- C13 and C14 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"])
def test_c13_a_member_that_never_joins_after_a_refused_commit(tale: Tale, error: str) -> None:
    tale.forms({"a": [0]})
    refused = tale.commits("a", 1, error=error)
    verdict = judge(tale, "C13")
    assert (verdict.status, verdict.evidence) == ("inconclusive", (refused,))
    assert verdict.message == f"a's commit #{refused} was refused with {error}; it has not joined since"
    tale.passes(REBALANCE_MS + 1)
    tale.beat("b", 0)
    verdict = judge(tale, "C13")
    assert (verdict.status, verdict.evidence) == ("fail", (refused,))
    assert verdict.message.startswith(f"a's commit #{refused} was refused with {error}; it has not joined since")


def joins(tale: Tale) -> None:
    tale.joins("a")


def joins_without_its_id(tale: Tale) -> None:
    tale.asks("JoinGroup", "a")


def joins_on_a_connection_for_joins(tale: Tale) -> None:
    # franz-go
    tale.asks("JoinGroup", "a", connection="joins")


def leaves(tale: Tale) -> None:
    tale.call("LeaveGroup", "a", member_id="a")


def closes(tale: Tale) -> None:
    tale.closes("a")


@pytest.mark.parametrize(
    "reaction",
    [joins, joins_without_its_id, joins_on_a_connection_for_joins, leaves, closes],
    ids=lambda each: each.__name__,
)
def test_c13_a_member_that_reacts_to_a_refused_commit(tale: Tale, reaction: Callable[[Tale], None]) -> None:
    tale.call("JoinGroup", "a", "MEMBER_ID_REQUIRED", connection="joins")
    tale.forms({"a": [0]})
    tale.call("Heartbeat", "a", member_id="a", generation=1, connection="joins")
    tale.commits("a", 1, error="ILLEGAL_GENERATION")
    reaction(tale)
    tale.passes(REBALANCE_MS + 1)
    tale.beat("b", 0)
    assert judge(tale, "C13").status == ("not_applicable" if reaction is closes else "pass")


def test_c13_one_join_does_not_excuse_another_member(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    tale.commits("a", 1, error="ILLEGAL_GENERATION")
    refused = tale.commits("b", 1, error="ILLEGAL_GENERATION")
    tale.joins("a")
    tale.passes(REBALANCE_MS + 1)
    tale.beat("c", 0)
    verdict = judge(tale, "C13")
    assert (verdict.status, verdict.evidence) == ("fail", (refused,))


def test_c13_a_commit_that_a_rebalance_overtook(tale: Tale) -> None:
    tale.forms({"a": [0]})
    commit = tale.asks("OffsetCommit", "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})
    tale.forms({"a": [0]}, before=STABLE)
    tale.answers(commit, "ILLEGAL_GENERATION")
    tale.passes(REBALANCE_MS + 1)
    tale.beat("a")
    assert judge(tale, "C13").status == "pass"


def test_c13_commits_from_outside_of_the_group_owe_no_join(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.call("OffsetCommit", "tool", "UNKNOWN_MEMBER_ID", generation=-1, body={"offsets": [["t", 0, 1]]})
    assert judge(tale, "C13").status == "not_applicable"


def led(tale: Tale) -> int:
    """Let member a join and lead a generation, without a SyncGroup; return its JoinGroup."""
    joins = {"a": tale.joins("a"), "b": tale.joins("b")}
    tale.state("PreparingRebalance", "CompletingRebalance", 1, "joined")
    for name, request in joins.items():
        body = {"protocol": "range", "leader": "a", "members": ["a", "b"] if name == "a" else []}
        tale.answers(request, generation=1, body=body)
    return int(joins["a"]["seq"])


def test_c14_a_leader_without_a_sync_group(tale: Tale) -> None:
    join = led(tale)
    verdict = judge(tale, "C14")
    assert (verdict.status, verdict.message) == (
        "inconclusive",
        f"a leads generation 1 since #{join}; it has sent no SyncGroup yet",
    )
    tale.passes(REBALANCE_MS - 1)
    tale.member("removed", "a", "sync_timeout")
    verdict = judge(tale, "C14")
    assert (verdict.status, verdict.message) == (
        "fail",
        f"a leads generation 1 since #{join}; it has sent no SyncGroup",
    )


def test_c14_a_leader_that_is_too_late(tale: Tale) -> None:
    join = led(tale)
    tale.passes(REBALANCE_MS + 1)
    sync = tale.call("SyncGroup", "a", "UNKNOWN_MEMBER_ID", member_id="a", generation=1)
    verdict = judge(tale, "C14")
    assert (verdict.status, verdict.message) == (
        "fail",
        f"a leads generation 1 since #{join}; its SyncGroup #{sync} came 30.001 s later",
    )


@pytest.mark.parametrize("api", ["SyncGroup", "JoinGroup", "LeaveGroup"])
def test_c14_a_leader_that_reacts(tale: Tale, api: str) -> None:
    led(tale)
    tale.call(api, "a", member_id="a", generation=1)
    tale.passes(REBALANCE_MS + 1)
    tale.beat("b", 0)
    assert judge(tale, "C14").status == "pass"


def test_c14_a_later_generation_does_not_excuse_the_leader_of_an_earlier_one(tale: Tale) -> None:
    join = led(tale)
    tale.passes(REBALANCE_MS)
    tale.member("removed", "a", "sync_timeout")
    tale.forms({"b": [0]}, before="PreparingRebalance", begins=False)
    verdict = judge(tale, "C14")
    assert (verdict.status, verdict.evidence) == ("fail", (join,))


def test_a_request_without_a_group_is_that_of_a_group_with_its_client(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.fetches("b")
    met, _, found = check_requests(tale.trace, RequestPattern("Fetch"), 1)
    assert met
    assert [each.client_id for each in found] == ["a"]
