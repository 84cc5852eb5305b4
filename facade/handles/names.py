"""Names of groups, topics, nodes and members: what a test has at hand, resolved to what an operation takes.

Wherever a method takes a group, a topic, a node or a member, it takes the handle or its name. A member is also named by
a `Member`, a `Puppet`, its `group.instance.id`, or its client id; the coordinator resolves the text and refuses an
unknown or ambiguous one. Handles of the same thing of a cluster are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from koordinator.emulator.control.puppets.operations import Puppets
from koordinator.emulator.control.results import Member

from .handle import Handle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.emulator.control.results import PuppetInfo

    from .port import Port


class NamedHandle(Handle):
    """A handle that is equal to others of the same kind, cluster and name."""

    def __init__(self, port: Port, *key: object) -> None:
        self._port = port
        self._key = key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._key[0]!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NamedHandle):
            return NotImplemented
        return type(self) is type(other) and self._port is other._port and self._key == other._key

    def __hash__(self) -> int:
        return hash((id(self._port), self._key))


class GroupHandle(NamedHandle):
    """The identity of a group."""

    id: str

    def __init__(self, port: Port, group_id: str) -> None:
        super().__init__(port, group_id)
        self.id = group_id


class TopicHandle(NamedHandle):
    """The identity of a topic."""

    name: str

    def __init__(self, port: Port, name: str) -> None:
        super().__init__(port, name)
        self.name = name


class NodeHandle(NamedHandle):
    """The identity of a node."""

    id: int

    def __init__(self, port: Port, node_id: int) -> None:
        super().__init__(port, node_id)
        self.id = node_id


class PuppetHandle(NamedHandle):
    """The identity of a puppet."""

    group_id: str
    name: str

    def __init__(self, port: Port, group_id: str, name: str) -> None:
        super().__init__(port, group_id, name)
        self.group_id = group_id
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self.group_id!r}>"

    def describe(self) -> PuppetInfo:
        """Return the whole puppet at one moment."""
        return self._port.call(Puppets.describe, group=self.group_id, name=self.name)


GroupLike = str | GroupHandle
"""A group: its id, or its handle."""

TopicLike = str | TopicHandle
"""A topic: its name, or its handle."""

TopicKey = TypeVar("TopicKey", bound=TopicLike)
"""A topic in the keys of a mapping, whose type a mapping does not widen."""

NodeLike = int | NodeHandle
"""A node: its id, or its handle."""

MemberLike = str | Member | PuppetHandle
"""A member: its member id, its `group.instance.id`, its client id, a `Member` or a `Puppet`."""


def group_id_of(group: GroupLike) -> str:
    """Return the id of a group."""
    return group.id if isinstance(group, GroupHandle) else group


def topic_name_of(topic: TopicLike) -> str:
    """Return the name of a topic."""
    return topic.name if isinstance(topic, TopicHandle) else topic


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
