"""The rules that `make broken-rules` breaks: their code and their tests exist."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from broken.every_rule import EVERY_RULE

if TYPE_CHECKING:
    from broken.rules import BrokenRule

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.rule)
def test_a_rule_has_its_code_and_its_tests(rule: BrokenRule) -> None:
    assert (ROOT / rule.path).read_text().count(rule.text) == 1
    for each in rule.tests:
        path, name = each.partition("::")[0], each.rpartition("::")[2].partition("[")[0]
        assert f"def {name}(" in (ROOT / path).read_text()
