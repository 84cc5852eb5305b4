"""`koordinator offsets`: copy groups and offsets between `__consumer_offsets` and a file (KIP-345).

Exit status: 0 success, 1 failure, with one line on stderr for each reason, 2 usage error, or a file that cannot be read
or written. Groups are checked before anything is written.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from koordinator.emulator.broker.offsets_log import encode_records, records_of
from koordinator.emulator.core.data.direct_records import BATCH_BYTES, chunks
from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.emulator.formats.groups_file import SHARE, STREAMS, left_out, parse_groups, to_json, to_lines
from koordinator.emulator.formats.json_lines import LineError
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_records import ConsumerGroupMemberMetadataKey, ConsumerGroupMetadataValue
from koordinator.wire.messages.offsets_topic import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import write_batch

from ..client.errors import ClientError, Failure
from ..client.groups import GroupDescription, describe, list_groups
from ..client.logs import ADMIN_CLIENT_ID, OFFSETS_TOPIC, append, partitions_of, read_logs
from ..client.offsets import committed_offsets
from ..client.topics import topic_ids
from . import group_options as options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from koordinator.emulator.core.groups.records import CoordinatorRecord

    from ..client.admin import Admin, TopicPartition
    from ..client.connection import Address
    from ..client.groups import GroupListing, Result

FAILED = 1
"""Exit status of a command that failed."""

LEFT_OUT = {
    SHARE: f"it is left out, because its offsets are not in {OFFSETS_TOPIC}",
    STREAMS: "only its committed offsets are written, without members and topology",
}
"""The omissions of a dump, by the type of the group."""


class CommandFailed(Exception):
    """The command failed, as a whole or in part; `reasons` has a line for each cause."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))


@click.group()
def offsets() -> None:
    """Save groups with their members and committed offsets to a file, and load them."""


@offsets.command()
@FILE
@click.option(
    "--group",
    "group_ids",
    multiple=True,
    metavar="GROUP",
    callback=options.ids,
    help="Dump only this group (repeatable).",
)
@options.brokers_or_data_dir
def dump(
    file: Path, group_ids: tuple[str, ...], bootstrap: tuple[Address, ...], data_dir: Path | None, timeout: float
) -> int:
    """Write the groups and offsets of `__consumer_offsets` to FILE (- for stdout), one JSON object per line.

    Works with every Kafka. Share groups have no lines, and streams groups only those of their offsets; a line on stderr
    reports this.
    """
    _require_source(bootstrap, data_dir)
    try:
        if data_dir is None:
            with options.admin(bootstrap, timeout) as admin:
                records, topics = _read(admin)
        else:
            # imported here because it loads the server
            from . import offsets_dir  # noqa: PLC0415

            records, topics = offsets_dir.read(data_dir)
    except CommandFailed as error:
        return _report(error.reasons)
    selected = [record for record in records if not group_ids or record.key.group in group_ids]
    names = {topic_id: name for name, topic_id in topics.items()}
    lines, others = to_lines(selected, names.get), left_out(selected)
    text = "".join(f"{to_json(line)}\n" for line in lines)
    if str(file) == "-":
        click.echo(text, nl=False)
    else:
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"{file}: {error.strerror or error}") from error
    _report(f"{group_id}: is a {kind} group; {LEFT_OUT[kind]}" for group_id, kind in sorted(others.items()))
    missing = set(group_ids) - {line["group_id"] for line in lines} - set(others)
    if not missing:
        return 0
    known = {str(line["group_id"]) for line in to_lines(records, names.get)} | set(left_out(records))
    return _report(_no_such_group(group_id, known) for group_id in group_ids if group_id in missing)


def _no_such_group(group_id: str, known: Iterable[str]) -> str:
    similar = get_close_matches(group_id, known, n=1)
    suggestion = f"; did you mean {similar[0]!r}?" if similar else ""
    return f"{group_id}: there is no such group in {OFFSETS_TOPIC}{suggestion}"


