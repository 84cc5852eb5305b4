"""A port to a running Kafka, on `koordinator.client`.

It creates, describes and reads topics, describes groups and their offsets, and waits for states. Fields that a broker
does not report are -1 or empty: a group's generation and leader, offered protocols, timeouts; nor are a topic's configs
read. Other operations raise EmulatorOnly.

`stop` deletes what a test created: topics, and groups that a handle named and that did not exist before. A topic that
exists already is refused, as by Kafka: tests that share a broker need distinct names.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.emulator.control.inspect.comparison import (
    assignment_check,
    member_labels,
    offsets_check,
    ownership_check,
)
from koordinator.emulator.control.record_inputs import seed_records
from koordinator.emulator.control.resolve import known
from koordinator.emulator.control.results import (
    GroupInfo,
    Member,
    PartitionInfo,
    PartitionOffset,
    TopicInfo,
    is_satisfied,
)
from koordinator.emulator.core.data.direct_records import BATCH_BYTES, StoredRecord, chunks, partition_of
from koordinator.emulator.core.refusal import Refusal, RefusedError
from koordinator.emulator.verify.names import require_state
from koordinator.emulator.verify.ownership import MemberAssignment
from koordinator.wire.errors import Error
from koordinator.wire.records import Record, write_batch

from ..client.admin import Admin
from ..client.connection import Address
from ..client.errors import ClientError, Failure
from ..client.groups import delete_groups, describe, list_groups
from ..client.logs import append, partitions_of, read_logs
from ..client.offsets import committed_offsets, end_offsets
from ..client.topics import create_topic, delete_topics
from ..version import __version__
from .port import ClusterStopped, EmulatorOnly, Port, call_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from koordinator.emulator.config.seed_record import SeedRecord
    from koordinator.emulator.control.results import GroupCheck

    from ..client.groups import GroupDescription

_T = TypeVar("_T")

TIMEOUT_S = 30.0
"""The timeout of an operation, in seconds."""

POLL_INTERVAL_S = 0.05
"""The pause between two polls of a wait, in seconds."""

REMEDY = "only the emulator supports this: mark the test with @pytest.mark.koordinator_emulator_only"


class KafkaPort(Port):
    """A port to a running Kafka. `bootstrap_servers` is host:port, several separated by commas.

    Operations raise ClientError if no broker responds, and RefusedError (a ValueError) if a broker refuses.
    """

    seed = 0

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._addresses = [_address(each.strip()) for each in bootstrap_servers.split(",")]
        self._operations: dict[str, Callable[..., Any]] = {
            "topics.create": self._create,
            "topics.produce": self._produce,
            "topics.records": self._records,
            "topics.describe": self._topics,
            "groups.ids": self._ids,
            "groups.describe": self._describe,
            "groups.meets": self._meets,
            "groups.offsets": self._offsets,
            "verify.assigned": self._assigned,
            "verify.committed": self._committed,
            "verify.owned": self._owned,
        }
        self._lock = Lock()
        self._has_stopped = False
        self._created_topics: list[str] = []
        self._named_groups: set[str] = set()
        with self._admin() as admin:
            self._initial_groups = _group_ids(admin)

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers for clients."""
        return self._bootstrap_servers

    def perform(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - the operation's own type
        """Perform an operation with requests to the brokers."""
        text = call_text(operation, arguments)
        if operation not in self._operations:
            raise EmulatorOnly(f"{text}: {REMEDY}")
        with self._lock:
            if self._has_stopped:
                raise ClusterStopped(f"{text}: the test has disconnected from the Kafka at {self.bootstrap_servers}")
            if "group" in arguments:
                self._named_groups.add(arguments["group"])
            with self._admin() as admin:
                return self._operations[operation](admin, **arguments)

    def poll(self, operation: str, arguments: dict[str, Any], limit_s: float) -> Any:  # noqa: ANN401 - likewise
        """Perform an operation once, and pause unless its result is satisfied."""
        result = self.perform(operation, arguments)
        if not is_satisfied(result):
            time.sleep(min(limit_s, POLL_INTERVAL_S))
        return result

    def trace_lines(self) -> list[dict[str, object]]:
        """Return an empty list: a running Kafka has no trace."""
        return []

    def stop(self) -> None:
        """Delete the created topics and groups; a group that still has members stays. A second call does nothing."""
        with self._lock:
            if self._has_stopped:
                return
            self._has_stopped = True
            with self._admin() as admin:
                if self._created_topics:
                    delete_topics(admin, self._created_topics)
                created_groups = sorted(self._named_groups & (_group_ids(admin) - self._initial_groups))
                if created_groups:
                    delete_groups(admin, created_groups)

    def _admin(self) -> Admin:
        return Admin(self._addresses, TIMEOUT_S, __version__)

    def _create(
        self,
        admin: Admin,
        *,
        topic: str,
        partitions: int = 1,
        records: int | Sequence[Any] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        if partitions < 1:
            raise ValueError(f"topic {topic!r}: a topic has at least 1 partition, not {partitions}")
        seeds = [] if records is None else seed_records(records)
        _checked(f"topic {topic!r}", create_topic(admin, topic, partitions, configs or {}))
        self._created_topics.append(topic)
        self._append(admin, topic, seeds)

    def _produce(self, admin: Admin, *, topic: str, records: Sequence[Any]) -> int:
        return self._append(admin, topic, seed_records(records))

    def _append(self, admin: Admin, topic: str, seeds: Sequence[SeedRecord]) -> int:
        partitions = partitions_of(admin, topic)
        if not partitions:
            # as for a client, with the broker's default number of partitions
            _checked(f"topic {topic!r}", create_topic(admin, topic))
            self._created_topics.append(topic)
            partitions = partitions_of(admin, topic)
        by_partition: dict[tuple[str, int], list[Record]] = {}
        for turn, record in enumerate(seeds):
            place = record.partition
            if place is None:
                place = turn % len(partitions) if record.key is None else partition_of(record.key, len(partitions))
            if (topic, place) not in partitions:
                raise ValueError(f"{topic} has no partition {place}: it has {len(partitions)}, from 0")
            timestamp = int(time.time() * 1000) if record.timestamp is None else record.timestamp
            by_partition.setdefault((topic, place), []).append(
                Record(timestamp=timestamp, key=record.key, value=record.value, headers=record.headers)
            )
        batches = {at: [write_batch(each) for each in chunks(own, BATCH_BYTES)] for at, own in by_partition.items()}
        for at, outcome in append(admin, batches).items():
            _checked("-".join(map(str, at)), outcome)
        return len(seeds)

    def _topics(self, admin: Admin, *, topic: str | None = None) -> list[TopicInfo]:
        rows = [each for each in admin.topics(None if topic is None else [topic]).topics if each.partitions]
        if topic is not None and not rows:
            problem = f"there is no topic {topic!r}{known(topic, _topic_names(admin))}"
            raise RefusedError(Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, problem))
        leaders = {(row.name or "", each.partition_index): each.leader_id for row in rows for each in row.partitions}
        ends = end_offsets(admin, leaders)
        partitions: dict[str, list[PartitionInfo]] = {}
        for (name, number), leader in sorted(leaders.items()):
            end = _checked(f"{name}-{number}", ends[name, number])
            partitions.setdefault(name, []).append(PartitionInfo(number, leader, end or 0))
        return [TopicInfo(row.name, partitions[row.name], str(row.topic_id), {}) for row in rows if row.name]

    def _records(self, admin: Admin, *, topic: str) -> list[StoredRecord]:
        (info,) = self._topics(admin, topic=topic)
        partitions = [(topic, each.partition) for each in info.partitions]
        return [
            StoredRecord(partition, record.offset, record.timestamp, record.key, record.value, record.headers)
            for (_, partition), log in sorted(read_logs(admin, partitions).items())
            for record in _checked(f"{topic}-{partition}", log)
        ]

    def _ids(self, admin: Admin) -> list[str]:
        return sorted(_group_ids(admin))

    def _describe(self, admin: Admin, *, group: str) -> GroupInfo:
        described = _find(admin, group)
        if described is None:
            return GroupInfo()
        return GroupInfo(
            state=described.state,
            protocol_type=described.protocol_type,
            protocol=described.protocol or None,
            members=tuple(
                Member(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    {topic: list(partitions) for topic, partitions in (member.assignment or {}).items()},
                )
                for member in described.members
            ),
        )

    def _meets(
        self,
        admin: Admin,
        *,
        group: str,
        state: str | None = None,
        members: int | None = None,
        after_generation: int | None = None,
        all_owned: bool = False,
    ) -> bool:
        if after_generation is not None:
            raise EmulatorOnly(f"after_generation={after_generation}: no broker reports a generation; {REMEDY}")
        if all_owned:
            raise EmulatorOnly(f"all_owned=True: use assert_owned_exactly_once(topics, timeout=…), or {REMEDY}")
        if state is not None:
            require_state(state)
        snapshot = self._describe(admin, group=group)
        return state in (None, snapshot.state) and members in (None, len(snapshot.members))

    def _offsets(self, admin: Admin, *, group: str) -> list[PartitionOffset]:
        committed = _checked(f"group {group!r}", committed_offsets(admin, [group])[group])
        return [PartitionOffset(topic, partition, offset) for (topic, partition), offset in sorted(committed.items())]

    def _assigned(self, admin: Admin, *, group: str, expected: Mapping[str, dict[str, list[int]]]) -> GroupCheck:
        members = self._describe(admin, group=group).members
        labels = member_labels([(each.instance_id, each.member_id, each.client_id) for each in members], expected)
        return assignment_check(expected, {label: each.assignment for label, each in zip(labels, members, strict=True)})

    def _committed(self, admin: Admin, *, group: str, offsets: Iterable[tuple[str, int, int]]) -> GroupCheck:
        committed = {(each.topic, each.partition): each.offset for each in self._offsets(admin, group=group)}
        return offsets_check(offsets, committed)

    def _owned(self, admin: Admin, *, group: str, topics: Sequence[str] | None = None) -> GroupCheck:
        if topics is None:
            raise EmulatorOnly(f"topics: name them, because no broker reports subscriptions; or {REMEDY}")
        described = _find(admin, group)
        counts = {topic: len(partitions_of(admin, topic)) for topic in topics}
        existing = {topic: count for topic, count in counts.items() if count}
        return ownership_check("Dead" if described is None else described.state, _owners(described), existing, topics)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"bootstrap {text!r}: must be HOST:PORT, such as localhost:9092")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def _topic_names(admin: Admin) -> list[str]:
    return sorted(each.name for each in admin.topics().topics if each.name)


def _group_ids(admin: Admin) -> set[str]:
    listing = list_groups(admin)
    for error in listing.failures:
        _checked(f"groups of {error.broker}", error.failure)
    return {each.group_id for each in listing.successes}


def _find(admin: Admin, group: str) -> GroupDescription | None:
    outcome = describe(admin, [group])[group]
    if isinstance(outcome, Failure) and outcome.code == Error.GROUP_ID_NOT_FOUND:
        return None
    return _checked(f"group {group!r}", outcome)


def _owners(group: GroupDescription | None) -> tuple[MemberAssignment, ...]:
    members = () if group is None else group.members
    return tuple(MemberAssignment(each.instance_id or each.member_id, each.assignment or {}, ()) for each in members)


def _checked(subject: str, outcome: _T | Failure) -> _T:
    """Return the outcome. Raises RefusedError or ClientError if it is a failure."""
    if not isinstance(outcome, Failure):
        return outcome
    if outcome.name is None:
        raise ClientError(f"{subject}: {outcome}")
    raise RefusedError(Refusal(Error[outcome.name], f"{subject}: {outcome}"))
