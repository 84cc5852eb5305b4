"""The run, the test and its outcome in the traces."""

from __future__ import annotations

import json
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

import koordinator.handles.emulator  # noqa: F401 - once, instead of anew in each inner run
from koordinator import Simulation
from koordinator.emulator.trace.run_metadata import LIBRARIES, PROVIDERS, run_columns

if TYPE_CHECKING:
    from pathlib import Path

ENDS = """
import pytest

@pytest.fixture
def late():
    yield
    raise ValueError

def test_good(koordinator):
    pass

def test_bad(koordinator):
    assert False

def test_late(koordinator, late):
    pass

def test_other(koordinator):
    pytest.skip("not today")
"""


def lines_of(pytester: pytest.Pytester, test: str) -> list[dict[str, Any]]:
    file = pytester.path / "test-results" / f"test_app-{test}" / "trace.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest("-p", "no:hypothesispytest", "--koordinator-trace=on", *arguments)


def test_the_last_line_of_a_trace_has_the_outcome(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_app=ENDS)
    run(pytester, "--koordinator-seed=7").assert_outcomes(passed=2, failed=1, skipped=1, errors=1)
    for name, outcome in {"good": "passed", "bad": "failed", "late": "error", "other": "skipped"}.items():
        header, *_, end = lines_of(pytester, f"test_{name}")
        assert (end["kind"], end["test_id"], end["outcome"]) == ("test", f"test_app.py::test_{name}", outcome)
        assert (end["rerun"], end["seed"]) == (0, 7)
        assert end["duration_ms"] > 0
        assert header["test_id"] == end["test_id"]


def test_every_line_has_the_trace_id_and_every_header_the_run_id(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KOORDINATOR_RUN_ID", raising=False)
    for provider in PROVIDERS:
        monkeypatch.delenv(provider.marker, raising=False)
    pytester.makepyfile(test_app=ENDS)
    run(pytester)
    good, bad = lines_of(pytester, "test_good"), lines_of(pytester, "test_bad")
    assert {line["trace_id"] for line in good} == {good[0]["trace_id"]}
    assert good[0]["trace_id"] != bad[0]["trace_id"]
    assert good[0]["run_id"] == bad[0]["run_id"]
    monkeypatch.setenv("KOORDINATOR_RUN_ID", "nightly-5")
    run(pytester)
    assert lines_of(pytester, "test_good")[0]["run_id"] == "nightly-5"


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_run_is_named_after_its_ci_build(provider: Any) -> None:
    names = [provider.marker, *provider.repo, *provider.commit, *provider.branch, *provider.run_id]
    found = run_columns({name: name.lower() for name in names})
    assert found["ci_provider"] == provider.name
    assert found["repo"] == provider.repo[0].lower()
    assert found["commit"] == provider.commit[0].lower()
    assert found["branch"] == provider.branch[0].lower()
    assert found["run_id"] == "-".join(name.lower() for name in provider.run_id)
    assert run_columns({provider.marker: "true", "KOORDINATOR_RUN_ID": "mine"})["run_id"] == "mine"


def test_unknown_columns_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(run_columns({})) <= {"os", "libs"}

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert set(run_columns({})) == {"os"}


def test_libraries_are_listed_with_their_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: f"1.{len(name)}")
    assert run_columns({})["libs"] == {name: f"1.{len(name)}" for name in LIBRARIES}


def test_the_same_seed_and_the_same_header_are_the_same_trace(tmp_path: Path) -> None:
    def written(name: str, **about: object) -> str:
        with Simulation(trace=tmp_path / name, seed=3, about=about) as cluster:
            cluster.group("svc").puppet("a", topics=["orders"]).join()
        return (tmp_path / name).read_text()

    assert written("a") == written("b")
    assert json.loads(written("c", run_id="r").splitlines()[0])["trace_id"] not in written("a")
