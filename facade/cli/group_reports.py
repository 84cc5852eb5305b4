"""The output of `koordinator groups` and `transactions`: tables, or one JSON document.

| command | document |
|---|---|
| list | `{"groups": [{group_id, protocol_type, state, type, coordinator}], "errors": […]}` |
| describe | `{"groups": [{group_id, state, protocol_type, protocol, coordinator, members, offsets}], "errors": […]}` |
| remove-members | `{"group_id": …, "removed": [{member_id, instance_id}], "errors": […]}` |
| delete | `{"deleted": [group_id, …], "errors": […]}` |

    coordinator  {node_id, host, port}
    members      [{member_id, instance_id, client_id, client_host, assignment: {topic: [partition, …]} or null}]
    offsets      [{topic, partition, committed, end, lag, owner}], owner is a member id
    errors       [{group_id, member_id, instance_id, topic, transactional_id, broker, code, name, message}]

Unknown values, and those that do not apply, are null. `code` and `name` are those of Kafka's error; both are null if no
broker answered.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..client.admin import BrokerNode
    from ..client.groups import GroupDescription, GroupFailure, GroupListing, Result
    from ..client.members import MemberToRemove
    from ..client.share_offsets import ShareStart
    from ..client.transactions import TransactionDescription

UNKNOWN = "-"
"""The cell of a value that is unknown or does not apply."""

OFFSETS = ("topic", "partition", "committed", "end", "lag", "owner")
"""The columns of a group's offsets."""

LINE_WIDTH = 10_000
"""Characters per line when the output is not a terminal, so that no line is folded."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a command: a JSON `document` without its errors, and the `tables` for a terminal."""

    document: dict[str, object]
    tables: Sequence[Table | Text]
    failures: Sequence[GroupFailure]

    def write(self, command: str, *, as_json: bool) -> None:
        """Write the result to stdout, and a line for each failure, with the name of the command, to stderr."""
        if as_json:
            errors = [_error(failure) for failure in self.failures]
            click.echo(json.dumps({**self.document, "errors": errors}, indent=2))
        else:
            # only a terminal folds long ids
            console = Console(highlight=False, width=None if sys.stdout.isatty() else LINE_WIDTH)
            for table in self.tables:
                console.print(table)
        for failure in self.failures:
            click.echo(f"{command}: {_line(failure)}", err=True)


def listing_report(result: Result[GroupListing]) -> Report:
    """Return the report of the groups of a cluster."""
    table = _table("group", "protocol type", "state", "type", "coordinator")
    for group in result.successes:
        _row(table, group.group_id, group.protocol_type, group.state, group.type, _broker(group.coordinator))
    rows = [
        {**_attributes(group, "group_id", "protocol_type", "state", "type"), "coordinator": _node(group.coordinator)}
        for group in result.successes
    ]
    return _listing("groups", rows, table, result.failures)


def transactions_report(result: Result[TransactionDescription]) -> Report:
    """Return the report of the transactional ids of a cluster."""
    table = _table("transactional id", "state", "producer", "epoch", "partitions", "coordinator")
    names = ("transactional_id", "state", "producer_id", "producer_epoch", "timeout_ms", "started_ms", "partitions")
    for each in result.successes:
        partitions = _assignment(each.partitions)
        producer = (each.producer_id, each.producer_epoch)
        _row(table, each.transactional_id, each.state, *producer, partitions, _broker(each.coordinator))
    rows = [{**_attributes(each, *names), "coordinator": _node(each.coordinator)} for each in result.successes]
    return _listing("transactions", rows, table, result.failures)


def abort_report(result: Result[str]) -> Report:
    """Return the report of the transactions that were aborted."""
    lines = [Text(f"{_printable(transactional_id)}: aborted") for transactional_id in result.successes]
    return Report({"aborted": list(result.successes)}, lines, result.failures)


def description_report(result: Result[GroupDescription]) -> Report:
    """Return the report of groups with their members and offsets."""
    tables: list[Table | Text] = []
    for group in result.successes:
        if tables:
            tables.append(Text())
        tables += _group_tables(group)
    rows = [
        {
            **_attributes(group, "group_id", "state", "protocol_type", "protocol"),
            "coordinator": _node(group.coordinator),
            "members": [asdict(member) for member in group.members],
            "offsets": [_attributes(partition, *OFFSETS) for partition in group.partitions],
        }
        for group in result.successes
    ]
    return Report({"groups": rows}, tables, result.failures)


def removal_report(group_id: str, result: Result[MemberToRemove]) -> Report:
    """Return the report of the members that were removed from a group."""
    rows = [{"member_id": each.member_id or None, "instance_id": each.instance_id} for each in result.successes]
    lines = [Text(f"{_printable(group_id)}: removed {_member_id(each)}") for each in result.successes]
    if not (lines or result.failures):
        lines = [Text(f"{_printable(group_id)}: has no members")]
    return Report({"group_id": group_id, "removed": rows}, lines, result.failures)


