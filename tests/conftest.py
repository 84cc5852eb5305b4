"""The markers of the tests, the profiles of Hypothesis, and the invariants of groups."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from scenes import group_invariants

pytest_plugins = ["marks.needs", "marks.slow"]

# a busy machine is slow, not wrong; `HYPOTHESIS_PROFILE=thorough` searches longer
settings.register_profile("quick", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

group_invariants.install()


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Let the inner pytest load no plugin of schemathesis, whose import takes half of a short run."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:schemathesis")
    return pytester
