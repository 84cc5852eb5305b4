"""UpdateFeatures: finalized levels, refusals, and what follows from a level (KIP-584, KIP-778)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.cluster import Nodes

from koordinator.emulator.core.data.features import (
    GROUP_VERSION,
    SAFE_DOWNGRADE,
    SHARE_VERSION,
    STREAMS_VERSION,
    UPGRADE,
)
from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from koordinator.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from koordinator.wire.messages.share_fetch import ShareFetchRequest
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from koordinator.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

TV = "transaction.version"


def update(
    nodes: Nodes, levels: Mapping[str, int], kind: int = UPGRADE, *, version: int = 1, validate: bool = False
) -> UpdateFeaturesResponse:
    rows = tuple(FeatureUpdateKey(feature=name, max_version_level=at, upgrade_type=kind) for name, at in levels.items())
    request = UpdateFeaturesRequest(feature_updates=rows, validate_only=validate)
    response = nodes.request_at(1, request, version)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def finalized(nodes: Nodes) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    response = nodes.request_at(2, request, 3)
    return {row.name: row.max_version_level for row in response.finalized_features}


def test_every_node_shows_a_new_level() -> None:
    nodes = Nodes(2)
    assert update(nodes, {TV: 1}, SAFE_DOWNGRADE).error_code == 0
    others = {"metadata.version": 33, GROUP_VERSION: 1, SHARE_VERSION: 2, STREAMS_VERSION: 1}
    assert finalized(nodes) == {**others, TV: 1}
    assert update(nodes, {TV: 0}, SAFE_DOWNGRADE).error_code == 0
    assert finalized(nodes) == others
    assert update(nodes, {TV: 2}).error_code == 0
    assert finalized(nodes)[TV] == 2


def test_group_version_0_turns_consumer_groups_off() -> None:
    nodes = Nodes(1)
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    describe = ConsumerGroupDescribeRequest(group_ids=("g",))

    def errors() -> tuple[int, int]:
        return nodes.request_at(1, beat, 1).error_code, nodes.request_at(1, describe, 1).groups[0].error_code

    assert errors() == (Error.NONE, Error.NONE)
    assert update(nodes, {GROUP_VERSION: 0}, SAFE_DOWNGRADE).error_code == 0
    assert errors() == (Error.UNSUPPORTED_VERSION, Error.UNSUPPORTED_VERSION)
    assert update(nodes, {GROUP_VERSION: 1}).error_code == 0
    assert errors() == (Error.NONE, Error.NONE)


def test_share_version_0_turns_share_groups_off() -> None:
    nodes = Nodes(1)
    beat = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=("t",))
    asked = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)

    def errors() -> list[int]:
        whole = (
            nodes.request_at(1, beat, 1),
            nodes.request_at(1, ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=0), 1),
            nodes.request_at(1, ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1), 1),
            nodes.request_at(1, AlterShareGroupOffsetsRequest(group_id="empty", topics=()), 0),
            nodes.request_at(1, DeleteShareGroupOffsetsRequest(group_id="none", topics=()), 0),
        )
        rows = (
            nodes.request_at(1, ShareGroupDescribeRequest(group_ids=("g",)), 1),
            nodes.request_at(1, DescribeShareGroupOffsetsRequest(groups=(asked,)), 1),
        )
        return [each.error_code for each in whole] + [each.groups[0].error_code for each in rows]

    served = [0, 0, 0, 0, Error.GROUP_ID_NOT_FOUND, 0, 0]
    assert errors() == served
    assert update(nodes, {SHARE_VERSION: 0}, SAFE_DOWNGRADE).error_code == 0
    assert errors() == [Error.UNSUPPORTED_VERSION] * 7
    assert update(nodes, {SHARE_VERSION: 1}).error_code == 0
    assert errors() == served


def test_all_features_change_or_none() -> None:
    nodes = Nodes(2)
    response = update(nodes, {TV: 1, "nosuch": 1}, SAFE_DOWNGRADE)
    assert response.error_code == Error.INVALID_UPDATE_VERSION
    assert response.results == ()
    assert finalized(nodes)[TV] == 2


def test_a_validation_changes_nothing() -> None:
    nodes = Nodes(2)
    assert update(nodes, {TV: 1}, SAFE_DOWNGRADE, validate=True).error_code == 0
    assert finalized(nodes)[TV] == 2


def test_version_2_has_no_rows() -> None:
    nodes = Nodes(2)
    assert [update(nodes, {TV: 2}, version=version).results for version in (1, 2)][1] == ()


@pytest.mark.parametrize(("release", "error"), [("3.9", Error.INVALID_UPDATE_VERSION), ("2.8", Error.INVALID_REQUEST)])
def test_earlier_releases_refuse_each_feature_by_itself(release: str, error: Error) -> None:
    nodes = Nodes(2, kafka_version=release)
    version = 0 if release == "2.8" else 1
    response = update(nodes, {TV: 1, "metadata.version": 99}, version=version)
    assert [(row.feature, row.error_code) for row in response.results] == [("metadata.version", error), (TV, error)]
    assert response.error_code == 0
