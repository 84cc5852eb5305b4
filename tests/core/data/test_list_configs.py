"""Additions to configs that are lists, and removals (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from tests.core.data.conftest import Desk

TOPIC = 2
APPEND, SUBTRACT = 2, 3
NAME = "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        (",0:1,,0:2", APPEND, "0:3", "0:1,0:2,0:3"),
        ("0:1", APPEND, "", "0:1,"),
        ("0:1", APPEND, ",", "0:1"),
        ("0:1", APPEND, "0:1,0:2,", "0:1,0:2"),
        ("0:1,0:1,0:1", SUBTRACT, "0:1", "0:1,0:1"),
    ],
)
def test_lists_are_split_as_java_splits_them(desk: Desk, before: str, operation: int, value: str, after: str) -> None:
    desk.topic("t", configs={NAME: before})
    change = AlterableConfig(name=NAME, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=(change,))
    (row,) = desk.send(IncrementalAlterConfigsRequest(resources=(resource,))).response.responses
    assert row.error_code == 0
    assert desk.cluster.topics["t"].configs[NAME] == after
