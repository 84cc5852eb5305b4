"""The options of a cluster: every interface offers what the table declares."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import pytest

from koordinator import Emulator, Simulation
from koordinator.cli.serve import serve
from koordinator.emulator.config.options import OPTIONS, Interface, Option, Options, options_of
from koordinator.emulator.http.schemas import ClusterRequest, NewCluster
from koordinator.fixtures.options import ARGUMENT_OPTIONS, CLUSTER_ARGUMENTS, LEAKS

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULTS_OF_SIMULATION = {"seed": (int, 0)}
"""A simulation repeats itself unless the test gives another seed."""


def signature(function: Callable[..., object]) -> dict[str, tuple[object, object]]:
    """Return type and default of each argument."""
    imported = {"Mapping": Mapping, "Path": Path, "Sequence": Sequence}
    types = get_type_hints(function, localns=imported)
    parameters = inspect.signature(function).parameters.items()
    return {name: (types[name], row.default) for name, row in parameters if name != "self"}


def declared(interface: Interface) -> dict[str, tuple[object, object]]:
    """Return type and default of each option; a mapping may be left out as None, and choices are literals."""
    return {
        option.name: (option.type | None, None) if option.is_mapping else (type_of(option), option.default)
        for option in options_of(interface)
    }


def type_of(option: Option) -> object:
    """Return the type of an argument: its choices as literals, but for the releases of Kafka, which are no words."""
    if not option.choices or option.name == "kafka_version":
        return option.type
    words: Any = Literal[option.choices]
    return words if option.type is str else words | None


def test_the_emulator_has_the_declared_names_types_and_defaults() -> None:
    assert signature(Emulator.__init__) == declared(Interface.EMULATOR)


def test_the_simulation_has_the_declared_names_types_and_defaults() -> None:
    assert signature(Simulation.__init__) == {**declared(Interface.SIMULATION), **DEFAULTS_OF_SIMULATION}


def test_serve_has_a_flag_and_a_variable_for_each_option() -> None:
    flags = {option.name: (option.opts, option.envvar) for option in serve.params}
    for option in options_of(Interface.SERVE):
        assert flags[option.name] == ([option.flag], option.variable)


def test_http_has_the_declared_names_types_and_defaults() -> None:
    fields = {name: field for name, field in NewCluster.model_fields.items() if name not in ClusterRequest.model_fields}
    assert {
        name: (field.annotation, field.get_default(call_default_factory=True)) for name, field in fields.items()
    } == {
        option.name: (option.type, {} if option.is_mapping else option.default) for option in options_of(Interface.HTTP)
    }


def test_pytest_has_the_declared_options_and_those_of_the_plugin() -> None:
    assert (LEAKS, *options_of(Interface.PYTEST)) == ARGUMENT_OPTIONS
    assert list(CLUSTER_ARGUMENTS) == [option.name for option in options_of(Interface.EMULATOR)]


def test_a_default_of_the_table_is_that_of_the_dataclass() -> None:
    options = Options()
    for option in OPTIONS:
        assert getattr(options, option.name) == ({} if option.is_mapping else option.default)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_has_a_help_text_of_one_sentence_or_more(option: Option) -> None:
    assert option.help[0].isupper()
    assert option.help.endswith(".")


NUMBER = Option(name="n", type=int, help="N.", lowest=1, highest=5)
CHOICE = Option(name="c", help="C.", choices=("fast", "slow"))


def test_a_value_is_parsed_by_the_type_of_its_option() -> None:
    assert (NUMBER.parse("5"), NUMBER.parse("0x2"), CHOICE.parse("fast")) == (5, 2, "fast")
    assert Option(name="t", help="T.").parse("any text") == "any text"


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        (NUMBER, "0", "must be an integer from 1 to 5"),
        (NUMBER, "6", "must be an integer from 1 to 5"),
        (NUMBER, "many", "must be an integer from 1 to 5"),
        (CHOICE, "fats", "must be one of fast, slow; did you mean 'fast'[?]"),
        (CHOICE, "xyz", "must be one of fast, slow$"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_allowed_values(option: Option, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        option.parse(text)
