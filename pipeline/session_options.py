"""Options that all jobs have: where Spark runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

_SETTING = "NAME=VALUE"


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `master`, `remote` and `settings`, as session.opened takes them."""
    for option in (
        click.option("--conf", "settings", multiple=True, metavar=_SETTING, callback=_settings,
                     help="A setting of Spark's, like spark.driver.memory=4g. May be given more than once."),
        click.option("--remote", metavar="URL", help="A Spark Connect server: sc://host:15002."),
        click.option("--master", metavar="URL",
                     help="Where Spark runs: local[4], spark://host:7077, … [default: all cores of this machine]"),
    ):  # fmt: skip
        command = option(command)
    return command


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for value in values:
        name, equals, of = value.partition("=")
        if not equals or not name.startswith("spark."):
            raise click.BadParameter(f"{value!r} is not {_SETTING} of a setting of Spark's", ctx, param)
        settings[name] = of
    return settings
