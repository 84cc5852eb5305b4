"""What `koordinator groups` says: tables for people, one JSON document for programs.

| command | document |
|---|---|
| list | `{"groups": [{group_id, protocol_type, state, type, coordinator}], "errors": […]}` |
| describe | `{"groups": [{group_id, state, protocol_type, protocol, coordinator, members, offsets}], "errors": […]}` |
| remove-members | `{"group_id": …, "removed": [{member_id, instance_id}], "errors": […]}` |
| delete | `{"deleted": [group_id, …], "errors": […]}` |

    coordinator  {node_id, host, port}
    members      [{member_id, instance_id, client_id, client_host, assignment: {topic: [partition, …]} or null}]
    offsets      [{topic, partition, committed, end, lag, owner}], owner being a member id
    errors       [{group_id, member_id, instance_id, topic, broker, code, name, message}]

What is not known or does not apply is null. A code is Kafka's, with its name; without one nobody answered.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..client.admin import ClusterNode
    from ..client.groups import Deletion, Described, DescribedMember, Description, GroupProblem, Listing, Position
    from ..client.members import Identity, Removal

UNKNOWN = "-"
"""In tables, what is not known or does not apply."""

UNBROKEN = 10_000
"""How many characters a line may have where no terminal breaks it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was done: `document` for programs, without its errors; `shown` for people, one after the other."""

    document: dict[str, object]
    shown: Sequence[Table | Text]
    problems: Sequence[GroupProblem]

    def write(self, command: str, *, as_json: bool) -> None:
        """On stdout what was done, and on stderr, after the name of the command, a line for each problem."""
        if as_json:
            errors = [_error(problem) for problem in self.problems]
            click.echo(json.dumps({**self.document, "errors": errors}, indent=2))
        else:
            # a long id is folded on a terminal, and never anywhere else
            console = Console(highlight=False, width=None if sys.stdout.isatty() else UNBROKEN)
            for each in self.shown:
                console.print(each)
        for problem in self.problems:
            click.echo(f"{command}: {_line(problem)}", err=True)


def listing(result: Listing) -> Report:
    """The groups of a cluster."""
    table = _table("group", "protocol type", "state", "type", "coordinator")
    for group in result.groups:
        _row(table, group.group_id, group.protocol_type, group.state, group.type, _place(group.coordinator))
    rows = [
        {
            "group_id": group.group_id,
            "protocol_type": group.protocol_type,
            "state": group.state,
            "type": group.type,
            "coordinator": _node(group.coordinator),
        }
        for group in result.groups
    ]
    nothing = [] if result.problems else [Text("no groups")]
    return Report({"groups": rows}, [table] if rows else nothing, result.problems)


def description(result: Description) -> Report:
    """Groups with their members and offsets."""
    shown: list[Table | Text] = []
    for group in result.groups:
        if shown:
            shown.append(Text())
        shown += _described(group)
    rows = [
        {
            "group_id": group.group_id,
            "state": group.state,
            "protocol_type": group.protocol_type,
            "protocol": group.protocol,
            "coordinator": _node(group.coordinator),
            "members": [_member(member) for member in group.members],
            "offsets": [_position(position) for position in group.positions],
        }
        for group in result.groups
    ]
    return Report({"groups": rows}, shown, result.problems)


def removal(group_id: str, result: Removal) -> Report:
    """Who has left a group."""
    rows = [{"member_id": each.member_id or None, "instance_id": each.instance_id} for each in result.removed]
    shown = [Text(f"{_printable(group_id)}: removed {_who(each)}") for each in result.removed]
    if not (shown or result.problems):
        shown = [Text(f"{_printable(group_id)}: has no members")]
    return Report({"group_id": group_id, "removed": rows}, shown, result.problems)


def deletion(result: Deletion) -> Report:
    """Which groups are gone."""
    shown = [Text(f"{_printable(group_id)}: deleted") for group_id in result.deleted]
    return Report({"deleted": list(result.deleted)}, shown, result.problems)


# For people


def _described(group: Described) -> Iterable[Table | Text]:
    head = _table("group", "state", "protocol", "members", "coordinator")
    protocol = "/".join(part for part in (group.protocol_type, group.protocol) if part)
    _row(head, group.group_id, group.state, protocol, len(group.members), _place(group.coordinator))
    yield head
    if group.members:
        members = _table("member", "instance", "client", "host", "assignment")
        for member in group.members:
            assigned = None if member.assignment is None else _assigned(member.assignment)
            _row(members, member.member_id, member.instance_id, member.client_id, member.client_host, assigned)
        yield Text()
        yield members
    if group.positions:
        names = {member.member_id: member.instance_id or member.member_id for member in group.members}
        offsets = _table("topic", "partition", "committed", "end", "lag", "owner")
        for each in group.positions:
            owner = None if each.owner is None else names[each.owner]
            _row(offsets, each.topic, each.partition, each.committed, each.end, each.lag, owner)
        yield Text()
        yield offsets


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in columns:
        is_number = name in {"partition", "committed", "end", "lag", "members"}
        table.add_column(name.upper(), overflow="fold", justify="right" if is_number else "left")
    return table


def _row(table: Table, *cells: str | int | None) -> None:
    # as Text: what brokers send is not markup
    table.add_row(*(Text(UNKNOWN if cell in {None, ""} else _printable(str(cell))) for cell in cells))


def _assigned(assignment: dict[str, tuple[int, ...]]) -> str:
    """{"t": (0, 1, 2, 5)}: "t: 0-2, 5"."""
    return "; ".join(f"{topic}: {', '.join(_runs(numbers))}" for topic, numbers in assignment.items())


def _runs(numbers: Sequence[int]) -> Iterable[str]:
    first = last = None
    for number in [*numbers, None]:
        if last is not None and number == last + 1:
            last = number
            continue
        if last is not None:
            yield str(first) if first == last else f"{first}-{last}"
        first = last = number


def _place(node: ClusterNode) -> str:
    return f"{node.node_id} at {node.address}"


def _who(identity: Identity) -> str:
    return _printable(identity.instance_id if identity.instance_id is not None else identity.member_id)


def _line(problem: GroupProblem) -> str:
    subjects = [
        None if problem.broker is None else f"broker {problem.broker.node_id}",
        problem.group_id,
        problem.topic,
        problem.instance_id if problem.instance_id is not None else problem.member_id,
    ]
    return ": ".join(_printable(part) for part in (*subjects, str(problem.refusal)) if part is not None)


def _printable(text: str) -> str:
    """Without line breaks, escape sequences and the like, which a terminal would obey."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


# For programs


def _node(node: ClusterNode) -> dict[str, object]:
    return {"node_id": node.node_id, "host": node.address.host, "port": node.address.port}


def _member(member: DescribedMember) -> dict[str, object]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "assignment": member.assignment,
    }


def _position(position: Position) -> dict[str, object]:
    return {
        "topic": position.topic,
        "partition": position.partition,
        "committed": position.committed,
        "end": position.end,
        "lag": position.lag,
        "owner": position.owner,
    }


def _error(problem: GroupProblem) -> dict[str, object]:
    return {
        "group_id": problem.group_id,
        "member_id": problem.member_id,
        "instance_id": problem.instance_id,
        "topic": problem.topic,
        "broker": None if problem.broker is None else _node(problem.broker),
        "code": None if problem.refusal.code is None else int(problem.refusal.code),
        "name": problem.refusal.name,
        "message": problem.refusal.message,
    }