def deletion_report(result: Result[str]) -> Report:
    """Return the report of the groups that were deleted."""
    lines = [Text(f"{_printable(group_id)}: deleted") for group_id in result.successes]
    return Report({"deleted": list(result.successes)}, lines, result.failures)


def share_offsets_report(result: Result[ShareStart]) -> Report:
    """Return the report of where share groups start."""
    return _starts_report(result, ("group_id", "topic", "partition", "start", "leader_epoch", "lag"))


def share_reset_report(result: Result[ShareStart]) -> Report:
    """Return the report of the new start offsets of a share group."""
    return _starts_report(result, ("group_id", "topic", "partition", "start"))


def _starts_report(result: Result[ShareStart], names: Sequence[str]) -> Report:
    table = _table("group", *(name.replace("_", " ") for name in names[1:]))
    rows = [_attributes(each, *names) for each in result.successes]
    for row in rows:
        _row(table, *row.values())
    return _listing("offsets", rows, table, result.failures)


def _listing(name: str, rows: list[dict[str, object]], table: Table, failures: Sequence[GroupFailure]) -> Report:
    """Return a report of a table; without rows and failures, of the text that there are none."""
    empty = [] if failures else [Text(f"no {name}")]
    return Report({name: rows}, [table] if rows else empty, failures)


def share_deletion_report(group_id: str, result: Result[str]) -> Report:
    """Return the report of the topics whose start offsets were deleted."""
    lines = [Text(f"{_printable(group_id)}: deleted {_printable(topic)}") for topic in result.successes]
    return Report({"group_id": group_id, "deleted": list(result.successes)}, lines, result.failures)


def _group_tables(group: GroupDescription) -> Iterable[Table | Text]:
    head = _table("group", "state", "protocol", "members", "coordinator")
    protocol = "/".join(part for part in (group.protocol_type, group.protocol) if part)
    _row(head, group.group_id, group.state, protocol, len(group.members), _broker(group.coordinator))
    yield head
    if group.members:
        members = _table("member", "instance", "client", "host", "assignment")
        for member in group.members:
            assignment = None if member.assignment is None else _assignment(member.assignment)
            _row(members, member.member_id, member.instance_id, member.client_id, member.client_host, assignment)
        yield Text()
        yield members
    if group.partitions:
        names = {member.member_id: member.instance_id or member.member_id for member in group.members}
        offsets = _table(*OFFSETS)
        for each in group.partitions:
            owner = None if each.owner is None else names[each.owner]
            _row(offsets, *{**_attributes(each, *OFFSETS), "owner": owner}.values())
        yield Text()
        yield offsets


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in columns:
        is_number = name in {"partition", "committed", "end", "lag", "members", "start", "leader epoch"}
        table.add_column(name.upper(), overflow="fold", justify="right" if is_number else "left")
    return table


def _row(table: Table, *cells: object) -> None:
    # as Text, because strings would be parsed as markup
    table.add_row(*(Text(UNKNOWN if cell in {None, ""} else _printable(str(cell))) for cell in cells))


def _assignment(assignment: dict[str, tuple[int, ...]]) -> str:
    """Format {"t": (0, 1, 2, 5)} as "t: 0-2, 5"."""
    return "; ".join(f"{topic}: {', '.join(_ranges(numbers))}" for topic, numbers in assignment.items())


def _ranges(numbers: Sequence[int]) -> Iterable[str]:
    first = last = None
    for number in [*numbers, None]:
        if last is not None and number == last + 1:
            last = number
            continue
        if last is not None:
            yield str(first) if first == last else f"{first}-{last}"
        first = last = number


def _broker(node: BrokerNode) -> str:
    return f"{node.node_id} at {node.address}"


def _member_id(member: MemberToRemove) -> str:
    return _printable(member.instance_id if member.instance_id is not None else member.member_id)


def _line(error: GroupFailure) -> str:
    subjects = [
        None if error.broker is None else f"broker {error.broker.node_id}",
        error.group_id,
        error.topic,
        error.transactional_id,
        error.instance_id if error.instance_id is not None else error.member_id,
    ]
    return ": ".join(_printable(part) for part in (*subjects, str(error.failure)) if part is not None)


def _printable(text: str) -> str:
    """Escape line breaks and control characters, which a terminal would interpret."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def _node(node: BrokerNode) -> dict[str, object]:
    return {"node_id": node.node_id, "host": node.address.host, "port": node.address.port}


def _error(error: GroupFailure) -> dict[str, object]:
    code = error.failure.code
    return {
        **_attributes(error, "group_id", "member_id", "instance_id", "topic", "transactional_id"),
        "broker": None if error.broker is None else _node(error.broker),
        "code": None if code is None else int(code),
        **_attributes(error.failure, "name", "message"),
    }


def _attributes(row: object, *names: str) -> dict[str, object]:
    return {name: getattr(row, name) for name in names}
