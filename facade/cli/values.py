"""What the options of the command line mean: pure functions that read them, or say what is wrong.

Each raises `click.BadParameter` or `click.UsageError` with one line that names the option, the value and what is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from koordinator.emulator.core.cluster import INTERNAL_TOPICS, PARTITIONS_MAX, illegal_name
from koordinator.emulator.settings import InvalidSetting, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable


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


def settings(config: dict[str, str], **flags: str | None) -> tuple[Settings, list[str]]:
    """The settings that `--config` and the flags of single settings ask for, and warnings to show.

    A flag is named as its setting is, with underscores (`error_codes`); None means that it was not given.
    """
    values = dict(config)
    for flag, value in flags.items():
        name = flag.replace("_", ".")
        if value is None:
            continue
        if name in values:
            option = "--" + flag.replace("_", "-")
            raise click.UsageError(f"{name} is given twice, by {option} and by --config")
        values[name] = value
    try:
        return Settings.of(values=values)
    except InvalidSetting as refusal:
        raise click.UsageError(str(refusal)) from None
