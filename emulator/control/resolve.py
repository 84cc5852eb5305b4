"""Resolution of names: an error, a topic, a group at its coordinator, and a member by any unambiguous name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ..broker.api_table import NUMBERINGS
from ..config.suggest import UnknownWord, did_you_mean
from ..core.groups.classic.group import ClassicGroup
from ..core.refusal import Refusal, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..broker.broker import Broker
    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output
    from ..core.data.topic import TopicState
    from ..core.effects import Effect
    from ..core.groups.coordinator import Coordinator
    from ..core.groups.group import BaseGroup, BaseMember
    from ..core.transactions.transaction import TransactionalId

SHOWN_MAX = 20
"""The most names that a message lists."""


def is_error_number(error: object) -> bool:
    """Return whether an error is given by its number, which is text in an HTTP query."""
    is_integer = isinstance(error, int) and not isinstance(error, bool)
    return is_integer or (isinstance(error, str) and error.removeprefix("-").isdecimal())


def error_name(runtime: ClusterRuntime, error: str | int) -> str:
    """Return the name of an error that is given by name or by number, in the cluster's numbering (`error.codes`).

    Raises ValueError for a number that the numbering does not use; names are checked where they are used.
    """
    if not is_error_number(error):
        return str(error)
    codes = runtime.cluster.settings.error_codes
    # 77 and 78 have two errors in the KIPs' numbering: the renumbered one counts
    numbered = sorted((NUMBERINGS[codes](each) != each, NUMBERINGS[codes](each), each.name) for each in Error)
    names = {number: name for _, number, name in numbered}
    if int(error) not in names:
        released = next((f": it is {NUMBERINGS[codes](each)} there" for each in Error if each == int(error)), "")
        raise UnknownWord(f"error {error}: not a number of Kafka's errors with error.codes={codes}{released}")
    return names[int(error)]


def topic_named(runtime: ClusterRuntime, name: str) -> TopicState:
    """Return a topic. Raises RefusedError (a ValueError) if there is none of this name."""
    topics = runtime.cluster.topics
    if name not in topics:
        problem = f"there is no topic {name!r}{known(name, sorted(topics))}"
        raise RefusedError(Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, problem))
    return topics[name]


def partitioned(runtime: ClusterRuntime, name: str, partition: int | None) -> TopicState:
    """Return a topic that has a partition, if one is given. Raises ValueError if there is none of this name."""
    topic = topic_named(runtime, name)
    count = runtime.cluster.topics.partition_count(name)
    if partition is not None and not 0 <= partition < count:
        raise ValueError(f"topic {name!r} has no partition {partition}: it has {count}, from 0 to {count - 1}")
    return topic


def coordinator_of(runtime: ClusterRuntime, group_id: str) -> Coordinator | None:
    """Return the coordinator of a group; None if its node is down. Raises ValueError if its node is paused."""
    broker = runtime.broker_of_group(group_id)
    if broker is None:
        return None
    node_id = broker.node.node_id
    if runtime.states[node_id] == "paused":
        raise ValueError(f"node {node_id}, which coordinates group {group_id!r}, is paused: resume it first")
    return broker.node.coordinator


def live_coordinator_of(runtime: ClusterRuntime, group_id: str) -> Coordinator:
    """Return the coordinator of a group. Raises ValueError if its node is down or paused."""
    coordinator = coordinator_of(runtime, group_id)
    if coordinator is None:
        raise ValueError(f"the node that coordinates group {group_id!r} is down")
    return coordinator


def perform(runtime: ClusterRuntime, now: int, group_id: str, effects: Iterable[Effect]) -> list[Output]:
    """Perform the effects of a group's coordinator at its node, and return the outputs."""
    broker = runtime.broker_of_group(group_id)
    assert broker is not None, "the group has a coordinator"
    return broker.perform(now, effects)


def group_named(runtime: ClusterRuntime, group_id: str) -> BaseGroup:
    """Return a group from its coordinator. Raises ValueError if there is no such group or coordinator."""
    group = live_coordinator_of(runtime, group_id).groups.get(group_id)
    if group is None:
        names = sorted(runtime.groups())
        hint = known(group_id, names) if names else ": no member has joined one yet"
        raise ValueError(f"there is no group {group_id!r}{hint}")
    return group


def classic_group_named(runtime: ClusterRuntime, group_id: str) -> ClassicGroup:
    """Return a classic group as `group_named` does. Raises ValueError for a consumer group."""
    group = group_named(runtime, group_id)
    if not isinstance(group, ClassicGroup):
        raise ValueError(  # noqa: TRY004 - as for a group that does not exist
            f"group {group_id!r} is a {group.kind} group: it has no join phase; this works on classic groups"
        )
    return group


def group_if_any(runtime: ClusterRuntime, group_id: str) -> BaseGroup | None:
    """Return a group, also from a paused node; None if it does not exist or its coordinator is down."""
    broker = runtime.broker_of_group(group_id)
    return None if broker is None else broker.node.coordinator.group(group_id)


def transactions(runtime: ClusterRuntime) -> dict[str, tuple[Broker, TransactionalId]]:
    """Return the transactional ids of all running nodes, sorted, with the broker of each coordinator."""
    found = [
        (each.id, broker, each) for broker in runtime for each in broker.node.transactions.store.transactions.values()
    ]
    return {name: (broker, each) for name, broker, each in sorted(found, key=lambda row: row[0])}


def member_named(group: BaseGroup, name: str) -> BaseMember:
    """Return the member with this instance id or member id, or the only member with this client id.

    Raises ValueError if no member or several members have the name.
    """
    members = group.members.values()
    matches = [member for member in members if name in (member.instance_id, member.id)]
    matches = matches or [member for member in members if name == member.client_id]
    if len(matches) == 1:
        return matches[0]
    if matches:
        labels = ", ".join(repr(member.instance_id or member.id) for member in matches)
        raise ValueError(f"{name!r} names several members of group {group.id!r}: use one of {labels}")
    raise ValueError(f"group {group.id!r} has no member {name!r}{known(name, labels_of(group))}")


def labels_of(group: BaseGroup) -> list[str]:
    """Return a label for each member: its instance id, else a client id that no other member has, else its id."""
    clients = [member.client_id for member in group.members.values()]
    return [
        member.instance_id or (member.client_id if clients.count(member.client_id) == 1 else member.id)
        for member in group.members.values()
    ]


def known(name: str, names: Iterable[str]) -> str:
    """Return the end of an error message: the existing names, and a suggestion."""
    existing = list(names)
    if not existing:
        return "; there is none"
    more = f" and {len(existing) - SHOWN_MAX} more" if len(existing) > SHOWN_MAX else ""
    listed = ", ".join(map(repr, existing[:SHOWN_MAX]))
    if len(existing) == 1:
        return f"; there is {listed}"
    return f"; there are {listed}{more}{did_you_mean(name, existing)}"
