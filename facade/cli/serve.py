"""`koordinator serve`: a cluster for as long as the process lives."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click
import trio

import koordinator
from koordinator.emulator.config.settings import PROFILES, Settings, rules
from koordinator.emulator.core.cluster import PLAINTEXT
from koordinator.emulator.server.build import BROKERS_MAX, Options, build
from koordinator.emulator.server.cluster_registry import FIRST, ClusterRegistry
from koordinator.emulator.trace.run_metadata import run_columns

from . import values
from .control_options import ControlOptions, control_options
from .variables import with_variables

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from koordinator.emulator.core.data.seed_records import SeedRecord
    from koordinator.emulator.server.build import ServedCluster
    from koordinator.emulator.server.cluster_registry import RegisteredCluster

ENDS = (signal.SIGINT, signal.SIGTERM)
"""The signals that end the process in order."""

GARBAGE = (700, 10, 1_000)
"""Python's thresholds, but that all objects are looked through a hundred times less often."""

FILE = click.Path(path_type=Path)


@with_variables
@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address or name to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=9092, show_default=True, help="Port to listen on; 0 is any."
)
@click.option(
    "--brokers",
    type=click.IntRange(1, BROKERS_MAX),
    default=1,
    show_default=True,
    help="How many brokers. The port is that of the first one, the others have the following ones.",
)
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    metavar="NAME=HOST:PORT",
    callback=values.places,
    help="Listen here, too; on broker 2 only with 2:NAME. May be given more than once.",
)
@click.option(
    "--advertised",
    multiple=True,
    metavar="NAME=HOST:PORT",
    callback=values.places,
    help="What clients that came in by a listener are told instead of where it listens. May be given more than once.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME:PARTITIONS",
    callback=values.topics,
    help="Make a topic. May be given more than once.",
)
@click.option(
    "--records",
    type=FILE,
    metavar="FILE",
    callback=values.records,
    help="Fill topics with the records of a file, one JSON object a line; only its topic is needed.",
)
@click.option(
    "--config",
    multiple=True,
    metavar="NAME=VALUE",
    callback=values.assignments,
    help="Give a setting, by its name in Kafka (group.max.size=10). May be given more than once.",
)
@click.option("--profile", type=click.Choice(list(PROFILES)), help="What settings begin with.  [default: fast]")
@click.option(
    "--kafka-version",
    type=click.Choice(rules()["kafka.version"].choices),
    help=f"The release of Kafka to be, with its versions and its coordinator.  [default: {Settings().kafka_version}]",
)
@click.option(
    "--error-codes",
    type=click.Choice(rules()["error.codes"].choices),
    help="Error numbers: as released Kafka has them, or as the KIPs print them.  [default: kafka]",
)
@click.option("--trace", type=FILE, metavar="FILE", help="Write everything that happens to a file, as JSON lines.")
@click.option(
    "--data-dir",
    type=FILE,
    metavar="DIR",
    help="Keep topics, records, groups and offsets in a directory, and begin with those it has kept.",
)
@click.option("--seed", type=click.IntRange(min=0), help="The same seed gives the same ids.  [default: any]")
@control_options
def serve(  # noqa: PLR0913, PLR0917 - one argument per option
    host: str,
    port: int,
    brokers: int,
    listeners: dict[str, str],
    advertised: dict[str, str],
    topics: dict[str, int],
    records: dict[str, list[SeedRecord]],
    config: dict[str, str],
    profile: str | None,
    kafka_version: str | None,
    error_codes: str | None,
    trace: Path | None,
    data_dir: Path | None,
    seed: int | None,
    control_host: str,
    control_port: int | None,
    control_token: str | None,
    insecure_control: bool,  # noqa: FBT001 - an option's
    port_range: range | None,
) -> None:
    """Serve a cluster until SIGINT or SIGTERM.

    The first line on stdout says, as JSON, that clients can connect, and where; it is the only one.
    """
    control = ControlOptions(control_host, control_port, control_token, insecure_control, port_range).with_token()
    control.check()
    values.once(config, profile=profile, kafka_version=kafka_version, error_codes=error_codes)
    options = Options(
        host=host,
        port=port,
        brokers=brokers,
        listeners=listeners,
        advertised=advertised,
        topics=topics,
        records=records,
        config=config,
        profile=profile,
        kafka_version=kafka_version,
        error_codes=error_codes,
        trace=trace,
        data_dir=data_dir,
        seed=seed,
        about=run_columns(os.environ),
    )
    run(options, control)


def run(options: Options, control: ControlOptions) -> None:
    """Serve until a signal. Raises click.UsageError, with nothing started, if that cannot be."""
    serve_control = None if control.port is None else _server()
    try:
        parts = build(options, say)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"trace file {options.trace}: {error.strerror or error}") from error
    # the trace keeps half a million objects that are no garbage: to look through them all takes a quarter of a second,
    # in which nobody is answered, and finds nothing
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    refusal = trio.run(_until_a_signal, parts, control, serve_control)
    if refusal is not None:
        raise click.UsageError(refusal.strerror or str(refusal))


def _server() -> Callable[..., Awaitable[None]]:
    """What serves control; click.UsageError if it is not installed."""
    try:
        module = import_module("koordinator.emulator.http.server")
    except ImportError as error:
        raise click.UsageError(
            f"--control-port needs {error.name}, which is not installed: pip install 'koordinator[control]'"
        ) from error
    served: Callable[..., Awaitable[None]] = module.serve_control
    return served


async def _until_a_signal(
    parts: ServedCluster, control: ControlOptions, serve_control: Callable[..., Awaitable[None]] | None
) -> OSError | None:
    """Listen, say so, serve; returns why nothing can listen, or None after a signal."""
    # before the first line: who has read it may send a signal
    with trio.open_signal_receiver(*ENDS) as signals:
        async with trio.open_nursery() as nursery:
            fleet = ClusterRegistry(nursery, say, control.ports)
            url = None
            try:
                first = await fleet.add(parts, FIRST)
                if serve_control is not None:
                    defaults = Options(host=parts.options.host)
                    serve = partial(serve_control, fleet, parts.control, defaults, token=control.token)
                    url = await nursery.start(partial(serve, host=control.host, port=control.port))
            except OSError as error:
                nursery.cancel_scope.cancel()
                return error
            for warning in parts.warnings:
                say(f"warning: {warning}")
            for line in parts.node_listeners.advertised_elsewhere():
                say(line)
            try:
                click.echo(json.dumps(announcement(first, url, control.made_token)))
            except OSError as error:
                nursery.cancel_scope.cancel()
                # what could not be written would be tried again at the end of the process, and be reported there
                sys.stdout = None
                return OSError(error.errno or errno.EPIPE, f"cannot say that it serves: {error.strerror or error}")
            await anext(signals)
            nursery.cancel_scope.cancel()
    return None


def announcement(hosted: RegisteredCluster, control_url: str | None, control_token: str | None) -> dict[str, object]:
    """The line that says that clients can connect; with the token for control if nobody else knows it."""
    parts = hosted.cluster
    said = {
        **hosted.described(),
        "host": parts.options.host,
        "port": parts.cluster.brokers[1].endpoints[PLAINTEXT].port,
        "pid": os.getpid(),
        "version": koordinator.__version__,
    }
    if control_url is not None:
        said["control_url"] = control_url
        if control_token is not None:
            said["control_token"] = control_token
    return said


def say(line: str) -> None:
    """One line on stderr; who has closed it does not want to know."""
    with suppress(OSError):
        click.echo(f"koordinator: {line}", err=True)
