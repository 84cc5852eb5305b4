"""Topologies and the topics there are; `tests/kafka` compares random ones with Kafka's classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.emulator.core.groups.streams.endpoints import input_partitions
from koordinator.emulator.core.groups.streams.tasks import Task
from koordinator.emulator.core.groups.streams.topology import configure_topology, required_topics
from koordinator.emulator.core.refusal import RefusedError
from koordinator.wire.errors import Error
from koordinator.wire.messages.streams_group_heartbeat import CopartitionGroup, KeyValue, Subtopology, TopicInfo
from koordinator.wire.messages.streams_group_records import StreamsGroupTopologyValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.emulator.core.groups.streams.topology import ConfiguredTopology


def topic(name: str, partitions: int = 0, factor: int = -1, **configs: str) -> TopicInfo:
    """Return an internal topic as a client sends it."""
    rows = tuple(KeyValue(key=key, value=text) for key, text in configs.items())
    return TopicInfo(name=name, partitions=partitions, replication_factor=factor, topic_configs=rows)


def part(
    name: str = "0",
    sources: Iterable[str] = (),
    *,
    reads: Iterable[TopicInfo] = (),
    writes: Iterable[str] = (),
    stores: Iterable[TopicInfo] = (),
    together: Iterable[tuple[tuple[int, ...], tuple[int, ...]]] = (),
) -> Subtopology:
    """Return a subtopology; `together` are copartition groups: indexes of `sources` and of `reads`."""
    return Subtopology(
        subtopology_id=name,
        source_topics=tuple(sources),
        source_topic_regex=(),
        state_changelog_topics=tuple(stores),
        repartition_sink_topics=tuple(writes),
        repartition_source_topics=tuple(reads),
        copartition_groups=tuple(
            CopartitionGroup(source_topics=left, source_topic_regex=(), repartition_source_topics=right)
            for left, right in together
        ),
    )


def configured(*parts: Subtopology, **counts: int) -> ConfiguredTopology:
    """Return a topology with these topics."""
    return configure_topology(StreamsGroupTopologyValue(epoch=3, subtopologies=parts), counts)


def problem(*parts: Subtopology, **counts: int) -> tuple[int, str]:
    """Return the status of a topology that is not ready."""
    found = configured(*parts, **counts).problem
    assert found is not None
    return found.status, found.detail


def refused(*parts: Subtopology, **counts: int) -> Any:
    """Return the error of a topology that is refused."""
    with pytest.raises(RefusedError) as failed:
        configured(*parts, **counts)
    return failed.value.refusal.error, failed.value.refusal.message


def test_a_subtopology_has_a_task_for_each_partition_of_its_largest_input() -> None:
    found = configured(part("1", ["a", "b"]), part("0", ["a"]), a=2, b=5)
    assert (found.epoch, found.is_ready, found.missing) == (3, True, ())
    assert found.subtopologies is not None
    assert [(name, each.tasks, each.is_stateful) for name, each in found.subtopologies.items()] == [
        ("0", 2, False),
        ("1", 5, False),
    ]


def test_missing_source_topics_are_named_in_order_three_at_most() -> None:
    assert problem(part(sources=["b", "a"])) == (1, "Source topics a, b are missing.")
    names = [f"t{number}" for number in range(5)]
    assert problem(part(sources=names)) == (1, "Source topics t0, t1, t2 and 2 additional topics are missing.")
    assert configured(part(sources=["a"])).subtopologies is None


def test_internal_topics_are_created_with_the_counts_of_their_inputs() -> None:
    store = topic("app-store-changelog", factor=0, **{"cleanup.policy": "compact"})
    parts = part("0", ["a"], writes=["r"]), part("1", reads=[topic("r", factor=3)], stores=[store])
    found = configured(*parts, a=4)
    assert found.problem is not None
    assert (found.problem.status, found.problem.detail) == (3, "Internal topics are missing: r, app-store-changelog")
    assert [(each.name, each.partitions, each.replication_factor, each.configs) for each in found.missing] == [
        ("r", 4, 3, {}),
        ("app-store-changelog", 4, 0, {"cleanup.policy": "compact"}),
    ]
    assert found.subtopologies is not None
    assert [each.tasks for each in found.subtopologies.values()] == [4, 4]
    assert configured(*parts, a=4, r=4, **{"app-store-changelog": 4}).is_ready


def test_an_existing_internal_topic_needs_the_expected_count() -> None:
    wrong = 2, "Existing topic c has different number of partitions: expected 4, found 2"
    assert problem(part(sources=["a"], stores=[topic("c")]), a=4, c=2) == wrong


def test_copartitioned_source_topics_need_equal_counts() -> None:
    wrong = 2, "Following topics do not have the same number of partitions: [{a=4, b=2}]"
    assert problem(part(sources=["b", "a"], together=[((0, 1), ())]), a=4, b=2) == wrong


def test_a_repartition_topic_takes_the_count_of_its_copartition_group() -> None:
    writer = part("0", ["a"], writes=["r"])
    found = configured(writer, part("1", ["b"], reads=[topic("r")], together=[((0,), (0,))]), a=2, b=6)
    assert [(each.name, each.partitions) for each in found.missing] == [("r", 6)]
    wrong = (
        "Number of partitions [3] of repartition topic [r] doesn't match number of partitions [6] of the source topic."
    )
    fixed = part("1", ["b"], reads=[topic("r", 3)], together=[((0,), (0,))])
    assert problem(writer, fixed, a=2, b=6) == (2, wrong)


def test_a_topology_that_no_topics_could_make_valid_is_refused() -> None:
    loops = "There may be loops in the topology that cannot be resolved."
    nobody = "because a repartition source topic is never used as a sink topic."
    start = "Failed to compute number of partitions for all repartition topics"
    invalid = Error.STREAMS_INVALID_TOPOLOGY
    assert refused(part(reads=[topic("r")], writes=["r"])) == (invalid, f"{start}. {loops}")
    assert refused(part(reads=[topic("r")])) == (invalid, f"{start}, {nobody}")
    assert refused(part("7")) == (invalid, "No source topics found for subtopology 7")


@pytest.mark.parametrize(
    "parts",
    [
        [part(sources=["a"], together=[((1,), ())])],
        [part(sources=["a"]), part(sources=["a"])],
        [part(sources=["a"], stores=[topic("c"), topic("c")])],
        [part(sources=["a"], writes=["r"], reads=[topic("r", -1)])],
    ],
    ids=["index", "subtopology", "topic", "count"],
)
def test_what_kafka_does_not_expect_is_an_error_without_a_message(parts: list[Subtopology]) -> None:
    assert refused(*parts, a=4) == (Error.UNKNOWN_SERVER_ERROR, "")


def test_the_topics_of_a_topology_are_its_inputs_and_its_state() -> None:
    parts = part("0", ["a"], writes=["r"]), part("1", reads=[topic("r")], stores=[topic("c")])
    assert sorted(required_topics(StreamsGroupTopologyValue(epoch=0, subtopologies=parts))) == ["a", "c", "r"]


def test_an_endpoint_has_the_input_partitions_of_its_tasks() -> None:
    found = configured(part("0", ["a", "b"], writes=["r"]), part("1", reads=[topic("r", 8)]), a=2, b=8, r=8)
    assert found.subtopologies is not None
    tasks = [Task("0", 0), Task("0", 3), Task("0", 5), Task("1", 7)]
    shown = {
        only_existing: [
            (row.topic, row.partitions)
            for row in input_partitions(
                tasks, found.subtopologies, {"a": 2, "b": 8, "r": 8}, only_existing=only_existing
            )
        ]
        for only_existing in (False, True)
    }
    assert shown[False] == [("a", (0, 3)), ("b", (0, 3, 5)), ("r", (7,))]
    assert shown[True] == [("a", (0,)), ("b", (0, 3, 5)), ("r", (7,))]
    with pytest.raises(RefusedError, match="Topic a not found in metadata image"):
        input_partitions(tasks, found.subtopologies, {}, only_existing=True)
