"""Topics and their Metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from koordinator.emulator.core.data.topic import illegal_name
from koordinator.emulator.core.refusal import RefusedError
from koordinator.wire.errors import Error
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk

VERSIONS = range(14)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_metadata_request_creates_a_topic_and_the_next_one_returns_its_leader(desk: Desk, version: int) -> None:
    (topic,) = desk.metadata("new", version=version).topics
    assert (topic.error_code, topic.partitions) == (Error.UNKNOWN_TOPIC_OR_PARTITION, ())
    answer = desk.metadata("new", version=version)
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, len(topic.partitions)) == (0, "new", 1)
    assert (topic.partitions[0].leader_id, topic.partitions[0].replica_nodes) == (1, (1,))
    assert desk.cluster.topics.partition_count("new") == 1
    assert (topic.topic_id == desk.cluster.topics["new"].topic_id) == (version >= 10)
    assert [(b.node_id, b.port) for b in answer.brokers] == [(1, 9092)]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_topics_are_all_at_version_0_and_none_after(desk: Desk, version: int) -> None:
    desk.topic("a")
    desk.topic("b")
    names = [topic.name for topic in desk.metadata(version=version).topics]
    assert names == (["a", "b"] if version == 0 else [])


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_null_topics_are_all_from_version_1_on(desk: Desk, version: int) -> None:
    desk.topic("a", 3)
    (topic,) = desk.send(MetadataRequest(topics=None), version).response.topics
    assert [p.partition_index for p in topic.partitions] == [0, 1, 2]


def test_a_topic_is_created_only_if_client_and_broker_allow_it(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    (topic,) = desk.metadata("new", allow_auto_topic_creation=False).topics
    assert (topic.error_code, desk.cluster.topics) == (Error.UNKNOWN_TOPIC_OR_PARTITION, {})
    desk = new_desk(auto_create_topics_enable=False)
    (topic,) = desk.metadata("new", version=0).topics
    assert (topic.error_code, desk.cluster.topics) == (Error.UNKNOWN_TOPIC_OR_PARTITION, {})


def test_created_topics_have_num_partitions_and_the_offsets_topic_has_its_own(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(num_partitions=7, offsets_topic_num_partitions=3)
    desk.metadata("x", "__consumer_offsets")
    seven, offsets = desk.metadata("x", "__consumer_offsets").topics
    assert (len(seven.partitions), seven.is_internal) == (7, False)
    assert (len(offsets.partitions), offsets.is_internal) == (3, True)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "x" * 250, "a\n"])
def test_an_illegal_name_is_17_whether_creation_is_allowed_or_not(desk: Desk, name: str) -> None:
    assert illegal_name(name) is not None
    for may in (True, False):
        (topic,) = desk.metadata(name, allow_auto_topic_creation=may).topics
        assert (topic.error_code, topic.name) == (Error.INVALID_TOPIC_EXCEPTION, name)


@pytest.mark.parametrize("name", ["a", "...", "x" * 249, "A.b_c-9"])
def test_names_of_up_to_249_letters_digits_dots_underscores_and_dashes_are_legal(desk: Desk, name: str) -> None:
    desk.metadata(name)
    assert desk.metadata(name).topics[0].error_code == 0


def test_names_that_differ_only_in_dots_and_underscores_collide(desk: Desk) -> None:
    desk.topic("a.b_c")
    assert desk.metadata("a_b_c").topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(RefusedError, match=r"collides with existing topic: a\.b_c"):
        desk.topic("a.b.c")
    desk.cluster.delete_topic(desk.cluster.topics["a.b_c"])
    desk.metadata("a_b_c")
    assert desk.metadata("a_b_c").topics[0].error_code == 0


def test_kip_516_topics_are_found_by_id_from_version_12_on(desk: Desk) -> None:
    topic_id, unknown = desk.topic("t"), UUID(int=77)
    by_id = MetadataRequest(
        topics=(MetadataRequestTopic(name=None, topic_id=topic_id), MetadataRequestTopic(name=None, topic_id=unknown))
    )
    result, missing = desk.send(by_id, 12).response.topics
    assert (result.error_code, result.name) == (0, "t")
    assert (missing.error_code, missing.name, missing.topic_id) == (Error.UNKNOWN_TOPIC_ID, None, unknown)
    for version in (10, 11):
        assert [t.error_code for t in desk.send(by_id, version).response.topics] == [Error.INVALID_REQUEST] * 2


def test_a_topic_named_twice_has_one_row(desk: Desk) -> None:
    assert [topic.name for topic in desk.metadata("a", "b", "a").topics] == ["a", "b"]


def test_authorized_operations_are_sent_on_request(desk: Desk) -> None:
    answer = desk.metadata("t", version=8)
    assert (answer.cluster_authorized_operations, answer.topics[0].topic_authorized_operations) == (-(2**31),) * 2
    wanted: dict[str, Any] = {
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    }
    answer = desk.metadata("t", version=8, **wanted)
    assert answer.cluster_authorized_operations == 0b1_1111_1010_0000
    assert answer.topics[0].topic_authorized_operations == 0b1101_1111_1000


def test_leaders_take_turns_on_several_brokers(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(brokers=3)
    desk.topic("t", 4)
    (topic,) = desk.metadata("t").topics
    assert [p.leader_id for p in topic.partitions] == [1, 2, 3, 1]


def test_a_topic_without_brokers_has_no_leader(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(brokers=0)
    desk.topic("t")
    (topic,) = desk.metadata("t").topics
    assert (topic.partitions[0].error_code, topic.partitions[0].leader_id) == (Error.LEADER_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("partitions", [0, -2, 10_001])
def test_an_impossible_number_of_partitions_is_refused(desk: Desk, partitions: int) -> None:
    with pytest.raises(RefusedError) as refused:
        desk.topic("t", partitions)
    assert refused.value.error is Error.INVALID_PARTITIONS
    assert desk.cluster.topics.partition_count("t") == 0


@pytest.mark.parametrize(("release", "second"), [("2.8", Error.INVALID_TOPIC_EXCEPTION), ("3.9", 0), ("4.4", 0)])
def test_topics_of_one_request_do_not_collide_with_each_other_in_kraft(
    new_desk: Callable[..., Desk], release: str, second: int
) -> None:
    desk = new_desk(kafka_version=release)
    desk.metadata("a.b", "a_b", version=9)
    assert [topic.error_code for topic in desk.metadata("a.b", "a_b", version=9).topics] == [0, second]


def test_a_topic_that_collides_with_a_deleted_one_collides_with_the_rest(desk: Desk) -> None:
    desk.metadata("a.b", "a_b")
    desk.cluster.delete_topic(desk.cluster.topics["a.b"])
    desk.metadata("new", "a.b")
    assert set(desk.cluster.topics) == {"a_b", "new"}
