"""The lock of Maven's local repository, which tests that run beside each other share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from brokers import maven

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks on Windows")
def test_only_one_process_of_maven_runs_at_a_time_and_other_programs_do_not_wait(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(maven, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(maven, "LOCK_S", -1)
    with maven.local_repository(["mvn", "verify"]):
        with pytest.raises(TimeoutError, match="another process has held"), maven.local_repository(["mvn"]):
            pytest.fail("two at a time")
        with maven.local_repository(["go", "test"]):
            pass
    with maven.local_repository(["mvn", "verify"]):
        pass
