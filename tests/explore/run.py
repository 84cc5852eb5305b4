"""`make explore`: random request sequences, played to real brokers and to the core, with a comparison of the answers.

Every seed gives one sequence per release: one third for a default broker, one third for a broker with an initial
rebalance delay, one third for one with a small `group.max.size`. Differences are shrunk and written to build/explore as
scenarios with both answers. Exit status 1: an unexplained difference, too many undecided sequences, or less coverage
than committed in `exploring/coverage.py`. Others are chosen with `--of`: `transactions` of producers, `data` for
topics and records, `fields` for unusual values in every request of groups and transactions, `shares` of share groups
with unusual values, `assignments` of consumer groups by their coordinator, `migrations` between classic and consumer
groups, `streams` groups.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import click
from brokers.real_kafka import RealKafka
from exploring.brokers import BrokerTable
from exploring.consumers.rounds import explore_assignments, explore_migrations, explore_streams
from exploring.coverage import figure, table
from exploring.releases import RELEASES, Release
from exploring.rendering import render_scenario
from exploring.rounds import Exploration, Findings
from exploring.steps import SETUPS
from exploring.transactions.sides import DATA, FIELDS, SHARES, TRANSACTIONS, explore_release

OUTPUT = Path(__file__).parents[2] / "build" / "explore"

USUAL = ("3.9-old", "3.9-new", "4.4")
"""Both coordinators of the last release that has both, and the newest release."""

LIVE = {"transactions": TRANSACTIONS, "data": DATA, "fields": FIELDS, "shares": SHARES}
"""Sequences without times, played over sockets to both sides."""

CONSUMERS = {"assignments": ("3.9-new", "4.4"), "migrations": ("4.4",), "streams": ("4.3", "4.4")}
"""What is explored of consumer groups and streams groups, and its usual brokers. 3.9 migrates groups by an internal
setting, otherwise."""

EXPLORE = {"assignments": explore_assignments, "migrations": explore_migrations, "streams": explore_streams}

BROKERS = {**CONSUMERS, "data": ("3.9-new", "4.4"), "shares": ("4.3", "4.4")}
"""The usual brokers of a kind, unless they are USUAL. 3.9 has one data plane."""

KINDS = ("groups", *LIVE, *CONSUMERS)

UNDECIDED_MAX = 0.02
"""The tolerated share of sequences that stay undecided on a slow machine."""


def explore(release: Release, seeds: list[int], at_once: int) -> Findings:
    """Explore the brokers of one release."""
    found = Findings()
    for number, setup in enumerate(SETUPS):
        own = [f"{seed}" for seed in seeds if seed % len(SETUPS) == number]
        say = partial(_say, f"{release.name} {setup.name}")
        with tempfile.TemporaryDirectory() as folder, RealKafka(Path(folder), release, setup.settings) as kafka:
            say(f"{len(own)} sequences")
            found.add(Exploration(release, setup, BrokerTable(kafka, at_once).play, say).explore(own))
    return found


def _say(where: str, text: str) -> None:
    click.echo(f"{where}: {text}")


def report(release: Release, found: Findings, seconds: float) -> bool:
    """Print the results and write the differences; return whether all is well."""
    click.echo(f"\n== Apache Kafka {release.version}, {release.coordinator} coordinator ==")
    click.echo(table(found.seen))
    least = figure(found.judged)
    undecided = len(found.undecided) <= UNDECIDED_MAX * (found.judged + len(found.undecided))
    rows = {
        "sequences compared": f"{found.judged:,}",
        "requests compared": f"{found.requests:,} ({found.requests / max(found.judged, 1):.1f} in a sequence)",
        "not judged": f"{len(found.undecided)}" + ("" if undecided else ", which is too many"),
        "playings": ", ".join(f"{count:,} {verdict.value}" for verdict, count in found.playings.items()),
        "coverage": f"{len(found.seen)} (API, error code, state), at least {least} wanted",
        "broker disagrees with itself": f"{len(found.unsteady)}",
        "differences explained": ", ".join(f"{issue}: {count}" for issue, count in found.explained.items()) or "none",
        "differences": f"{sum(map(len, found.differences.values()))}",
        "seconds": f"{seconds:.0f}",
    }
    for name, value in rows.items():
        click.echo(f"{name:32} {value}")
    for each in found.unsteady:
        click.echo(f"  once only, {each.sequence.name}: {each.kind}")
    for each in found.undecided:
        click.echo(f"  {each.verdict.value}, {each.sequence.name}: {each.kind}")
    for kind, judgements in found.differences.items():
        click.echo(f"  {len(judgements)} times, {judgements[0].sequence.name}: {kind}")
    for judgement in found.shortest:
        OUTPUT.mkdir(parents=True, exist_ok=True)
        path = OUTPUT / f"{release.name}-{judgement.sequence.setup.name}-{judgement.sequence.name.replace('/', '_')}.py"
        path.write_text(render_scenario(judgement, release.version, release.coordinator))
        click.echo(f"  written to {path}")
    return undecided and not found.differences and len(found.seen) >= least


def explore_live(release: Release, seeds: list[int], kind: str) -> bool:
    """Explore transactions or the data plane of one release; return whether all is well."""
    started = time.monotonic()
    found = explore_release(release, seeds, partial(_say, f"{release.name} {kind}"), LIVE[kind])
    rows = {
        "sequences compared": f"{found.compared:,}",
        "requests compared": f"{found.requests:,}",
        "different answers seen": f"{len(found.answers)}",
        "once only": f"{len(found.unsteady)}",
        "differences": f"{len(found.differences)}",
        "seconds": f"{time.monotonic() - started:.0f}",
    }
    for name, value in rows.items():
        click.echo(f"{name:32} {value}")
    for name, differences in (("once only", found.unsteady), ("differs", found.differences)):
        for each in differences:
            click.echo(f"  {name}, seed {each.sequence.name}, {each.text().partition('step ')[2]}")
    return not found.differences


def explore_consumers(release: Release, seeds: list[int], kind: str) -> bool:
    """Explore groups of the consumer or the streams protocol; return whether all is well."""
    started = time.monotonic()
    found = EXPLORE[kind](release, seeds, partial(_say, f"{release.name} {kind}"))
    rows = {
        "groups compared": f"{found.groups:,}",
        "requests compared": f"{found.requests:,}",
        **{f"targets: {name}": f"{count:,}" for name, count in sorted(found.targets.items())},
        "differences": f"{len(found.differences)}",
        "seconds": f"{time.monotonic() - started:.0f}",
    }
    for name, value in rows.items():
        click.echo(f"{name:48} {value}")
    return not found.differences


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200, help="how many sequences for each release")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument(
        "--broker", action="append", choices=RELEASES, help=f"only these; unless said {USUAL} as far as they serve it"
    )
    parser.add_argument("--of", choices=KINDS, default="groups", help="what to explore")
    parser.add_argument("--at-once", type=int, default=60, help="how many sequences are played at the same time")
    options = parser.parse_args()
    # stop the brokers on SIGTERM as well
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    seeds = list(range(options.first, options.first + options.seeds))
    well = True
    for name in options.broker or BROKERS.get(options.of, USUAL):
        if options.of in LIVE:
            well &= explore_live(RELEASES[name], seeds, options.of)
            continue
        if options.of in CONSUMERS:
            well &= explore_consumers(RELEASES[name], seeds, options.of)
            continue
        started = time.monotonic()
        found = explore(RELEASES[name], seeds, options.at_once)
        well &= report(RELEASES[name], found, time.monotonic() - started)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
