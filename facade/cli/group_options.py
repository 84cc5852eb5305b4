"""Options of `koordinator groups` and `offsets`. The parsers raise `click.BadParameter` with one line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ..client.admin import Admin
from ..client.connection import PORT_MAX, Address
from ..client.members import REASON_MAX
from ..client.protocol import CLIENT_ID
from ..client.security import PLAINTEXT, ConnectionSecurity, properties
from ..version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_F = TypeVar("_F", bound="Callable[..., object]")

STRING_BYTES_MAX = 32_767
"""Bytes of a string on the wire: its length is an int16."""

SECONDS_MAX = 86_400

BOOTSTRAP = "KOORDINATOR_BOOTSTRAP"
"""The variable with the bootstrap servers, as of the pytest plugin."""

SECURITY = "koordinator.security"
"""The place of the security in Click's context."""


def addresses(_context: click.Context, _option: click.Parameter, entries: Iterable[str]) -> tuple[Address, ...]:
    """Parse each `--bootstrap-server HOST:PORT[,…]`; an IPv6 address is written [::1]:9092."""
    return tuple(dict.fromkeys(_address(part.strip()) for entry in entries for part in entry.split(",")))


def _address(text: str) -> Address:
    protocol, separator, rest = text.rpartition("://")
    if separator and protocol.upper() != "PLAINTEXT":
        raise click.BadParameter(f"{text!r}: give HOST:PORT, and the protocol by --command-config")
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
    """Check `--timeout SECONDS`; click.FloatRange would accept nan."""
    if not 0 < value <= SECONDS_MAX:
        raise click.BadParameter(f"{value:g}: must be more than 0 and at most {SECONDS_MAX}")
    return value


def ids(_context: click.Context, _option: click.Parameter, entries: Iterable[str]) -> tuple[str, ...]:
    """Check ids and drop duplicates."""
    return tuple(dict.fromkeys(_check_string(entry) for entry in entries))


def single_id(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """Check one id."""
    return _check_string(value)


def comma_separated_ids(_context: click.Context, _option: click.Parameter, entries: Iterable[str]) -> tuple[str, ...]:
    """Split entries at commas, check the ids and drop duplicates."""
    parts = [(entry, part.strip()) for entry in entries for part in entry.split(",")]
    for entry, part in parts:
        if not part:
            raise click.BadParameter(f"{entry!r}: an id is missing")
    return tuple(dict.fromkeys(_check_string(part) for _, part in parts))


def reason(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Check the length of `--reason TEXT`."""
    if value is not None and len(value) > REASON_MAX:
        raise click.BadParameter(f"has {len(value)} characters, at most {REASON_MAX} are allowed")
    return value and _check_string(value)


def _check_string(value: str) -> str:
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise click.BadParameter(f"{value!r}: not UTF-8") from None
    if size > STRING_BYTES_MAX:
        raise click.BadParameter(f"{value[:20]!r}…: has {size} bytes, at most {STRING_BYTES_MAX} are allowed")
    return value


def _read_security(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Read `--command-config FILE` into the context."""
    if path is None:
        return
    try:
        context.meta[SECURITY] = ConnectionSecurity.of(properties(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise click.BadParameter(f"{path}: {error}") from None


def _refuse_protocol(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None and value.upper() != "PLAINTEXT":
        raise click.BadParameter("write security.protocol into a file, and give it by --command-config")


def admin(bootstrap: tuple[Address, ...], timeout_s: float, client_id: str = CLIENT_ID) -> Admin:
    """Return a client with the security of the command."""
    security = click.get_current_context().meta.get(SECURITY, PLAINTEXT)
    return Admin(bootstrap, timeout_s, __version__, client_id, security)


def common_options(command: _F) -> _F:
    """Add the options of every command of `groups`."""
    return click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of tables.")(
        _broker_options(command, required=True)
    )


def brokers_or_data_dir(command: _F) -> _F:
    """Add the options of commands that use either brokers or a data directory; the command checks that one is given."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Use a data directory of a cluster that is not running, instead of brokers.",
    )(_broker_options(command, required=False))


def _broker_options(command: _F, *, required: bool) -> _F:
    """Add the options of a connection."""
    for option in (
        click.option(
            "--timeout",
            type=float,
            default=30.0,
            show_default=True,
            metavar="SECONDS",
            callback=seconds,
            help="Time limit of the command as a whole.",
        ),
        click.option(
            "--bootstrap-server",
            "bootstrap",
            multiple=True,
            required=required,
            # where a data directory is an alternative, the variable would contradict it
            envvar=BOOTSTRAP if required else None,
            show_envvar=required,
            metavar="HOST:PORT[,…]",
            callback=addresses,
            help="Bootstrap servers, tried in turn (repeatable).",
        ),
        click.option(
            "--command-config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            expose_value=False,
            callback=_read_security,
            help="Client settings for TLS and SASL, as for Kafka's tools.",
        ),
        click.option("--security-protocol", hidden=True, expose_value=False, callback=_refuse_protocol),
    ):
        command = option(command)
    return command
