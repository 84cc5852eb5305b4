"""Environment variables for the options of `koordinator serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from koordinator.cli.serve import serve as command
from koordinator.emulator.config.options import OPTIONS
from koordinator.fixtures import options as plugin_options

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from conftest import Served


def test_every_option_has_its_own_variable() -> None:
    variables = [option.envvar for option in command.params]
    assert len(set(variables)) == len(command.params)
    assert all(isinstance(each, str) and each.startswith("KOORDINATOR_") for each in variables)


def test_a_variable_that_serve_shares_with_the_pytest_plugin_is_an_option_of_clusters() -> None:
    of_serve = {option.envvar for option in command.params}
    shared = [option for option in plugin_options.OPTIONS if option.variable in of_serve]
    assert shared
    assert all(option in OPTIONS for option in shared), shared


def test_variables_have_the_effect_of_their_options(
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
        "CONTROL_HOST": "0.0.0.0",  # noqa: S104 - as in a container
    }
    for name, value in given.items():
        monkeypatch.setenv(f"KOORDINATOR_{name}", value)
    served = serve()
    announced = served.ready()
    assert announced["seed"] == 7
    assert announced["listeners"]["INSIDE"] == "kafka:9094"
    assert announced["control_url"].startswith("http://0.0.0.0:")
    assert "control_token" not in announced
    line = served.line("err")
    assert line is not None
    assert line.endswith("and advertises kafka:9094")


def test_the_command_line_overrides_a_variable(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOORDINATOR_SEED", "7")
    assert serve("--port", "0", "--seed", "8").ready()["seed"] == 8


def test_an_invalid_value_is_refused_with_the_name_of_the_variable(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kubernetes sets this in every pod if a Service is named koordinator
    monkeypatch.setenv("KOORDINATOR_PORT", "tcp://10.0.0.1:9092")
    refused = serve()
    assert refused.ended() == 2
    assert "KOORDINATOR_PORT" in refused.rest("err")[0]


def test_the_help_text_names_the_variables() -> None:
    shown = command.get_help(click.Context(command, info_name="serve"))
    assert "KOORDINATOR_CONTROL_TOKEN" in shown
