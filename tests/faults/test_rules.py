"""Rules as data: JSON there and back, and what is refused when it is made."""

from __future__ import annotations

import json
from typing import Any

import pytest
from brokers.fault_broker import Faulty
from hypothesis import given
from hypothesis import strategies as st

from koordinator import faults
from koordinator.emulator.control.faults.actions import ACTIONS, RuleError, action_data
from koordinator.emulator.control.faults.error_responses import PLACES_OF
from koordinator.emulator.control.faults.rules import API_NAMES, STATES, WITH_GENERATION, FaultRule, Match
from koordinator.wire.errors import Error

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
MS = st.integers(0, 2**31 - 1)


@st.composite
def actions(draw: st.DrawFn, api: str) -> faults.Action:
    simple = [faults.drop(), faults.lose_reply(), faults.wrong_correlation_id()]
    kinds: list[st.SearchStrategy[Any]] = [
        st.sampled_from(simple),
        st.builds(lambda apply: faults.never_answer(apply=apply), st.booleans()),
        st.builds(faults.truncate, MS),
        st.builds(faults.drip, st.integers(1, 99), MS),
        st.builds(faults.delay, MS, clock=st.sampled_from(["wall", "group"])),
        st.builds(lambda low, more: faults.delay(uniform_ms=(low, low + more)), st.integers(0, 99), st.integers(0, 99)),
        st.builds(
            lambda median, sigma: faults.delay(lognormal_ms=(median, sigma)), st.floats(0.5, 1e6), st.floats(0, 9)
        ),
        st.builds(faults.evict, st.none() | TEXTS),
        st.builds(faults.fence, st.none() | TEXTS),
        st.builds(faults.rebalance, TEXTS),
    ]
    if api in PLACES_OF:
        names = st.sampled_from([each for each in Error.__members__ if each != "NONE"])
        kinds.append(st.builds(faults.error, names, st.none() | st.sampled_from(PLACES_OF[api])))
    if api == "Heartbeat":
        kinds.append(st.builds(faults.throttle, MS))
    return draw(st.one_of(kinds))


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    """A rule as JSON."""
    api = draw(st.sampled_from([*API_NAMES, "*"]))
    match: dict[str, Any] = {"api": api}
    for name in ("client_id", "group", "member", "instance_id"):
        if draw(st.booleans()):
            match[name] = draw(TEXTS)
    if draw(st.booleans()):
        match["state"] = draw(st.sampled_from(STATES))
    if draw(st.booleans()):
        match["broker"] = draw(st.integers(1, 9))
    if api in WITH_GENERATION and draw(st.booleans()):
        match["generation"] = draw(st.integers(-1, 9))
    if draw(st.booleans()):
        match["version"] = draw(
            st.sampled_from([0, "0-3", ">=0", "<=2", "<1", ">=1"]) if api == "*" else st.just(">=0")
        )
    trigger = draw(
        st.sampled_from([{}, {"once": True}])
        | st.builds(lambda name, number: {name: number}, st.sampled_from(["times", "nth", "every"]), st.integers(1, 99))
        | st.builds(lambda chance: {"probability": chance}, st.floats(0, 1))
    )
    rule: dict[str, Any] = {"id": "r", "match": match, "action": action_data(draw(actions(api)))}
    if trigger:
        rule["trigger"] = trigger
    if draw(st.booleans()):
        rule["optional"] = True
    return rule


