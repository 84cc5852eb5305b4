"""The way of a handle to a running Kafka, as far as one can go it: `koordinator.client` instead of the emulator.

Topics are made and read, groups described, waited for, and asked for their offsets. What a broker does not tell is -1
or empty: a group's generation and leader, what its members offer, their timeouts. Everything else raises EmulatorOnly.

What was made is removed by `stop`: topics, and groups that a handle has named and that were not there before. A topic
that exists is refused, as it is by Kafka: whoever shares a broker chooses names that nobody else has.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.emulator.control.control import is_met
from koordinator.emulator.control.inspect.groups import NOT_THERE
from koordinator.emulator.control.record_inputs import seed_records
from koordinator.emulator.core.data.direct_records import BATCH_BYTES, StoredRecord, chunks, partition_of
from koordinator.emulator.core.refusal import Refusal, RefusedError
from koordinator.emulator.verify.names import require_state
from koordinator.emulator.verify.ownership import MemberAssignment, assignment_differences, ownership_errors
from koordinator.wire.errors import Error
from koordinator.wire.records import Record, write_batch

from ..client.admin import Admin
from ..client.connection import Address
from ..client.errors import ClientError, Failure
from ..client.groups import delete_groups, describe, list_groups
from ..client.logs import append, partitions_of, read_logs
from ..client.offsets import committed_offsets
from ..client.topics import create_topic, delete_topics
from ..version import __version__
from .emulator import refuse_inside_a_loop
from .port import ClusterStopped, EmulatorOnly, call_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from koordinator.emulator.config.seed_record import SeedRecord

    from ..client.groups import GroupDescription

_T = TypeVar("_T")

TIMEOUT_S = 30.0
"""How long an operation may take."""

LOOK_S = 0.05
"""How long a wait leaves the broker alone before it looks again."""

REMEDY = "only the emulator can do that, not a running Kafka: mark the test with @pytest.mark.koordinator_emulator_only"


class KafkaPort:
    """A `Port` to a running Kafka. `bootstrap_servers` is host:port, several with commas between them.

    Operations raise ClientError where nobody answers, and RefusedError (a ValueError) for what a broker refuses.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        """What clients connect to."""
        self.seed = 0
        """Nothing here is decided by a seed."""
        self._addresses = [_address(each.strip()) for each in bootstrap_servers.split(",")]
        self._operations: dict[str, Callable[..., Any]] = {
            "topics.create": self._create,
            "topics.produce": self._produce,
            "topics.records": self._records,
            "groups.ids": self._ids,
            "groups.describe": self._describe,
            "groups.meets": self._meets,
            "groups.offsets": self._offsets,
            "verify.assigned": self._assigned,
            "verify.committed": self._committed,
            "verify.owned": self._owned,
        }
        self._one_at_a_time = Lock()
        self._has_stopped = False
        self._made: list[str] = []
        self._named: set[str] = set()
        with self._admin() as admin:
            self._theirs = _ids(admin)

    def call(self, operation: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - plain data
        """Ask the brokers."""
        what = call_text(operation, arguments)
        if operation not in self._operations:
            raise EmulatorOnly(f"{what}: {REMEDY}")
        with self._one_at_a_time:
            if self._has_stopped:
                raise ClusterStopped(f"{what}: the test has done with the Kafka at {self.bootstrap_servers}")
            if "group" in arguments:
                self._named.add(arguments["group"])
            with self._admin() as admin:
                return self._operations[operation](admin, **arguments)

    def wait(self, operation: str, timeout_s: float, /, **arguments: Any) -> Any:  # noqa: ANN401 - likewise
        """Ask again and again, until what comes is met; returns what came last."""
        refuse_inside_a_loop(call_text(operation, arguments))
        end = time.monotonic() + timeout_s
        while not is_met(last := self.call(operation, **arguments)) and time.monotonic() < end:
            time.sleep(LOOK_S)
        return last

    def trace_lines(self) -> list[dict[str, object]]:
        """Nothing: a running Kafka keeps no trace."""
        return []

    def stop(self) -> None:
        """Remove what was made; a group that still has members stays. A second time does nothing."""
        with self._one_at_a_time:
            if self._has_stopped:
                return
            self._has_stopped = True
            with self._admin() as admin:
                if self._made:
                    delete_topics(admin, self._made)
                ours = sorted(self._named & (_ids(admin) - self._theirs))
                if ours:
                    delete_groups(admin, ours)

    def _admin(self) -> Admin:
        return Admin(self._addresses, TIMEOUT_S, __version__)

    # -- topics ----------------------------------------------------------------------------------------------

    def _create(
        self, admin: Admin, *, topic: str, partitions: int = 1, records: int | Sequence[Any] | None = None
    ) -> None:
        if partitions < 1:
            raise ValueError(f"topic {topic!r}: a topic has at least 1 partition, not {partitions}")
        seeds = [] if records is None else seed_records(records)
        _check(f"topic {topic!r}", create_topic(admin, topic, partitions))
        self._made.append(topic)
        self._append(admin, topic, seeds)

    def _produce(self, admin: Admin, *, topic: str, records: Sequence[Any]) -> int:
        return self._append(admin, topic, seed_records(records))

    def _append(self, admin: Admin, topic: str, seeds: Sequence[SeedRecord]) -> int:
        there = partitions_of(admin, topic)
        if not there:
            # as for a client, with as many partitions as the broker likes
            _check(f"topic {topic!r}", create_topic(admin, topic))
            self._made.append(topic)
            there = partitions_of(admin, topic)
        placed: dict[tuple[str, int], list[Record]] = {}
        for turn, record in enumerate(seeds):
            place = record.partition
            if place is None:
                place = turn % len(there) if record.key is None else partition_of(record.key, len(there))
            if (topic, place) not in there:
                raise ValueError(f"{topic} has no partition {place}: there are {len(there)}, counted from 0")
            timestamp = int(time.time() * 1000) if record.timestamp is None else record.timestamp
            placed.setdefault((topic, place), []).append(
                Record(timestamp=timestamp, key=record.key, value=record.value, headers=record.headers)
            )
        batches = {at: [write_batch(each) for each in chunks(held, BATCH_BYTES)] for at, held in placed.items()}
        for at, outcome in append(admin, batches).items():
            _check("-".join(map(str, at)), outcome)
        return len(seeds)

    def _records(self, admin: Admin, *, topic: str) -> list[dict[str, Any]]:
        found = []
        for (_, partition), log in sorted(read_logs(admin, partitions_of(admin, topic)).items()):
            found += [
                asdict(StoredRecord(partition, each.offset, each.timestamp, each.key, each.value, each.headers))
                for each in _checked(f"{topic}-{partition}", log)
            ]
        return found

    # -- groups ----------------------------------------------------------------------------------------------

    def _ids(self, admin: Admin) -> list[str]:
        return sorted(_ids(admin))

    def _describe(self, admin: Admin, *, group: str) -> dict[str, Any]:
        found = _find(admin, group)
        if found is None:
            return dict(NOT_THERE)
        return {
            **NOT_THERE,
            "state": found.state,
            "protocol_type": found.protocol_type,
            "protocol": found.protocol or None,
            "members": [
                {
                    "member_id": member.member_id,
                    "instance_id": member.instance_id,
                    "client_id": member.client_id,
                    "client_host": member.client_host,
                    "assignment": {topic: list(held) for topic, held in (member.assignment or {}).items()},
                    "protocols": [],
                    "session_timeout_ms": -1,
                    "rebalance_timeout_ms": -1,
                }
                for member in found.members
            ],
        }

    def _meets(
        self,
        admin: Admin,
        *,
        group: str,
        state: str | None = None,
        members: int | None = None,
        after_generation: int | None = None,
        owned: str | None = None,
    ) -> bool:
        if after_generation is not None:
            raise EmulatorOnly(f"after_generation={after_generation}: no broker tells a group's generation; {REMEDY}")
        if owned is not None:
            raise EmulatorOnly(f"owned={owned!r}: use assert_owned_exactly_once(topics, timeout=…), or {REMEDY}")
        if state is not None:
            require_state(state)
        found = self._describe(admin, group=group)
        return state in (None, found["state"]) and members in (None, len(found["members"]))

    def _offsets(self, admin: Admin, *, group: str) -> list[dict[str, Any]]:
        committed = _checked(f"group {group!r}", committed_offsets(admin, [group])[group])
        return [
            {"topic": topic, "partition": partition, "offset": offset}
            for (topic, partition), offset in sorted(committed.items())
        ]

    # -- assertions ------------------------------------------------------------------------------------------

    def _assigned(self, admin: Admin, *, group: str, expected: Mapping[str, dict[str, list[int]]]) -> dict[str, Any]:
        seen = {
            owner.label: {topic: list(held) for topic, held in owner.assignment.items()}
            for owner in _owners(_find(admin, group))
        }
        wrong = assignment_differences(expected, seen)
        return _verdict("the assignment is another:", wrong)

    def _committed(self, admin: Admin, *, group: str, offsets: Iterable[tuple[str, int, int]]) -> dict[str, Any]:
        have = {(each["topic"], each["partition"]): each["offset"] for each in self._offsets(admin, group=group)}
        wrong = [
            f"{topic} {partition}: expected {offset}, committed is {have.get((topic, partition), 'nothing')}"
            for topic, partition, offset in offsets
            if have.get((topic, partition)) != offset
        ]
        return _verdict("other offsets are committed:", wrong)

    def _owned(self, admin: Admin, *, group: str, topics: Sequence[str] | None = None) -> dict[str, Any]:
        if topics is None:
            raise EmulatorOnly(f"name the topics: what members subscribe to is not known here, and {REMEDY}")
        found = _find(admin, group)
        if found is None or found.state != "Stable":
            state = "Dead" if found is None else found.state
            return _verdict("nobody owns anything for sure:", [f"the group is {state}"])
        counts = {topic: len(partitions_of(admin, topic)) for topic in topics}
        there = {topic: count for topic, count in counts.items() if count}
        return _verdict(
            "expected every partition to be owned exactly once, but", ownership_errors(_owners(found), there, topics)
        )


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"bootstrap {text!r}: must be HOST:PORT, such as localhost:9092")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def _ids(admin: Admin) -> set[str]:
    listing = list_groups(admin)
    for error in listing.failures:
        _check(f"groups of {error.broker}", error.failure)
    return {each.group_id for each in listing.groups}


def _find(admin: Admin, group: str) -> GroupDescription | None:
    found = describe(admin, [group])[group]
    if isinstance(found, Failure) and found.code == Error.GROUP_ID_NOT_FOUND:
        return None
    return _checked(f"group {group!r}", found)


def _owners(group: GroupDescription | None) -> tuple[MemberAssignment, ...]:
    members = () if group is None else group.members
    return tuple(MemberAssignment(each.instance_id or each.member_id, each.assignment or {}, ()) for each in members)


def _verdict(said: str, wrong: Sequence[str]) -> dict[str, Any]:
    return {"ok": not wrong, "message": "" if not wrong else "\n  ".join([said, *wrong])}


def _checked(what: str, outcome: _T | Failure) -> _T:
    """Return a successful result, or raise the failure."""
    if isinstance(outcome, Failure):
        raise _error(what, outcome)
    return outcome


def _check(what: str, outcome: object) -> None:
    """Raise the failure of a request, if it failed."""
    if isinstance(outcome, Failure):
        raise _error(what, outcome)


def _error(what: str, failure: Failure) -> Exception:
    if failure.name is None:
        return ClientError(f"{what}: {failure}")
    return RefusedError(Refusal(Error[failure.name], f"{what}: {failure}"))
