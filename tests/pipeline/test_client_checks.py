"""C01 to C14 in the pipeline give the same verdicts as in the emulator, for every trace of the emulator's own tests."""

from __future__ import annotations

import importlib.util
import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenes import trace_tales
from scenes.trace_tales import Tale
from spark.event_frames import verdicts

from koordinator.emulator.verify.conformance import Verdict, conformance
from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.pipeline.frames import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import pytest

    from koordinator.trace.exchanges import Line

HERE = Path(__file__).parent
CHECKS = HERE.parent / "verify"
TALES = [CHECKS / f"test_{name}_checks.py" for name in ("member", "rebalance", "consumer_group")]
TRACES = HERE.parent / "pages" / "traces"


def tales(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Line]]:
    """Return the lines that each test of the emulator's checks judges, by test name and number."""
    traces: dict[str, list[Line]] = {}
    name = ""

    def recording(story: GroupTrace, *args: Any, **kwargs: Any) -> list[Verdict]:
        traces[f"{name} {len(traces)}"] = [dict(line) for line in story.lines]
        return conformance(story, *args, **kwargs)

    monkeypatch.setattr(trace_tales, "conformance", recording)
    for path in TALES:
        for name, test in vars(_module(path)).items():
            if name.startswith("test_c"):
                for arguments in _cases(test):
                    test(Tale(), **arguments)
    return traces


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tales_of_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cases(test: Callable[..., None]) -> list[dict[str, Any]]:
    choices = []
    for mark in getattr(test, "pytestmark", []):
        names, values = mark.args
        names = [names] if isinstance(names, str) else names
        choices.append([dict(zip(names, value if len(names) > 1 else [value], strict=True)) for value in values])
    return [dict(pair for choice in case for pair in choice.items()) for case in itertools.product(*choices)]


def groups_of(lines: list[Line]) -> list[str]:
    return sorted({line["group_id"] for line in lines if "group_id" in line})


def test_verdicts_equal_those_of_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = tales(monkeypatch)
    traces |= {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in TRACES.glob("*.jsonl")
    }
    rows = {(row.trace_id, row.group_id, row.check_id): row for row in rows_of(verdicts(traces))}
    mismatches = []
    for trace_id, lines in traces.items():
        for group_id in groups_of(lines):
            for verdict in conformance(GroupTrace(lines, group_id)):
                row = rows[trace_id, group_id, verdict.id]
                ends = (min(verdict.evidence), max(verdict.evidence)) if verdict.evidence else (None, None)
                expected = (verdict.status, *ends, verdict.message)
                seen = (row.status, row.first_seq, row.last_seq, row.message)
                if expected != seen:
                    mismatches.append(f"{trace_id}: {verdict.id}\n  wanted {expected}\n  is     {seen}")
                assert row.title == verdict.title
    assert len(traces) >= 80
    assert not mismatches, f"{len(mismatches)} of {len(rows)}\n" + "\n".join(mismatches)
