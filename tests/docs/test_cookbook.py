"""The cookbook has a recipe for each failure, and every recipe has the required parts."""

from __future__ import annotations

import ast

import pytest
from scenes.cookbook import CLIENTS, FOLDER, Recipe, recipes

ROWS = [*range(1, 20), 21, 22, *range(24, 60)]
"""Failures from the issues of clients and applications; 20 and 23 concern other clients."""

LINES_MAX = 95

RECIPES = [pytest.param(each, id=each.path.stem) for each in recipes()]


def test_there_is_a_recipe_for_each_failure() -> None:
    assert [each.number for each in recipes()] == ROWS


def test_each_client_has_its_share() -> None:
    used = [each.client for each in recipes()]
    assert {client: used.count(client) >= 6 for client in CLIENTS.values()} == dict.fromkeys(CLIENTS.values(), True)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_short_names_its_evidence_and_has_a_wrong_and_a_right_version(recipe: Recipe) -> None:
    text = recipe.path.read_text(encoding="utf-8")
    tests = [
        each.name for each in ast.parse(text).body if isinstance(each, ast.FunctionDef) and each.name[:5] == "test_"
    ]
    assert len(tests) >= 2 or ('id="wrong' in text and 'id="right' in text), tests
    assert "https://" in recipe.evidence
    assert len(text.splitlines()) <= LINES_MAX


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_the_cookbook_neither_sleeps_nor_looks_behind_the_handle(path: object) -> None:
    tree = ast.parse(FOLDER.joinpath(str(path)).read_text(encoding="utf-8"))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "sleep" not in names
    of_ours = {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("koordinator")
    }
    assert of_ours <= {"koordinator"}
    assert "_port" not in names
