"""`koordinator offsets`: what group coordinators remember, out of `__consumer_offsets` into a file and back (KIP-345).

Exit status 0: done; 1: something was refused or could not be asked, a line on stderr for each; 2: the command was not
understood, or the file cannot be read or written. What is refused is refused before anything is written.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

import koordinator
from koordinator.emulator.broker.offsets_log import batch_of, records_of
from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.emulator.formats.groups_file import lines_of, parse_groups, written
from koordinator.emulator.formats.json_lines import LineError
from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from koordinator.wire.primitives import Malformed

from ..client.admin import Admin
from ..client.groups import Described, Listing, describe, list_groups
from ..client.logs import ADMIN_CLIENT_ID, OFFSETS_TOPIC, append, partitions_of, read_logs
from ..client.offsets import committed_offsets
from ..client.problems import ClientError, Refusal
from . import group_options as options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from koordinator.emulator.core.groups.records import CoordinatorRecord

    from ..client.admin import TopicPartition
    from ..client.link import Address

REFUSED = 1
"""The exit status when it was not done."""

BATCH_BYTES = 256 * 1024
"""The size at which a batch is closed; one record may be larger."""


class NotDone(Exception):
    """It was not done, or not as a whole; a line for each reason."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))


@click.group()
def offsets() -> None:
    """Put groups with their members and committed offsets into a file, and take them from it."""


@offsets.command()
@FILE
@click.option(
    "--group",
    "group_ids",
    multiple=True,
    metavar="GROUP",
    callback=options.texts,
    help="Only this one. May be repeated.",
)
@options.of_brokers_or_directory
def dump(
    file: Path, group_ids: tuple[str, ...], bootstrap: tuple[Address, ...], data_dir: Path | None, timeout: float
) -> int:
    """Write what `__consumer_offsets` says of groups to FILE (- for stdout), a JSON object a line.

    Works with every Kafka. Groups of KIP-848 are left out, but for their offsets.
    """
    _one_of(bootstrap, data_dir)
    try:
        if data_dir is None:
            with Admin(bootstrap, timeout, koordinator.__version__) as admin:
                records = _read(admin)
        else:
            # who asks brokers does not wait for a server to load
            from . import offsets_dir  # noqa: PLC0415

            records = offsets_dir.read(data_dir)
    except NotDone as error:
        return _complain(error.reasons)
    wanted = (record for record in records if not group_ids or record.key.group in group_ids)
    text = "".join(f"{written(line)}\n" for line in lines_of(wanted))
    if str(file) == "-":
        click.echo(text, nl=False)
        return 0
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror or error}") from error
    return 0


@offsets.command()
@FILE
@options.of_brokers_or_directory
def load(file: Path, bootstrap: tuple[Address, ...], data_dir: Path | None, timeout: float) -> int:
    """Write the groups and offsets of FILE (- for stdin) to `__consumer_offsets`. What it does not name stays.

    The emulator takes them over at once, and with them the other groups of the same partition, as if they had moved
    to another coordinator and back. A real coordinator reads them when it loads the partition the next time, that is
    after a restart or a move, and until then knows nothing of them; a line on stderr says so.

    A data directory has them for the cluster that is started on it next; a new one may be made like this.

    Refused for a group that has members at a broker: they would lose their place, and a real coordinator would write
    over what was loaded. Refused for a group of KIP-848: a classic one's record would make its partition unreadable.
    """
    _one_of(bootstrap, data_dir)
    records = _parsed(file)
    late: list[_Group] = []
    try:
        if data_dir is not None:
            from . import offsets_dir  # noqa: PLC0415

            offsets_dir.load(data_dir, records, _now())
        else:
            with Admin(bootstrap, timeout, koordinator.__version__, ADMIN_CLIENT_ID) as admin:
                late = _load(admin, records)
    except NotDone as error:
        return _complain(error.reasons)
    for group in _groups(records).values():
        click.echo(str(group))
    _complain(
        f"{group.group_id}: written, and its coordinator does not know it yet: it reads {OFFSETS_TOPIC} again after a"
        " restart, or when another broker takes the group over"
        for group in late
    )
    return 0


def _one_of(bootstrap: tuple[Address, ...], data_dir: Path | None) -> None:
    if bool(bootstrap) == (data_dir is not None):
        raise click.UsageError("either --bootstrap-server or --data-dir is wanted")


# -- dump ----------------------------------------------------------------------------------------------------


