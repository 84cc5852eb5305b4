"""`tools/prose.py` finds phrases without a noun, and long lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prose import LIMIT, PHRASES, failures_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text",
    [
        "What is parked waits.",
        "Return the members, who are static.",
        "Nobody is a member.",
        "The client is told of the rebalance.",
        "The time has come.",
        "So many members may join.",
        "Make the assignment anew.",
    ],
)
def test_a_phrase_that_avoids_the_noun_is_found(text: str) -> None:
    assert PHRASES.search(text)


@pytest.mark.parametrize(
    "text", ["Return the parked requests.", "Retry while the coordinator loads.", "Members that did not rejoin leave."]
)
def test_plain_sentences_pass(text: str) -> None:
    assert not PHRASES.search(text)


def test_a_folder_fails_beyond_its_limit_only(tmp_path: Path) -> None:
    for folder, hits in (("few", int(LIMIT)), ("many", int(LIMIT) + 1)):
        (tmp_path / folder).mkdir()
        comments = ["# Flush the batch.\n"] * (1000 - hits) + ["# Nobody waits.\n"] * hits
        (tmp_path / folder / "module.py").write_text("".join(comments))
    failures = failures_of(tmp_path)
    assert {line.partition("/")[0] for line in failures[:-1]} == {"many"}
    assert failures[-1].startswith("many: ")


def test_docstrings_comments_help_texts_and_markdown_are_read(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        '"""Nobody."""\nname = "nobody"  # nobody\ncall(help="nobody", text="nobody")\n'
    )
    (tmp_path / "page.md").write_text("nobody\n\n```\nnobody\n```\n")
    places = {line.rpartition(":")[0] for line in failures_of(tmp_path) if "nobody" in line.lower()}
    assert places == {"module.py:1", "module.py:2", "module.py:3", "page.md:1"}


def test_long_lines_of_prose_fail_and_tables_do_not(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("word " * 30 + "\n| " + "word " * 30 + "|\n")
    assert failures_of(tmp_path) == ["page.md:1: 149 characters, at most 120"]
