"""`koordinator serve`: run a cluster until a signal."""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

import click
import trio

import koordinator
from koordinator.emulator.broker.listeners import advertised, host_port, is_loopback
from koordinator.emulator.config.install_hint import install_hint
from koordinator.emulator.config.options import PREFIX, Options
from koordinator.emulator.server.build import CERTIFICATES_UNUSED, build
from koordinator.emulator.server.certificates import Certificates
from koordinator.emulator.server.cluster_registry import FIRST, ClusterRegistry
from koordinator.emulator.server.listening_sockets import listen, port_of
from koordinator.emulator.server.tls import TlsListener
from koordinator.emulator.trace.run_metadata import RunColumns

from . import values
from .cluster_options import cluster_options
from .control_options import ControlOptions, control_options, unused_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.emulator.server.build import ServedCluster
    from koordinator.emulator.server.cluster_registry import RegisteredCluster

ENDS = (signal.SIGINT, signal.SIGTERM)
"""The signals that stop the process cleanly."""

CONTROL_PACKAGES = ("hypercorn", "prometheus_client", "pydantic", "starlette")
"""Packages of koordinator[control] that the control plane imports."""

OPTIONAL_LIBRARIES = {
    "cramjam": "cramjam is missing: batches compressed with snappy, lz4 or zstd are refused; pip install cramjam",
    "re2": "google-re2 is missing: topic patterns of consumer groups are refused; pip install google-re2",
}
"""What the server says where a library of every installation has no wheel, by the name of its module."""

STDIN_BYTES = 4096
"""The size of a read from stdin."""

IMPORT_SWITCH_INTERVAL_S = 0.0005
"""While a thread imports, each system call of the server waits this long for the interpreter; by default 5 ms."""

GC_THRESHOLDS = (700, 10, 1_000)
"""Python's default thresholds, except that full collections are a hundred times rarer."""

MALLOPT = ((-4, 0), (-1, 512 * 1024 * 1024))
"""glibc's M_MMAP_MAX and M_TRIM_THRESHOLD: reuse freed blocks up to 512 MiB. With fresh pages a copy of 90 MB takes
40 ms instead of 6."""


@click.command()
@cluster_options
@control_options
@click.option(
    "--stop-with-stdin",
    is_flag=True,
    envvar=PREFIX + "STOP_WITH_STDIN",
    show_envvar=True,
    help="Stop when stdin closes, as a pipe does when the parent process ends.",
)
def serve(  # noqa: PLR0913 - one for each option
    *,
    control_host: str,
    control_port: int | None,
    control_tls: bool,
    control_token: str | None,
    insecure_control: bool,
    port_range: range | None,
    stop_with_stdin: bool,
    **options: Any,  # noqa: ANN401 - the fields of Options
) -> None:
    """Serve a cluster until SIGINT or SIGTERM.

    When clients can connect, one line of JSON on stdout reports their address. Nothing else is written there.
    """
    control = ControlOptions(
        control_host, control_port, control_token, insecure_control, port_range, is_tls=control_tls
    ).with_token()
    control.check()
    warnings = unused_options(click.get_current_context()) if control.port is None else []
    values.check_given_once(options)
    cluster = Options(**options, trace_header=RunColumns(os.environ))
    values.check_brokers(cluster)
    run(cluster, control, warnings, stop_with_stdin=stop_with_stdin)


def run(
    options: Options, control: ControlOptions, warnings: Sequence[str] = (), *, stop_with_stdin: bool = False
) -> None:
    """Serve until a signal, or until stdin closes if `stop_with_stdin`; write the warnings first.

    Raises click.UsageError, with nothing started, if the cluster cannot be built or served.
    """
    if control.port is not None:
        check_control_installed()
    try:
        parts = build(options, log)
        tls = control_tls_of(parts, control)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"trace file {options.trace}: {error.strerror or error}") from error
    # the trace holds up to half a million live objects; a full collection would block the loop for 250 ms
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    keep_large_blocks()
    stop_input = sys.stdin if stop_with_stdin else None
    unused = {CERTIFICATES_UNUSED} if control.port is not None else set()
    shown = [*warnings, *(each for each in parts.warnings if each not in unused)]
    failure = trio.run(_serve_until_signal, parts, control, tls, shown, stop_input)
    if failure is not None:
        raise click.UsageError(failure.strerror or str(failure))


def control_tls_of(parts: ServedCluster, control: ControlOptions) -> TlsListener | None:
    """Return the settings of TLS of the control port, with the certificate of the cluster's listeners if there is one.

    Raises ValueError, after closing the cluster, if there is no certificate.
    """
    if control.port is None or not control.is_tls:
        return None
    hosts = [advertised(parts.options.host), advertised(control.host)]
    try:
        certificates = parts.node_listeners.security.certificates or Certificates(parts.options.certificates, hosts)
        return TlsListener(certificates.context("none"), "HTTPS", certificates.ca_file)
    except ValueError:
        parts.close()
        raise


