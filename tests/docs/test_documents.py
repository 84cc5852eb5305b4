"""The generated parts of `docs/` are current."""

from __future__ import annotations

import pytest
from documents import DOCS, OPENAPI, PARTS, RENEW, openapi, renewed


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_the_generated_parts_of_a_document_are_current(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert renewed(name, text) == text, f"docs/{name} is not current: {RENEW}"


@pytest.mark.slow
def test_the_description_of_the_http_api_is_current() -> None:
    assert OPENAPI.read_text(encoding="utf-8") == openapi(), f"docs/openapi.json is not current: {RENEW}"


def test_a_missing_or_repeated_part_is_an_error() -> None:
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    for spoilt in (text.replace("<!-- end of limits -->", ""), text + text):
        with pytest.raises(ValueError, match=r"operations\.md: has the parts"):
            renewed("operations.md", spoilt)
