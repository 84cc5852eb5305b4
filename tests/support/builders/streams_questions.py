"""Questions about streams groups for Kafka's classes, as JSON lines (tests/kafka/java/AskedStreams.java).

A question for the assignor has `standby` (replicas), `subtopologies` ({"0": [tasks, is stateful]}) and `members` ([id,
process, active tasks, standby tasks, [[subtopology, partition, offset]]] in the order of the group); the answer lists
members with their tasks. A question for the topology has `topics` (partition counts) and `topology` (the record).
"""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any

from koordinator.emulator.core.groups.streams.sticky_assignor import (
    AssignmentError,
    StreamsMemberSpec,
    SubtopologySpec,
    assign_sticky,
)
from koordinator.emulator.core.groups.streams.tasks import Task, Tasks, rows_of
from koordinator.emulator.core.groups.streams.topology import configure_topology
from koordinator.emulator.core.refusal import RefusedError
from koordinator.wire.errors import Error
from koordinator.wire.messages.streams_group_heartbeat import CopartitionGroup, KeyValue, Subtopology, TopicInfo
from koordinator.wire.messages.streams_group_records import StreamsGroupTopologyValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from random import Random

    from koordinator.emulator.core.groups.streams.topology import InternalTopic

PROCESSES = 4
NAMES = ("0", "1", "2", "10", "zz", "é", "\U0001f600", "\uff5e")
"""Names of subtopologies; the last two are in another order as UTF-16."""


class RandomGroup:
    """A streams group that members join and leave, with a new assignment after each change."""

    def __init__(self, random: Random) -> None:
        self._random = random
        names = random.sample(NAMES, random.randint(1, 4))
        self.subtopologies = {name: SubtopologySpec(random.randint(1, 24), random.random() < 0.6) for name in names}
        self.replicas = random.choice([0, 0, 1, 1, 2, 3])
        self.members: dict[str, StreamsMemberSpec] = {}

    def steps(self, *, ranks_owners: bool, skips_owners: bool) -> Iterator[tuple[dict[str, Any], list[Any]]]:
        """Yield questions with our answers."""
        random = self._random
        for _ in range(random.randint(1, 6)):
            self._change(with_offsets=ranks_owners)
            question = self.question()
            try:
                targets = assign_sticky(
                    self.members,
                    self.subtopologies,
                    self.replicas,
                    ranks_owners=ranks_owners,
                    skips_owners=skips_owners,
                )
            except AssignmentError as failed:
                yield question, [str(failed)]
                continue
            yield question, [[name, listed(each.active), listed(each.standby)] for name, each in targets.items()]
            self._move_on(targets)

    def question(self) -> dict[str, Any]:
        """Return the question for the group as it is."""
        return {
            "standby": self.replicas,
            "subtopologies": {name: [each.tasks, each.is_stateful] for name, each in self.subtopologies.items()},
            "members": [
                [name, each.process_id, listed(each.tasks.active), listed(each.tasks.standby), _offsets(each)]
                for name, each in self.members.items()
            ],
        }

    def _change(self, *, with_offsets: bool) -> None:
        random = self._random
        for _ in range(random.choice([1, 1, 2, 3, 12])):
            if self.members and random.random() < 0.35:
                del self.members[random.choice(list(self.members))]
            else:
                others = [each.process_id for each in self.members.values()]
                shares = others and random.random() < 0.5
                process = random.choice(others) if shares else str(uuid.UUID(int=random.getrandbits(128)))
                self.members[_member_id(random)] = StreamsMemberSpec(process)
        if random.random() < 0.2:
            name = random.choice(list(self.subtopologies))
            self.subtopologies[name] = SubtopologySpec(random.randint(1, 24), random.random() < 0.6)
        if random.random() < 0.2:
            self.replicas = random.randint(0, 3)
        for name, each in self.members.items():
            tasks = each.tasks
            if random.random() < 0.1:
                # tasks that other members have, too, or that are gone
                tasks = Tasks(self._any_tasks(), self._any_tasks())
            offsets = {}
            if with_offsets and random.random() < 0.5:
                offsets = {task: random.choice([0, 1, random.getrandbits(40)]) for task in sorted(self._any_tasks())}
            self.members[name] = StreamsMemberSpec(each.process_id, tasks, offsets)

    def _any_tasks(self) -> frozenset[Task]:
        random = self._random
        return frozenset(
            Task(name, partition)
            for name, each in self.subtopologies.items()
            if random.random() < 0.5
            for partition in random.sample(range(each.tasks + 2), random.randint(1, each.tasks))
        )

    def _move_on(self, targets: Mapping[str, Tasks]) -> None:
        self.members = {name: StreamsMemberSpec(each.process_id, targets[name]) for name, each in self.members.items()}


