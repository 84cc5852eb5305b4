"""Editors find definitions: relative imports in an untouched clone, all others after `make dev`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("pyright")

FOLDERS = ("emulator", "facade", "fixtures", "lab", "pipeline", "wire")

SETTINGS = {
    "include": list(FOLDERS),
    "typeCheckingMode": "off",
    "reportMissingImports": "error",
    "reportMissingModuleSource": "none",
    "reportAttributeAccessIssue": "error",
}

TIMEOUT_S = 300


@pytest.fixture(scope="module")
def clone(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package folders, without any installation."""
    folder = tmp_path_factory.mktemp("clone") / "tree"
    shutil.copytree(tree, folder)
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    return folder


def environment(folder: Path) -> Path:
    """Create an empty virtual environment; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=TIMEOUT_S)
    return folder / "bin" / "python"


def problems(clone: Path, python: Path) -> list[dict[str, Any]]:
    """Return pyright's diagnostics for every file of the clone."""
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", str(python)]
    result = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    report = json.loads(result.stdout)
    assert report["summary"]["filesAnalyzed"] > 0
    return list(report["generalDiagnostics"])


def imports(diagnostics: list[dict[str, Any]], prefix: str) -> list[str]:
    """Return the unresolved imports whose module begins with the prefix."""
    return [each["message"] for each in diagnostics if each["message"].startswith(f'Import "{prefix}')]


def test_relative_imports_resolve_in_an_untouched_clone(clone: Path, tmp_path: Path) -> None:
    diagnostics = problems(clone, environment(tmp_path / "venv"))
    assert imports(diagnostics, ".") == []
    assert imports(diagnostics, "koordinator."), "absolute imports are expected to need an installation"


def test_every_import_of_ours_leads_to_the_file_in_the_tree_after_make_dev(clone: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    editable = ["install", "--no-deps", "--editable", ".", "--config-settings", "editable_mode=strict"]
    subprocess.run([*pip, *editable], cwd=clone, check=True, timeout=TIMEOUT_S)
    assert imports(problems(clone, python), "koordinator") == []
    (links,) = clone.glob("build/__editable__.koordinator-*/koordinator")
    modules = {path.resolve() for path in links.rglob("*.py")}
    assert modules == {path.resolve() for name in FOLDERS for path in (clone / name).rglob("*.py")}
