"""What the options of `koordinator groups` mean. Each function raises `click.BadParameter` with one line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ..client.link import PORT_MAX, Address
from ..client.members import REASON_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_F = TypeVar("_F", bound="Callable[..., object]")

TEXT_MAX = 32_767
"""How many bytes the wire has room for in a text (int16)."""

SECONDS_MAX = 86_400

SECURED = "TLS and SASL are not supported, only plaintext listeners are"


def addresses(_context: click.Context, _option: click.Parameter, given: Iterable[str]) -> tuple[Address, ...]:
    """`--bootstrap-server HOST:PORT[,…]`, any number of times; [::1]:9092 for an IPv6 address."""
    found = [_address(each.strip()) for text in given for each in text.split(",")]
    return tuple(dict.fromkeys(found))


def _address(text: str) -> Address:
    protocol, separator, rest = text.rpartition("://")
    if separator and protocol.upper() != "PLAINTEXT":
        raise click.BadParameter(f"{text!r}: {SECURED}")
    host, colon, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise click.BadParameter(f"{text!r}: an IPv6 address is written [::1]:9092")
    if not (colon and host):
        raise click.BadParameter(f"{text!r}: must be HOST:PORT, such as localhost:9092")
    if not (port.isascii() and port.isdigit() and len(port) <= len(str(PORT_MAX)) and 0 < int(port) <= PORT_MAX):
        raise click.BadParameter(f"{text!r}: PORT must be an integer from 1 to {PORT_MAX}")
    return Address(host, int(port))


def seconds(_context: click.Context, _option: click.Parameter, value: float) -> float:
    """`--timeout SECONDS`. Not click.FloatRange, for which nan is in every range."""
    if not 0 < value <= SECONDS_MAX:
        raise click.BadParameter(f"{value:g}: must be more than 0 and at most {SECONDS_MAX}")
    return value


def texts(_context: click.Context, _option: click.Parameter, given: Iterable[str]) -> tuple[str, ...]:
    """Ids, each once, in the order given."""
    return tuple(dict.fromkeys(_sendable(text) for text in given))


def text(_context: click.Context, _option: click.Parameter, given: str) -> str:
    """An id."""
    return _sendable(given)


def separated(_context: click.Context, _option: click.Parameter, given: Iterable[str]) -> tuple[str, ...]:
    """Ids that have no commas in them, so that commas may stand between them."""
    found: dict[str, None] = {}
    for listed in given:
        for each in listed.split(","):
            if not each.strip():
                raise click.BadParameter(f"{listed!r}: an id is missing")
            found[_sendable(each.strip())] = None
    return tuple(found)


def reason(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    """`--reason TEXT`."""
    if given is not None and len(given) > REASON_MAX:
        raise click.BadParameter(f"has {len(given)} characters, at most {REASON_MAX} are allowed")
    return given and _sendable(given)


def _sendable(given: str) -> str:
    try:
        size = len(given.encode())
    except UnicodeEncodeError:
        raise click.BadParameter(f"{given!r}: not UTF-8") from None
    if size > TEXT_MAX:
        raise click.BadParameter(f"{given[:20]!r}…: has {size} bytes, at most {TEXT_MAX} are allowed")
    return given


def _refuse_security(_context: click.Context, _option: click.Parameter, given: str | None) -> None:
    if given is not None and given.upper() != "PLAINTEXT":
        raise click.BadParameter(SECURED)


def of_every_command(command: _F) -> _F:
    """The options that all commands have."""
    return click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of tables.")(
        _of_brokers(command, required=True)
    )


def of_brokers_or_directory(command: _F) -> _F:
    """The options of commands that need one or the other; which, they say themselves."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="A data directory that no cluster is using, instead of brokers.",
    )(_of_brokers(command, required=False))


def _of_brokers(command: _F, *, required: bool) -> _F:
    """Whom to ask. The options of Kafka's tools that stand for TLS and SASL are refused."""
    for option in (
        click.option(
            "--timeout",
            type=float,
            default=30.0,
            show_default=True,
            metavar="SECONDS",
            callback=seconds,
            help="How long everything together may take.",
        ),
        click.option(
            "--bootstrap-server",
            "bootstrap",
            multiple=True,
            required=required,
            metavar="HOST:PORT[,…]",
            callback=addresses,
            help="Brokers to begin with; the first that answers is taken. Plaintext listeners only.",
        ),
        *(
            click.option(name, hidden=True, expose_value=False, is_eager=True, callback=_refuse_security)
            for name in ("--command-config", "--security-protocol")
        ),
    ):
        command = option(command)
    return command
