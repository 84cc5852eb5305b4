"""Rebalances and join phases of each test in summaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordinator.fixtures import rebalance_stats

SUPPORT = Path(__file__).parents[1] / "support"


def state(seq: int, group: str, at_ms: int, state_to: str) -> dict[str, object]:
    times = {"wall_ts": at_ms * 1000, "group_ts_us": at_ms * 1000}
    return {"seq": seq, "kind": "state", "group_id": group, "generation": 1, "state_to": state_to, **times}


def test_the_numbers_are_the_rebalances_and_join_times_of_all_groups() -> None:
    first = [
        state(1, "a", 0, "PreparingRebalance"),
        state(2, "b", 100, "PreparingRebalance"),
        state(3, "a", 1000, "CompletingRebalance"),
        state(4, "a", 1500, "Stable"),
        {"seq": 5, "kind": "conn", "wall_ts": 2_000_000},
    ]
    second = [state(1, "a", 0, "PreparingRebalance"), state(2, "a", 10, "Empty")]
    assert rebalance_stats.properties([first, second]) == [
        ("koordinator_rebalances", 3),
        ("koordinator_join_ms", 1000 + 1900 + 10),
    ]
    assert rebalance_stats.properties([]) == [("koordinator_rebalances", 0), ("koordinator_join_ms", 0)]


REBALANCING = """
import pytest
from clients.raw_member import Rival

@pytest.mark.parametrize("members", [0, 1, 2])
def test_it(koordinator, members):
    for number in range(members):
        with Rival(koordinator.bootstrap_servers, f"i{number}") as rival:
            rival.send_join()
            if number == 0:
                rival.receive()
    koordinator.group("g").events()
    assert koordinator.seed == 0 or members < 2
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_the_slowest_tests_are_listed_and_github_gets_a_table(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    summary = pytester.path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    pytester.makepyfile(test_it=REBALANCING)
    pytester.makeini(f"[pytest]\npythonpath = {SUPPORT}")
    result = pytester.runpytest_subprocess("--koordinator-slowest=2", "-W", "ignore", *workers, timeout=170)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*= koordinator: longest join phases =*"])
    result.stdout.fnmatch_lines_random(["*s  2 rebalances * test_it.py::*2]", "*s  1 rebalance * test_it.py::*1]"])
    result.stdout.no_fnmatch_line("*s  0 rebalances *")
    before, title, _, head, _, first, second, third = summary.read_text().rstrip().splitlines()
    assert (before, title) == ("before", "### Rebalances per test (koordinator)")
    assert head == "| test | outcome | rebalances | in join phases | trace |"
    assert first.startswith("| `test_it.py::test_it[2]` | failed | 2 | ")
    assert first.endswith("trace.html |")
    assert second.startswith("| `test_it.py::test_it[1]` | passed | 1 | ")
    assert third == "| `test_it.py::test_it[0]` | passed | 0 | 0.000 s |  |"