def listed(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Return tasks as JSON has them."""
    return {row.subtopology_id: list(row.partitions) for row in rows_of(tasks)}


def parsed(answer: list[Any]) -> list[Any]:
    """Return the answer of Kafka's assignor with partitions in ascending order: they are sets."""
    return [each if isinstance(each, str) else [each[0], _sorted(each[1]), _sorted(each[2])] for each in answer]


def _sorted(tasks: Mapping[str, list[int]]) -> dict[str, list[int]]:
    return {name: sorted(partitions) for name, partitions in tasks.items()}


def _offsets(member: StreamsMemberSpec) -> list[list[Any]]:
    return [[*task, offset] for task, offset in member.offsets.items()]


def _member_id(random: Random) -> str:
    return base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")


def random_topology(random: Random) -> tuple[StreamsGroupTopologyValue, dict[str, int]]:
    """Return a topology, valid or not, and the partition counts of the topics that exist."""
    sources = [f"s{number}" for number in range(random.randint(1, 6))]
    internal = [f"app-{random.getrandbits(20)}-repartition" for _ in range(random.randint(0, 6))]
    counts = {name: random.choice([4, 4, 4, 2, 8]) for name in sources if random.random() < 0.95}
    fixed = {name: random.choice([0, 0, 0, 4, 4, 2, 3]) for name in internal}
    changelogs = []
    rows = []
    for name in random.sample(NAMES, random.randint(1, min(5, len(NAMES)))):
        inputs = random.sample(sources, random.randint(0, min(3, len(sources))))
        reads = random.sample(internal, random.randint(0 if inputs else min(1, len(internal)), min(2, len(internal))))
        stores = [f"app-{name.encode().hex()}{number}-changelog" for number in range(random.choice([0, 0, 1, 2, 5]))]
        changelogs += stores
        rows.append(
            Subtopology(
                subtopology_id=name if random.random() < 0.99 else "0",
                source_topics=tuple(inputs),
                source_topic_regex=(),
                state_changelog_topics=tuple(_topic_info(random, each, 0) for each in stores),
                repartition_sink_topics=tuple(random.sample(internal, random.randint(0, len(internal)))),
                repartition_source_topics=tuple(_topic_info(random, each, fixed[each]) for each in reads),
                copartition_groups=tuple(
                    _copartition_group(random, len(inputs), len(reads)) for _ in range(random.choice([0, 0, 1, 1, 2]))
                ),
            )
        )
    for name in (*internal, *changelogs):
        if random.random() < 0.3:
            counts[name] = random.choice([4, 4, 4, 2])
    return StreamsGroupTopologyValue(epoch=random.randint(0, 3), subtopologies=tuple(rows)), counts


def _topic_info(random: Random, name: str, partitions: int) -> TopicInfo:
    keys = random.sample(["cleanup.policy", "retention.ms", "segment.bytes"], random.randint(0, 3))
    return TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=random.choice([-1, 0, 3]),
        topic_configs=tuple(KeyValue(key=key, value=str(random.randint(0, 9))) for key in keys),
    )


def _copartition_group(random: Random, sources: int, repartitions: int) -> CopartitionGroup:
    spare = random.random() < 0.02
    return CopartitionGroup(
        source_topics=tuple(random.sample(range(sources), random.randint(0, sources))) + (sources,) * spare,
        source_topic_regex=(),
        repartition_source_topics=tuple(random.sample(range(repartitions), random.randint(0, repartitions))),
    )


def topology_question(topology: StreamsGroupTopologyValue, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the question for a topology and existing topics."""
    return {"topics": dict(counts), "topology": _record(topology)}


def configured(topology: StreamsGroupTopologyValue, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return our answer."""
    try:
        found = configure_topology(topology, counts)
    except RefusedError as failed:
        return {"error": failed.error, "message": failed.refusal.message}
    answer: dict[str, Any] = {
        "missing": [
            [each.name, each.partitions, each.replication_factor or -1, dict(each.configs)] for each in found.missing
        ]
    }
    if found.problem is not None:
        answer |= {"status": int(found.problem.status), "detail": found.problem.detail}
    if found.subtopologies is not None:
        answer["subtopologies"] = {
            name: [
                each.tasks,
                list(each.source_topics),
                _internal(each.repartition_source_topics),
                list(each.repartition_sink_topics),
                _internal(each.state_changelog_topics),
            ]
            for name, each in found.subtopologies.items()
        }
    return answer


def with_error(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of Kafka's manager with the error that a client gets for an exception."""
    if "error" not in answer:
        return answer
    if answer["error"] == "StreamsInvalidTopologyException":
        return answer | {"error": Error.STREAMS_INVALID_TOPOLOGY}
    return {"error": Error.UNKNOWN_SERVER_ERROR, "message": ""}


def _internal(topics: Mapping[str, InternalTopic]) -> dict[str, list[Any]]:
    return {name: [each.partitions, each.replication_factor, dict(each.configs)] for name, each in topics.items()}


def _record(row: Any) -> Any:
    """Return a message as Kafka's JSON converters read it."""
    if isinstance(row, tuple):
        return [_record(each) for each in row]
    if not hasattr(row, "__dataclass_fields__"):
        return row
    return {_camel(name): _record(getattr(row, name)) for name in row.__dataclass_fields__}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
