"""The generated parts of the pipeline's guide are current; `make test` has no Spark to check that."""

from __future__ import annotations

from documents import DOCS, RENEW, renewed

GUIDE = "pipeline.md"


def test_the_generated_parts_of_the_guide_are_current() -> None:
    text = (DOCS / GUIDE).read_text(encoding="utf-8")
    assert renewed(GUIDE, text) == text, RENEW
