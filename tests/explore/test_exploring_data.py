"""The exploration of the data plane finds a difference of releases, and no difference between two emulators."""

from __future__ import annotations

import re

import pytest
from exploring.data.batches import DAMAGES, START_MS, Batch
from exploring.data.plain import Names, batches
from exploring.releases import RELEASES
from exploring.transactions.rounds import explore
from exploring.transactions.sides import DATA, emulator
from exploring.transactions.steps import Sequence, Step

from koordinator.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

RELEASE = RELEASES["4.4"]


@pytest.mark.slow
def test_two_emulators_agree() -> None:
    with emulator(RELEASE, DATA) as ours, emulator(RELEASE, DATA) as theirs:
        found = explore(ours, theirs, [DATA.generate(f"{seed}", RELEASE) for seed in (1, 2, 3)], print)
    assert (found.compared, found.differences) == (3, [])


def test_a_sequence_is_its_seed() -> None:
    assert DATA.generate("1", RELEASE) == DATA.generate("1", RELEASE) != DATA.generate("2", RELEASE)


def test_a_difference_of_two_releases_is_found_and_its_sequence_minimised() -> None:
    twice = (("t", 0, -1, -1), ("t", 0, -2, -1))
    steps = (
        Step("describe_configs", _describe()),
        Step("list_offsets", (("version", 5), ("rows", twice), ("isolation", 0))),
    )
    sequence = Sequence("twice", steps, restart_after=len(steps))
    with emulator(RELEASE, DATA) as ours, emulator(RELEASES["3.9-new"], DATA) as theirs:
        (difference,) = explore(ours, theirs, [sequence], print).differences
    assert [step.name for step in difference.sequence.steps] == ["list_offsets"]
    assert difference.kind == "list_offsets: answer"


def _describe() -> tuple[tuple[str, object], ...]:
    rows = ((2, "t", ("cleanup.policy",)),)
    return (("version", 4), ("rows", rows), ("synonyms", False), ("documentation", False))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_batch_is_always_the_same(damage: str) -> None:
    batch = Batch(damage=damage, count=2)
    assert batch.data() == batch.data() != Batch(count=2).data()


def test_times_names_and_order_do_not_differ() -> None:
    rows = tuple(
        PartitionProduceResponse(
            index=index,
            error_code=0,
            base_offset=0,
            log_append_time_ms=START_MS + index,
            error_message=f"e7.t {START_MS}",
        )
        for index in (1, 0)
    )
    answer = ProduceResponse(responses=(TopicProduceResponse(name="e7.t", partition_responses=rows),))
    one, two = Names("e7").plain(answer)["responses"]
    assert [row["partition_responses"]["index"] for row in (one, two)] == [0, 1]
    assert one["name"] == "E.t"
    assert one["partition_responses"]["log_append_time_ms"] == "the log's time"
    assert re.fullmatch("E.t TIME", one["partition_responses"]["error_message"])


def test_records_are_shown_with_the_bytes_that_are_left() -> None:
    data = Batch(count=2).data()
    assert data is not None
    (first, rest) = batches(data + data[:-1])
    assert isinstance(first, tuple)
    assert first[-2] == len(first[-1]) == 2
    assert rest == f"{len(data) - 1} bytes"
