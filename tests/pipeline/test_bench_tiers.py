"""The tiers of `make bench-pipeline`: copies of traces with ids of their own."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

BENCH = Path(__file__).parents[2] / "bench" / "pipeline"


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield import_module("spark_jobs")
    sys.modules.pop("spark_jobs", None)


def test_a_copy_has_ids_of_its_own_for_trace_run_and_group(spark: SparkSession, jobs: Any) -> None:
    header = json.dumps({"kind": "header", "run_id": "ci-7", "trace_id": "t"}, separators=(",", ":"))
    rows = [
        ("t", 0, "header", None, header),
        ("t", 1, "request", "svc", '{"offsets":[]}'),
        ("t", 2, "conn", None, None),
    ]
    events = spark.createDataFrame(rows, "trace_id string, seq long, kind string, group_id string, body string")
    copies = jobs.replicated(events, 5, 2, 1).orderBy("trace_id", "seq").collect()
    assert len(copies) == 6
    traces = {row.trace_id: [each for each in copies if each.trace_id == row.trace_id] for row in copies}
    assert len(traces) == 2
    assert {json.loads(first.body)["run_id"] for first, _, _ in traces.values()} == {"ci-7-5", "ci-7-6"}
    assert {(second.group_id, second.body) for _, second, _ in traces.values()} == {
        ("svc-5", '{"offsets":[]}'),
        ("svc-6", '{"offsets":[]}'),
    }
    assert all((third.group_id, third.body) == (None, None) for _, _, third in traces.values())