def _read(admin: Admin) -> list[CoordinatorRecord]:
    try:
        logs = read_logs(admin, partitions_of(admin, OFFSETS_TOPIC))
    except ClientError as error:
        raise NotDone(str(error)) from None
    problems = [f"{_name(at)}: {log}" for at, log in logs.items() if isinstance(log, Refusal)]
    records: list[CoordinatorRecord] = []
    for at, log in logs.items():
        if not isinstance(log, Refusal):
            try:
                records += records_of(log)
            except Malformed as error:
                problems.append(f"{_name(at)}: {error}")
    if problems:
        raise NotDone(*problems)
    return records


def _name(partition: TopicPartition) -> str:
    return "-".join(map(str, partition))


# -- load ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """What the file says of a group; no members are known (None) where it has only offsets."""

    group_id: str
    members: set[str] | None
    offsets: dict[TopicPartition, int]

    def __str__(self) -> str:
        return f"{self.group_id}: {_count(len(self.members or ()), 'member')}, {_count(len(self.offsets), 'offset')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _groups(records: Iterable[CoordinatorRecord]) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    for record in records:
        group = groups.setdefault(record.key.group, _Group(record.key.group, None, {}))
        if isinstance(record.value, GroupMetadataValue):
            group.members = {member.member_id for member in record.value.members}
        elif isinstance(record.value, OffsetCommitValue) and isinstance(record.key, OffsetCommitKey):
            group.offsets[record.key.topic, record.key.partition] = record.value.offset
    return groups


def _now() -> int:
    return time.time_ns() // 1_000_000


def _parsed(file: Path) -> list[CoordinatorRecord]:
    now = _now()
    try:
        if str(file) == "-":
            return parse_groups(sys.stdin.buffer, "stdin", now)
        with file.open("rb") as lines:
            return parse_groups(lines, str(file), now)
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror or error}") from error
    except LineError as error:
        raise click.UsageError(str(error)) from error


def _load(admin: Admin, records: list[CoordinatorRecord]) -> list[_Group]:
    """Write the records; the groups that their coordinators do not know afterwards."""
    groups = _groups(records)
    try:
        # who looks for its coordinator has the topic made
        _refuse(list_groups(admin), describe(admin, groups))
        partitions = partitions_of(admin, OFFSETS_TOPIC)
        if groups and not partitions:
            raise NotDone(f"there is no topic {OFFSETS_TOPIC}")
        places: dict[TopicPartition, list[CoordinatorRecord]] = defaultdict(list)
        for record in records:
            places[OFFSETS_TOPIC, offsets_partition(record.key.group, len(partitions))].append(record)
        outcomes = append(admin, {at: list(_batches(there)) for at, there in places.items()})
        problems = [f"{_name(at)}: {outcome}" for at, outcome in outcomes.items() if outcome is not None]
        if problems:
            raise NotDone(*problems)
        return _late(admin, groups)
    except ClientError as error:
        raise NotDone(str(error)) from None


def _refuse(listing: Listing, described: Mapping[str, Described | Refusal]) -> None:
    """Raise NotDone if something speaks against loading groups of these ids."""
    types = {group.group_id: group.type for group in listing.groups}
    reasons = [f"{problem.broker}: {problem.refusal}" for problem in listing.problems]
    for group_id, group in described.items():
        if types.get(group_id, "classic") not in {"classic", None}:
            reasons.append(f"{group_id}: is a group of type {types[group_id]}, and only classic ones can be loaded")
        elif isinstance(group, Described) and group.members:
            reasons.append(f"{group_id}: has {_count(len(group.members), 'member')}: stop or remove them first")
        elif isinstance(group, Refusal) and group.code != Error.GROUP_ID_NOT_FOUND:
            reasons.append(f"{group_id}: {group}")
    if reasons:
        raise NotDone(*reasons)


def _batches(records: Iterable[CoordinatorRecord]) -> Iterator[bytes]:
    now = _now()
    chunk: list[CoordinatorRecord] = []
    size = 0
    for record in records:
        alone = len(batch_of([record], now))
        if chunk and size + alone > BATCH_BYTES:
            yield batch_of(chunk, now)
            chunk, size = [], 0
        chunk.append(record)
        size += alone
    yield batch_of(chunk, now)


def _late(admin: Admin, groups: Mapping[str, _Group]) -> list[_Group]:
    described, committed = describe(admin, groups), committed_offsets(admin, groups)
    late = []
    for group_id, group in groups.items():
        there, offsets_there = described[group_id], committed[group_id]
        members = {member.member_id for member in there.members} if isinstance(there, Described) else None
        known = {} if isinstance(offsets_there, Refusal) else offsets_there
        missing = [at for at, offset in group.offsets.items() if offset >= 0 and known.get(at) != offset]
        if missing or group.members not in (None, members):
            late.append(group)
    return late


def _complain(lines: Iterable[str]) -> int:
    path = click.get_current_context().command_path
    for line in lines:
        click.echo(f"{path}: {line}", err=True)
    return REFUSED
