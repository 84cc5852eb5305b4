"""Scenarios and their registry.

    @scenario(kip="KIP-394", initial_delay=1)
    def test_e032_each_join_without_an_id_is_given_another(play: Player) -> None:
        ...

Times are scenario seconds. Sockets scale them, except for a `slow` scenario, which runs in Kafka's own time.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.config.settings import RACK_AWARE_SELECTOR
from scenarios.player import Player
from scenarios.targets import Cluster

if TYPE_CHECKING:
    from scenarios.targets import Target
    from scenarios.transcripts import Transcript

FOLDER = Path(__file__).parents[2] / "conformance"

Play = Callable[[Player], None]

HEARTBEAT_MS = 50
"""The heartbeat interval of members with short sessions; it is in responses, so it is not scaled."""

DELETES_TOPICS: Mapping[str, int] = {"offsets_partitions": 50}
"""Makes scenarios that delete topics share a broker with each other only.

With a topic the old coordinator forgets every Empty group without offsets, those of other scenarios too.
"""

STATE_PARTITIONS = 4
"""The number of partitions of `__share_group_state`."""

SLOWER = 3
TRIES = 3
"""A play that failed on a late machine is repeated `SLOWER` times slower, at most `TRIES` plays in all."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The broker that a scenario needs; scenarios with equal configurations share one. None is Kafka's default.

    `nodes` is the number of brokers.
    """

    initial_delay: float = 0
    min_session: float | None = None
    max_size: int | None = None
    retention: int | None = None
    check_interval: float | None = None
    offsets_partitions: int | None = None
    transactions_partitions: int | None = None
    abort_interval: float | None = None
    id_expiration: float | None = None
    producer_expiration: float | None = None
    cleaning: float | None = None
    """The interval of retention checks and of the cleaner."""
    consumer: bool = False
    """Whether the consumer protocol is on in every release that has it, with a target at every change."""
    consumer_session: float | None = None
    consumer_max_size: int | None = None
    assignors: str | None = None
    migration: str | None = None
    share: bool = False
    """Whether share groups have a target at every change, and short times."""
    share_max_size: int | None = None
    share_updates: int | None = None
    """The number of updates of a share partition until its next snapshot."""
    creates_dead_letters: bool = False
    """Whether brokers create missing topics for dead letters (KIP-1191)."""
    streams: bool = False
    """Whether streams groups have a target at every change and no initial delay, and short times."""
    streams_max_size: int | None = None
    nodes: int = 1
    racks: str = ""
    """The racks of the nodes, separated by commas; the leader then tells consumers which replica is in theirs."""

    def settings(self, scale: float) -> dict[str, int | str]:
        """Return broker settings under Kafka's names. A scaled broker has no lower limit for session timeouts."""

        def ms(seconds: float | None) -> float | None:
            return seconds and seconds * scale * 1000

        expires, forgets = self.id_expiration and 1, self.producer_expiration and 1
        values: dict[str, float | None] = {
            "group.initial.rebalance.delay.ms": self.initial_delay * scale * 1000,
            "group.min.session.timeout.ms": 1 if self.min_session is None else self.min_session * scale * 1000,
            "group.max.size": self.max_size,
            "offsets.retention.minutes": None if self.retention is None else self.retention / 60,
            "offsets.retention.check.interval.ms": ms(self.check_interval),
            "offsets.topic.num.partitions": self.offsets_partitions,
            "transaction.state.log.num.partitions": self.transactions_partitions,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": ms(self.abort_interval),
            "transactional.id.expiration.ms": ms(self.id_expiration),
            "transaction.remove.expired.transaction.cleanup.interval.ms": ms(expires),
            "producer.id.expiration.ms": ms(self.producer_expiration),
            "producer.id.expiration.check.interval.ms": ms(forgets),
            "log.retention.check.interval.ms": ms(self.cleaning),
            "log.cleaner.backoff.ms": ms(self.cleaning),
        }
        consumers = self._of_consumer_groups(ms(self.consumer_session)) if self.consumer else {}
        shares = self._of_share_groups() if self.share else {}
        if self.creates_dead_letters:
            shares["errors.deadletterqueue.auto.create.topics.enable"] = "true"
        streams = self._of_streams_groups() if self.streams else {}
        racks: dict[str, str] = {}
        if self.racks:
            racks = {"broker.rack": self.racks, "replica.selector.class": RACK_AWARE_SELECTOR}
        rounded = {name: round(value) for name, value in values.items() if value is not None}
        return {**rounded, **consumers, **shares, **streams, **racks}

    def _of_streams_groups(self) -> dict[str, int]:
        values = {
            "group.streams.initial.rebalance.delay.ms": 0,
            "group.streams.assignment.interval.ms": 0,
            "group.streams.min.session.timeout.ms": 1,
            "group.streams.min.heartbeat.interval.ms": 1,
            "group.streams.max.size": self.streams_max_size,
        }
        return {name: value for name, value in values.items() if value is not None}

    def _of_share_groups(self) -> dict[str, int | str]:
        values: dict[str, int | str | None] = {
            "group.share.assignment.interval.ms": 0,
            "group.share.min.session.timeout.ms": 1,
            "group.share.min.heartbeat.interval.ms": 1,
            "group.share.min.record.lock.duration.ms": 1000,
            "group.share.max.size": self.share_max_size,
            "group.share.max.share.sessions": self.share_max_size,
            "share.coordinator.state.topic.num.partitions": STATE_PARTITIONS,
            "share.coordinator.snapshot.update.records.per.snapshot": self.share_updates,
        }
        return {name: value for name, value in values.items() if value is not None}

    def _of_consumer_groups(self, session_ms: float | None) -> dict[str, int | str]:
        values: dict[str, int | str | None] = {
            "group.coordinator.rebalance.protocols": "classic,consumer",
            "group.consumer.migration.policy": self.migration or "bidirectional",
            "group.consumer.assignment.interval.ms": 0,
            "group.consumer.min.session.timeout.ms": 1,
            "group.consumer.min.heartbeat.interval.ms": 1,
            "group.consumer.session.timeout.ms": session_ms and round(session_ms),
            "group.consumer.heartbeat.interval.ms": session_ms and HEARTBEAT_MS,
            "group.consumer.max.size": self.consumer_max_size,
            "group.consumer.assignors": self.assignors,
        }
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario of the reference, under its number there: "E-032"."""

    number: str
    kip: str
    play: Play
    configuration: Configuration
    slow: bool
    restarted: bool
    waiting: str | None

    @property
    def name(self) -> str:
        """The name of the scenario's function."""
        return self.play.__name__


