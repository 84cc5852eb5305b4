"""The generated parts of the pipeline's documents are current; `make test` has no Spark to check that."""

from __future__ import annotations

import pytest
from documents import DOCS, PARTS, RENEW, renewed


@pytest.mark.parametrize("name", [name for name in PARTS if name.startswith("pipeline")])
def test_the_generated_parts_of_a_document_are_current(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert renewed(name, text) == text, f"docs/{name} is not current: {RENEW}"
