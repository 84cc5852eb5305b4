"""Play the scenarios to brokers of a release and to the emulator's core as that release, and compare the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from brokers.kafka_pool import Pool

from scenarios import goldens
from scenarios.applicability import left_out
from scenarios.goldens import Origin
from scenarios.kafka_target import kafka_target
from scenarios.player import Absent
from scenarios.registry import load, perform
from scenarios.targets import CoreTarget

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from brokers.kafka_releases import Release
    from brokers.real_kafka import RealKafka

    from scenarios.goldens import Entries
    from scenarios.registry import Scenario
    from scenarios.targets import Target

SCALE = 0.25
"""Real seconds per scenario second on a broker; a busy machine has to keep up."""

JOBS = 12
"""Scenarios played to brokers concurrently. They mostly wait."""

PLAYED, WAITING, SLOW, NOT_APPLICABLE = "played", "waiting", "slow", "not applicable"
"""Outcomes of scenarios that are not played."""


GOLDENS = "goldens"
"""The name under which a wrong origin of the golden answers is reported."""

Advanced = Callable[[int, int], None]
"""A progress callback: (finished, total)."""


@dataclass
class Answers:
    """The transcript of a scenario on one target, or its failure."""

    entries: Entries = field(default_factory=list)
    failed: str = ""


@dataclass
class Report:
    """The result for one release: scenarios played, scenarios left out with reasons, and differences.

    Differences `seen_once` did not show again.
    """

    release: Release
    counts: Counter[str] = field(default_factory=Counter)
    differing: dict[str, list[str]] = field(default_factory=dict)
    seen_once: dict[str, list[str]] = field(default_factory=dict)

    @property
    def applicable(self) -> int:
        """Number of scenarios that apply to the release."""
        return self.counts[PLAYED] + self.counts[WAITING] + self.counts[SLOW]

    @property
    def agreeing(self) -> int:
        """Number of scenarios played without a difference."""
        return self.counts[PLAYED] - len(self.differing.keys() - {GOLDENS})

    def differs(self, what: str, *why: str) -> None:
        """Record the differences of a scenario or of GOLDENS, if there are any."""
        if why:
            self.differing[what] = list(why)


def outcome(scenario: Scenario, reason: str | None, *, slow: bool) -> str:
    """Return the outcome of a scenario; `reason` is why it does not apply to the broker, if it does not."""
    if scenario.waiting:
        return WAITING
    if reason is not None:
        return NOT_APPLICABLE
    # two brokers take minutes to start, and to miss each other
    is_slow = scenario.slow or scenario.configuration.nodes > 1
    return SLOW if is_slow and not slow else PLAYED


def conform(
    release: Release,
    chosen: Mapping[str, Scenario],
    *,
    slow: bool = False,
    record: bool = False,
    advanced: Advanced = lambda _done, _of: None,
) -> Report:
    """Play the selected scenarios that apply to a release, and compare; `record` stores the broker's answers as
    goldens.

    The core always answers alike, but a broker that has much to do misses the times of a scenario. So scenarios that
    differ are played once more, without the others and to new brokers.
    """
    report = _conform(release, chosen, slow=slow, record=record, advanced=advanced)
    suspects = {number: chosen[number] for number in report.differing if number != GOLDENS}
    if suspects and not record:
        again = _conform(release, suspects, slow=slow, record=False, advanced=advanced)
        report.seen_once = {
            number: report.differing.pop(number) for number in suspects if number not in again.differing
        }
    return report


def _conform(
    release: Release, chosen: Mapping[str, Scenario], *, slow: bool, record: bool, advanced: Advanced
) -> Report:
    reasons = left_out(release)
    fates = {number: outcome(each, reasons.get(number), slow=slow) for number, each in chosen.items()}
    report = Report(release, Counter(fates.values()))
    played = [each for number, each in chosen.items() if fates[number] == PLAYED]
    if not played:
        return report
    core = {each.number: on_core(each, release) for each in played}
    with Pool(release) as pool:
        kafka = on_brokers(pool, played, advanced)
        now = Origin(release.version, pool.commit_id, datetime.now(UTC).date().isoformat())
    if record:
        said = {number: each.entries for number, each in kafka.items() if not each.failed}
        goldens.record(release, now, said, {n: each for n, each in load().items() if n not in reasons})
    golden, then = goldens.read(release), goldens.origin(release)
    for number, each in kafka.items():
        report.differs(number, *compared(each, core[number], golden.get(number)))
    recorded = {number for number in kafka if number.startswith(release.recorded)}
    report.differs(GOLDENS, *missing(now, then, recorded - golden.keys()))
    return report


def on_core(scenario: Scenario, release: Release) -> Answers:
    """Play a scenario to the emulator as this release."""
    wanted = scenario.configuration
    return _said(scenario, lambda _: CoreTarget(wanted.settings(1), release, wanted.nodes), 1)


def on_brokers(pool: Pool, scenarios: Sequence[Scenario], advanced: Advanced) -> dict[str, Answers]:
    """Play scenarios to brokers concurrently, the slow ones first."""

    def scale(scenario: Scenario) -> float:
        # a broker that has just started is slow, and one of two is not warmed up
        return 1 if scenario.slow or scenario.restarted or scenario.configuration.nodes > 1 else SCALE

    def want(scenario: Scenario, scale: float) -> Future[list[RealKafka]]:
        wanted = scenario.configuration
        return pool.want(wanted.settings(scale), restarted=scenario.restarted, nodes=wanted.nodes)

    def leave(scenario: Scenario, scale: float) -> None:
        wanted = scenario.configuration
        pool.leave(wanted.settings(scale), restarted=scenario.restarted, nodes=wanted.nodes)

    def play(scenario: Scenario) -> Answers:
        scales = [scale(scenario)]

        def target(scale: float) -> Target:
            brokers = want(scenario, scale)
            scales.append(scale)
            return kafka_target(brokers.result(), scale)

        try:
            return _said(scenario, target, scale(scenario))
        finally:
            for each in scales:
                leave(scenario, each)

    # a starting broker keeps the machine too busy for scenario timing
    wait([want(each, scale(each)) for each in scenarios])
    # a scenario that restarts its broker has the broker to itself
    threads, alone = ThreadPoolExecutor(JOBS), ThreadPoolExecutor(1)
    asked = {
        (alone if each.restarted else threads).submit(play, each): each.number
        for each in sorted(scenarios, key=lambda each: not each.slow)
    }
    said: dict[str, Answers] = {}
    try:
        for done in as_completed(asked):
            said[asked[done]] = done.result()
            advanced(len(said), len(asked))
    finally:
        # on an interrupt, plays end with their broker instead of running for minutes
        for each in (threads, alone):
            each.shutdown(wait=False, cancel_futures=True)
    return dict(sorted(said.items()))


def compared(kafka: Answers, core: Answers, golden: Entries | None) -> Iterator[str]:
    """Yield each difference as text."""
    yield from (f"{name}: {said.failed}" for name, said in (("kafka", kafka), ("core", core)) if said.failed)
    if not kafka.failed and not core.failed:
        yield from goldens.differences("kafka", kafka.entries, "core", core.entries)
    if golden is not None and not kafka.failed:
        yield from goldens.differences("kafka", kafka.entries, "golden", golden)


def missing(now: Origin, then: Origin | None, numbers: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the golden answers as a whole: another broker, or missing scenarios."""
    if then is not None and not now.is_same_broker(then):
        yield f"said by {then}, but this is {now}"
    if numbers:
        yield f"not there, make conformance CONFORMANCE=--record: {' '.join(sorted(numbers))}"


def _said(scenario: Scenario, target: Callable[[float], Target], scale: float) -> Answers:
    try:
        return Answers(perform(scenario, target, scale).entries)
    # one broken scenario counts as a difference and does not end the run
    except (Absent, Exception) as error:  # noqa: BLE001
        where = "".join(
            f"\n  {Path(each.filename).name}:{each.lineno}: {each.line}" for each in extract_tb(error.__traceback__)
        )
        return Answers(failed=f"{type(error).__name__}: {error}{where}")
