"""Parsers of the values of command-line options.

Each raises `click.BadParameter` or `click.UsageError` with one line that names the option, the value and the allowed
values.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click

from koordinator.emulator.config.options import OPTIONS
from koordinator.emulator.config.settings import PARTITIONS_MAX
from koordinator.emulator.core.data.topic import INTERNAL_TOPICS, illegal_name
from koordinator.emulator.formats.json_lines import LineError
from koordinator.emulator.formats.records_file import parse_seed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from koordinator.emulator.config.options import Options
    from koordinator.emulator.config.seed_record import SeedRecord


class Integer(click.IntRange):
    """An integer in a range; its error states the range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Return the integer. Raises click.BadParameter with the value and the range."""
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            limits = f"from {self.min} to {self.max}" if self.max is not None else f"of at least {self.min}"
            self.fail(f"{value}: must be an integer {limits}", param, ctx)


def topics(_context: click.Context, _option: click.Parameter, entries: Iterable[str]) -> dict[str, int]:
    """Parse each `--topic NAME:PARTITIONS`; return the number of partitions by topic."""
    partitions_by_topic: dict[str, int] = {}
    for entry in entries:
        name, colon, count = entry.rpartition(":")
        if not colon:
            raise click.BadParameter(f"{entry!r}: must be NAME:PARTITIONS, such as orders:6")
        problem = illegal_name(name)
        if problem is not None:
            raise click.BadParameter(f"{entry!r}: {problem}")
        if name in INTERNAL_TOPICS:
            raise click.BadParameter(f"{entry!r}: {name} is internal to Kafka")
        # the length first: int() refuses thousands of digits with an exception of its own
        is_number = count.isascii() and count.isdigit() and len(count) <= len(str(PARTITIONS_MAX))
        if not (is_number and 1 <= int(count) <= PARTITIONS_MAX):
            raise click.BadParameter(f"{entry!r}: PARTITIONS must be an integer from 1 to {PARTITIONS_MAX}")
        if name in partitions_by_topic:
            raise click.BadParameter(f"{entry!r}: topic {name} is given twice")
        partitions_by_topic[name] = int(count)
    return partitions_by_topic


def _by_name(_context: click.Context, _option: click.Parameter, entries: Iterable[str], *, form: str) -> dict[str, str]:
    """Split each `NAME=…`; the values are checked later."""
    values: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        name = name.strip()
        if not equals:
            raise click.BadParameter(f"{entry!r}: must be {form}")
        if name in values:
            raise click.BadParameter(f"{entry!r}: {name} is given twice")
        values[name] = value
    return values


assignments = partial(_by_name, form="NAME=VALUE, such as group.max.size=10")
addresses = partial(_by_name, form="NAME=HOST:PORT, such as OUTSIDE=0.0.0.0:19092")


def users(_context: click.Context, _option: click.Parameter, entries: Iterable[str]) -> dict[str, str]:
    """Split each `--user NAME=PASSWORD`; no message shows a password."""
    passwords: dict[str, str] = {}
    for entry in entries:
        name, equals, password = entry.partition("=")
        if not (name and equals and password):
            raise click.BadParameter("must be NAME=PASSWORD, such as alice=alice-secret")
        if name in passwords:
            raise click.BadParameter(f"user {name} is given twice")
        passwords[name] = password
    return passwords


def entries(_context: click.Context, option: click.Parameter, text: str | None) -> Sequence[int] | Sequence[str]:
    """Parse `ID,ID…`."""
    declared = next(each for each in OPTIONS if each.name == option.name)
    try:
        return () if text is None else cast("Sequence[int] | Sequence[str]", declared.parse(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}, several separated by commas") from None


def check_given_once(options: Mapping[str, object]) -> None:
    """Raise click.UsageError for a setting that both `--config` and its own flag give."""
    config = options["config"]
    assert isinstance(config, dict)
    for option in ("profile", "kafka_version", "error_codes"):
        name, flag = option.replace("_", "."), "--" + option.replace("_", "-")
        if options[option] is not None and name in config:
            raise click.UsageError(f"{name} is given twice, by {flag} and by --config")


def check_brokers(options: Options) -> None:
    """Raise click.UsageError for invalid ids, racks or numbers of brokers."""
    try:
        options.checked_ids("--brokers", "--broker-ids", "--racks")
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def records(_context: click.Context, _option: click.Parameter, path: Path | None) -> dict[str, list[SeedRecord]]:
    """Read the file of `--records`; return its records by topic."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            return parse_seed(file, str(path))
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror or error}") from None
    except LineError as error:
        raise click.BadParameter(str(error)) from None
