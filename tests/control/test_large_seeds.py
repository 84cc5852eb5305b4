"""Many records of one call are prepared, or read, in steps, with clients' requests between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import Nodes

from koordinator.emulator.broker.steps import Steps, run
from koordinator.emulator.control.inspect.topics import Topics
from koordinator.emulator.control.record_inputs import seed_records
from koordinator.emulator.core.data.direct_records import STEP_RECORDS
from koordinator.emulator.core.refusal import RefusedError
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = 5 * STEP_RECORDS


def ends(nodes: Nodes, topic: str = "t") -> list[int]:
    """Return the end of each log."""
    return [log.end for log in nodes.cluster.topics[topic].logs]


def take(nodes: Nodes, steps: Steps[Any], between: Callable[[], object] = lambda: None) -> tuple[int, Any]:
    """Take all steps, with an action between them; return their number, and the result."""
    outputs: list[object] = []

    def perform(step: object) -> None:
        outputs.append(step)
        between()

    result = run(steps, nodes.now, perform)
    return len(outputs), result


def test_records_are_prepared_in_steps_and_written_in_the_last() -> None:
    nodes = Nodes(1)

    def commit() -> None:
        assert sum(ends(nodes)) == 0
        assert nodes.commit(1, 7) is Error.NONE

    steps = Topics(nodes.runtime).produce(nodes.now, topic="t", records=[{"value": "v"}] * RECORDS)
    taken, result = take(nodes, steps, commit)
    assert result == sum(ends(nodes)) == RECORDS
    # for the validation, the partitions, and the batches
    assert taken >= 3 * RECORDS // STEP_RECORDS


def test_a_new_topic_takes_its_records_in_steps() -> None:
    nodes = Nodes(1)
    taken, _ = take(nodes, Topics(nodes.runtime).create(nodes.now, topic="u", partitions=2, records=RECORDS))
    assert taken >= 3 * RECORDS // STEP_RECORDS
    assert ends(nodes, "u") == [RECORDS / 2, RECORDS / 2]


def test_records_of_a_topic_that_is_deleted_between_two_steps_are_refused() -> None:
    nodes = Nodes(1)
    steps = nodes.runtime.produce_in_steps(nodes.now, "t", seed_records(RECORDS))
    next(steps)
    nodes.cluster.delete_topic(nodes.cluster.topics["t"])
    with pytest.raises(RefusedError, match="t was deleted meanwhile"):
        take(nodes, steps)


def test_few_records_take_no_step() -> None:
    nodes = Nodes(1)
    few = STEP_RECORDS - 1
    assert take(nodes, Topics(nodes.runtime).produce(nodes.now, topic="t", records=["v"] * few)) == (0, few)


def test_records_are_read_in_steps_as_they_were_at_the_first() -> None:
    nodes = Nodes(1)
    nodes.runtime.produce(nodes.now, "t", seed_records(RECORDS))

    def delete() -> None:
        if "t" in nodes.cluster.topics:
            nodes.cluster.delete_topic(nodes.cluster.topics["t"])

    taken, found = take(nodes, Topics(nodes.runtime).records(nodes.now, topic="t"), delete)
    assert (taken, len(found)) == (RECORDS // STEP_RECORDS, RECORDS)
