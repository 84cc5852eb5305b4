"""Make `docs/llms.txt` from the index of the documentation (`make docs`): the list of pages for language models.

The format is that of llmstxt.org. Each page has its question and the first sentences of its answer.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"

LLMS = DOCS / "llms.txt"

ROW = re.compile(r"^\| (?P<question>.+?) \| (?:\[[^\]]*\]\((?P<page>[^)]+)\) )?\|$", re.MULTILINE)

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")

ANSWER_CHARS = 300
"""The longest answer of a page; a longer one ends with its last whole sentence below."""

HEAD = """# koordinator

> An emulator of Kafka's group coordinator, for testing consumers. It speaks the Kafka protocol, starts in
> milliseconds, needs neither Java nor Docker, and lets a test expire sessions, hold requests, inject errors and
> advance time.

Start a server of a clone (there is no release yet) with
`uvx --from './koordinator[control]' koordinator serve --topic orders:6 --control-port 9080`, or in Python with the
pytest fixture `koordinator`, `with koordinator.Emulator() as cluster:`, or `koordinator.Simulation()`.
Consumers connect with their usual settings; `cluster.client_config("kafka-python", group_id="svc")` returns them.
`cluster.group("svc")` has the waits, assertions and overrides of a group.
"""


def answer(text: str) -> str:
    """Return the first sentences below the title of a page; "" if it begins with something else."""
    _, _, body = text.partition("\n\n")
    paragraph = re.split(r"\n\n|\n```|\n\|", body, maxsplit=1)[0]
    if not re.match(r"[A-Z*\[]|`[^`]", paragraph):
        return ""
    plain = " ".join(LINK.sub(r"\1", paragraph).split())
    if len(plain) <= ANSWER_CHARS:
        return plain.rstrip(":")
    return plain[:ANSWER_CHARS].rpartition(". ")[0] + "." if ". " in plain[:ANSWER_CHARS] else ""


def llms() -> str:
    """Return the text of `docs/llms.txt`."""
    lines = [HEAD]
    for row in ROW.finditer((DOCS / "index.md").read_text(encoding="utf-8")):
        question, page = row["question"], row["page"]
        if page is None:
            lines.append(f"\n## {question.strip('*')}\n\n")
            continue
        if question == "question":
            continue
        said = answer((DOCS / page).read_text(encoding="utf-8"))
        lines.append(f"- [{question}]({page})" + (f": {said}" if said else "") + "\n")
    lines.append("\n## Optional\n\n- [The OpenAPI document of the HTTP control](openapi.json)\n")
    return "".join(lines)
