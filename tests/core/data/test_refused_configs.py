"""Why brokers with a controller of KRaft refuse changes of configs, before they pass them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.wire.messages import alter_configs, incremental_alter_configs

if TYPE_CHECKING:
    from tests.core.data.conftest import Desk

TOPIC, BROKER = 2, 4
TWICE = "Each resource must appear at most once."


def _alter(desk: Desk, *resources: tuple[int, str, list[tuple[str, str | None]]]) -> list[tuple[int, str | None]]:
    """Send both requests that change configs, which must be refused equally; return the rows."""
    results = []
    for module, request, version in (
        (alter_configs, alter_configs.AlterConfigsRequest, 2),
        (incremental_alter_configs, incremental_alter_configs.IncrementalAlterConfigsRequest, 1),
    ):
        rows: Any = tuple(
            module.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(module.AlterableConfig(name=key, value=value) for key, value in configs),
            )
            for kind, name, configs in resources
        )
        response: Any = desk.send(request(resources=rows), version).response
        results.append([(row.error_code, row.error_message) for row in response.responses])
    assert results[0] == results[1]
    return results[0]


@pytest.mark.parametrize(
    ("kind", "name", "configs", "message"),
    [
        (TOPIC, "no", [("a", None), ("b", "1"), ("c", None)], "Null value not supported for : a, c"),
        (TOPIC, "no", [("a", None), ("a", "1")], "Error due to duplicate config keys"),
        (BROKER, "9", [("a", None)], "Null value not supported for : a"),
        (BROKER, "2147483649", [], "Node id must be an integer, but it is: 2147483649"),
        (BROKER, "1" * 5000, [], f"Node id must be an integer, but it is: {'1' * 5000}"),
        (BROKER, "-1", [], "Unexpected broker id, expected 1, but received -1"),
    ],
)
def test_keys_are_looked_at_before_resources(
    desk: Desk, kind: int, name: str, configs: list[tuple[str, str | None]], message: str
) -> None:
    assert _alter(desk, (kind, name, configs)) == [(42, message)]


def test_a_resource_given_twice_is_refused_in_both_rows(desk: Desk) -> None:
    desk.topic("t")
    change = (TOPIC, "t", [("flush.ms", "7")])
    assert _alter(desk, change, (TOPIC, "u", [("a", None)]), change) == [
        (42, TWICE),
        (42, "Null value not supported for : a"),
        (42, TWICE),
    ]
    assert desk.cluster.topics["t"].configs == {}
