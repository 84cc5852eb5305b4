"""The exploration of transactions finds a broken rule, and no difference between two emulators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from exploring.releases import RELEASES
from exploring.transactions.playing import Playing
from exploring.transactions.rounds import Target, explore
from exploring.transactions.sides import emulator
from exploring.transactions.steps import Sequence, Step, generate

from koordinator.client.connection import Address

if TYPE_CHECKING:
    from collections.abc import Sequence as Rows

    from exploring.transactions.rounds import Findings

RELEASE = RELEASES["4.4"]


def explored(*seeds: int) -> Findings:
    with emulator(RELEASE) as ours, emulator(RELEASE) as theirs:
        return explore(ours, theirs, [generate(f"{seed}", RELEASE) for seed in seeds], print)


@pytest.mark.slow
def test_two_emulators_agree() -> None:
    found = explored(*range(1, 7))
    assert (found.compared, found.differences) == (6, [])


class Scripted(Target):
    """A side whose playings of each sequence have these answers; a patient one is marked."""

    def __init__(self, **answers: list[str]) -> None:
        super().__init__(Address("nowhere", 1), lambda: None, Playing)
        self._answers = answers
        self.patient: list[str] = []

    def play(self, sequences: Rows[Sequence], patient: Rows[Sequence] = ()) -> list[list[object]]:
        self.patient += [each.name for each in patient]
        return [[{"answer": self._next(each.name)}] for each in (*sequences, *patient)]

    def _next(self, name: str) -> str:
        rest = self._answers.get(name, ["same"])
        return rest.pop(0) if len(rest) > 1 else rest[0]


def test_a_difference_counts_if_a_patient_playing_has_it_too() -> None:
    steps = (Step("init", ()),)
    names = ["same", "once", "always"]
    sequences = [Sequence(name, shares_id=False, has_member=False, steps=steps, restart_after=1) for name in names]
    theirs = Scripted(once=["other", "same"], always=["other"])
    found = explore(Scripted(), theirs, sequences, print)
    assert [each.sequence.name for each in found.differences] == ["always"]
    assert [each.sequence.name for each in found.unsteady] == ["once"]
    assert theirs.patient[:2] == ["once", "always"]


def test_what_differs_in_another_way_is_played_again() -> None:
    steps = (Step("init", ()), Step("add", ()))
    sequence = Sequence("hidden", shares_id=False, has_member=False, steps=steps, restart_after=2)

    class Late(Scripted):
        def play(self, sequences: Rows[Sequence], patient: Rows[Sequence] = ()) -> list[list[object]]:
            first = "late" if sequences else "same"
            return [[{"answer": first}, {"answer": "other"}] for _ in (*sequences, *patient)]

    class Same(Scripted):
        def play(self, sequences: Rows[Sequence], patient: Rows[Sequence] = ()) -> list[list[object]]:
            return [[{"answer": "same"}] * 2 for _ in (*sequences, *patient)]

    (difference,) = explore(Same(), Late(), [sequence], print).differences
    assert difference.kind == "add: answer"


def test_a_sequence_is_its_seeds() -> None:
    assert generate("1", RELEASE) == generate("1", RELEASE) != generate("2", RELEASE)


@pytest.mark.slow
def test_a_difference_of_two_releases_is_found_and_its_sequence_minimised() -> None:
    fenced = (
        Step("init", (("slot", 0), ("who", "nobody"), ("version", 4))),
        Step("add", (("slot", 0), ("who", "current"), ("partitions", (0,)), ("version", 3))),
        Step("plain_produce", (("partition", 0),)),
        Step("init", (("slot", 0), ("who", "current"), ("version", 4))),
        Step("init", (("slot", 0), ("who", "current"), ("version", 4))),
    )
    sequence = Sequence("fenced", shares_id=False, has_member=False, steps=fenced, restart_after=len(fenced))
    with emulator(RELEASE) as ours, emulator(RELEASES["3.9-new"]) as theirs:
        (difference,) = explore(ours, theirs, [sequence], print).differences
    assert "plain_produce" not in {step.name for step in difference.sequence.steps}
    assert difference.kind == "init: answer, transactions"
    assert difference.kind in difference.text()
