"""The command that installs an extra is that of this installation."""

from __future__ import annotations

import json
from importlib import metadata
from types import SimpleNamespace

import pytest

from koordinator.emulator.config.install_hint import install_hint


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'koordinator[control]'"),
        ({"url": "file:///a%20clone", "dir_info": {}}, "pip install '/a clone[control]'"),
        ({"url": "file:///clone", "dir_info": {"editable": True}}, "pip install -e '/clone[control]'"),
        (
            {"url": "file:///k-1-py3-none-any.whl", "archive_info": {}},
            "pip install 'koordinator[control] @ file:///k-1-py3-none-any.whl'",
        ),
        (
            {"url": "https://host.example/k", "vcs_info": {"vcs": "git", "commit_id": "1a2b"}},
            "pip install 'koordinator[control] @ git+https://host.example/k@1a2b'",
        ),
    ],
    ids=["index", "folder", "clone", "wheel", "repository"],
)
def test_the_hint_names_the_origin_of_this_installation(
    origin: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    found = SimpleNamespace(read_text=lambda _: text)
    monkeypatch.setattr(metadata, "distribution", lambda _: found)
    assert install_hint("control") == command


def test_the_hint_of_a_tree_that_is_not_installed_names_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", fail)
    assert install_hint("spark") == "pip install 'koordinator[spark]'"
