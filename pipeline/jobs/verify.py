"""`koordinator-pipeline verify`: check that coordinator and clients follow the protocol, for people and for CI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import click
from rich.console import Console
from rich.table import Table

from koordinator.emulator.verify.observations import FAIL, INCONCLUSIVE, NOT_APPLICABLE, PASS

from ..console import absolute
from ..fold.verdicts import ERROR, TITLES, severity
from ..job_errors import EXIT_FAILED, JobRefused
from ..session_options import FILE, session_options, store_option
from ..views import open_query

if TYPE_CHECKING:
    from pathlib import Path

STATUSES = (PASS, FAIL, INCONCLUSIVE, NOT_APPLICABLE)

FAILURES = """
    SELECT trace_id, run_id, test_id, cluster, group_id, subject, check_id, title, status, severity, n_evidence,
           first_seq, last_seq, message
    FROM mart.verdict
    WHERE status = 'fail'
    ORDER BY check_id, run_id, test_id, trace_id, group_id
"""

FAILURES_SHOWN = 20
"""Number of failures to print for each check; the others are only counted."""

Row = dict[str, Any]


@click.command
@store_option
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice(list(TITLES)),
    metavar="CHECK",
    help="Number of a check to leave out, like C05 (repeatable).",
)
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write counts and failures as JSON.")
@click.option(
    "--junit", "junit_path", type=FILE, metavar="FILE", help="Write a JUnit file with one case for each check."
)
@session_options
def verify(
    root: str,
    as_of: str | None,
    ignore: tuple[str, ...],
    json_path: Path | None,
    junit_path: Path | None,
    **session: Any,  # noqa: ANN401 - the arguments of session_options
) -> int:
    """Check the coordinator, its clients and transactions in every trace: S01 to S16, C01 to C14, T01 to T03.

    Exit status 1 if a check of severity `error` failed; a failed check of severity `warning` does not change it.
    """
    with open_query(absolute(root), as_of, **session) as query:
        counts = query("SELECT check_id, status, count(*) AS n FROM mart.verdict GROUP BY ALL")
        failures = query(FAILURES)
    if not counts:
        raise JobRefused(f"{root}: no group to check; load traces or broker logs with `koordinator-pipeline run` first")
    by_id = {(row["check_id"], row["status"]): row["n"] for row in counts}
    checks = [
        {"id": check, "title": title, "severity": severity(check)}
        | {status: by_id.get((check, status), 0) for status in STATUSES}
        for check, title in TITLES.items()
        if check not in ignore
    ]
    failures = [row for row in failures if row["check_id"] not in ignore]
    _show(checks, failures)
    if json_path is not None:
        json_path.write_text(json.dumps({"checks": checks, "failures": failures}, indent=2), encoding="utf-8")
    if junit_path is not None:
        junit_path.write_bytes(junit(checks, failures))
    return EXIT_FAILED if any(check[FAIL] and check["severity"] == ERROR for check in checks) else 0


def _show(checks: list[Row], failures: list[Row]) -> None:
    console = Console()
    table = Table()
    for name in ("check", "requirement"):
        table.add_column(name)
    for status in STATUSES:
        table.add_column(status.replace("_", " "), justify="right")
    for check in checks:
        style = None if not check[FAIL] else "red" if check["severity"] == ERROR else "yellow"
        table.add_row(check["id"], check["title"], *(str(check[status]) for status in STATUSES), style=style)
    console.print(table)
    for check in checks:
        for line in failure_lines(check["id"], failures):
            console.print(line, markup=False, highlight=False)


def failure_lines(check_id: str, failures: list[Row]) -> list[str]:
    """Return one line for each failure of a check: client, test, group, events, and message."""
    own = [row for row in failures if row["check_id"] == check_id]
    lines = [f"{check_id} {row['subject']}: {_place(row)}: {row['message']}" for row in own[:FAILURES_SHOWN]]
    return lines + ([f"{check_id}: and {len(own) - FAILURES_SHOWN} more"] if len(own) > FAILURES_SHOWN else [])


def _place(row: Row) -> str:
    """Return the test, the group, and the events of a failure; a check of transactions has no group."""
    group = "" if row["group_id"] is None else f", group {row['group_id']}"
    trace = row["test_id"] or row["run_id"] or row["trace_id"]
    return f"{trace}{group}, #{row['first_seq']} to #{row['last_seq']}"


def junit(checks: list[Row], failures: list[Row]) -> bytes:
    """Return a JUnit document: errors are failures, warnings are output, and undecided checks are skipped."""
    suite = ET.Element("testsuite", name="koordinator-pipeline verify", tests=str(len(checks)))
    failed = skipped = 0
    for check in checks:
        case = ET.SubElement(suite, "testcase", classname="koordinator.verify", name=f"{check['id']} {check['title']}")
        details = "\n".join(failure_lines(check["id"], failures))
        if check[FAIL] and check["severity"] == ERROR:
            failed += 1
            ET.SubElement(case, "failure", message=f"{check[FAIL]} groups").text = details
        elif check[FAIL]:
            ET.SubElement(case, "system-out").text = details
        elif not check[PASS]:
            skipped += 1
            reason = f"{check[INCONCLUSIVE]} inconclusive, {check[NOT_APPLICABLE]} not applicable"
            ET.SubElement(case, "skipped", message=reason)
    suite.set("failures", str(failed))
    suite.set("skipped", str(skipped))
    document: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document
