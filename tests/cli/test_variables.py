"""Variables of the environment: what an option of `koordinator serve` says, a variable can say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from koordinator.cli.serve import serve as command
from koordinator.fixtures.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from conftest import Served


def test_every_option_has_a_variable_of_its_own() -> None:
    variables = [option.envvar for option in command.params]
    assert len(set(variables)) == len(command.params)
    assert all(isinstance(each, str) and each.startswith("KOORDINATOR_") for each in variables)


def test_a_variable_that_the_pytest_plugin_has_as_well_means_the_same_there() -> None:
    ours = {option.envvar: option.name for option in command.params}
    plugins = {option.variable: option.argument for option in OPTIONS}
    shared = {variable: (ours[variable], plugins[variable]) for variable in ours.keys() & plugins.keys()}
    assert shared
    assert all(name == argument for name, argument in shared.values()), shared


def test_what_is_said_by_variables_is_as_if_it_were_said_by_options(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "PORT": "0",
        "TOPIC": "orders:6 payments:2",
        "CONFIG": "group.max.size=10 error.codes=kip",
        "LISTENER": "INSIDE=127.0.0.1:0",
        "ADVERTISED": "INSIDE=kafka:9094",
        "SEED": "7",
        "CONTROL_PORT": "0",
        "CONTROL_TOKEN": "",
        "INSECURE_CONTROL": "1",
        "CONTROL_HOST": "0.0.0.0",  # noqa: S104 - it is what a container has
    }
    for name, value in given.items():
        monkeypatch.setenv(f"KOORDINATOR_{name}", value)
    served = serve()
    said = served.ready()
    assert said["seed"] == 7
    assert said["listeners"]["INSIDE"] == "kafka:9094"
    assert said["control_url"].startswith("http://0.0.0.0:")
    assert "control_token" not in said
    line = served.line("err")
    assert line is not None
    assert line.endswith("and tells clients to come to kafka:9094")


def test_the_command_line_comes_before_a_variable(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOORDINATOR_SEED", "7")
    assert serve("--port", "0", "--seed", "8").ready()["seed"] == 8


def test_what_cannot_be_is_refused_with_the_name_of_the_variable(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    # what Kubernetes sets in every pod if there is a Service named koordinator
    monkeypatch.setenv("KOORDINATOR_PORT", "tcp://10.0.0.1:9092")
    refused = serve()
    assert refused.ended() == 2
    assert "KOORDINATOR_PORT" in refused.rest("err")[0]


def test_the_help_names_them() -> None:
    shown = command.get_help(click.Context(command, info_name="serve"))
    assert "KOORDINATOR_CONTROL_TOKEN" in shown
