"""Applications of stream libraries share a topic, rebalance and stop: the short form of `make suites`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import apps

pytestmark = pytest.mark.needs("pypi")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["faststream", "arroyo"])
def test_two_instances_of_an_application_share_a_topic_and_commit_everything(name: str) -> None:
    assert "all committed" in apps.played(name)
