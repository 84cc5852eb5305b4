"""Play scenarios to the core and to the emulator: `play` makes one test for each target.

The core's answers as a release must equal those of a broker of that release (tests/golden).
"""

from __future__ import annotations

import random
from functools import cache, partial
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import COMPARED, NEWEST, UNRECORDED, Release
from clients.frame_clients import START
from scenarios import goldens
from scenarios.applicability import ABSENT, NOT_EMULATED, left_out
from scenarios.player import Absent
from scenarios.registry import perform, scenario_of
from scenarios.socket_target import EmulatorTarget
from scenarios.targets import CoreTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scenarios.registry import Scenario

CORES = {f"core-{release.name}": release for release in (*COMPARED.values(), UNRECORDED)}
"""The core as each release it emulates."""

EMULATOR = "emulator"

STARTS_MS = START, START + 3_600_000
"""The range of starts of the core, in milliseconds since the epoch: records of scenarios are from START."""

OTHER_SETTINGS = "E-171"
"""A scenario that changes broker settings; the emulator's are fixed while it runs."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "play" in metafunc.fixturenames:
        scenario = scenario_of(metafunc.function)
        missing = {ABSENT, NOT_EMULATED}
        targets = [
            name
            for name, release in CORES.items()
            if left_out(release).get(scenario.number) not in missing and scenario.number.startswith(release.recorded)
        ]
        if scenario.number != OTHER_SETTINGS and left_out(NEWEST).get(scenario.number) not in missing:
            targets.append(EMULATOR)
        if scenario.waiting:
            # skipped, and counted once
            targets = [f"core-{NEWEST.name}"]
        metafunc.parametrize("play", targets, indirect=True)


@pytest.fixture
def play(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    """Return the function that performs a scenario."""
    return on_emulator if request.param == EMULATOR else partial(on_core, release=CORES[request.param])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Perform a scenario instead of calling it with fixtures: it may have to be repeated."""
    if "play" not in pyfuncitem.funcargs:
        return None
    pyfuncitem.funcargs["play"](scenario_of(pyfuncitem.function))
    return True


def on_core(scenario: Scenario, release: Release) -> None:
    wanted = scenario.configuration
    # each recorded session starts at a time of its own: nothing may depend on the phase of the clock
    start_ms = random.Random(f"{scenario.number} {release.name}").randrange(*STARTS_MS)
    try:
        said = perform(
            scenario, lambda scale: CoreTarget(wanted.settings(scale), release, wanted.nodes, start_ms)
        ).entries
    except Absent as absent:
        if release is UNRECORDED:
            pytest.skip(str(absent))
        raise
    golden = golden_of(release.name).get(scenario.number)
    if golden is not None:
        differing = list(goldens.differences(f"Kafka {release.name}", golden, "core", said))
        assert not differing, "\n".join(differing)


@cache
def golden_of(name: str) -> Mapping[str, goldens.Entries]:
    """Return the golden answers of a release; empty if it was never recorded."""
    return goldens.read(CORES[f"core-{name}"])


def on_emulator(scenario: Scenario) -> None:
    wanted = scenario.configuration
    perform(scenario, lambda scale: EmulatorTarget(wanted.settings(scale), nodes=wanted.nodes))
