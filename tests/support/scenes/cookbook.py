"""The recipes of `examples/cookbook/`, parsed from their docstrings."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from tables import table

FOLDER = Path(__file__).parents[3] / "examples" / "cookbook"

CLIENTS = {"aiokafka": "aiokafka", "confluent_kafka": "confluent-kafka", "kafka": "kafka-python"}
"""The client libraries, by import name."""

NAME = re.compile(r"test_(?P<number>\d\d)_\w+\.py")
EVIDENCE = re.compile(r"^Evidence: (?P<evidence>.*?)^Reproduced by: (?P<cause>.*?)\Z", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Recipe:
    """A file of the cookbook: the failure in a sentence, the client, the affected users, and the cause."""

    number: int
    path: Path
    title: str
    client: str
    evidence: str
    cause: str


def recipes() -> list[Recipe]:
    """Return all recipes by number. Raises ValueError for a docstring without the expected parts."""
    return [_recipe(path) for path in sorted(FOLDER.glob("test_*.py"))]


def cookbook_table() -> str:
    """Return the index of the cookbook, for a document in `docs/`."""
    rows = (
        (f"[{each.number:02}](../examples/cookbook/{each.path.name})", each.title, each.client, _line(each.cause))
        for each in recipes()
    )
    return table(("file", "what goes wrong, and what is right", "client", "what makes it happen"), rows)


def _recipe(path: Path) -> Recipe:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = ast.get_docstring(tree) or ""
    name, parts = NAME.fullmatch(path.name), EVIDENCE.search(said)
    imported = {name for node in ast.walk(tree) for name in _imported(node)}
    clients = [CLIENTS[name] for name in sorted(imported & CLIENTS.keys())]
    if name is None or parts is None or len(clients) != 1:
        raise ValueError(
            f"{path.name}: a recipe is named test_NN_what_goes_wrong.py, its docstring ends with 'Evidence: …' and"
            f" 'Reproduced by: …', and it imports one client; found {clients}"
        )
    title = said.partition("\n")[0]
    return Recipe(int(name["number"]), path, title, clients[0], _line(parts["evidence"]), parts["cause"])


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").partition(".")[0]]
    return [each.name.partition(".")[0] for each in node.names] if isinstance(node, ast.Import) else []


def _line(text: str) -> str:
    return " ".join(text.split())