def keep_large_blocks() -> None:
    """Apply MALLOPT where the C library has it."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            for parameter, value in MALLOPT:
                mallopt(parameter, value)


def check_control_installed() -> None:
    """Raise click.UsageError if a package of the control plane is missing; their import waits for the listeners."""
    for package in CONTROL_PACKAGES:
        if find_spec(package) is None:
            raise click.UsageError(f"--control-port needs {package}, which is not installed: {install_hint('control')}")


async def _serve_until_signal(
    parts: ServedCluster,
    control: ControlOptions,
    tls: TlsListener | None,
    warnings: Sequence[str],
    stop_input: IO[str] | None,
) -> OSError | None:
    """Listen, announce the cluster and serve, until a signal or the end of `stop_input`.

    Return the error that prevented serving, if any.
    """
    # before the announcement: its reader may send a signal at once
    with trio.open_signal_receiver(*ENDS) as signals:
        async with trio.open_nursery() as nursery:
            fleet = ClusterRegistry(nursery, log, control.ports)
            url, listeners = None, list[trio.SocketListener]()
            try:
                first = await fleet.add(parts, FIRST)
                if control.port is not None:
                    listeners = await listen(control.host, control.port)
                    url = control_url(control.host, port_of(listeners), tls)
            except OSError as error:
                nursery.cancel_scope.cancel()
                return error
            if listeners:
                # clusters that are created over HTTP are trusted by the same clients
                defaults = Options(host=parts.options.host, certificates=parts.options.certificates)
                nursery.start_soon(_serve_control, fleet, defaults, listeners, control, tls)
            missing = [text for module, text in OPTIONAL_LIBRARIES.items() if find_spec(module) is None]
            for warning in [*missing, *warnings]:
                log(f"warning: {warning}")
            for line in parts.node_listeners.advertised_elsewhere():
                log(line)
            try:
                click.echo(json.dumps(announcement(first, url, control.generated_token, tls)))
            except OSError as error:
                nursery.cancel_scope.cancel()
                # the interpreter would flush the same text again at exit, and report a second error
                sys.stdout = None
                return OSError(error.errno or errno.EPIPE, f"cannot write to stdout: {error.strerror or error}")
            if url is not None and sys.stderr.isatty():
                log(f"the live page: {url}/")
            if stop_input is not None:
                nursery.start_soon(_stop_with, stop_input, nursery.cancel_scope)
            await anext(signals)
            nursery.cancel_scope.cancel()
    return None


async def _serve_control(
    fleet: ClusterRegistry,
    defaults: Options,
    listeners: list[trio.SocketListener],
    control: ControlOptions,
    tls: TlsListener | None,
) -> None:
    """Import the control plane, which takes longer than all before it, and serve it; clients do not wait for that."""
    switch_interval_s = sys.getswitchinterval()
    sys.setswitchinterval(IMPORT_SWITCH_INTERVAL_S)
    try:
        http = await trio.to_thread.run_sync(import_module, "koordinator.emulator.http.server")
    finally:
        sys.setswitchinterval(switch_interval_s)
    is_local = is_loopback(control.host)
    await http.serve_control(fleet, defaults, listeners, control.token, is_local=is_local, tls=tls)


def control_url(host: str, port: int, tls: TlsListener | None) -> str:
    """Return the address of the control API; with TLS a wildcard host is that of the certificate."""
    return f"http://{host_port(host, port)}" if tls is None else f"https://{host_port(advertised(host), port)}"


async def _stop_with(stop_input: IO[str], scope: trio.CancelScope) -> None:
    """Cancel a scope at the end of a file; ignore its bytes."""
    # not its read(), which holds a lock that the interpreter needs at exit
    while await trio.to_thread.run_sync(os.read, stop_input.fileno(), STDIN_BYTES, abandon_on_cancel=True):
        pass
    scope.cancel()


def announcement(
    registered: RegisteredCluster, url: str | None, control_token: str | None, tls: TlsListener | None = None
) -> dict[str, object]:
    """Return the object of the line on stdout; it includes the control token only if koordinator generated it."""
    parts = registered.cluster
    line = {
        **asdict(registered.info()),
        "host": parts.options.host,
        "port": parts.cluster.brokers[parts.options.node_ids[0]].endpoints[parts.node_listeners.main].port,
        "pid": os.getpid(),
        "version": koordinator.__version__,
    }
    certificates = parts.node_listeners.security.certificates
    if certificates is not None:
        line["certificates"] = str(certificates.directory)
    if url is not None:
        line["control_url"] = url
        if tls is not None:
            line["control_ca_file"] = str(tls.ca_file.absolute())
        if control_token is not None:
            line["control_token"] = control_token
    return line


def log(line: str) -> None:
    """Write one line to stderr; a closed stderr is not an error."""
    with suppress(OSError):
        click.echo(f"koordinator: {line}", err=True)
