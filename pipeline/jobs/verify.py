"""`koordinator-pipeline verify`: whether coordinator and clients keep to the protocol, for people and for CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import click
from rich.console import Console
from rich.table import Table

from .. import schema
from ..marts.checks import CHECKS, ERROR
from ..marts.judging import FAIL, INCONCLUSIVE, NOT_APPLICABLE, PASS
from ..session import opened
from ..session_options import session_options
from ..store import Store
from ..troubles import NOT_DONE, Refused

FILE = click.Path(dir_okay=False, writable=True, path_type=Path)

STATUSES = (PASS, FAIL, INCONCLUSIVE, NOT_APPLICABLE)

SHOWN = 20
"""So many failures of a check are told, the others counted."""

Row = dict[str, Any]


@click.command
@click.option("--store", "root", required=True, metavar="DIR", help="The folder that `run` has filled.")
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice([check.id for check in CHECKS]),
    metavar="CHECK",
    help="A check that is not to decide, like C05. May be given more than once.",
)
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Counts and failures as JSON.")
@click.option("--junit", "junit_path", type=FILE, metavar="FILE", help="A JUnit file, with a case for each check.")
@session_options
def verify(
    root: str,
    ignore: tuple[str, ...],
    json_path: Path | None,
    junit_path: Path | None,
    **session: Any,  # noqa: ANN401 - as session_options gives them
) -> int:
    """Check the coordinator (S01 to S10) and its clients (C01 to C10), in every group of every trace.

    Exit status 1 if a check failed that is against the protocol; what is only against good manners is a warning.
    """
    store = Store(root)
    with opened(**session) as spark:
        store.require(spark)
        verdicts = store.read(spark, schema.VERDICT)
        counts = verdicts.groupBy("check_id").pivot("status", list(STATUSES)).count().na.fill(0).collect()
        failed = verdicts.where(verdicts["status"] == FAIL).orderBy(
            "check_id", "run_id", "test_id", "trace_id", "group_id"
        )
        failures = [row.asDict() for row in failed.drop("home").collect()]
    if not counts:
        raise Refused(f"{root}: there is no group in it to be checked; give `run` traces or logs of brokers")
    by_id = {row.check_id: row.asDict() for row in counts}
    checks = [
        {"id": check.id, "title": check.title, "severity": check.severity}
        | {status: by_id.get(check.id, {}).get(status, 0) for status in STATUSES}
        for check in CHECKS
        if check.id not in ignore
    ]
    failures = [row for row in failures if row["check_id"] not in ignore]
    _show(checks, failures)
    if json_path is not None:
        json_path.write_text(json.dumps({"checks": checks, "failures": failures}, indent=2), encoding="utf-8")
    if junit_path is not None:
        junit_path.write_bytes(junit(checks, failures))
    return NOT_DONE if any(check[FAIL] and check["severity"] == ERROR for check in checks) else 0


def _show(checks: list[Row], failures: list[Row]) -> None:
    console = Console()
    table = Table()
    for name in ("check", "what it wants"):
        table.add_column(name)
    for status in STATUSES:
        table.add_column(status.replace("_", " "), justify="right")
    for check in checks:
        style = None if not check[FAIL] else "red" if check["severity"] == ERROR else "yellow"
        table.add_row(check["id"], check["title"], *(str(check[status]) for status in STATUSES), style=style)
    console.print(table)
    for check in checks:
        for said in told(check["id"], failures):
            console.print(said, markup=False, highlight=False)


def told(check_id: str, failures: list[Row]) -> list[str]:
    """The failures of a check, a line each: whose they are, where, and what is wrong."""
    own = [row for row in failures if row["check_id"] == check_id]
    lines = [
        f"{check_id} {row['subject']}: {row['test_id'] or row['run_id'] or row['trace_id']}, group {row['group_id']}, "
        f"#{row['first_seq']} to #{row['last_seq']}: {row['message']}"
        for row in own[:SHOWN]
    ]
    return lines + ([f"{check_id}: and {len(own) - SHOWN} more"] if len(own) > SHOWN else [])


def junit(checks: list[Row], failures: list[Row]) -> bytes:
    """A JUnit document: a failure is against the protocol, a warning is output, what could not be said is skipped."""
    suite = ET.Element("testsuite", name="koordinator-pipeline verify", tests=str(len(checks)))
    wrong = skipped = 0
    for check in checks:
        case = ET.SubElement(suite, "testcase", classname="koordinator.verify", name=f"{check['id']} {check['title']}")
        said = "\n".join(told(check["id"], failures))
        if check[FAIL] and check["severity"] == ERROR:
            wrong += 1
            ET.SubElement(case, "failure", message=f"{check[FAIL]} groups").text = said
        elif check[FAIL]:
            ET.SubElement(case, "system-out").text = said
        elif not check[PASS]:
            skipped += 1
            reason = f"{check[INCONCLUSIVE]} inconclusive, {check[NOT_APPLICABLE]} not applicable"
            ET.SubElement(case, "skipped", message=reason)
    suite.set("failures", str(wrong))
    suite.set("skipped", str(skipped))
    document: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document
