"""The options of `koordinator serve` that are about control over HTTP."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from koordinator.emulator.broker.listeners import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable


RANDOM = "random"
"""Stands for a token that is made anew, and told in the first line."""

TOKEN_BYTES = 16


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """Where control is to be had, and by whom. `port` None: nowhere."""

    host: str
    port: int | None
    token: str | None
    is_insecure: bool
    ports: range | None
    made_token: str | None = None
    """The token, if it was made here and nobody else knows it yet."""

    def with_token(self) -> ControlOptions:
        """The same with a token in the place of `RANDOM`: none, if everybody is to be obeyed."""
        if self.token != RANDOM:
            return self
        made = None if self.is_insecure else secrets.token_urlsafe(TOKEN_BYTES)
        return replace(self, token=made, made_token=made)

    def check(self) -> None:
        """Refuse to let anybody on the network control clusters without a token."""
        if self.port is None or self.token is not None or self.is_insecure or is_loopback(self.host):
            return
        raise click.UsageError(
            f"--control-host {self.host}: everybody who reaches it could control the clusters; give --control-token,"
            " or say --insecure-control"
        )


def control_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options; they come as `control_host` and so on, and `ControlOptions` takes them together."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def port_range(_context: click.Context, _option: click.Parameter, value: str | None) -> range | None:
    """`20000-20099` as ports."""
    if value is None:
        return None
    first, _, last = value.partition("-")
    if not first.isdigit() or not last.isdigit() or not 0 < int(first) <= int(last) < 2**16:
        raise click.BadParameter(f"{value!r}: two ports with a dash between are wanted, such as 20000-20099")
    return range(int(first), int(last) + 1)


OPTIONS = (
    click.option(
        "--control-port",
        type=click.IntRange(0, 65_535),
        help="Let clusters be controlled over HTTP on this port; 0 is any. Needs koordinator[control].",
    ),
    click.option("--control-host", default="127.0.0.1", show_default=True, help="Address or name to be controlled on."),
    click.option(
        "--control-token",
        metavar="TOKEN",
        help="Obey only who sends `Authorization: Bearer TOKEN`; `random` makes one, which is in the first line.",
    ),
    click.option(
        "--insecure-control", is_flag=True, help="Obey everybody, on any --control-host, without a --control-token."
    ),
    click.option(
        "--port-range",
        metavar="FIRST-LAST",
        callback=port_range,
        help="The ports of clusters that are made over HTTP.  [default: any free ones]",
    ),
)
