"""Play one sequence to a broker at an address; an outcome has the response, and now and then the ends of all logs."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from exploring.data.batches import STAMPS, Batch
from exploring.data.topics import BARRIER, BEGINNING, COLLIDES, OWN, PREPARE_S, TOPIC, SequenceTopics, polls
from koordinator.wire.errors import Error
from koordinator.wire.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from exploring.transactions.steps import Sequence
    from koordinator.client.connection import Address

LOOK_EVERY = 4
TIMEOUT_MS = 30_000
MAX_WAIT_MS = 30


def _by_topic(rows: Iterable[Any]) -> list[tuple[str, list[Any]]]:
    """Return rows by topic; a topic that is given twice, with another between, has two rows in the request."""
    return [(name, list(found)) for name, found in groupby(rows, key=itemgetter(0))]


def _milliseconds(timestamp: int | tuple[str, int]) -> int:
    return timestamp if isinstance(timestamp, int) else STAMPS[timestamp[0]] + timestamp[1]


class Playing(SequenceTopics):
    """A sequence at a broker; `outcomes` are equal for equal brokers."""

    def __init__(self, sequence: Sequence, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self.sequence = sequence
        self.outcomes: list[object] = []
        self._session = (0, 0)
        self._barrier = 0

    # -- the course ------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Wait until the topics are there."""
        for name in BEGINNING:
            self._await_topic(name, limit_s=PREPARE_S)

    def wait_ready(self) -> None:
        """Return at once: there is no restart."""

    def play(self, begin: int, end: int) -> None:
        """Perform these steps."""
        for step in self.sequence.steps[begin:end]:
            operation: Callable[..., object] = getattr(self, step.name)
            try:
                outcome = {"answer": operation(**dict(step.arguments))}
            except TimeoutError as error:
                outcome = {"answer": f"{error}"}
            if len(self.outcomes) % LOOK_EVERY == LOOK_EVERY - 1:
                outcome["ends"] = self._ends()
            self.outcomes.append(outcome)

    def finish(self) -> None:
        """Add the topics with their configs, logs and records; delete those that the sequence has created."""
        found = self._found()
        self.outcomes.append(
            {
                "topics": self._names.plain(tuple(found)),
                "configs": self._changed_configs([row.name for row in found]),
                "ends": self._ends(),
                "records": self._records(found),
            }
        )
        others = [*map(self._name, (*OWN[len(BEGINNING) :], COLLIDES)), *[self._name(BARRIER)] * (self._barrier > 0)]
        self._ask(delete_topics.DeleteTopicsRequest(topic_names=tuple(others), timeout_ms=TIMEOUT_MS), 1)
        self.close()

    # -- requests --------------------------------------------------------------------------------------------

    def produce(self, version: int, acks: int, rows: tuple[tuple[str, int, Batch], ...]) -> object:
        """Produce; without acks the next request shows whether the connection is open."""
        request = produce.ProduceRequest(
            acks=acks,
            timeout_ms=TIMEOUT_MS,
            topic_data=tuple(
                produce.TopicProduceData(
                    name=self._name(name),
                    topic_id=self._id(name),
                    partition_data=tuple(
                        produce.PartitionProduceData(index=index, records=batch.data()) for _, index, batch in places
                    ),
                )
                for name, places in _by_topic(rows)
            ),
        )
        if acks:
            return self._answer(request, version)
        self._ask(request, version, has_answer=False)
        return "open" if not isinstance(self._ask(metadata.MetadataRequest(topics=()), 4), str) else "closed"

    def fetch(
        self,
        version: int,
        rows: tuple[tuple[str, int, int, int, int, int], ...],
        session: str,
        forgotten: tuple[tuple[str, int], ...],
        max_bytes: int,
        min_bytes: int,
        isolation: int,
    ) -> object:
        """Fetch, with or without a session."""
        known, following = self._session
        session_id, epoch = {
            "none": (0, -1),
            "new": (0, 0),
            "next": (known, following),
            "same": (known, max(following - 1, 0)),
            "skip": (known, following + 1),
            "unknown": (known + 12_345, 1),
            "close": (known, -1),
            "epoch -2": (known, -2),
        }[session]
        request = fetch.FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_id=session_id,
            session_epoch=epoch,
            topics=tuple(
                fetch.FetchTopic(
                    topic=self._name(name),
                    topic_id=self._id(name),
                    partitions=tuple(
                        fetch.FetchPartition(
                            partition=partition,
                            fetch_offset=offset,
                            partition_max_bytes=size,
                            current_leader_epoch=current,
                            last_fetched_epoch=fetched if version >= 12 else -1,
                        )
                        for _, partition, offset, size, current, fetched in places
                    ),
                )
                for name, places in _by_topic(rows)
            ),
            forgotten_topics_data=tuple(
                fetch.ForgottenTopic(
                    topic=self._name(name), topic_id=self._id(name), partitions=tuple(index for _, index in places)
                )
                for name, places in _by_topic(forgotten)
            ),
        )
        answer = self._ask(request, version)
        if not isinstance(answer, str) and not answer.error_code and answer.session_id:
            self._session = answer.session_id, epoch + 1
        return self._names.plain(answer)

    def list_offsets(self, version: int, rows: tuple[Any, ...], isolation: int) -> object:
        """ListOffsets."""
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=tuple(
                list_offsets.ListOffsetsTopic(
                    name=self._name(name),
                    partitions=tuple(
                        list_offsets.ListOffsetsPartition(
                            partition_index=partition, timestamp=_milliseconds(timestamp), current_leader_epoch=epoch
                        )
                        for _, partition, timestamp, epoch in places
                    ),
                )
                for name, places in _by_topic(rows)
            ),
        )
        return self._answer(request, version)

    def delete_records(self, version: int, rows: tuple[tuple[str, int, int], ...]) -> object:
        """DeleteRecords."""
        request = delete_records.DeleteRecordsRequest(
            timeout_ms=TIMEOUT_MS,
            topics=tuple(
                delete_records.DeleteRecordsTopic(
                    name=self._name(name),
                    partitions=tuple(
                        delete_records.DeleteRecordsPartition(partition_index=partition, offset=offset)
                        for _, partition, offset in places
                    ),
                )
                for name, places in _by_topic(rows)
            ),
        )
        return self._answer(request, version)

    def offset_for_leader_epoch(self, version: int, rows: tuple[tuple[str, int, int, int], ...]) -> object:
        """OffsetForLeaderEpoch."""
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            replica_id=-1 if version >= 3 else -2,
            topics=tuple(
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=self._name(name),
                    partitions=tuple(
                        offset_for_leader_epoch.OffsetForLeaderPartition(
                            partition=partition, leader_epoch=epoch, current_leader_epoch=current
                        )
                        for _, partition, epoch, current in places
                    ),
                )
                for name, places in _by_topic(rows)
            ),
        )
        return self._answer(request, version)

    def metadata(
        self,
        version: int,
        topics: tuple[tuple[str | None, str | None], ...] | None,
        creates: bool,  # noqa: FBT001 - by name
        operations: bool,  # noqa: FBT001
    ) -> object:
        """Metadata; waits for topics that it creates."""
        asks_all = topics is None or (not topics and version == 0)
        creates = creates or version < 4
        request = metadata.MetadataRequest(
            topics=None if topics is None and version else tuple(self._requested(*each) for each in topics or ()),
            allow_auto_topic_creation=creates,
            include_topic_authorized_operations=operations and version >= 8,
        )
        answer = self._ask(request, version)
        if isinstance(answer, str):
            return answer
        rows = [
            row
            for row in answer.topics
            if not asks_all or ((row.name or "").startswith(f"{self._prefix}.") and row.name != self._name(BARRIER))
        ]
        if creates and not asks_all and not answer.error_code:
            for name, _ in topics or ():
                # of a topic that may collide only brokers with ZooKeeper say at once that they create it
                codes = (3, 5) if name in OWN else (5,) if name == COLLIDES else ()
                if name and any(row.name == self._name(name) and row.error_code in codes for row in rows):
                    self._await_topic(name)
        return self._names.plain(replace(answer, topics=tuple(rows)))

    def _requested(self, name: str | None, topic_id: str | None) -> metadata.MetadataRequestTopic:
        known = {"name": None if name is None else self._name(name)}
        return metadata.MetadataRequestTopic(**known, **({} if topic_id is None else {"topic_id": self._id(topic_id)}))

    def create_topics(self, version: int, rows: tuple[Any, ...], validate_only: bool) -> object:  # noqa: FBT001
        """CreateTopics; waits for the topics."""
        request = create_topics.CreateTopicsRequest(
            timeout_ms=TIMEOUT_MS,
            validate_only=validate_only,
            topics=tuple(
                create_topics.CreatableTopic(
                    name=self._name(name),
                    num_partitions=partitions,
                    replication_factor=replicas,
                    assignments=tuple(
                        create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                        for index, brokers in assignments
                    ),
                    configs=tuple(create_topics.CreatableTopicConfig(name=key, value=value) for key, value in configs),
                )
                for name, partitions, replicas, assignments, configs in rows
            ),
        )
        answer = self._ask(request, version)
        for row in [] if isinstance(answer, str) or validate_only else answer.topics:
            if not row.error_code:
                self._await_topic(next(name for name, *_ in rows if self._name(name) == row.name))
        return self._names.plain(answer)

    def delete_topics(self, version: int, rows: tuple[tuple[str | None, str | None], ...]) -> object:
        """DeleteTopics; waits for the end of the topics."""
        request = delete_topics.DeleteTopicsRequest(
            timeout_ms=TIMEOUT_MS,
            topic_names=tuple(self._name(name or "") for name, _ in rows) if version < 6 else (),
            topics=tuple(
                delete_topics.DeleteTopicState(
                    name=None if name is None else self._name(name),
                    **({} if topic_id is None else {"topic_id": self._id(topic_id)}),
                )
                for name, topic_id in rows
            )
            if version >= 6
            else (),
        )
        answer = self._ask(request, version)
        for row in [] if isinstance(answer, str) else answer.responses:
            if not row.error_code:
                for name in (*OWN, COLLIDES):
                    if self._name(name) == row.name:
                        self._await_deletion(self._ids.get(row.name), name)
        return self._names.plain(answer)

    def create_partitions(self, version: int, rows: tuple[Any, ...], validate_only: bool) -> object:  # noqa: FBT001
        """CreatePartitions; waits for the partitions."""
        request = create_partitions.CreatePartitionsRequest(
            timeout_ms=TIMEOUT_MS,
            validate_only=validate_only,
            topics=tuple(
                create_partitions.CreatePartitionsTopic(
                    name=self._name(name),
                    count=count,
                    assignments=None
                    if assignments is None
                    else tuple(create_partitions.CreatePartitionsAssignment(broker_ids=each) for each in assignments),
                )
                for name, count, assignments in rows
            ),
        )
        answer = self._ask(request, version)
        results = [] if isinstance(answer, str) or validate_only else answer.results
        if any(row.error_code == Error.UNKNOWN_SERVER_ERROR for row in results):
            self._await_growth()
        for row in results:
            if not row.error_code:
                self._await_topic(*next((name, count) for name, count, _ in rows if self._name(name) == row.name))
        return self._names.plain(answer)

    def describe_configs(
        self,
        version: int,
        rows: tuple[tuple[int, str, tuple[str, ...] | None], ...],
        synonyms: bool,  # noqa: FBT001
        documentation: bool,  # noqa: FBT001
    ) -> object:
        """DescribeConfigs."""
        request = describe_configs.DescribeConfigsRequest(
            resources=tuple(
                describe_configs.DescribeConfigsResource(
                    resource_type=kind, resource_name=self._name(name), configuration_keys=keys
                )
                for kind, name, keys in rows
            ),
            include_synonyms=synonyms,
            include_documentation=documentation,
        )
        return self._answer(request, version)

    def incremental_alter_configs(self, version: int, rows: tuple[Any, ...], validate_only: bool) -> object:  # noqa: FBT001
        """IncrementalAlterConfigs; waits until the logs have the configs."""
        answer = self._altered(version, rows, validate_only=validate_only)
        if not isinstance(answer, str) and not validate_only and any(not row.error_code for row in answer.responses):
            self._await_configs()
        return self._names.plain(answer)

    def _altered(self, version: int, rows: tuple[Any, ...], *, validate_only: bool = False) -> Any:
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            validate_only=validate_only,
            resources=tuple(
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=self._name(name),
                    configs=tuple(
                        incremental_alter_configs.AlterableConfig(name=key, value=value, config_operation=operation)
                        for key, value, operation in changes
                    ),
                )
                for kind, name, changes in rows
            ),
        )
        return self._ask(request, version)

    def _await_configs(self) -> None:
        """Wait until a later change of another topic has an effect on its log: brokers apply changes in order."""
        self._create_barrier()
        is_append_time = bool(self._barrier % 2)
        kind = "LogAppendTime" if is_append_time else "CreateTime"
        self._altered(0, ((TOPIC, BARRIER, (("message.timestamp.type", kind, 0),)),))
        data = produce.PartitionProduceData(index=0, records=Batch().data())
        topics = (produce.TopicProduceData(name=self._name(BARRIER), partition_data=(data,)),)
        for _ in polls("changed configs"):
            answer = self._ask(produce.ProduceRequest(acks=1, timeout_ms=TIMEOUT_MS, topic_data=topics), 7)
            (row,) = answer.responses[0].partition_responses
            if (row.log_append_time_ms >= 0) == is_append_time:
                return

    def _create_barrier(self) -> None:
        """Create the topic of changes that are waited for, and count one."""
        if not self._barrier:
            row = create_topics.CreatableTopic(name=self._name(BARRIER), num_partitions=1, replication_factor=1)
            self._ask(create_topics.CreateTopicsRequest(topics=(row,), timeout_ms=TIMEOUT_MS), 2)
            self._await_topic(BARRIER)
        self._barrier += 1

    def _await_growth(self) -> None:
        """Wait until another topic has grown: a failed request may have extended topics, and they grow in order."""
        self._create_barrier()
        count = self._barrier + 1
        row = create_partitions.CreatePartitionsTopic(name=self._name(BARRIER), count=count, assignments=None)
        self._ask(
            create_partitions.CreatePartitionsRequest(topics=(row,), timeout_ms=TIMEOUT_MS, validate_only=False), 0
        )
        self._await_topic(BARRIER, count)

    def describe_topic_partitions(
        self, version: int, topics: tuple[str, ...], limit: int, cursor: tuple[str, int] | None
    ) -> object:
        """DescribeTopicPartitions."""
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=tuple(describe_topic_partitions.TopicRequest(name=self._name(name)) for name in topics),
            response_partition_limit=limit,
            cursor=cursor
            and describe_topic_partitions.Cursor(topic_name=self._name(cursor[0]), partition_index=cursor[1]),
        )
        return self._answer(request, version)
