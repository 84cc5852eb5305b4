"""`make bench-pipeline` rejects impossible options before it starts. No test depends on a measured time."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCH = Path(__file__).parents[2] / "bench" / "pipeline"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is looked for in /proc")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield import_module("run")
    for name in ("run", "machine"):
        sys.modules.pop(name, None)


def test_tiers_are_loaded_from_the_smallest_on(bench: Any) -> None:
    assert [(tier.name, tier.events) for tier in bench.tiers("20M,200k")] == [("200k", 200_000), ("20M", 20_000_000)]


@pytest.mark.parametrize("text", ["2", "M", "2m", "", "2M,", "-1M"])
def test_an_invalid_number_of_events_is_refused(bench: Any, text: str) -> None:
    with pytest.raises(SystemExit, match="is no number of events like"):
        bench.tiers(text)


@pytest.fixture
def measured(bench: Any, tmp_path: Path) -> Any:
    """Return a benchmark with a distinct copy of 1 MiB."""
    measured = bench.Bench(tmp_path)
    measured.per_copy = 1 << 20
    return measured


def test_a_tier_for_which_the_disk_has_no_room_is_left_out(
    bench: Any, measured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "free", lambda _folder: 5 << 20)
    monkeypatch.setattr(bench, "ran", lambda *command: pytest.fail(f"{command} was run"))
    measured.tier(bench.Tier("2M", 2_000_000), smallest=True)
    (row,) = measured.rows
    assert "left out: 60 MiB needed, 5 free" in row.figure


def test_a_tier_goes_on_after_an_engine_that_fails_and_leaves_no_file(
    bench: Any, measured: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []

    def ran(*command: str) -> Any:
        commands.append(command[:3])
        if "duckdb" in command:
            raise bench.NotDone("no room")
        told = {"events": 10, "load_s": 1.0, "tables_s": 1.0, "seconds": 1.0, "differences": []}
        if command[1] == "load":
            Path(command[3]).mkdir(exist_ok=True)
        return bench.Spent(told, 1.0, 1.0, 1.0)

    monkeypatch.setattr(bench, "ran", ran)
    measured.tier(bench.Tier("2M", 2_000_000), smallest=True)
    assert [row.what for row in measured.rows if row.verdict == "failed"] == ["2M: duckdb"]
    assert [command[0] for command in commands] == [
        *("spark_jobs.py", "spark_jobs.py", "engine_jobs.py", "engine_jobs.py", "spark_jobs.py", "spark_jobs.py")
    ]
    assert commands[0][1:] == ("replicate", f"{tmp_path}/distinct")
    assert commands[-2][1:] == ("load", "local[1]")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
@pytest.mark.usefixtures("bench")
def test_the_memory_of_a_process_is_that_of_all_below_it() -> None:
    held = "held = bytearray(100 << 20); held[::4096] = bytes(len(held[::4096]))"
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {f'{held}; import time; time.sleep(1)'!r}])"
    spent = sys.modules["machine"].ran("-c", f"{inner}; print('{{}}')")
    assert spent.peak_mib > 100
    assert spent.told == {}


@pytest.mark.usefixtures("bench")
def test_a_process_that_fails_says_why() -> None:
    machine = sys.modules["machine"]
    with pytest.raises(machine.NotDone, match="no room"):
        machine.ran("-c", "raise SystemExit('no room')")