@offsets.command()
@FILE
@options.brokers_or_data_dir
def load(file: Path, bootstrap: tuple[Address, ...], data_dir: Path | None, timeout: float) -> int:
    """Write the groups and offsets of FILE (- for stdin) to `__consumer_offsets`. Other groups and offsets stay.

    The emulator reloads the partition at once, with its other groups, as if they had moved to another coordinator and
    back. A real coordinator knows the groups only after it loads the partition, that is after a restart or a move; a
    line on stderr reports this.

    With a data directory, the next cluster that starts on it has the groups. A missing directory is created.

    Refused for a group that has members: they would be removed, and a real coordinator would overwrite the loaded
    state. Refused for a group of another type than in the file: both together would make its partition unreadable.
    Refused for an offset of a topic or partition that does not exist; a data directory may lack the topic, which the
    next cluster can have.
    """
    _require_source(bootstrap, data_dir)
    unknown: list[_FileGroup] = []
    try:
        if data_dir is not None:
            from . import offsets_dir  # noqa: PLC0415

            records = _parse(file, partial(offsets_dir.topic_ids, data_dir))
            _check_offsets(_groups(records), offsets_dir.partition_counts(data_dir), may_lack_topics=True)
            offsets_dir.load(data_dir, records, _now())
        else:
            with options.admin(bootstrap, timeout, ADMIN_CLIENT_ID) as admin:
                records = _parse(file, partial(topic_ids, admin))
                unknown = _load(admin, records)
    except ClientError as error:
        return _report([str(error)])
    except CommandFailed as error:
        return _report(error.reasons)
    for group in _groups(records).values():
        click.echo(str(group))
    _report(
        f"{group.group_id}: written, but its coordinator does not know it yet: it reads {OFFSETS_TOPIC} after a"
        " restart, or when the group moves to another broker"
        for group in unknown
    )
    return 0


def _require_source(bootstrap: tuple[Address, ...], data_dir: Path | None) -> None:
    if bool(bootstrap) == (data_dir is not None):
        raise click.UsageError("give either --bootstrap-server or --data-dir")


def _read(admin: Admin) -> tuple[list[CoordinatorRecord], dict[str, UUID]]:
    """Return the records of `__consumer_offsets`, and the ids of topics."""
    try:
        logs, topics = read_logs(admin, partitions_of(admin, OFFSETS_TOPIC)), topic_ids(admin)
    except ClientError as error:
        raise CommandFailed(str(error)) from None
    reasons = [f"{_name(partition)}: {log}" for partition, log in logs.items() if isinstance(log, Failure)]
    records: list[CoordinatorRecord] = []
    for partition, log in logs.items():
        if not isinstance(log, Failure):
            try:
                records += records_of(log)
            except Malformed as error:
                reasons.append(f"{_name(partition)}: {error}")
    if reasons:
        raise CommandFailed(*reasons)
    return records, topics


def _name(partition: TopicPartition) -> str:
    return "-".join(map(str, partition))


@dataclass(slots=True)
class _FileGroup:
    """A group in the file; `type` and `members` are None if the file has only its offsets."""

    group_id: str
    type: str | None
    members: set[str] | None
    offsets: dict[TopicPartition, int]

    def __str__(self) -> str:
        return f"{self.group_id}: {_count(len(self.members or ()), 'member')}, {_count(len(self.offsets), 'offset')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _groups(records: Iterable[CoordinatorRecord]) -> dict[str, _FileGroup]:
    groups: dict[str, _FileGroup] = {}
    for record in records:
        group = groups.setdefault(record.key.group, _FileGroup(record.key.group, None, None, {}))
        if isinstance(record.value, GroupMetadataValue):
            group.type, group.members = "classic", {member.member_id for member in record.value.members}
        elif isinstance(record.value, ConsumerGroupMetadataValue):
            group.type, group.members = "consumer", set()
        elif isinstance(record.key, ConsumerGroupMemberMetadataKey) and group.members is not None:
            group.members.add(record.key.member_id)
        elif isinstance(record.value, OffsetCommitValue) and isinstance(record.key, OffsetCommitKey):
            group.offsets[record.key.topic, record.key.partition] = record.value.offset
    return groups


def _now() -> int:
    return time.time_ns() // 1_000_000


def _parse(file: Path, topic_ids: Callable[[], dict[str, UUID]]) -> list[CoordinatorRecord]:
    now, known = _now(), cache(topic_ids)

    def topic_id(name: str) -> UUID | None:
        return known().get(name)

    try:
        if str(file) == "-":
            return parse_groups(sys.stdin.buffer, "stdin", now, topic_id)
        with file.open("rb") as lines:
            return parse_groups(lines, str(file), now, topic_id)
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror or error}") from error
    except LineError as error:
        raise click.UsageError(str(error)) from error


