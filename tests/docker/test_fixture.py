"""The fixture `koordinator_container`: without an engine, and the files of a failed test."""

from __future__ import annotations

import os
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from koordinator.handles.docker import OWNER, remove_leftovers

if TYPE_CHECKING:
    from pathlib import Path

ASKS = "def test_it(koordinator_container): pass"


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.delenv("KOORDINATOR_REQUIRE", raising=False)


@pytest.mark.usefixtures("no_engine")
def test_without_an_engine_the_test_is_skipped_with_the_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ASKS)
    result = pytester.runpytest_subprocess("-rs", "-W", "error", timeout=60)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*koordinator_container: no Docker engine responds: *"])


@pytest.mark.usefixtures("no_engine")
def test_where_docker_is_required_it_is_an_error(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOORDINATOR_REQUIRE", "java, docker")
    pytester.makepyfile(ASKS)
    result = pytester.runpytest_subprocess(timeout=60)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no Docker engine responds: *KOORDINATOR_REQUIRE names docker*"])


def test_on_windows_no_process_is_ended_to_learn_whether_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[tuple[int, int]] = []
    windows = SimpleNamespace(name="nt", getpid=os.getpid, kill=lambda *sent: signals.append(sent))
    monkeypatch.setattr("koordinator.handles.docker.os", windows)
    container = SimpleNamespace(labels={OWNER: f"{socket.gethostname()}/{os.getpid()}"})
    assert remove_leftovers(SimpleNamespace(containers=SimpleNamespace(list=lambda **_: [container]))) == []
    assert signals == []


@pytest.mark.needs("docker")
def test_a_test_that_fails_shows_the_log_and_keeps_the_trace(image: str, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def koordinator_container_config():
            return {{"image": {image!r}, "network_mode": "host"}}
        """
    )
    pytester.makepyfile(
        """
        def test_good(koordinator_container):
            koordinator_container.cluster.create_topic("t")

        def test_bad(koordinator_container):
            koordinator_container.cluster.group("svc").create_puppet("p", topics=["t"]).join()
            assert not koordinator_container.cluster
        """
    )
    result = pytester.runpytest_subprocess(timeout=120)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines_random(["*koordinator container log*", "*koordinator timeline (svc)*"])
    kept: list[Path] = list((pytester.path / "test-results").rglob("trace.jsonl"))
    assert len(kept) == 1
    assert "svc" in kept[0].read_text(encoding="utf-8")
