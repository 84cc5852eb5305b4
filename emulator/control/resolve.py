"""How whoever pulls a lever names a member: by whatever it is known as, if that is unambiguous."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..broker.cluster_runtime import ClusterRuntime
    from ..core.groups.classic.group import ClassicGroup, ClassicMember
    from ..core.groups.coordinator import Coordinator

SHOWN_MAX = 20
"""So many of what there is are named in a message."""


def coordinator_of(brokers: ClusterRuntime, group_id: str) -> Coordinator | None:
    """The coordinator of a group, None while it is down. ValueError while it is paused: it could do nothing."""
    broker = brokers.broker_of_group(group_id)
    if broker is None:
        return None
    node_id = broker.node.node_id
    if brokers.states[node_id] == "paused":
        raise ValueError(f"node {node_id}, which coordinates group {group_id!r}, is paused: resume it first")
    return broker.node.coordinator


def group_named(brokers: ClusterRuntime, group_id: str) -> ClassicGroup:
    """A group that exists, at its coordinator; else ValueError."""
    coordinator = coordinator_of(brokers, group_id)
    if coordinator is None:
        raise ValueError(f"the node that coordinates group {group_id!r} is down")
    group = coordinator.groups.get(group_id)
    if group is None:
        raise ValueError(f"there is no group {group_id!r}{known(group_id, sorted(brokers.groups()))}")
    return group


def member_named(group: ClassicGroup, name: str) -> ClassicMember:
    """The member that has this instance id or member id, or is the only one with this client id.

    ValueError if there is none, or several.
    """
    members = group.members.values()
    found = [member for member in members if name in (member.instance_id, member.id)]
    found = found or [member for member in members if name == member.client_id]
    if len(found) == 1:
        return found[0]
    if found:
        labels = ", ".join(repr(member.instance_id or member.id) for member in found)
        raise ValueError(f"{name!r} names several members of group {group.id!r}: {labels}; say which by one of these")
    raise ValueError(f"group {group.id!r} has no member {name!r}{known(name, labels_of(group))}")


def labels_of(group: ClassicGroup) -> list[str]:
    """What to call each member: its instance id, else its client id if no other has it, else its member id."""
    clients = [member.client_id for member in group.members.values()]
    return [
        member.instance_id or (member.client_id if clients.count(member.client_id) == 1 else member.id)
        for member in group.members.values()
    ]


def known(name: str, names: Iterable[str]) -> str:
    """The end of a message: what there is, and which of it is the nearest to what was said."""
    there = list(names)
    if not there:
        return "; there is none"
    near = get_close_matches(name, there, n=1)
    more = f" and {len(there) - SHOWN_MAX} more" if len(there) > SHOWN_MAX else ""
    listed = ", ".join(map(repr, there[:SHOWN_MAX]))
    return f"; there is {listed}{more}" + (f"; the nearest is {near[0]!r}" if near and len(there) > 1 else "")
