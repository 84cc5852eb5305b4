"""What the options of the command line mean: pure functions that read them, or say what is wrong.

Each raises `click.BadParameter` or `click.UsageError` with one line that names the option, the value and what is
allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from koordinator.emulator.core.data.topic import INTERNAL_TOPICS, PARTITIONS_MAX, illegal_name
from koordinator.emulator.formats.json_lines import LineError
from koordinator.emulator.formats.records_file import parse_seed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from koordinator.emulator.core.data.seed_records import SeedRecord


def topics(_context: click.Context, _option: click.Parameter, given: Iterable[str]) -> dict[str, int]:
    """`--topic NAME:PARTITIONS`, any number of times: partitions by topic."""
    wanted: dict[str, int] = {}
    for text in given:
        name, colon, count = text.rpartition(":")
        if not colon:
            raise click.BadParameter(f"{text!r}: must be NAME:PARTITIONS, such as orders:6")
        wrong = illegal_name(name)
        if wrong is not None:
            raise click.BadParameter(f"{text!r}: {wrong}")
        if name in INTERNAL_TOPICS:
            raise click.BadParameter(f"{text!r}: {name} is internal to Kafka")
        if not (count.isascii() and count.isdigit() and len(count) <= len(str(PARTITIONS_MAX))):
            raise click.BadParameter(f"{text!r}: PARTITIONS must be an integer from 1 to {PARTITIONS_MAX}")
        partitions = int(count)
        if not 1 <= partitions <= PARTITIONS_MAX:
            raise click.BadParameter(f"{text!r}: PARTITIONS must be an integer from 1 to {PARTITIONS_MAX}")
        if name in wanted:
            raise click.BadParameter(f"{text!r}: topic {name} is given twice")
        wanted[name] = partitions
    return wanted


def assignments(_context: click.Context, _option: click.Parameter, given: Iterable[str]) -> dict[str, str]:
    """`--config NAME=VALUE`, any number of times: values by name, not yet looked at."""
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals:
            raise click.BadParameter(f"{text!r}: must be NAME=VALUE, such as group.max.size=10")
        if name in values:
            raise click.BadParameter(f"{text!r}: {name} is given twice")
        values[name] = value
    return values


def places(_context: click.Context, _option: click.Parameter, given: Iterable[str]) -> dict[str, str]:
    """`--listener NAME=HOST:PORT`, any number of times: places by name, not yet looked at."""
    values: dict[str, str] = {}
    for text in given:
        name, equals, place = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r}: must be NAME=HOST:PORT, such as OUTSIDE=0.0.0.0:19092")
        if name in values:
            raise click.BadParameter(f"{text!r}: {name} is given twice")
        values[name] = place
    return values


def once(config: Mapping[str, str], **flags: object) -> None:
    """Refuse a setting that is given both by `--config` and by its own flag (`error_codes` for `--error-codes`)."""
    for flag, value in flags.items():
        name, option = flag.replace("_", "."), "--" + flag.replace("_", "-")
        if value is not None and name in config:
            raise click.UsageError(f"{name} is given twice, by {option} and by --config")


def records(_context: click.Context, _option: click.Parameter, path: Path | None) -> dict[str, list[SeedRecord]]:
    """`--records FILE`: what is in the file, by topic."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            return parse_seed(file, str(path))
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror or error}") from None
    except LineError as error:
        raise click.BadParameter(str(error)) from None
