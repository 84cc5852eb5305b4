"""Rules and holds, and the reaction of real clients."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from clients.consumers import PATIENCE_S, Members, error_name, wait_settled, wait_until

from koordinator import Emulator, faults

if TYPE_CHECKING:
    from clients.consumers import Member

    from koordinator import Cluster

CLIENTS = pytest.mark.parametrize("kind", ["kafka-python", "confluent-kafka"])


def consuming(koordinator: Cluster, join: Members, kind: str, **extra: object) -> Member:
    """A member that owns all of topic t and has read its four records."""
    koordinator.create_topic("t", partitions=2, records=4)
    member = join(kind, client_id="svc-1", enable_auto_commit=False, **extra)
    koordinator.group("g").wait_stable(members=1, timeout=PATIENCE_S)
    wait_until("its records", lambda: len(member.records) == 4, member)
    wait_settled(koordinator.group("g"))
    return member


def test_kafka_python_sends_a_commit_again_that_was_applied_and_not_answered(
    koordinator: Cluster, join: Members
) -> None:
    member = consuming(koordinator, join, "kafka-python")
    group = koordinator.group("g")
    generation = group.generation
    rule = group.add_rule("OffsetCommit", faults.lose_reply(), once=True)
    member.commit()
    assert (rule.hits, sum(group.offsets.values())) == (1, 4)
    asked = [each for each in group.events() if each["kind"] == "request" and each["api"] == "OffsetCommit"]
    assert len(asked) == 2
    assert group.generation == generation


def test_confluent_kafka_may_lose_its_session_over_a_commit_that_was_applied_and_not_answered(
    koordinator: Cluster, join: Members
) -> None:
    """The client reconnects until its session expires: docs/clients.md."""
    member = consuming(koordinator, join, "confluent-kafka", session_timeout_ms=1_000)
    group = koordinator.group("g")
    rule = group.add_rule("OffsetCommit", faults.lose_reply(), once=True)
    committing = member.begin_commit()
    wait_until("the end of the commit", committing.done, member)
    assert (rule.hits, sum(group.offsets.values())) == (1, 4), "the commit was applied despite the response"
    error = committing.exception()
    assert error is None or error_name(error) in {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"}
    group.wait_stable(members=1, timeout=PATIENCE_S)


@CLIENTS
def test_a_commit_in_flight_meets_a_group_that_has_moved_on(koordinator: Cluster, join: Members, kind: str) -> None:
    member = consuming(koordinator, join, kind)
    group = koordinator.group("g")
    peer = group.create_puppet("peer", protocols=["range", "roundrobin"], topics=["t"])
    with group.hold("OffsetCommit", client_id="svc-1") as held:
        committing = member.begin_commit()
        assert held.wait_entered().client_id == "svc-1"
        peer.join()
        group.expire_join_phase()
        held.release()
    with pytest.raises(Exception) as failed:  # noqa: PT011 - of whichever client
        committing.result(PATIENCE_S)
    assert error_name(failed.value) in {"CommitFailedError", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"}
    assert group.offsets == {}
    group.wait_stable(members=2, timeout=PATIENCE_S)


@CLIENTS
def test_a_request_that_is_never_answered_runs_into_the_clients_own_timeout(
    koordinator: Cluster, join: Members, kind: str
) -> None:
    timeouts = {
        "kafka-python": {"request_timeout_ms": 3_000, "session_timeout_ms": 2_000, "fetch_max_wait_ms": 500},
        "confluent-kafka": {"socket.timeout.ms": 2_000},
    }
    member = consuming(koordinator, join, kind, **timeouts[kind])
    group = koordinator.group("g")
    rule = group.add_rule("OffsetCommit", faults.never_answer(), once=True)
    committing = member.begin_commit()
    if kind == "kafka-python":
        # the commit times out; on a slow machine the client first learns that its session expired
        with pytest.raises(Exception) as failed:  # noqa: PT011 - the client's own
            committing.result(PATIENCE_S)
        assert error_name(failed.value) in {"KafkaTimeoutError", "CommitFailedError", "UnknownMemberIdError"}
        assert group.offsets == {}
    else:
        # the client retries on another connection
        committing.result(PATIENCE_S)
        assert sum(group.offsets.values()) == 4
    assert rule.hits == 1
    assert rule.last is not None
    closed = [each for each in koordinator.events() if each["kind"] == "conn" and each["change"] == "closed"]
    assert rule.last.connection in {each["conn_id"] for each in closed}


@CLIENTS
def test_a_truncated_answer_costs_a_connection_and_no_rebalance(koordinator: Cluster, join: Members, kind: str) -> None:
    member = consuming(koordinator, join, kind)
    group = koordinator.group("g")
    generation = group.generation
    rule = group.add_rule("Heartbeat", faults.truncate(6), once=True)
    wait_until("the next heartbeat", lambda: rule.hits == 1, member)
    member.commit()
    assert sum(group.offsets.values()) == 4
    assert group.generation == generation


@CLIENTS
def test_a_member_joins_over_a_slow_network(koordinator: Cluster, join: Members, kind: str) -> None:
    """kafka_ex #540: a delayed MEMBER_ID_REQUIRED."""
    group = koordinator.group("g")
    rule = group.add_rule("JoinGroup", faults.delay(300), member="", version=">=4")
    consuming(koordinator, join, kind)
    assert rule.hits >= 1
    late = [each for each in group.events() if each["kind"] == "response" and each.get("rule_id") == rule.id]
    assert [each["error"] for each in late] == ["MEMBER_ID_REQUIRED"] * rule.hits
    assert all(int(str(each["latency_us"])) >= 299_000 for each in late)
    assert [member.client_id for member in group.members] == ["svc-1"]


@pytest.mark.koordinator(config={"group.initial.rebalance.delay.ms": 100})
@CLIENTS
def test_clients_that_take_turns_form_one_generation(koordinator: Cluster, join: Members, kind: str) -> None:
    koordinator.create_topic("t", partitions=2)
    group = koordinator.group("g")
    names = ["svc-1", "svc-2"]
    with group.lockstep("JoinGroup", clients=names) as step:
        for name in names:
            join(kind, client_id=name)
        step.wait_round(PATIENCE_S)  # both receive their member ids
        step.wait_round(PATIENCE_S)
    group.assert_request("JoinGroup", error="NONE", generation=1, times=2, timeout=PATIENCE_S)


@CLIENTS
def test_in_lockstep_the_outcome_is_independent_of_arrival_order(kind: str) -> None:
    """Determinism level D2."""

    def outcome(*names: str) -> tuple[list[str], str | None]:
        """Return the order in which clients joined, and the leader."""
        delay = {"group.initial.rebalance.delay.ms": 100}
        with Emulator(topics={"t": 6}, seed=11, config=delay) as cluster, Members(cluster) as join:
            group = cluster.group("g")
            with group.lockstep("JoinGroup", clients=sorted(names)) as step:
                for number, name in enumerate(names, 1):
                    join(kind, client_id=name)
                    wait_until("its request", partial(has_come, cluster, number), *join.all)
                step.wait_round(PATIENCE_S)
                step.wait_round(PATIENCE_S)
            group.wait_stable(members=3, timeout=PATIENCE_S)
            members = {member.member_id: member.client_id for member in group.members}
            return list(members.values()), members.get(group.leader or "")

    assert outcome("a", "b", "c") == outcome("c", "b", "a") == outcome("b", "c", "a")


def has_come(cluster: Cluster, joins: int) -> bool:
    """Return whether this number of JoinGroups has arrived."""
    return sum(event["kind"] == "request" and event["api"] == "JoinGroup" for event in cluster.events()) >= joins
