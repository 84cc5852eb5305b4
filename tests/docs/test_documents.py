"""The generated parts of `docs/` are current."""

from __future__ import annotations

import pytest
from documents import DOCS, OPENAPI, PARTS, RENEW, openapi, renewed
from fidelity import SCENARIOS, scenarios_csv
from llms import LLMS, answer, llms


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_the_generated_parts_of_a_document_are_current(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert renewed(name, text) == text, f"docs/{name} is not current: {RENEW}"


@pytest.mark.slow
def test_the_description_of_the_http_api_is_current() -> None:
    assert OPENAPI.read_text(encoding="utf-8") == openapi(), f"docs/openapi.json is not current: {RENEW}"


@pytest.mark.slow
def test_the_table_of_scenarios_is_current() -> None:
    assert SCENARIOS.read_text(encoding="utf-8") == scenarios_csv(), f"docs/scenarios.csv is not current: {RENEW}"


def test_a_missing_or_repeated_part_is_an_error() -> None:
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    for spoilt in (text.replace("<!-- end of limits -->", ""), text + text):
        with pytest.raises(ValueError, match=r"operations\.md: has the parts"):
            renewed("operations.md", spoilt)


def test_the_list_of_pages_for_language_models_is_current() -> None:
    text = LLMS.read_text(encoding="utf-8")
    assert text == llms(), f"docs/llms.txt is not current: {RENEW}"
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    rows = [line for line in index.splitlines() if line.startswith("|") and "](" in line]
    assert text.count("](") == len(rows) + 1
    assert "\n- [How do I write my first test?](quick-start.md): In five minutes, with three files." in text


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("# A?\n\nWith [a rule](faults.md),\nor a hold:\n\n```py\n", "With a rule, or a hold"),
        ("# A?\n\n```bash\nmake\n```\n", ""),
        ("# A?\n\n" + "A sentence of words. " * 20, ("A sentence of words. " * 14).strip()),
    ],
)
def test_the_answer_of_a_page_is_its_first_sentences(page: str, expected: str) -> None:
    assert answer(page) == expected
