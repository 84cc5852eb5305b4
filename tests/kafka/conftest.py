"""A running Apache Kafka for the tests of this folder; needs Java 17 and Maven."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import NEWEST, RELEASES
from brokers.real_kafka import RealKafka
from clients.client_fixtures import forgiving, no_litter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

__all__ = ["no_litter"]

HERE = Path(__file__).parent

forgive = forgiving(HERE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder as needing Java, early enough for `-m needs`.

    Also ignore known warnings of the clients.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.needs("java"))
    forgive(items)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RealKafka]]:
    """Return Apache Kafka of a release, one node for all tests: each uses groups and topics named after itself."""
    with ExitStack() as stack:

        @cache
        def running(name: str) -> RealKafka:
            return stack.enter_context(RealKafka(tmp_path_factory.mktemp(f"kafka-{name}-"), RELEASES[name]))

        yield running


@pytest.fixture(scope="session")
def kafka(release: Callable[[str], RealKafka]) -> RealKafka:
    """Return the newest release."""
    return release(NEWEST.name)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return the prefix for groups and topics of a test: a broker outlives it."""
    assert isinstance(request.node, pytest.Item)
    return request.node.name.replace("[", ".").replace("]", "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the broker's log to the report of a failed test."""
    report = yield
    kafka = getattr(item, "funcargs", {}).get("kafka")
    if isinstance(kafka, RealKafka):
        if report.when == "setup":
            item.stash[STARTED] = kafka.log.stat().st_size
        if report.failed:
            report.sections.append((f"{kafka.log}", kafka.tail(item.stash.get(STARTED, 0))))
    return report


STARTED = pytest.StashKey[int]()
