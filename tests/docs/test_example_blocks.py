"""Every `python` block of the README and of docs/ is a complete program, and is run; fragments are `py` blocks."""

from __future__ import annotations

import ast

import pytest
from scenes.documentation import ROOT, blocks

README_BYTES_MAX = 7 * 1024

EXAMPLES = {
    block.name: block.text
    for block in blocks("python")
    # tested where their tools are: titled blocks are files of one project, compose/ needs Docker, the pipeline Spark
    if "=" not in block.info and block.page.parent.name != "compose" and not block.page.stem.startswith("pipeline")
}
FRAGMENTS = {block.name: block.text for block in blocks("py")}
IN_PYTEST = [pytest.param(block, id=name) for name, block in EXAMPLES.items() if "def test_" in block]
ALONE = [pytest.param(block, id=name) for name, block in EXAMPLES.items() if "def test_" not in block]


def test_the_readme_is_short_and_shows_one_test() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= README_BYTES_MAX
    assert len([name for name in EXAMPLES if name.startswith("README.md")]) == 1


@pytest.mark.parametrize("example", IN_PYTEST)
def test_the_examples_in_pytest_pass(pytester: pytest.Pytester, example: str) -> None:
    pytester.makepyfile(example)

    pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=170).assert_outcomes(passed=1)


@pytest.mark.parametrize("example", ALONE)
def test_the_examples_without_pytest_run(pytester: pytest.Pytester, example: str) -> None:
    result = pytester.runpython(pytester.makepyfile(example))

    assert result.ret == 0


@pytest.mark.parametrize("fragment", FRAGMENTS.values(), ids=FRAGMENTS)
def test_a_fragment_is_valid_python(fragment: str) -> None:
    ast.parse(fragment)
