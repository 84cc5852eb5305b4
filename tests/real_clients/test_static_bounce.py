"""Static members of the real clients (KIP-345): they return within their session, or are fenced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import KINDS, Member, Members, assignor_settings, error_name, wait_settled, wait_until

if TYPE_CHECKING:
    from koordinator import Cluster, Group

pytestmark = pytest.mark.koordinator(topics={"t": 6})


def events(group: Group, kind: str, **columns: object) -> list[dict[str, Any]]:
    """Return the group's events of one kind with the given values."""
    return [
        event
        for event in group.events()
        if event["kind"] == kind and all(event.get(name) == value for name, value in columns.items())
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_static_member_killed_and_started_again_within_its_session_does_not_rebalance(
    koordinator: Cluster, join: Members, kind: str
) -> None:
    group = koordinator.group("g")
    settings: dict[str, Any] = {"session_timeout_ms": 30_000}
    survivor = join(kind, instance="survivor", **settings)
    wait_until("alone", lambda: len(survivor.assignment) == 6, survivor)
    with join.process(kind, group_instance_id="bounced", **settings) as first:
        wait_until("two members", lambda: len(survivor.assignment) == 3, survivor)
        wait_settled(group)
        before, callbacks = group.describe(), len(survivor.callbacks)
        states = len(events(group, "state"))
        first.kill()
        first.wait()
    with join.process(kind, group_instance_id="bounced", **settings):

        def is_back() -> bool:
            ids = [member.member_id for member in group.members if member.instance_id == "bounced"]
            return bool(events(group, "response", api="SyncGroup", member_id=ids[0]))

        old = {member.instance_id: member.member_id for member in before.members}["bounced"]
        wait_until("it is back", lambda: old not in {member.member_id for member in group.members}, survivor)
        wait_until("it has its assignment", is_back, survivor)
        # both members continue to send heartbeats
        beats = len(events(group, "response", api="Heartbeat", error_code=0))
        wait_until(
            "heartbeats", lambda: len(events(group, "response", api="Heartbeat", error_code=0)) > beats + 5, survivor
        )
        after = group.describe()
    assert (after.state, after.generation) == ("Stable", before.generation)
    assert group.assignment == {member.label: member.assignment for member in before.members}
    assert [event["instance_id"] for event in events(group, "avoided_static")] == ["bounced"]
    assert len(events(group, "state")) == states
    assert len(survivor.callbacks) == callbacks
    given = events(group, "response", api="SyncGroup")[-1]["body"]["assignment"]
    assert given == {"t": group.assignment["bounced"]["t"]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_dynamic_member_killed_is_missed_when_its_session_ends(
    koordinator: Cluster, join: Members, kind: str
) -> None:
    group = koordinator.group("g")
    survivor = join(kind)
    wait_until("alone", lambda: len(survivor.assignment) == 6, survivor)
    with join.process(kind, session_timeout_ms=1_000) as killed:
        wait_until("two members", lambda: len(survivor.assignment) == 3, survivor)
        group.wait_stable(members=2)
        generation = group.generation
        killed.kill()
        wait_until("alone again", lambda: len(survivor.assignment) == 6, survivor)
    assert group.generation > generation
    assert [event["cause"] for event in events(group, "member", change="removed")] == ["session_expired"]


def wait_given_up(member: Member) -> None:
    wait_until("it gives up", lambda: member.error is not None, member)


@pytest.mark.parametrize(("kind", "error"), [("kafka-python", "FencedInstanceIdError"), ("confluent-kafka", "_FATAL")])
@pytest.mark.parametrize("younger", KINDS)
def test_of_two_with_one_instance_id_the_older_is_fenced(
    koordinator: Cluster, join: Members, kind: str, error: str, younger: str
) -> None:
    group = koordinator.group("g")
    # kafka-python learns of it in a commit
    older = join(kind, instance="one", auto_commit_interval_ms=200, **assignor_settings(kind, "range"))
    wait_until("it owns the topic", lambda: len(older.assignment) == 6, older)
    koordinator.produce("t", "1", "2", "3")
    wait_until("it has records to commit", lambda: len(older.records) == 3, older)
    wait_settled(group)
    generation = group.generation
    displacing = join(younger, instance="one", **assignor_settings(younger, "range"))
    wait_given_up(older)
    assert older.error is not None
    assert error_name(older.error) == error
    if kind == "confluent-kafka":
        assert "Static consumer fenced" in older.error.args[0].str()
    wait_until("the younger owns the topic", lambda: len(displacing.assignment) == 6, displacing)
    assert group.generation == generation
    assert {
        event["error_code"] for event in events(group, "response") if event.get("error") == "FENCED_INSTANCE_ID"
    } == {82}


def test_aiokafka_cannot_be_fenced_and_takes_its_place_back(koordinator: Cluster, join: Members) -> None:
    # its Heartbeat v1 has no instance id: the response has error 25, and the client rejoins
    group = koordinator.group("g")
    one = join("aiokafka", instance="one")
    wait_until("it owns the topic", lambda: len(one.assignment) == 6, one)
    other = join("aiokafka", instance="one")
    wait_until("each has displaced the other", lambda: len(events(group, "member", change="replaced")) > 1, one, other)
    assert {event["error"] for event in events(group, "response") if event.get("error")} == {"UNKNOWN_MEMBER_ID"}
