"""What is made from the code in the pipeline's guide is what the code makes now: `make test` has no Spark to ask it."""

from __future__ import annotations

from documents import DOCS, RENEW, renewed

GUIDE = "pipeline.md"


def test_the_made_parts_of_the_guide_are_current() -> None:
    text = (DOCS / GUIDE).read_text(encoding="utf-8")
    assert renewed(GUIDE, text) == text, RENEW
