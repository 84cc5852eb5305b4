"""What the README shows is run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
IN_PYTEST = [example for example in EXAMPLES if "def test_" in example]
ALONE = [example for example in EXAMPLES if "def test_" not in example]


def test_there_is_an_example_of_each_kind() -> None:
    assert (len(IN_PYTEST), len(ALONE)) == (2, 2)


@pytest.mark.parametrize("example", IN_PYTEST)
def test_the_examples_in_pytest_pass(pytester: pytest.Pytester, example: str) -> None:
    pytester.makepyfile(example)

    pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=60).assert_outcomes(passed=1)


@pytest.mark.parametrize("example", ALONE)
def test_the_examples_without_pytest_run(pytester: pytest.Pytester, example: str) -> None:
    result = pytester.runpython(pytester.makepyfile(example))

    if "print(" in example:
        result.stdout.fnmatch_lines(["127.0.0.1:*"])
    assert result.ret == 0
