"""Short explorations: the newest Apache Kafka gives the same answers to random sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.real_kafka import RealKafka
from exploring.brokers import BrokerTable
from exploring.consumers.rounds import explore_assignments, explore_migrations, explore_streams
from exploring.coverage import figure
from exploring.releases import NEWEST
from exploring.rounds import Exploration, Findings
from exploring.steps import SETUPS
from exploring.transactions.sides import explore_release

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(1, 101)
TRANSACTION_SEEDS = range(1, 51)
CONSUMER_SEEDS = range(1, 41)

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]


def test_the_core_answers_like_kafka(tmp_path: Path) -> None:
    found = Findings()
    for number, setup in enumerate(SETUPS):
        folder = tmp_path / setup.name
        folder.mkdir()
        with RealKafka(folder, NEWEST, setup.settings) as kafka:
            seeds = [f"{seed}" for seed in SEEDS if seed % len(SETUPS) == number]
            found.add(Exploration(NEWEST, setup, BrokerTable(kafka).play, print).explore(seeds))
    assert not found.differences, "\n".join(str(each.difference) for each in found.shortest)
    assert len(found.undecided) <= len(SEEDS) // 20
    assert len(found.seen) >= figure(found.judged)


def test_the_emulator_answers_transactional_producers_like_kafka() -> None:
    found = explore_release(NEWEST, TRANSACTION_SEEDS, print)
    assert not found.differences, "\n".join(each.text() for each in found.differences)
    assert found.compared == len(TRANSACTION_SEEDS)


def test_the_core_assigns_like_kafka() -> None:
    found = explore_assignments(NEWEST, CONSUMER_SEEDS, print)
    assert not found.differences, "\n".join(found.differences)
    assert found.groups == len(CONSUMER_SEEDS)
    assert found.targets


def test_the_core_answers_groups_that_change_their_protocol_like_kafka() -> None:
    found = explore_migrations(NEWEST, CONSUMER_SEEDS, print)
    assert not found.differences, "\n".join(found.differences)
    assert found.groups == len(CONSUMER_SEEDS)


def test_the_core_answers_streams_groups_like_kafka() -> None:
    found = explore_streams(NEWEST, CONSUMER_SEEDS, print)
    assert not found.differences, "\n".join(found.differences)
    assert found.groups == len(CONSUMER_SEEDS)
