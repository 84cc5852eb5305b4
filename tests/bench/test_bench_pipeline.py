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


def test_a_tier_for_which_the_disk_has_no_room_is_left_out(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "free", lambda _folder: 5 << 20)
    monkeypatch.setattr(bench, "ran", lambda *command: pytest.fail(f"{command} was run"))
    measured = bench.Bench(tmp_path)
    measured.per_copy = 1 << 20
    assert measured.replicate([bench.Tier("2M", 2_000_000)]) == []
    (row,) = measured.rows
    assert "left out: 60 MiB needed, 5 free" in row.figure


def test_the_inputs_of_all_tiers_and_the_increment_are_made_at_once(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []
    monkeypatch.setattr(bench, "free", lambda _folder: 1_000 << 20)
    monkeypatch.setattr(bench, "ran", lambda *command: commands.append(command))
    measured = bench.Bench(tmp_path)
    measured.per_copy = 1 << 20
    tiers = bench.tiers("2M,20M,200M")
    assert measured.replicate(tiers) == tiers[:2]
    assert [row.what for row in measured.rows] == ["200M"]
    (command,) = commands
    inputs = (f"{tmp_path}/input-2M", "0", "10", f"{tmp_path}/input-20M", "0", "100", f"{tmp_path}/later", "10", "1")
    assert command == ("spark_jobs.py", "replicate", f"{tmp_path}/distinct", *inputs)


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