@given(rules())
def test_a_rule_goes_to_json_and_back_without_loss(data: dict[str, Any]) -> None:
    rule = FaultRule.of(data, "other")
    assert rule.data() == data
    assert FaultRule.of(json.loads(json.dumps(rule.data())), "other") == rule
    assert str(rule).startswith("r: ")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"match": {"api": "OffsetComit"}}, r"unknown API 'OffsetComit'; the nearest is 'OffsetCommit'"),
    ({"match": {}}, r"match: wants an api"),
    ({"match": {"api": "Heartbeat", "clientid": "x"}}, r"unknown field 'clientid'; the nearest is 'client_id'"),
    ({"match": {"api": "Heartbeat", "member": 5}}, r"member 5: must be a text"),
    ({"match": {"api": "Heartbeat", "group": ""}}, r"group '': matches nothing"),
    ({"match": {"api": "Heartbeat", "broker": 0}}, r"broker 0: must be a whole number from 1 on"),
    ({"match": {"api": "Heartbeat", "broker": True}}, r"broker True"),
    ({"match": {"api": "Heartbeat", "state": "stable"}}, r"unknown state of a group 'stable'; the nearest is 'Stable'"),
    ({"match": {"api": "JoinGroup", "generation": 1}}, r"generation 1: JoinGroup names none; SyncGroup, Heartbeat"),
    ({"match": {"api": "Heartbeat", "version": "5+"}}, r"version '5\+': is written 4,"),
    ({"match": {"api": "Heartbeat", "version": "4-2"}}, r"version '4-2': is none at all"),
    ({"match": {"api": "Heartbeat", "version": "9"}}, r"version '9': Heartbeat has the versions 0-4"),
    ({"match": {"api": "Heartbeat", "version": True}}, r"version True"),
    ({"trigger": {"once": True, "times": 2}}, r"once and times contradict each other"),
    ({"trigger": {"once": False}}, r"once False"),
    ({"trigger": {"nth": 0}}, r"nth 0: must be a whole number from 1 on"),
    ({"trigger": {"every": 1.5}}, r"every 1.5"),
    ({"trigger": {"probability": 1.1}}, r"probability 1.1: must be from 0 to 1"),
    ({"trigger": {"propability": 0.5}}, r"unknown field 'propability'; the nearest is 'probability'"),
    ({"action": {"kind": "eror"}}, r"unknown kind of action 'eror'; the nearest is 'error'"),
    ({"action": {"kind": "error"}}, r"error: wants name"),
    ({"action": {"kind": "error", "name": "ILLEGAL_GENRATION"}}, r"the nearest is 'ILLEGAL_GENERATION'"),
    ({"action": {"kind": "error", "name": "NONE"}}, r"unknown error 'NONE'"),
    ({"action": {"kind": "error", "name": "UNKNOWN_MEMBER_ID", "at": "row"}}, r"unknown place of an error 'row'"),
    (
        {"action": {"kind": "error", "name": "UNKNOWN_MEMBER_ID", "at": "member"}},
        r"error at 'member': an answer to Heartbeat has them at top",
    ),
    (
        {"match": {"api": "*"}, "action": {"kind": "error", "name": "UNKNOWN_MEMBER_ID"}},
        r"'\*' cannot be answered with one",
    ),
    ({"action": {"kind": "delay"}}, r"exactly one"),
    ({"action": {"kind": "delay", "ms": -1}}, r"ms -1: must be a whole number from 0"),
    ({"action": {"kind": "delay", "ms": 1, "uniform_ms": [1, 2]}}, r"exactly one"),
    ({"action": {"kind": "delay", "uniform_ms": [3, 2]}}, r"ends before it begins"),
    ({"action": {"kind": "delay", "uniform_ms": [3]}}, r"must be two numbers"),
    ({"action": {"kind": "delay", "lognormal_ms": [0, 1]}}, r"a median over 0 ms"),
    ({"action": {"kind": "delay", "lognormal_ms": ["a", 1]}}, r"a median over 0 ms"),
    ({"action": {"kind": "delay", "ms": 1, "clock": "wal"}}, r"unknown clock 'wal'; the nearest is 'wall'"),
    ({"action": {"kind": "truncate", "at": -1}}, r"at -1"),
    ({"action": {"kind": "drip", "piece_bytes": 0, "every_ms": 1}}, r"piece_bytes 0"),
    ({"action": {"kind": "drip", "piece_bytes": 1}}, r"drip: wants every_ms"),
    ({"action": {"kind": "never_answer", "apply": 1}}, r"apply 1: must be true or false"),
    ({"action": {"kind": "evict", "member": ""}}, r"member '': must be a text that is not empty"),
    ({"action": {"kind": "evict", "as_if": "sesion"}}, r"unknown way to evict 'sesion'; the nearest is 'session'"),
    ({"match": {"api": "Heartbeat", "version": 0}, "action": {"kind": "throttle", "ms": 1}}, r"from version 1 on"),
    ({"action": "drop"}, r"action 'drop': must be an object"),
    ({"id": "a,b"}, r"id 'a,b': must be a text without a comma"),
    ({"id": 5}, r"id 5"),
    ({"optional": "yes"}, r"optional 'yes'"),
    ({"actions": {}}, r"unknown field 'actions'; the nearest is 'action'"),
]


@pytest.mark.parametrize(("changes", "said"), BAD)
def test_what_cannot_be_is_refused_with_what_was_probably_meant(changes: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"match": {"api": "Heartbeat"}, "action": {"kind": "drop"}}
    FaultRule.of(good, "r")
    with pytest.raises(RuleError, match=said):
        FaultRule.of({**good, **changes}, "r")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        (4, (4, 4)),
        ("4", (4, 4)),
        ("2-3", (2, 3)),
        (">=3", (3, 32767)),
        ("<= 3", (0, 3)),
        (">2", (3, 32767)),
        ("<2", (0, 1)),
    ],
)
def test_versions_are_written_as_people_write_them(text: int | str, ends: tuple[int, int]) -> None:
    assert Match("Heartbeat", version=text).versions == ends


def test_every_action_has_a_constructor_of_its_name() -> None:
    assert sorted(ACTIONS) == sorted(name for name in faults.__all__ if name.islower())


class TestWhatThisClusterHas:
    def test_a_version_that_the_release_does_not_serve(self) -> None:
        nodes = Faulty(kafka_version="2.4")
        with pytest.raises(RuleError, match=r"Kafka 2.4 serves the versions 0-6 of JoinGroup"):
            nodes.rule("JoinGroup", faults.drop(), version=9)
        with pytest.raises(RuleError, match=r"Kafka 2.4 serves no version of DescribeCluster"):
            nodes.rule("DescribeCluster", faults.drop())
        assert nodes.rule("JoinGroup", faults.drop(), version=">=5") == "rule-1"

    def test_a_broker_that_is_not_there(self) -> None:
        nodes = Faulty(2)
        with pytest.raises(RuleError, match=r"unknown broker 3; there are 1, 2"):
            nodes.rule("JoinGroup", faults.drop(), broker=3)
        assert nodes.brokers.gate is None, "nothing has changed"

    def test_an_id_that_is_taken(self) -> None:
        nodes = Faulty()
        nodes.rule("JoinGroup", faults.drop(), id="rule-1")
        with pytest.raises(RuleError, match=r"id 'rule-1': there is such a rule already"):
            nodes.rule("JoinGroup", faults.drop(), id="rule-1")
        assert nodes.rule("JoinGroup", faults.drop()) == "rule-2"

    def test_a_rule_that_is_not_there(self) -> None:
        nodes = Faulty()
        nodes.rule("JoinGroup", faults.drop(), id="mine")
        with pytest.raises(RuleError, match=r"unknown rule 'mind'; the nearest is 'mine'"):
            nodes.faults.remove_rule(nodes.now, rule="mind")
