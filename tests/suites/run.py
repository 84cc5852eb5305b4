"""`make suites`: Kafka's tools, Kafka's applications, those of other libraries, and clients, on the emulator.

The tools also run on a broker, and their outputs are compared. The results go to `results.json` and `clients.json`,
from which `make docs` writes tables. Exit status 1: a difference that `differences.json` does not name, an application
that does not work, or a client that no longer does what `clients.json` says.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import apps
import cli_tools
import click
import java
import registry
from brokers.real_kafka import RealKafka
from clients.line_clients import VERSIONS
from clients.lives import LIVES, lived

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
CLIENTS = HERE / "clients.json"
EXPLAINED = HERE / "differences.json"

TOOLS = "tools"

PLAYERS = {
    **dict.fromkeys(java.PLAYS, java.played),
    **dict.fromkeys(apps.APPS, apps.played),
    registry.REGISTRY: registry.played,
}
"""The function that plays each application."""


def run_tools() -> tuple[str, list[str]]:
    """Compare every step; return what was seen, and the unexplained differences."""
    explained: dict[str, str] = json.loads(EXPLAINED.read_text())
    unexplained, count, same = [], 0, 0
    with TemporaryDirectory(prefix="kafka-suites-") as work:
        folder = Path(work, "broker")
        folder.mkdir()
        with RealKafka(folder) as kafka:
            for step, difference in cli_tools.compared(kafka, Path(work)):
                count += 1
                same += not difference
                if difference and step not in explained:
                    unexplained.append(f"{step}\n{difference}")
    return f"{same} of {count} steps equal a broker's, {count - same - len(unexplained)} differ as listed", unexplained


def run_client(kind: str) -> tuple[str, list[str]]:
    """Play all that a client can do, and record it; return a summary, and what it does no longer."""
    recorded = json.loads(CLIENTS.read_text()) if CLIENTS.exists() else {}
    before = recorded.get(kind, {}).get("plays", {})
    plays = {name: lived(kind, name) for name in LIVES[kind]}
    failures = [
        f"{kind}, {name}: {seen}"
        for name, seen in plays.items()
        if seen.startswith("no: ") and seen != before.get(name, seen)
    ]
    if not failures:
        recorded[kind] = {"version": VERSIONS[kind], "date": f"{datetime.now(UTC):%Y-%m-%d}", "plays": plays}
        ordered = {each: recorded[each] for each in LIVES if each in recorded}
        CLIENTS.write_text(json.dumps(ordered, indent=1) + "\n")
    return f"{sum(not seen.startswith('no: ') for seen in plays.values())} of {len(plays)} plays", failures


def run_suite(name: str) -> tuple[str, list[str]]:
    """Play a suite; return what was seen, and its failures."""
    if name == TOOLS:
        return run_tools()
    if name in LIVES:
        return run_client(name)
    try:
        return PLAYERS[name](name), []
    except AssertionError as error:
        return "failed", [str(error)]


def main() -> None:
    """Play the chosen suites, and record their results."""
    names = [TOOLS, *PLAYERS, *LIVES]
    parser = argparse.ArgumentParser(prog="make suites", description="Play suites on the emulator.")
    parser.add_argument("--suite", action="append", choices=names, help="play only this suite (repeatable)")
    chosen = parser.parse_args().suite or names
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    failed = False
    for name in chosen:
        started = time.monotonic()
        seen, failures = run_suite(name)
        click.echo(f"{name}: {seen} ({time.monotonic() - started:.0f} s)")
        for each in failures:
            click.echo(f"\n{each}")
        failed = failed or bool(failures)
        if not failures and name not in LIVES:
            results[name] = seen
    RESULTS.write_text(json.dumps({name: results[name] for name in names if name in results}, indent=1) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
