"""The exploration of transactions finds a broken rule, and no difference between two emulators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from exploring.releases import RELEASES
from exploring.transactions.rounds import explore
from exploring.transactions.sides import emulator
from exploring.transactions.steps import Sequence, Step, generate

if TYPE_CHECKING:
    from exploring.transactions.rounds import Findings

RELEASE = RELEASES["4.4"]


def explored(*seeds: int) -> Findings:
    with emulator(RELEASE) as ours, emulator(RELEASE) as theirs:
        return explore(ours, theirs, [generate(f"{seed}", RELEASE) for seed in seeds], print)


@pytest.mark.slow
def test_two_emulators_agree() -> None:
    found = explored(*range(1, 7))
    assert (found.compared, found.differences) == (6, [])


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
