"""Tests of the exploration itself, with the core in place of the broker."""

from __future__ import annotations

import importlib.util
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from builders.requests import join_group
from exploring.comparison import LATE, compare
from exploring.core import Core, play_to_core
from exploring.coverage import FIGURES, figure, seen_in, table
from exploring.generator import MARGIN_MS, SequenceGenerator, write
from exploring.releases import NEWEST, RELEASES
from exploring.rendering import render_scenario
from exploring.rounds import Exploration, Findings
from exploring.shrinking import GAP_MIN_MS, shrunk
from exploring.steps import GROUP, SETUPS, Id, Sequence, Step
from exploring.verdicts import SENT_LATE_MS, Verdict, judge
from scenarios import registry
from scenarios.targets import CoreTarget

from koordinator.emulator.core.groups.classic import join as join_module
from koordinator.emulator.core.groups.classic import rebalance
from koordinator.emulator.core.groups.classic.group import ClassicGroup
from koordinator.emulator.core.timers import OffsetExpiryCheck, TimerFired
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from exploring.steps import Played

PLAIN, DELAY, SMALL = SETUPS


def by_the_core(sequences: list[Sequence]) -> list[Played]:
    return [play_to_core(sequence, NEWEST)[0] for sequence in sequences]


def explored(plays: Callable[[list[Sequence]], list[Played]], seeds: int) -> Findings:
    return Exploration(NEWEST, PLAIN, plays, lambda _: None).explore(map(str, range(seeds)))


def joining(at_ms: int, instance_id: str, **fields: object) -> Step:
    request = join_group(GROUP, "", instance_id, session_ms=600, rebalance_ms=600)
    return Step(at_ms, "c", replace(request, **fields), 9)


@pytest.mark.slow
@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_a_seed_writes_the_same_sequence_every_time(setup: object) -> None:
    assert write("7", setup, NEWEST) == write("7", setup, NEWEST)
    assert write("7", setup, NEWEST) != write("8", setup, NEWEST)


def test_sequences_are_long_enough_and_keep_away_from_timers() -> None:
    lengths = []
    for seed in range(30):
        generator = SequenceGenerator(str(seed), SETUPS[seed % 3], NEWEST)
        sequence = generator.write()
        lengths.append(len(sequence.steps))
        due = [
            fired.due - generator.core.play.now + generator.core.now
            for fired in generator.core.play.facts_of(TimerFired)
            if not isinstance(fired.key, OffsetExpiryCheck)
        ]
        asked = [step.at_ms for step in sequence.steps]
        for at in due:
            # some timers fire at once: an initial delay of 0, a join phase that waits for pending ids only
            assert any(0 <= at - each <= 1 for each in asked) or all(abs(each - at) >= MARGIN_MS for each in asked)
    assert sum(lengths) / len(lengths) >= 15


@pytest.mark.slow
def test_a_hundred_sequences_reach_the_committed_coverage() -> None:
    seen: Counter[tuple[str, int, str]] = Counter()
    for seed in range(1, 101):
        sequence = write(str(seed), SETUPS[seed % 3], NEWEST)
        seen.update(seen_in(sequence, *play_to_core(sequence, NEWEST)))
    assert len(seen) >= figure(100) == FIGURES[90]
    assert "JoinGroup         79 MEMBER_ID_REQUIRED" in table(seen)


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES.values(), ids=lambda release: release.name)
def test_sequences_can_be_written_for_every_release(release: object) -> None:
    for seed in range(3):
        assert write(str(seed), SMALL, release).steps


@pytest.mark.slow
def test_a_core_agrees_with_itself() -> None:
    found = explored(by_the_core, 20)
    assert (found.judged, found.differences, found.unsteady, found.undecided) == (20, {}, [], [])
    assert found.requests >= 15 * 20


@pytest.mark.slow
def test_a_core_agrees_with_itself_when_everything_is_a_little_late() -> None:
    chance = Random(1)

    def late(sequences: list[Sequence]) -> list[Played]:
        return [play_to_core(sequence, NEWEST, chance=chance, late_max_ms=40)[0] for sequence in sequences]

    found = explored(late, 20)
    assert (found.judged, found.differences) == (20, {})


def unfenced(group: object, member_id: str, instance_id: str | None, **_: object) -> Error:
    del instance_id
    return Error.NONE if member_id in group.members else Error.UNKNOWN_MEMBER_ID


def crowded(*_: object) -> bool:
    return True


