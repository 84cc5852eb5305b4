"""Options that several jobs share: where Spark runs, the store, and the files of a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

GATEWAY_PORT_VARIABLE = "PYSPARK_GATEWAY_PORT"
"""An environment variable set by spark-submit, which has started Java and knows the master."""

LOCAL_MASTER = "local[*]"
"""The default master: all cores of this machine."""

_SETTING = "NAME=VALUE"

FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments `root` and `as_of` to a command that reads a store."""
    as_of = click.option("--as-of", metavar="SNAPSHOT", help="Read the tables as of a snapshot's number, or of a time"
                         " like 2026-11-21T17:00 (UTC). [default: the current ones]")  # fmt: skip
    return writable_store_option(as_of(command))


writable_store_option = click.option(
    "--store", "root", required=True, metavar="DIR", help="The store that `run` has filled."
)


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments `master`, `remote` and `settings` of session.open_session to a command."""
    for option in (
        click.option("--conf", "settings", multiple=True, metavar=_SETTING, callback=_settings,
                     help="Set a Spark configuration property, like spark.driver.memory=4g (repeatable)."),
        click.option("--remote", metavar="URL", help="Address of a Spark Connect server: sc://host:15002."),
        click.option("--master", metavar="URL",
                     help="Spark master: local[4], spark://host:7077, … [default: all cores of this machine]"),
    ):  # fmt: skip
        command = option(command)
    return command


def report_options(html_default: Path | None, html_help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the arguments `html_path`, `markdown_path` and `title` of report.files to a command."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option("--title", default="Rebalances", show_default=True, metavar="TEXT",
                         help="Title of the page."),
            click.option("--markdown", "markdown_path", type=FILE, metavar="FILE",
                         help="Write a summary for a pull request; - is stdout."),
            click.option("--html", "html_path", type=FILE, default=html_default, show_default=True, metavar="FILE",
                         help=f"{html_help} A folder beside it, with the same name, gets timelines of single traces."),
        ):  # fmt: skip
            command = option(command)
        return command

    return add


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.startswith("spark."):
            raise click.BadParameter(
                f"{value!r}: expected {_SETTING} with a name that starts with 'spark.'", ctx, param
            )
        settings[name] = text
    return settings
