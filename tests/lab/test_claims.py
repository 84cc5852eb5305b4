"""Every claim has the verdict and the figures that docs/lab.md shows."""

from __future__ import annotations

import laboratory
import pytest

from koordinator.lab.claims import CLAIMS, CONDITIONS, FAILS, HOLDS, Finding

COMMITTED = laboratory.read()["claims"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_has_its_verdict(name: str) -> None:
    claim = CLAIMS[name]
    finding = claim.check()
    assert finding.verdict == claim.verdict, finding.figures
    assert {"verdict": finding.verdict, "figures": finding.figures} == COMMITTED[name]


def test_a_claim_with_conditions_names_them() -> None:
    assert {name for name, each in CLAIMS.items() if each.condition} == {
        name for name, each in CLAIMS.items() if each.verdict == CONDITIONS
    }


def test_a_verdict_follows_from_the_check() -> None:
    assert Finding("", holds=True).verdict == HOLDS
    assert Finding("", holds=False, holds_if=True).verdict == CONDITIONS
    assert Finding("", holds=False).verdict == FAILS