def _load(admin: Admin, records: list[CoordinatorRecord]) -> list[_FileGroup]:
    """Write the records and return the groups that their coordinators do not know afterwards."""
    groups = _groups(records)
    try:
        # FindCoordinator, which describe() sends, creates the topic if it is missing
        _check_groups(groups, list_groups(admin), describe(admin, groups))
        _check_offsets(groups, _partition_counts(admin))
        partitions = partitions_of(admin, OFFSETS_TOPIC)
        if groups and not partitions:
            raise CommandFailed(f"there is no topic {OFFSETS_TOPIC}")
        by_partition: dict[TopicPartition, list[CoordinatorRecord]] = defaultdict(list)
        for record in records:
            by_partition[OFFSETS_TOPIC, offsets_partition(record.key.group, len(partitions))].append(record)
        encoded = {key: encode_records(own, _now()) for key, own in by_partition.items()}
        batches = {key: list(map(write_batch, chunks(own, BATCH_BYTES))) for key, own in encoded.items()}
        failures = append(admin, batches)
        reasons = [f"{_name(key)}: {failure}" for key, failure in failures.items() if failure is not None]
        if reasons:
            raise CommandFailed(*reasons)
        return _unknown_groups(admin, groups)
    except ClientError as error:
        raise CommandFailed(str(error)) from None


def _check_groups(
    groups: Mapping[str, _FileGroup],
    listed: Result[GroupListing],
    described: Mapping[str, GroupDescription | Failure],
) -> None:
    """Raise CommandFailed for groups that must not be overwritten."""
    types = {group.group_id: group.type for group in listed.successes}
    reasons = [f"{error.broker}: {error.failure}" for error in listed.failures]
    for group_id, group in described.items():
        # a broker before 3.8 names no types, and has only classic groups
        known, loaded = types.get(group_id), groups[group_id].type
        if known not in ({None, "classic", "consumer"} if loaded is None else {None, loaded}):
            reasons.append(f"{group_id}: is a group of type {known}, and of type {loaded or 'classic'} in the file")
        elif isinstance(group, GroupDescription) and group.members:
            reasons.append(f"{group_id}: has {_count(len(group.members), 'member')}: stop or remove them first")
        elif isinstance(group, Failure) and group.code != Error.GROUP_ID_NOT_FOUND:
            reasons.append(f"{group_id}: {group}")
    if reasons:
        raise CommandFailed(*reasons)


def _partition_counts(admin: Admin) -> dict[str, int]:
    return {topic.name: len(topic.partitions) for topic in admin.topics().topics if topic.name}


def _check_offsets(
    groups: Mapping[str, _FileGroup], counts: Mapping[str, int], *, may_lack_topics: bool = False
) -> None:
    """Raise CommandFailed for offsets in partitions that do not exist."""
    reasons = []
    for group_id, group in groups.items():
        partitions: dict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(group.offsets):
            partitions[topic].append(partition)
        for topic, numbers in partitions.items():
            beyond = [number for number in numbers if not 0 <= number < counts.get(topic, 0)]
            if topic not in counts and not may_lack_topics:
                reasons.append(f"{group_id}: there is no topic {topic}: create it first, or remove its lines")
            elif topic in counts and beyond:
                have = _count(counts[topic], "partition")
                reasons.append(f"{group_id}: topic {topic} has {have}: there is no partition {beyond[0]}")
    if reasons:
        raise CommandFailed(*reasons)


def _unknown_groups(admin: Admin, groups: Mapping[str, _FileGroup]) -> list[_FileGroup]:
    described, committed = describe(admin, groups), committed_offsets(admin, groups)
    unknown = []
    for group_id, group in groups.items():
        description, offsets = described[group_id], committed[group_id]
        members = (
            {each.member_id for each in description.members} if isinstance(description, GroupDescription) else None
        )
        known = {} if isinstance(offsets, Failure) else offsets
        missing = [key for key, offset in group.offsets.items() if offset >= 0 and known.get(key) != offset]
        if missing or group.members not in (None, members):
            unknown.append(group)
    return unknown


def _report(lines: Iterable[str]) -> int:
    """Write the lines to stderr and return the exit status."""
    path = click.get_current_context().command_path
    for line in lines:
        click.echo(f"{path}: {line}", err=True)
    return FAILED
