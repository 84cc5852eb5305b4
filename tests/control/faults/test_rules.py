"""Fault rules as data: JSON round trips and validation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from brokers.fault_broker import FaultyNodes
from hypothesis import given
from hypothesis import strategies as st

from koordinator import faults
from koordinator.emulator.control.faults.actions import ACTIONS, RuleError, action_data
from koordinator.emulator.control.faults.kafka_errors import PLACES_OF
from koordinator.emulator.control.faults.rules import API_NAMES, WITH_GENERATION, FaultRule, Match
from koordinator.emulator.trace.vocabulary import ALL_GROUP_STATES
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
        kinds.append(st.builds(faults.throttle, MS, st.booleans()))
    return draw(st.one_of(kinds))


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    """Generate a rule as JSON."""
    api = draw(st.sampled_from([*API_NAMES, "*"]))
    match: dict[str, Any] = {"api": api}
    for name in ("client_id", "group", "member", "instance_id"):
        if draw(st.booleans()):
            match[name] = draw(TEXTS)
    if draw(st.booleans()):
        match["state"] = draw(st.sampled_from(ALL_GROUP_STATES))
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


@pytest.mark.slow
@given(rules())
def test_a_rule_survives_a_json_round_trip(data: dict[str, Any]) -> None:
    rule = FaultRule.of(data, "other")
    assert rule.data() == data
    assert FaultRule.of(json.loads(json.dumps(rule.data())), "other") == rule
    assert str(rule).startswith("r: ")


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"match": {"api": "OffsetComit"}}, r"unknown API 'OffsetComit'.*; did you mean 'OffsetCommit'"),
    ({"match": {}}, r"match: missing api"),
    ({"match": {"api": "Heartbeat", "clientid": "x"}}, r"unknown field 'clientid'.*; did you mean 'client_id'"),
    ({"match": {"api": "Heartbeat", "member": 5}}, r"member 5: must be a string"),
    ({"match": {"api": "Heartbeat", "group": ""}}, r"group '': matches nothing"),
    ({"match": {"api": "Heartbeat", "broker": -1}}, r"broker -1: must be an integer, at least 0"),
    ({"match": {"api": "Heartbeat", "broker": True}}, r"broker True"),
    ({"match": {"api": "Heartbeat", "state": "stable"}}, r"unknown state of a group 'stable'.*; did you mean 'Stable'"),
    (
        {"match": {"api": "JoinGroup", "generation": 1}},
        r"generation 1: JoinGroup has no generation; these have: SyncGroup, Heartbeat",
    ),
    ({"match": {"api": "Heartbeat", "version": "5+"}}, r"version '5\+': must be like 4,"),
    ({"match": {"api": "Heartbeat", "version": "4-2"}}, r"version '4-2': the range is empty"),
    ({"match": {"api": "Heartbeat", "version": "9"}}, r"version '9': Heartbeat has versions 0-4"),
    ({"match": {"api": "Heartbeat", "version": True}}, r"version True"),
    ({"trigger": {"once": True, "times": 2}}, r"once and times contradict each other"),
    ({"trigger": {"once": False}}, r"once False"),
    ({"trigger": {"nth": 0}}, r"nth 0: must be an integer, at least 1"),
    ({"trigger": {"every": 1.5}}, r"every 1.5"),
    ({"trigger": {"probability": 1.1}}, r"probability 1.1: must be from 0 to 1"),
    ({"trigger": {"propability": 0.5}}, r"unknown field 'propability'.*; did you mean 'probability'"),
    ({"action": {"kind": "eror"}}, r"unknown kind of action 'eror'.*; did you mean 'error'"),
    ({"action": {"kind": "error"}}, r"error: missing name"),
    ({"action": {"kind": "error", "name": "ILLEGAL_GENRATION"}}, r"did you mean 'ILLEGAL_GENERATION'"),
    ({"action": {"kind": "error", "name": "NONE"}}, r"unknown error 'NONE'"),
    ({"action": {"kind": "error", "name": "UNKNOWN_MEMBER_ID", "at": "row"}}, r"unknown place of an error 'row'"),
    (
        {"action": {"kind": "error", "name": "UNKNOWN_MEMBER_ID", "at": "member"}},
        r"error at 'member': a response to Heartbeat has errors at top",
    ),
    (
        {"match": {"api": "*"}, "action": {"kind": "error", "name": "UNKNOWN_MEMBER_ID"}},
        r"rules cannot return errors for '\*'",
    ),
    ({"action": {"kind": "delay"}}, r"exactly one"),
    ({"action": {"kind": "delay", "ms": -1}}, r"ms -1: must be an integer from 0"),
    ({"action": {"kind": "delay", "ms": 1, "uniform_ms": [1, 2]}}, r"exactly one"),
    ({"action": {"kind": "delay", "uniform_ms": [3, 2]}}, r"low must not exceed high"),
    ({"action": {"kind": "delay", "uniform_ms": [3]}}, r"must be two numbers"),
    ({"action": {"kind": "delay", "lognormal_ms": [0, 1]}}, r"needs a median above 0 ms"),
    ({"action": {"kind": "delay", "lognormal_ms": ["a", 1]}}, r"needs a median above 0 ms"),
    ({"action": {"kind": "delay", "ms": 1, "clock": "wal"}}, r"unknown clock 'wal'.*; did you mean 'wall'"),
    ({"action": {"kind": "truncate", "at": -1}}, r"at -1"),
    ({"action": {"kind": "drip", "piece_bytes": 0, "every_ms": 1}}, r"piece_bytes 0"),
    ({"action": {"kind": "drip", "piece_bytes": 1}}, r"drip: missing every_ms"),
    ({"action": {"kind": "never_answer", "apply": 1}}, r"apply 1: must be true or false"),
    ({"action": {"kind": "evict", "member": ""}}, r"member '': must be a non-empty string"),
    ({"action": {"kind": "evict", "as_if": "sesion"}}, r"unknown way to evict 'sesion'.*; did you mean 'session'"),
    ({"match": {"api": "Heartbeat", "version": 0}, "action": {"kind": "throttle", "ms": 1}}, r"since version 1"),
    ({"action": {"kind": "throttle", "ms": 1, "mute": 1}}, r"mute 1: must be true or false"),
    ({"action": "drop"}, r"action 'drop': must be an object"),
    ({"id": "a,b"}, r"id 'a,b': must be a non-empty string without a comma"),
    ({"id": 5}, r"id 5"),
    ({"optional": "yes"}, r"optional 'yes'"),
    ({"actions": {}}, r"unknown field 'actions'.*; did you mean 'action'"),
]


@pytest.mark.parametrize(("changes", "message"), INVALID)
def test_an_invalid_rule_is_refused_with_a_suggestion(changes: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"match": {"api": "Heartbeat"}, "action": {"kind": "drop"}}
    FaultRule.of(good, "r")
    with pytest.raises(RuleError, match=message):
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
def test_version_ranges_are_parsed(text: int | str, ends: tuple[int, int]) -> None:
    assert Match("Heartbeat", version=text).versions == ends


def test_every_action_kind_has_a_constructor() -> None:
    assert sorted(ACTIONS) == sorted(name for name in faults.__all__ if name.islower())


class TestClusterChecks:
    def test_an_unsupported_version_is_refused(self) -> None:
        nodes = FaultyNodes(kafka_version="2.4")
        with pytest.raises(RuleError, match=r"Kafka 2.4 serves versions 0-6 of JoinGroup"):
            nodes.rule("JoinGroup", faults.drop(), version=9)
        with pytest.raises(RuleError, match=r"Kafka 2.4 serves no version of DescribeCluster"):
            nodes.rule("DescribeCluster", faults.drop())
        assert nodes.rule("JoinGroup", faults.drop(), version=">=5") == "rule-1"

    def test_an_unknown_broker_is_refused(self) -> None:
        nodes = FaultyNodes(2)
        with pytest.raises(RuleError, match=r"unknown broker 3; known: 1, 2"):
            nodes.rule("JoinGroup", faults.drop(), broker=3)
        assert nodes.runtime.interceptor is None, "a refused rule changes nothing"

    def test_a_duplicate_id_is_refused(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("JoinGroup", faults.drop(), id="rule-1")
        with pytest.raises(RuleError, match=r"id 'rule-1': a rule with this id exists already"):
            nodes.rule("JoinGroup", faults.drop(), id="rule-1")
        assert nodes.rule("JoinGroup", faults.drop()) == "rule-2"

    def test_an_unknown_rule_is_refused(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("JoinGroup", faults.drop(), id="mine")
        with pytest.raises(RuleError, match=r"unknown rule 'mind'.*; did you mean 'mine'"):
            nodes.faults.remove_rule(nodes.now, rule="mind")