SCENARIOS: dict[str, Scenario] = {}
"""All imported scenarios, by number."""


def scenario(
    *,
    kip: str,
    slow: bool = False,
    restarted: bool = False,
    waiting: str | None = None,
    **configuration: float | str,
) -> Callable[[Play], Play]:
    """Register a scenario and mark its test.

    Args:
        kip: the source of the behaviour: "KIP-394", "KAFKA-12890", "base".
        slow: unscalable, because Kafka's limit is fixed or counted in minutes.
        restarted: a single-node broker is restarted, so it cannot be shared.
        waiting: the feature that the emulator does not have yet.
        configuration: of the broker, see `Configuration`.
    """

    def register(play: Play) -> Play:
        named = re.match(r"test_([eght])(\d{3})_", play.__name__)
        assert named, f"{play.__name__} does not begin with the number of a scenario"
        number = f"{named[1].upper()}-{named[2]}"
        known = SCENARIOS.get(number)
        assert known is None or known.name == play.__name__, f"{number} is there twice"
        wanted = Configuration(**configuration)  # type: ignore[arg-type]
        assert wanted.retention is None or slow, f"{number}: retention is in minutes, which cannot be scaled"
        SCENARIOS[number] = Scenario(
            number=number,
            kip=kip,
            play=play,
            configuration=wanted,
            slow=slow,
            restarted=restarted,
            waiting=waiting,
        )
        marked = pytest.mark.kip(kip)(play)
        if slow:
            marked = pytest.mark.slow(marked)
        if waiting:
            marked = pytest.mark.skip(reason=f"waiting: {waiting}")(marked)
        return marked

    return register


def scenario_of(play: Callable[..., object]) -> Scenario:
    """Return the scenario of a test function."""
    return next(each for each in SCENARIOS.values() if each.name == play.__name__)


def load() -> Mapping[str, Scenario]:
    """Import all scenarios and return them by number."""
    for path in sorted(FOLDER.glob("test_[eght][0-9]*.py")):
        name = f"conformance_{path.stem}"
        if name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
    return dict(sorted(SCENARIOS.items()))


def perform(
    scenario: Scenario, target: Callable[[float], Target], scale: float = 1, name: str = "", tries: int = TRIES
) -> Transcript:
    """Play a scenario to a target made for this scale, and return the transcript.

    A failure on a late machine proves nothing, so the scenario is repeated at a slower scale. `name` distinguishes
    plays that share a broker.
    """
    on = target(scale)
    group = f"{scenario.number.replace('-', '').lower()}{name}"
    play = Player(on, group, scenario.configuration.initial_delay)
    try:
        if isinstance(on, Cluster):
            on.go_home(group)
        scenario.play(play)
        play.finish()
    except AssertionError:
        if tries == 1 or scenario.slow or not on.was_late():
            raise
    else:
        return play.transcript
    finally:
        on.stop()
    return perform(scenario, target, scale * SLOWER, f"{name}-again", tries - 1)
