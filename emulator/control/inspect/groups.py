"""Groups as their coordinator has them, and a prepared world: groups taken from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...broker.offsets_log import records_of
from ...core.data.topic import OFFSETS_TOPIC
from ...core.groups.classic.group import CONSUMER, ClassicGroupState
from ...formats.groups_file import parse_groups, to_lines
from ...verify.names import require_state
from ...verify.ownership import ownership_errors
from .owners import owners_of, partition_counts, partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.groups.classic.group import ClassicGroup, ClassicMember

NOT_THERE: dict[str, object] = {
    "state": ClassicGroupState.DEAD.value,
    "generation": -1,
    "protocol_type": None,
    "protocol": None,
    "leader": None,
    "members": [],
    "waiting_for": [],
}
"""A group that does not exist is Dead, in generation -1, as Kafka describes it."""


class Groups:
    """Looks at groups, and loads and dumps them."""

    def __init__(self, brokers: ClusterRuntime, leave: Callable[[Iterable[Output]], None]) -> None:
        self._brokers = brokers
        self._leave = leave

    def ids(self, now: int) -> list[str]:
        """The ids of the groups there are, in order."""
        del now
        return sorted(self._brokers.groups())

    def describe(self, now: int, *, group: str) -> dict[str, object]:
        """A group at this moment: `state generation protocol_type protocol leader members waiting_for`.

        Members have `member_id instance_id client_id client_host assignment protocols session_timeout_ms
        rebalance_timeout_ms`; `assignment` has the partitions of each topic, and nothing if the protocol is not that of
        consumers. `waiting_for`: who has not sent its SyncGroup in this generation. `leader` is a member id.
        """
        del now
        found = self._find(group)
        return NOT_THERE if found is None else _described(found)

    def meets(
        self,
        now: int,
        *,
        group: str,
        state: str | None = None,
        members: int | None = None,
        after_generation: int | None = None,
        owned: str | None = None,
    ) -> bool:
        """Whether a group is in a state, has so many members, and is past a generation; what is None is not asked.

        A group counts as Stable when every member has its assignment. `owned` "all": and every partition of the topics
        that they subscribe to is owned by exactly one of them. ValueError for a state that there is not.
        """
        del now
        if state is not None:
            require_state(state)
        if owned not in (None, "all"):
            raise ValueError(f"owned is 'all', or nothing is asked of who owns what; not {owned!r}")
        found = self._find(group)
        if found is None:
            return state == ClassicGroupState.DEAD.value and not members
        return (
            (state is None or found.state.value == state)
            and (state != ClassicGroupState.STABLE.value or not _waiting_for(found))
            and members in (None, len(found.members))
            and (after_generation is None or found.generation > after_generation)
            and (owned is None or not ownership_errors(owners_of(found), partition_counts(self._brokers.cluster)))
        )

    def offsets(self, now: int, *, group: str) -> list[dict[str, object]]:
        """The committed offsets: `topic partition offset leader_epoch metadata commit_timestamp`."""
        del now
        found = self._find(group)
        return [
            {
                "topic": topic,
                "partition": partition,
                "offset": committed.offset,
                "leader_epoch": committed.leader_epoch,
                "metadata": committed.metadata,
                "commit_timestamp": committed.commit_timestamp,
            }
            for (topic, partition), committed in (found.offsets if found is not None else {}).items()
        ]

    def load(self, now: int, *, lines: Sequence[str | bytes], source: str = "groups") -> None:
        """Let groups be as the lines of a file say (`emulator.groups_file`); LineError (a ValueError) for a bad one."""
        self._leave(self._brokers.load_groups(now, parse_groups(lines, source, now)))

    def dump(self, now: int) -> list[dict[str, object]]:
        """What `__consumer_offsets` says of all groups, as the lines of a file."""
        del now
        topic = self._brokers.cluster.topics.get(OFFSETS_TOPIC)
        logs = topic.logs if topic is not None else []
        return to_lines(record for log in logs for record in records_of(log.records()))

    def _find(self, group_id: str) -> ClassicGroup | None:
        broker = self._brokers.broker_of_group(group_id)
        return None if broker is None else broker.node.coordinator.groups.get(group_id)


def _described(group: ClassicGroup) -> dict[str, object]:
    return {
        "state": group.state.value,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol_name,
        "leader": group.leader_id,
        "members": [_member(member, is_consumer=group.protocol_type == CONSUMER) for member in group.members.values()],
        "waiting_for": _waiting_for(group),
    }


def _waiting_for(group: ClassicGroup) -> list[str]:
    # an id that was replaced meanwhile (KIP-345) still stands there, but nobody owes for it
    return [member_id for member_id in group.pending_sync_members if member_id in group.members]


def _member(member: ClassicMember, *, is_consumer: bool) -> dict[str, object]:
    return {
        "member_id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "assignment": partitions(member.assignment) if is_consumer else {},
        "protocols": [name for name, _ in member.protocols],
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
    }