def nothing(*_: object) -> None:
    """Do nothing: breaks the behaviour that the test needs to see broken."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "broken", "name", "by", "steps_max", "seeds"),
    [
        (PLAIN, ClassicGroup, "member_error", unfenced, 4, "67"),
        (SMALL, join_module, "has_room", crowded, 5, "12"),
        (PLAIN, rebalance, "complete_after_expiry", nothing, 6, "12"),
    ],
    ids=["nobody is fenced", "groups have no maximum", "timers complete nothing"],
)
def test_a_broken_rule_is_found_and_made_short(
    setup: object, broken: object, name: str, by: object, steps_max: int, seeds: str
) -> None:
    """Each pair of seeds writes a sequence that shows nothing, and one that does."""

    def spoilt(sequences: list[Sequence]) -> list[Played]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(broken, name, by)
            return by_the_core(sequences)

    found = Exploration(NEWEST, setup, spoilt, lambda _: None).explore(seeds)
    assert found.judged == 2
    assert len(found.shortest) == 1
    assert min(len(each.sequence.steps) for each in found.shortest) <= steps_max
    assert all(each.verdict is Verdict.DIFFERENT for each in found.shortest)


@pytest.mark.slow
def test_a_broker_that_contradicts_itself_is_distinguished_from_a_difference() -> None:
    spoilt: list[str] = []

    def once(sequences: list[Sequence]) -> list[Played]:
        played = by_the_core(sequences)
        for number, sequence in enumerate(sequences):
            if spoilt.count(sequence.name) < 2:
                spoilt.append(sequence.name)
                outcomes = played[number].outcomes
                first = replace(outcomes[0], answer=None, at_ms=None, closed=True)
                played[number] = replace(played[number], outcomes=(first, *outcomes[1:]))
        return played

    found = explored(once, 3)
    assert (found.judged, len(found.unsteady), found.differences) == (3, 3, {})


@pytest.mark.slow
def test_a_playing_that_was_slow_is_not_judged_but_played_again() -> None:
    asked: Counter[str] = Counter()

    def slow(sequences: list[Sequence]) -> list[Played]:
        asked.update(sequence.name for sequence in sequences)
        slept = [
            replace(sequence, steps=tuple(replace(step, at_ms=step.at_ms + 500) for step in sequence.steps))
            if asked[sequence.name] <= 2
            else sequence
            for sequence in sequences
        ]
        return by_the_core([replace(each, end_ms=each.end_ms + 500) for each in slept])

    found = explored(slow, 2)
    assert found.playings[Verdict.SLOW] == 2
    assert (found.judged, found.differences, found.undecided) == (2, {}, [])
    assert SENT_LATE_MS < 500


def test_the_core_takes_the_leader_that_the_broker_took() -> None:
    """Any rejoined member may lead; a hash table of random ids decides."""
    steps = (
        joining(0, "i1", rebalance_timeout_ms=2_000, session_timeout_ms=3_000),
        joining(100, "i2", session_timeout_ms=3_000),
        joining(200, "i3", session_timeout_ms=3_000),
    )
    sequence = Sequence("leaders", PLAIN, steps, 2_500)
    core = Core(PLAIN, NEWEST)
    for step in steps:
        core.run(step.at_ms)
        core.ask(step)
    group = core.group
    assert group is not None
    # another order of the same members, as in a broker
    turned = dict(reversed(group.members.items()))
    group.members.clear()
    group.members.update(turned)
    core.run(sequence.end_ms)
    leaders = {outcome.answer.leader for outcome in core.played.outcomes[1:]}
    assert leaders == {core.outcomes[2].member_id}
    assert compare(sequence, play_to_core(sequence, NEWEST)[0], core.played) is not None
    assert judge(sequence, NEWEST, core.played).verdict is Verdict.SAME


class AnyOrder(Core):
    """A core whose member order changes each time, like a hash table of random ids."""

    chance = Random(3)

    def _lead(self) -> None:
        if self.group is not None:
            members = list(self.group.members.items())
            self.chance.shuffle(members)
            self.group.members.clear()
            self.group.members.update(members)


@pytest.mark.slow
def test_the_core_agrees_whichever_leader_the_broker_chose() -> None:
    def any_order(sequences: list[Sequence]) -> list[Played]:
        cores = [AnyOrder(sequence.setup, NEWEST) for sequence in sequences]
        for core, sequence in zip(cores, sequences, strict=True):
            for step in sequence.steps:
                core.run(step.at_ms)
                core.ask(step)
            core.run(sequence.end_ms)
        return [core.played for core in cores]

    found = explored(any_order, 60)
    assert (found.differences, found.unsteady, found.undecided) == ({}, [], [])


def test_an_answer_that_comes_early_or_much_too_late_is_a_difference() -> None:
    sequence = Sequence("times", DELAY, (joining(0, "i1"),), 2_000)
    exact, _ = play_to_core(sequence, NEWEST)
    (outcome,) = exact.outcomes
    assert outcome.at_ms == DELAY.initial_delay_ms

    def moved(ms: int) -> object:
        return compare(sequence, exact, replace(exact, outcomes=(replace(outcome, at_ms=outcome.at_ms + ms),)))

    assert moved(0) is moved(100) is None
    for ms in (-100, 1_000):
        difference = moved(ms)
        assert difference is not None
        assert difference.what.endswith(LATE)


def test_irrelevant_steps_are_removed() -> None:
    long = Sequence("long", PLAIN, tuple(joining(1_000 * n, f"i{n}") for n in range(20)), 25_000)
    asked = 0

    def shows(sequences: list[Sequence]) -> list[bool]:
        nonlocal asked
        asked += 1
        names = [{step.request.group_instance_id for step in each.steps} for each in sequences]
        # two steps, and some time after them
        return [{"i3", "i7"} <= these and each.end_ms >= 500 for these, each in zip(names, sequences, strict=True)]

    short = shrunk(long, 9_000, shows)
    assert [step.request.group_instance_id for step in short.steps] == ["i3", "i7"]
    assert 500 <= short.end_ms <= 500 + 3 * GAP_MIN_MS
    assert asked < 40


def test_unlisted_members_are_called_none() -> None:
    steps = (joining(0, "i1"), joining(50, "i2"), Step(100, "c", SequenceGenerator.beating(1, Id(1), "i2"), 4))
    sequence = Sequence("holes", PLAIN, steps, 300)
    assert sequence.without([0]).steps[1].request.member_id == Id(0)
    assert sequence.without([1]).steps[1].request.member_id == "nobody"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_difference_is_rendered_as_a_scenario(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = write(str(seed), SETUPS[seed % 3], NEWEST)
    played, _ = play_to_core(sequence, NEWEST)
    first = replace(played.outcomes[0], answer=None, closed=True)
    spoilt = replace(played, outcomes=(first, *played.outcomes[1:]))
    text = render_scenario(judge(sequence, NEWEST, spoilt), NEWEST.version, NEWEST.coordinator)
    assert text.count("# broker at") == text.count("# core at") >= 1
    monkeypatch.setattr(registry, "SCENARIOS", {})
    exec(text, {})  # noqa: S102 - it is ours
    (scenario,) = registry.SCENARIOS.values()
    target = CoreTarget(scenario.configuration.settings(1), NEWEST)
    registry.perform(scenario, lambda _: target)
    assert target.seconds == sequence.end_ms / 1_000


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("explore_run", Path(__file__).with_name("run.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "OUTPUT", tmp_path / "explore")
    return module


def test_the_report_fails_below_the_committed_figure(program: Any, capsys: pytest.CaptureFixture[str]) -> None:
    seen = Counter({("Heartbeat", 0, f"state {number}"): 1 for number in range(FIGURES[90])})
    assert program.report(NEWEST, Findings(judged=90, seen=seen), 1)
    del seen["Heartbeat", 0, "state 0"]
    assert not program.report(NEWEST, Findings(judged=90, seen=seen), 1)
    assert f"{len(seen)} (API, error code, state), at least {FIGURES[90]} wanted" in capsys.readouterr().out


@pytest.mark.slow
def test_the_report_fails_and_writes_a_scenario_for_a_difference(program: Any) -> None:
    def spoilt(sequences: list[Sequence]) -> list[Played]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ClassicGroup, "member_error", unfenced)
            return by_the_core(sequences)

    found = explored(spoilt, 2)
    found.judged = 0  # too few sequences to require coverage
    assert not program.report(NEWEST, found, 1)
    assert len(list(program.OUTPUT.iterdir())) == len({each.sequence.name for each in found.shortest}) > 0


@pytest.mark.slow
def test_the_report_fails_if_much_could_not_be_judged(program: Any) -> None:
    found = explored(by_the_core, 3)
    sequence = write("1", PLAIN, NEWEST)
    played, _ = play_to_core(sequence, NEWEST)
    gone = replace(played, outcomes=(replace(played.outcomes[0], closed=True), *played.outcomes[1:]))
    assert program.report(NEWEST, found, 1)
    found.undecided.append(judge(sequence, NEWEST, gone))
    assert not program.report(NEWEST, found, 1)
