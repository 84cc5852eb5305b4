"""The throttle of a group's members, and of single requests: the time in the response, and the muted connection."""

from __future__ import annotations

import pytest
from brokers.cluster import GROUP
from brokers.fault_broker import FaultyNodes, ask_once, commit_request
from builders import requests

from koordinator import faults
from koordinator.emulator.core.data.metadata_changes import ClientQuotaSet
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest

ANY = MetadataRequest(topics=())


def members() -> tuple[FaultyNodes, str, str]:
    """Return a node, and the ids of the members of its group."""
    nodes = FaultyNodes()
    one, two = nodes.stable(1, "one", "two")
    return nodes, one, two


def beat(member_id: str, instance: str) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id, group_instance_id=instance)


def test_a_throttled_member_is_answered_at_once_and_its_next_request_after_the_time() -> None:
    nodes, one, two = members()
    nodes.faults.throttle(nodes.now, group=GROUP, ms=2_000)
    peer, answer = ask_once(nodes, beat(one, "one"), 3)
    assert (answer.error_code, answer.throttle_time_ms) == (0, 2_000)
    assert nodes.ask(peer, beat(one, "one"), 3) is None
    # another member's connection is muted for itself
    assert ask_once(nodes, beat(two, "two"), 3)[1].throttle_time_ms == 2_000
    nodes.wait(1_999)
    assert len(peer.answers()) == 1
    nodes.wait(1)
    assert len(peer.answers()) == 2


def test_clients_outside_the_group_are_not_throttled() -> None:
    nodes, *_ = members()
    nodes.faults.throttle(nodes.now, group=GROUP, ms=2_000)
    for asked, version in ((ANY, 9), (commit_request(group="other"), 5)):
        peer, answer = ask_once(nodes, asked, version, client_id="d")
        assert answer.throttle_time_ms == 0
        assert nodes.ask(peer, ANY, 9) is not None


def test_a_fetch_of_a_member_is_throttled() -> None:
    nodes, *_ = members()
    nodes.faults.throttle(nodes.now, group=GROUP, ms=2_000)
    # the members' client id is c
    assert ask_once(nodes, requests.fetch("t", {0: 0}), 12)[1].throttle_time_ms == 2_000


def test_a_throttle_lasts_until_it_is_changed_or_taken_back() -> None:
    nodes, one, _ = members()
    for ms in (2_000, 500, 0, 0):
        nodes.faults.throttle(nodes.now, group=GROUP, ms=ms)
        assert ask_once(nodes, beat(one, "one"), 3)[1].throttle_time_ms == ms
    assert nodes.runtime.interceptor is None
    assert nodes.faults.unused(nodes.now) == []


def test_a_member_that_is_muted_for_longer_than_its_session_loses_it() -> None:
    nodes, one, _ = members()
    nodes.faults.throttle(nodes.now, group=GROUP, ms=15_000)
    peer, _ = ask_once(nodes, beat(one, "one"), 3)
    nodes.send(peer, nodes.request(peer, beat(one, "one"), 3))
    nodes.wait(15_000)
    assert peer.answers()[-1][1].error_code == 25


@pytest.mark.parametrize("group", ["a,b", "a%2Cb", "a*", "Grüße"])
def test_a_group_of_any_name_is_throttled_and_no_other(group: str) -> None:
    nodes = FaultyNodes()
    nodes.faults.throttle(nodes.now, group=group, ms=700)
    assert ask_once(nodes, commit_request(group=group), 5)[1].throttle_time_ms == 700
    assert ask_once(nodes, commit_request(group="ab"), 5, client_id="d")[1].throttle_time_ms == 0
    nodes.faults.throttle(nodes.now, group=group, ms=0)
    assert nodes.faults.rules(nodes.now) == []


def test_an_invalid_time_changes_nothing() -> None:
    nodes = FaultyNodes()
    nodes.faults.throttle(nodes.now, group=GROUP, ms=700)
    with pytest.raises(faults.RuleError, match="ms -1: must be an integer from 0"):
        nodes.faults.throttle(nodes.now, group=GROUP, ms=-1)
    assert [rule.action["ms"] for rule in nodes.faults.rules(nodes.now)] == [700]


def test_a_rule_that_does_not_mute_leaves_the_waiting_to_the_client() -> None:
    nodes, one, _ = members()
    nodes.rule("Heartbeat", faults.throttle(2_000))
    peer, answer = ask_once(nodes, beat(one, "one"), 3)
    assert answer.throttle_time_ms == 2_000
    assert nodes.ask(peer, ANY, 9) is not None


def test_a_rule_mutes_a_version_without_the_field_too() -> None:
    nodes, one, _ = members()
    nodes.rule("Heartbeat", faults.throttle(2_000, mute=True), version=0)
    asked = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=one)
    peer, answer = ask_once(nodes, asked, 0)
    assert answer.error_code == 0
    assert nodes.ask(peer, ANY, 9) is None
    nodes.wait(2_000)
    assert len(peer.answers()) == 2


def test_the_longer_of_a_rule_and_a_quota_counts() -> None:
    nodes = FaultyNodes()
    nodes.cluster.clients.apply(ClientQuotaSet({"client-id": "c"}, "controller_mutation_rate", 1))
    nodes.rule("CreateTopics", faults.throttle(2_000, mute=True))
    topic = CreatableTopic(name="a", num_partitions=16, replication_factor=1)
    peer, answer = ask_once(nodes, CreateTopicsRequest(topics=(topic,), timeout_ms=1_000), 5)
    assert answer.throttle_time_ms == 5_000
    nodes.send(peer, nodes.request(peer, ANY, 9))
    nodes.wait(4_999)
    assert len(peer.answers()) == 1
    nodes.wait(1)
    assert len(peer.answers()) == 2


def test_a_throttled_response_shows_in_the_trace() -> None:
    nodes, one, _ = members()
    nodes.faults.throttle(nodes.now, group=GROUP, ms=2_000)
    ask_once(nodes, beat(one, "one"), 3)
    ask_once(nodes, requests.fetch("t", {0: 0}), 12)
    shown = {each["api"]: (each["body"], each["rule_id"]) for each in nodes.kinds("response")[-2:]}
    assert shown == dict.fromkeys(("Heartbeat", "Fetch"), ({"throttle_time_ms": 2_000}, f"throttle-{GROUP}"))
