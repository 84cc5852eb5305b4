"""The options of `koordinator serve` for control over HTTP."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from koordinator.emulator.broker.listeners import is_loopback
from koordinator.emulator.config.options import PORT_MAX, PREFIX

from .values import Integer

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")

RANDOM = "random"
"""The value of `--control-token` that generates a token."""

TOKEN_BYTES = 16

UNUSED_WITHOUT_PORT = {"control_host", "control_tls", "control_token", "insecure_control", "port_range"}
"""The options that have an effect only with `--control-port`."""


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """Where the control plane listens, and which token it requires.

    `port` None: there is no control plane. `token` None: requests need no token. `ports` are those of clusters that
    are created over HTTP; None allows any free port. `generated_token` is the token if koordinator generated it.
    `is_tls`: it is HTTPS, with the certificate of the cluster.
    """

    host: str
    port: int | None
    token: str | None
    is_insecure: bool
    ports: range | None
    generated_token: str | None = None
    is_tls: bool = False

    def with_token(self) -> ControlOptions:
        """Return a copy in which a generated token replaces `RANDOM`; with `is_insecure` there is none."""
        if self.token != RANDOM:
            return self
        token = None if self.is_insecure else secrets.token_urlsafe(TOKEN_BYTES)
        return replace(self, token=token, generated_token=token)

    def check(self) -> None:
        """Raise click.UsageError for a control plane that the network can reach without a token."""
        if self.port is None or self.token is not None or self.is_insecure or is_loopback(self.host):
            return
        raise click.UsageError(
            f"--control-host {self.host}: anyone on the network could control the clusters; give --control-token,"
            " or --insecure-control to allow it"
        )


def unused_options(context: click.Context) -> list[str]:
    """Return a warning for each option of the environment without effect, as there is no `--control-port`.

    Raises click.UsageError for one on the command line.
    """
    warnings = []
    for option in (each for each in context.command.params if each.name in UNUSED_WITHOUT_PORT):
        source, text = context.get_parameter_source(option.name or ""), "no effect without --control-port"
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]}: {text}")
        if source is ParameterSource.ENVIRONMENT:
            warnings.append(f"{option.envvar}: {text}")
    return warnings


def port_range(_context: click.Context, _option: click.Parameter, value: str | None) -> range | None:
    """Parse `20000-20099`."""
    if value is None:
        return None
    first, _, last = value.partition("-")
    if not first.isdigit() or not last.isdigit() or not 0 < int(first) <= int(last) <= PORT_MAX:
        raise click.BadParameter(f"{value!r}: must be two ports with a hyphen between them, such as 20000-20099")
    return range(int(first), int(last) + 1)


def _option(flag: str, text: str, **settings: Any) -> Callable[[_F], _F]:  # noqa: ANN401 - those of click.option
    variable = PREFIX + flag.removeprefix("--").replace("-", "_").upper()
    return click.option(flag, help=text, envvar=variable, show_envvar=True, **settings)


OPTIONS = (
    _option(
        "--control-port",
        "Serve the HTTP control API on this port; 0 picks a free port. Needs koordinator[control].",
        type=Integer(0, PORT_MAX),
        metavar="N",
    ),
    _option(
        "--control-host",
        "Address or name on which the control API listens.",
        default="127.0.0.1",
        metavar="HOST",
        show_default=True,
    ),
    _option(
        "--control-token",
        "Require `Authorization: Bearer TOKEN`; `random` generates a token and prints it in the first line.",
        metavar="TOKEN",
    ),
    _option("--insecure-control", "Accept unauthenticated control requests on any --control-host.", is_flag=True),
    _option(
        "--control-tls",
        "Serve the control API over HTTPS, with the certificate of --certificates, or one made for the process.",
        is_flag=True,
    ),
    _option(
        "--port-range",
        "Ports of clusters that are created over HTTP.",
        metavar="FIRST-LAST",
        callback=port_range,
        show_default="any free ports",
    ),
)


def control_options(command: _F) -> _F:
    """Add the options to a command; its arguments have the names of the flags (`control_host`)."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
