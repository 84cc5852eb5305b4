"""`koordinator-pipeline verify` and `compare`: exit status, JUnit and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from spark.literal_frames import literal
from spark.report_store import write_store

from koordinator.pipeline import schema
from koordinator.pipeline.fold.verdicts import TITLES, severity
from koordinator.pipeline.jobs import compare as compare_job
from koordinator.pipeline.jobs import verify as verify_job

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return an empty folder."""
    return tmp_path / "store"


def verdicts(store: Path, **failing: str) -> None:
    """Write a store in which one group passed all checks except these, which failed with the given message."""
    rows = [
        {"check_id": check, "title": title, "severity": severity(check)}
        | ({"status": "fail", "message": failing[check]} if check in failing else {"status": "pass"})
        for check, title in TITLES.items()
    ]
    frame = literal(None, schema.VERDICT, *rows, trace_id="t", run_id="r", test_id="x", group_id="g", subject="a 1")
    write_store(store, {schema.VERDICT: frame})


def run(job: Any, *arguments: str) -> Result:
    return CliRunner().invoke(job, arguments, standalone_mode=False)


def test_exit_status_is_0_without_failures(store: Path) -> None:
    verdicts(store)
    assert run(verify_job.verify, "--store", str(store)).return_value == 0


def test_an_error_fails_and_is_in_both_files(store: Path) -> None:
    verdicts(store, S01="after generation 1 came 3", C05="one has left")
    junit, found = store.parent / "junit.xml", store.parent / "verdicts.json"
    result = run(verify_job.verify, "--store", str(store), "--junit", str(junit), "--json", str(found))
    assert result.return_value == 1
    assert "S01 a 1: x, group g" in result.output
    suite = ET.parse(junit).getroot()  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures")) == (str(len(TITLES)), "1")
    (failure,) = suite.iter("failure")
    assert "after generation 1 came 3" in (failure.text or "")
    # a warning only
    (warning,) = suite.iter("system-out")
    assert "one has left" in (warning.text or "")
    report = json.loads(found.read_text())
    assert [row["check_id"] for row in report["failures"]] == ["C05", "S01"]
    assert {check["id"]: check["fail"] for check in report["checks"] if check["fail"]} == {"S01": 1, "C05": 1}


def test_ignored_checks_and_warnings_do_not_fail(store: Path) -> None:
    verdicts(store, S01="after generation 1 came 3", C05="one has left")
    result = run(verify_job.verify, "--store", str(store), "--ignore", "S01")
    assert result.return_value == 0
    assert "S01" not in result.output


def test_an_empty_store_and_a_plain_folder_are_refused(store: Path) -> None:
    assert "not a store" in str(run(verify_job.verify, "--store", str(store)).exception)
    write_store(store, {})
    assert "no group to check" in str(run(verify_job.verify, "--store", str(store)).exception)


def test_an_unknown_baseline_is_refused_with_the_known_cohorts(store: Path) -> None:
    of = {"trace_id": "t", "group_id": "g"}
    rows = {
        schema.REBALANCE: of | {"join_ms": 2.0, "membership": "static"},
        schema.MEMBER: of | {"member_id": "m", "is_static": True, "first_seq": 1},
        schema.TRACE: {"trace_id": "t", "started_us": 1},
    }
    write_store(store, {table: literal(None, table, row) for table, row in rows.items()})
    result = run(compare_job.compare, "--store", str(store), "--by", "membership", "--baseline", "dynamic")
    assert "no such cohort; choose one of: static" in str(result.exception)
    found = store.parent / "cohorts.json"
    result = run(compare_job.compare, "--store", str(store), "--by", "membership", "--json", str(found))
    assert result.exception is None, result.output
    assert json.loads(found.read_text())["baseline"] == "static"
