"""A timeline of the report shows the lines of the trace, restored from the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koordinator.pipeline.frames import rows_of
from koordinator.pipeline.local_files import list_files, read_lines
from koordinator.pipeline.report.timelines import TRACES_MAX, traces_to_show
from koordinator.pipeline.silver import intake
from koordinator.pipeline.silver.trace_lines import lines_of

TRACES = Path(__file__).parent.parent / "pages" / "traces"


@pytest.mark.parametrize("name", ["static_bounce", "cooperative", "late_commit"])
def test_the_lines_of_a_trace_are_restored_from_the_tables(name: str) -> None:
    path = TRACES / f"{name}.jsonl"
    trace_lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    files = list_files([str(path)]) or []
    found = intake.ingest(intake.parse_lines(read_lines(files), [files[0].source_file])).event.sort_by("seq")
    assert list(lines_of(rows_of(found))) == [line for line in trace_lines if line["kind"] != "header"]


class TimelineFacts:
    """The facts that timelines need."""

    def __init__(self, **rows: list[dict[str, Any]]) -> None:
        self.failures, self.longest, self.storms = (rows.get(each, []) for each in ("failures", "longest", "storms"))


def test_traces_with_a_failed_check_come_first_and_once() -> None:
    facts: Any = TimelineFacts(
        failures=[{"trace_id": "b", "first_seq": 7}, {"trace_id": "b", "first_seq": 3}],
        longest=[{"trace_id": "a", "start_seq": 1}, {"trace_id": "b", "start_seq": 2}],
    )
    assert traces_to_show(facts) == {"b": 7, "a": 1}
    many: Any = TimelineFacts(longest=[{"trace_id": str(number), "start_seq": 1} for number in range(TRACES_MAX + 5)])
    assert len(traces_to_show(many)) == TRACES_MAX
