"""Kafka's own StickyTaskAssignor and InternalTopicManager agree with ours about random streams groups."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from brokers.kafka_releases import COMPLETE, NEWEST, jars, run
from builders.streams_questions import (
    RandomGroup,
    configured,
    parsed,
    random_topology,
    topology_question,
    with_error,
)

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ask = Callable[[Any], Any]

SOURCE = Path(__file__).with_name("java") / "AskedStreams.java"

GROUPS, TOPOLOGIES = 1_000, 5_000


@pytest.fixture(scope="module", params=[COMPLETE, NEWEST], ids=lambda release: release.name)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Ask]]:
    """Return the name of a release, and a function that asks its classes."""
    folder = tmp_path_factory.mktemp("streams")
    path = f"{jars(request.param.version)}/*"
    run("javac", "-cp", path, "-d", str(folder), str(SOURCE), timeout_s=120)
    command = ("java", "-Xmx256m", "-Dfile.encoding=UTF-8", "-cp", f"{folder}:{path}", SOURCE.stem)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        put, get = process.stdin, process.stdout

        def ask(question: Any) -> Any:
            print(json.dumps(question), file=put, flush=True)
            return json.loads(get.readline())

        yield request.param.name, ask
        put.close()


def test_random_groups_get_kafkas_tasks(asked: tuple[str, Ask]) -> None:
    release, ask = asked
    is_newest = release == NEWEST.name
    for seed in range(GROUPS):
        for question, ours in RandomGroup(Random(seed)).steps(ranks_owners=is_newest, skips_owners=is_newest):
            assert ours == parsed(ask(question)), json.dumps(question)


def test_random_topologies_get_kafkas_tasks_topics_and_messages(asked: tuple[str, Ask]) -> None:
    _, ask = asked
    outcomes: Counter[Any] = Counter()
    for seed in range(TOPOLOGIES):
        topology, counts = random_topology(Random(seed))
        ours, question = configured(topology, counts), topology_question(topology, counts)
        assert ours == with_error(ask(question)), json.dumps(question)
        outcomes[ours.get("error") or ours.get("status")] += 1
    assert outcomes.keys() == {None, 1, 2, 3, Error.STREAMS_INVALID_TOPOLOGY, Error.UNKNOWN_SERVER_ERROR}
