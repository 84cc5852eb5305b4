"""Subscriptions by regular expression (KIP-848), and the rules by which a group looks for matching topics."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.core import expressions
from koordinator.emulator.core.groups.consumer import patterns
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from scenes.consumer_play import ConsumerPlay

ALL = {"t": [0, 1, 2, 3]}

needs_re2 = pytest.mark.skipif(sys.version_info >= (3, 15), reason="google-re2 has no wheels for Python 3.15")


def create(play: ConsumerPlay, name: str, partitions: int = 1) -> None:
    play.names[play.cluster.create_topic(name, partitions).topic_id] = name


@needs_re2
class TestResolution:
    def test_g069_a_pattern_is_resolved_after_the_first_answer_and_costs_an_epoch_then(
        self, play: ConsumerPlay
    ) -> None:
        create(play, "x-b")
        create(play, "x-a", 2)
        assert play.subscribe("A", topics=None, regex="x-.*") == (1, {})
        assert play.record_types() == [5, 8]
        play.settle()
        assert play.record_types() == [16, 3]
        assert play.appended[-1].records[0].value.topics == ("x-a", "x-b")
        assert play.beat("A", 1) == (2, {"x-a": [0, 1], "x-b": [0]})
        (member,) = play.described().members
        assert (member.subscribed_topic_regex, member.subscribed_topic_names) == ("x-.*", ())

    def test_g071_an_empty_pattern_is_none(self, play: ConsumerPlay) -> None:
        assert play.subscribe("A", topics=None, regex="", group="h") == (1, {})
        assert play.subscribe("A", regex="") == (2, ALL)

    @pytest.mark.parametrize(("regex", "matches"), [("x", ()), ("x.", ("xa",)), ("(?i)XA|t", ("t", "xa"))])
    def test_g072_the_whole_name_has_to_match(self, regex: str, matches: tuple[str, ...]) -> None:
        assert patterns.matching(regex, ["xa", "t", "other"]) == matches

    def test_g074_a_new_topic_is_seen_when_the_last_resolution_is_ten_seconds_old(self, play: ConsumerPlay) -> None:
        assert play.subscribe("A", topics=None, regex="x-.*") == (1, {})
        play.wait(1_000)
        assert play.beat("A", 1) == (1, None)
        create(play, "x-a")
        play.wait(9_000)
        assert play.beat("A", 1) == (1, None)
        play.settle()
        assert play.beat("A", 1) == (1, None)
        play.wait(1)
        assert play.beat("A", 1) == (1, None)
        play.settle()
        assert play.beat("A", 1) == (2, {"x-a": [0]})

    def test_g075_names_and_pattern_add_up(self, play: ConsumerPlay) -> None:
        create(play, "x-a")
        assert play.subscribe("A", ["t"], regex="x-.*") == (2, ALL)
        play.settle()
        assert play.beat("A", 2) == (3, {**ALL, "x-a": [0]})

    def test_g077_the_tombstone_of_a_pattern_follows_its_last_member(self, play: ConsumerPlay) -> None:
        create(play, "x-a")
        members = {"A": play.subscribe("A"), "B": play.subscribe("B", topics=None, regex="x-.*")}
        play.settle()
        members = play.converge(members)
        assert {name: given for name, (_, given) in members.items()} == {"A": ALL, "B": {"x-a": [0]}}
        play.beat("B", -1)
        assert play.record_types() == [-8, -7, -5, -16, 3]

    def test_g078_a_deletion_counts_at_once(self, play: ConsumerPlay) -> None:
        create(play, "x-a")
        play.subscribe("A", topics=None, regex="x-.*")
        play.settle()
        assert play.beat("A", 1) == (2, {"x-a": [0]})
        play.cluster.delete_topic(play.cluster.topics["x-a"])
        assert play.beat("A", 2) == (2, {})
        assert play.beat("A", 2, owned={}) == (3, None)

    def test_a_second_pattern_within_ten_seconds_waits(self, play: ConsumerPlay) -> None:
        play.subscribe("A", topics=None, regex="t")
        play.settle()
        play.subscribe("B", topics=None, regex="u")
        play.wait(5_000)
        epoch, _ = play.beat("B", 2)
        assert play.consumer_group().patterns.keys() == {"t"}
        play.wait(5_001)
        play.beat("B", epoch)
        play.settle()
        assert play.consumer_group().patterns.keys() == {"t", "u"}

    def test_a_pattern_that_replaces_one_just_resolved_waits_for_the_next_heartbeat(self, play: ConsumerPlay) -> None:
        play.subscribe("A", topics=None, regex="t")
        play.settle()
        epoch, _ = play.beat("A", 1, regex="u")
        play.settle()
        # seen by the heartbeat that replaces it, the former pattern has been resolved just now
        assert play.consumer_group().patterns.keys() == set()
        play.beat("A", epoch)
        play.settle()
        assert play.consumer_group().patterns.keys() == {"u"}

    def test_a_pattern_that_is_resolved_raises_the_epoch_at_once(self, play: ConsumerPlay) -> None:
        play.subscribe("A", topics=None, regex="t")
        play.settle()
        assert play.beat("A", 1) == (2, ALL)
        assert play.subscribe("B", topics=None, regex="t") == (3, {})

    def test_a_member_without_its_pattern_loses_the_topics_in_the_same_heartbeat(self, play: ConsumerPlay) -> None:
        play.subscribe("A", ["u"], regex="t")
        play.settle()
        assert play.beat("A", 2) == (3, {**ALL, "u": [0, 1]})
        assert play.beat("A", 3, regex="") == (3, {"u": [0, 1]})
        assert play.beat("A", 3, owned={"u": [0, 1]}) == (4, None)
        assert -16 in [code for append in play.appended for code in [_code(record) for record in append.records]]

    def test_the_patterns_of_a_group_are_counted_by_member(self, play: ConsumerPlay) -> None:
        for member, regex in (("A", "t"), ("B", "t"), ("C", "u")):
            play.subscribe(member, topics=None, regex=regex)
        group = play.consumer_group()
        assert group.subscribers == {"t": 2, "u": 1}
        play.beat("C", group.members["C"].epoch, regex="t")
        assert group.subscribers == {"t": 3}
        play.beat("A", -1)
        play.beat("B", group.members["B"].epoch, regex="")
        assert group.subscribers == {"t": 1}
        play.writes = Error.NOT_ENOUGH_REPLICAS
        play.start_heart("C", -1)
        assert group.subscribers == {"t": 1}
        play.writes = Error.NONE
        play.beat("C", -1)
        assert group.subscribers == {}

    def test_nothing_is_written_for_a_heartbeat_that_repeats_its_pattern(self, play: ConsumerPlay) -> None:
        play.subscribe("A", topics=None, regex="t")
        play.settle()
        assert play.beat("A", 1) == (2, ALL)
        written = len(play.appended)
        assert play.beat("A", 2, regex="t") == (2, None)
        assert len(play.appended) == written


def _code(record: object) -> int:
    kind = type(record.key).__name__  # type: ignore[attr-defined]
    return -16 if kind == "ConsumerGroupRegularExpressionKey" and record.value is None else 0  # type: ignore[attr-defined]


@needs_re2
@pytest.mark.parametrize(
    ("regex", "description"),
    [
        ("(", "missing closing )"),
        ("[", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("(?!a)", "invalid or unsupported Perl syntax"),
        (r"(a)\1", "invalid escape sequence"),
        ("\\", "trailing backslash at end of expression"),
        ("a)", "unexpected )"),
    ],
)
def test_an_invalid_pattern_is_refused_with_re2j_s_description(
    play: ConsumerPlay, regex: str, description: str
) -> None:
    response = play.heart("A", 0, topics=None, regex=regex, owned={}, timeout=30_000)
    assert Error(response.error_code) is Error.INVALID_REGULAR_EXPRESSION
    assert response.error_message == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {description}."
    )
    assert "g" not in play.coordinator.groups


@needs_re2
def test_a_refused_join_leaves_an_empty_classic_group_as_it_is(play: ConsumerPlay) -> None:
    play.emptied()
    assert play.subscribe("A", topics=None, regex="(") is Error.INVALID_REGULAR_EXPRESSION
    assert play.group().state_name == "Empty"


@needs_re2
def test_a_hostile_pattern_takes_linear_time() -> None:
    assert patterns.matching("(a*)*b", ["a" * 249]) == ()


def test_without_the_library_a_pattern_is_refused_with_the_remedy(
    play: ConsumerPlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    expressions.compiled.cache_clear()
    response = play.heart("A", 0, topics=None, regex="t.*", owned={}, timeout=1)
    assert response.error_code == Error.INVALID_REGULAR_EXPRESSION
    assert "pip install google-re2" in response.error_message
    assert patterns.matching("t.*", ["t"]) == ()
