"""The JSON, YAML and TOML that a page shows is accepted by its reader."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml
from brokers.http_server import Serving
from scenes.documentation import Block, blocks

from koordinator import Simulation
from koordinator.cli.serve import serve
from koordinator.fixtures.options import OPTIONS
from koordinator.handles.remote import Remote

VARIABLES = {str(option.envvar) for option in serve.params} | {option.variable for option in OPTIONS}  # type: ignore[attr-defined]


def of(*languages: str) -> list[object]:
    return [pytest.param(block, id=block.name) for block in blocks(*languages)]


@pytest.mark.parametrize("block", of("json"))
def test_json_is_valid(block: Block) -> None:
    for line in block.text.replace("\n ", "").replace(", …}", "}").splitlines():
        json.loads(line)


@pytest.mark.parametrize("block", of("yaml"))
def test_yaml_is_valid_and_its_variables_exist(block: Block) -> None:
    yaml.safe_load(block.text)
    assert set(re.findall(r"KOORDINATOR_\w+", block.text)) <= VARIABLES


@pytest.mark.parametrize("block", of("toml"))
def test_toml_is_valid_and_its_options_exist(block: Block) -> None:
    options = tomllib.loads(block.text).get("tool", {}).get("pytest", {}).get("ini_options", {})
    assert {name for name in options if name.startswith("koordinator")} <= {option.ini for option in OPTIONS}


@pytest.mark.slow
def test_the_rule_is_accepted_over_http() -> None:
    rules = [block for block in blocks("json") if '"action"' in block.text]
    assert rules
    with Serving() as served, Remote(served.url) as server:
        for block in rules:
            server.request("POST", "/v1/clusters/default/rules", json.loads(block.text))


def test_the_groups_are_loaded() -> None:
    classic, consumer = (block for block in blocks("json") if block.page.name == "groups-file.md")
    with Simulation() as cluster:
        cluster.create_topic("orders", partitions=2)
        cluster.load_groups(classic.text.splitlines())
        group = cluster.group("svc")
        assert (group.state, group.generation, len(group.members)) == ("Stable", 7, 2)
        assert group.offsets == {("orders", 0): 5}
    with Simulation(topics={"orders": 2}) as cluster:
        cluster.load_groups(consumer.text.splitlines())
        cluster.group("svc").wait_stable(members=1, all_owned=True)
