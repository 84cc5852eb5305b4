"""mypy --strict accepts every Python block of the README and of docs/.

The blocks have no annotations, so that they stay short. Before the check, each parameter gets the type of the fixture
or handle of its name, and a name that a fragment (`py`) takes from its context is declared with that type. Other
parameters and names admit any value.
"""

from __future__ import annotations

import ast
import os
import re
import site
import subprocess
import sys
from pathlib import Path

import pytest
from scenes.documentation import ROOT, blocks

import koordinator

TYPES = {
    "cluster": "_Cluster",
    "consumer": "_Any",
    "group": "_Group",
    "koordinator": "_Cluster",
    "koordinator_aio": "_aio.Cluster",
    "koordinator_factory": "_Factory",
    "koordinator_session": "_SessionCluster",
    "puppet": "_Puppet",
}

HEAD = """from __future__ import annotations
from typing import Any as _Any
from koordinator import Cluster as _Cluster, ClusterFactory as _Factory, Group as _Group, Puppet as _Puppet
from koordinator import SessionCluster as _SessionCluster, aio as _aio
"""

CONTEXT = ("misc", "name-defined", "var-annotated")
"""Errors that a block has without its context, without the types of client libraries, and without annotations."""


class Annotated(ast.NodeTransformer):
    """Annotates the functions of a block, and collects the names that it binds."""

    def __init__(self) -> None:
        self.bound: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Collect an assigned name."""
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        return node

    def visit_alias(self, node: ast.alias) -> ast.alias:
        """Collect an imported name."""
        self.bound.add((node.asname or node.name).partition(".")[0])
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Annotate a function."""
        return self._annotate(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Annotate a coroutine function."""
        return self._annotate(node)

    def _annotate(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.bound.add(node.name)
        for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
            if each is not None and each.annotation is None and each.arg not in ("self", "cls"):
                each.annotation = ast.Name(TYPES.get(each.arg, "_Any"), ast.Load())
        node.returns = node.returns or ast.Name("_Any", ast.Load())
        return self.generic_visit(node)


def module_of(text: str) -> str:
    """Return a block as a module that mypy can check."""
    annotated = Annotated()
    tree = annotated.visit(ast.parse(text))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - annotated.bound
    declared = [f"{name}: {TYPES[name]}" for name in TYPES if name in used]
    return HEAD + "\n".join([*declared, ast.unparse(ast.fix_missing_locations(tree)), ""])


def mypy(folder: Path) -> str:
    """Return the errors that mypy --strict finds in a folder, one a line."""
    root = str(Path(str(koordinator.__file__)).parents[1])
    installed = root in {*site.getsitepackages(), site.getusersitepackages()}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={os.devnull}"]
    command += ["--ignore-missing-imports", "--no-error-summary", *(f"--disable-error-code={code}" for code in CONTEXT)]
    environment = os.environ | ({} if installed else {"MYPYPATH": root})
    checked = subprocess.run(
        [*command, "."], env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert checked.returncode in {0, 1}, checked.stderr
    return checked.stdout


@pytest.mark.slow
def test_every_python_block_passes_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for block in blocks("python", "py"):
        if not block.page.is_relative_to(ROOT / "pipeline") and not block.page.stem.startswith("pipeline"):
            name = re.sub(r"\W", "_", block.name)
            (tmp_path / f"block_{name}.py").write_text(module_of(block.text), encoding="utf-8")
    mistake = "def test_it(koordinator): koordinator.move_coordinator('svc', to='2')"
    (tmp_path / "wrong.py").write_text(module_of(mistake), encoding="utf-8")

    errors = mypy(tmp_path).splitlines()

    # the mistake is found, and nothing else
    (wrong,) = (line for line in errors if line.startswith("wrong.py"))
    assert 'incompatible type "str"; expected "int | NodeHandle"' in wrong
    # confluent-kafka imports these names without exporting them
    of_a_library = 'Module "confluent_kafka.admin" does not explicitly export'
    assert [line for line in errors if not line.startswith("wrong.py") and of_a_library not in line] == []
