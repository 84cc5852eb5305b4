"""Names of groups, nodes and members: what a test has at hand, resolved to what an operation takes.

Wherever a method takes a group, a node or a member, it takes the handle or its id. A member is also named by a
`Member`, a `Puppet`, its `group.instance.id`, or its client id; the coordinator resolves the text and refuses an
unknown or ambiguous one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.control.puppets.operations import Puppets
from koordinator.emulator.control.results import Member

from .handle import Handle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.emulator.control.results import PuppetInfo

    from .port import Port


class GroupHandle(Handle):
    """The identity of a group."""

    id: str

    def __init__(self, port: Port, group_id: str) -> None:
        self._port = port
        self.id = group_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}>"


class NodeHandle(Handle):
    """The identity of a node. Handles of the same node are equal."""

    id: int

    def __init__(self, port: Port, node_id: int) -> None:
        self._port = port
        self.id = node_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeHandle):
            return NotImplemented
        return self._port is other._port and self.id == other.id

    def __hash__(self) -> int:
        return hash((id(self._port), self.id))


class PuppetHandle(Handle):
    """The identity of a puppet."""

    group_id: str
    name: str

    def __init__(self, port: Port, group_id: str, name: str) -> None:
        self._port = port
        self.group_id = group_id
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self.group_id!r}>"

    def describe(self) -> PuppetInfo:
        """Return the whole puppet at one moment."""
        return self._port.call(Puppets.describe, group=self.group_id, name=self.name)


GroupLike = str | GroupHandle
"""A group: its id, or its handle."""

NodeLike = int | NodeHandle
"""A node: its id, or its handle."""

MemberLike = str | Member | PuppetHandle
"""A member: its member id, its `group.instance.id`, its client id, a `Member` or a `Puppet`."""


def group_id_of(group: GroupLike) -> str:
    """Return the id of a group."""
    return group.id if isinstance(group, GroupHandle) else group


def node_id_of(node: NodeLike) -> int:
    """Return the id of a node."""
    return node.id if isinstance(node, NodeHandle) else node


def member_name(member: MemberLike) -> str:
    """Return a name of a member. That of a puppet outside the group is its instance id or its client id."""
    if isinstance(member, Member):
        return member.member_id
    if isinstance(member, PuppetHandle):
        puppet = member.describe()
        return puppet.member_id or puppet.instance_id or puppet.client_id
    return member


def member_names(members: MemberLike | Iterable[MemberLike]) -> list[str]:
    """Return the names of one or several members."""
    return [member_name(each) for each in ([members] if isinstance(members, MemberLike) else members)]


def exact_glob(text: str) -> str:
    """Return a glob that matches only this text."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in text)
