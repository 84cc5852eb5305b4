"""The options of a cluster (`emulator.config.options`) as Click options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from koordinator.emulator.config.options import Interface, Option, options_of

from . import values

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")

FILE = click.Path(path_type=Path)

CALLBACKS = {
    "advertised": values.addresses,
    "broker_ids": values.entries,
    "config": values.assignments,
    "listeners": values.addresses,
    "racks": values.entries,
    "records": values.records,
    "topics": values.topics,
    "users": values.users,
}
"""The callbacks that parse values; the other options are integers, choices, paths or plain text."""


def cluster_options(command: _F) -> _F:
    """Add the options of a cluster to a command; its arguments have the names of the fields of `Options`."""
    for option in reversed(options_of(Interface.SERVE)):
        command = _click_option(option)(command)
    return command


def _click_option(option: Option) -> Callable[[_F], _F]:
    is_repeatable = option.is_mapping and option.metavar != "FILE"
    default = option.default if option.serve_default is None else option.serve_default
    return click.option(
        option.flag,
        option.name,
        type=_type(option),
        default=None if option.is_mapping or option.is_list else default,
        multiple=is_repeatable,
        metavar=option.metavar or None,
        callback=CALLBACKS.get(option.name),
        help=f"{option.help.rstrip('.')} (repeatable)." if is_repeatable else option.help,
        envvar=option.variable,
        show_envvar=True,
        show_default=option.unset or not (default in (None, ()) or option.is_mapping),
    )


def _type(option: Option) -> Any:  # noqa: ANN401 - Click's types have no common annotation
    if option.is_integer:
        return values.Integer(option.lowest, option.highest)
    if option.choices:
        return click.Choice(option.choices)
    return FILE if option.metavar in {"FILE", "DIR"} else str
