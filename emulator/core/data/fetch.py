"""Fetch: long polls and sessions.

A fetch is answered at once if there is enough to read, if a read fails, if it has no partition to wait for, or if it
does not want to wait. Otherwise it is *parked* until its partitions have `min_bytes`, a topic of it is deleted, or
`max_wait_ms` have passed (Kafka's `DelayedFetch`). As in Kafka an unknown topic or partition does not end the
wait: clients would fetch in a tight loop.

A fetch of committed records reads below the last stable offset, and names the aborted transactions that the client
skips (`UnifiedLog.collectAbortedTransactions`).

Since v11 a consumer may fetch from any replica, and the leader may tell it to (KIP-392). Replicas share one log, so
none lags behind; a fetch parked at a broker that does not lead polls it. Brokers that fetch are not emulated.

Before v4 clients get messages of magic 0 or 1.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field, replace
from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from koordinator.wire.values import mutable

from ...config.settings import RACK_AWARE_SELECTOR
from ..acls.acl import Operation, ResourceType
from ..dialect import dialect_of
from ..effects import Reply
from ..timers import FetchTimeout, Timers
from .down_conversion import down_converted
from .fetch_sessions import NO_SESSION, FetchPlan, FetchSessions, PartitionKey, each_once, exceeds
from .leader_hints import LeaderHints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.wire.messages.fetch import FetchPartition, NodeEndpoint

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..effects import Call
    from ..timers import DataTimerKey
    from .log import PartitionLog
    from .topic import TopicState

TOPIC_ID_SINCE = 13
"""The first version that names topics by id (KIP-516)."""

MAGIC_1_SINCE = 2
"""The first version that can carry messages of magic 1 (KIP-31)."""

FIRST_WHOLE_SINCE = 3
"""The first version whose first batch is returned whatever its size (KIP-74)."""

MAGIC_2_SINCE = 4
"""The first version that can carry batches of magic 2 (KIP-98)."""

POLL_INTERVAL_MS = 50
"""The interval at which a parked fetch polls a log that does not report its growth."""

FROM_REPLICA_SINCE = 11
"""The first version that reads from any replica, and names the rack of its client (KIP-392)."""

LEADER_HINT_SINCE = 16
"""The first version whose clients follow leader hints (KIP-951)."""

READ_COMMITTED = 1
"""The isolation level of fetches that read committed records only."""

ISOLATION_LEVELS = (0, READ_COMMITTED)
"""The isolation levels of `IsolationLevel.forId`; it fails for any other, and so does the request."""


@mutable
class ParkedFetch:
    """A parked fetch. `readable` is the number of bytes available in each partition it watches; `total` is their sum.

    It is answered at `deadline` at the latest. Of `denied` topics the client may read nothing.
    """

    call: Call
    request: FetchRequest
    plan: FetchPlan
    denied: frozenset[str] = frozenset()
    readable: dict[tuple[str, int], int] = field(default_factory=dict)
    total: int = 0
    deadline: int = 0

    @property
    def by_id(self) -> bool:
        """Whether this fetch names topics by id."""
        return self.call.api_version >= TOPIC_ID_SINCE

    @property
    def by_replica(self) -> bool:
        """Whether any replica may serve this fetch; brokers fetch from the leader."""
        return self.call.api_version >= FROM_REPLICA_SINCE and self.request.replica_id < 0

    @property
    def is_committed(self) -> bool:
        """Whether this fetch reads committed records only."""
        return self.request.isolation_level == READ_COMMITTED

    def limit(self, log: PartitionLog) -> int:
        """Return the offset before which this fetch may read."""
        return log.last_stable_offset if self.is_committed else log.end

    @property
    def is_satisfied(self) -> bool:
        """Whether the available bytes satisfy the request."""
        return self.total >= min(self.request.min_bytes, self.request.max_bytes)


class Fetches:
    """The fetches of a node: sessions, parked fetches, and the partitions these watch."""

    def __init__(self, node_id: int, cluster: ClusterState, settings: Settings, new_uuid: Callable[[], UUID]) -> None:
        self.sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots, new_uuid)
        self.timers: Timers[DataTimerKey] = Timers()
        self.parked: dict[FetchTimeout, ParkedFetch] = {}
        self._node_id = node_id
        self._cluster = cluster
        self._bytes_max = settings.fetch_max_bytes
        self._selects_by_rack = settings.replica_selector_class == RACK_AWARE_SELECTOR
        self._dialect = dialect_of(settings)
        # parked fetches by partition and by connection, in order of arrival
        self._watchers: defaultdict[tuple[str, int], dict[FetchTimeout, ParkedFetch]] = defaultdict(dict)
        self._by_connection: defaultdict[int, set[FetchTimeout]] = defaultdict(set)

    def fetch(self, now: int, call: Call, request: FetchRequest) -> list[Reply]:
        """Answer a fetch, or park it and return nothing."""
        plan = self.sessions.plan(now, request, by_id=call.api_version >= TOPIC_ID_SINCE)
        if isinstance(plan, Error):
            return [Reply(call, FetchResponse(error_code=plan))]
        if request.isolation_level not in ISOLATION_LEVELS and self._has_known_partition(plan):
            return [Reply(call, self._failed(call.api_version, request, Error.UNKNOWN_SERVER_ERROR))]
        fetch = ParkedFetch(call, request, plan, self._denied(call, request, plan))
        failed = self._measure_all(fetch)
        if failed or fetch.is_satisfied or not fetch.readable or request.max_wait_ms <= 0:
            return [self._reply(now, fetch)]
        self._park(now, fetch)
        return []

    def _denied(self, call: Call, request: FetchRequest, plan: FetchPlan) -> frozenset[str]:
        """Return the topics that the client may not read; a broker needs ClusterAction, and then may read all."""
        authorizer = self._cluster.authorizer
        if authorizer is None:
            return frozenset()
        names = {self._name(key) for key in plan.partitions} - {""}
        if request.replica_id >= 0:
            is_broker = authorizer.allows(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
            return frozenset() if is_broker else frozenset(names)
        return frozenset(
            name for name in names if not authorizer.allows(call, Operation.READ, ResourceType.TOPIC, name)
        )

    def _log_for(self, fetch: ParkedFetch, key: PartitionKey) -> PartitionLog | Error:
        """Return the log of a partition, or why the client gets none."""
        if self._name(key) in fetch.denied:
            return Error.TOPIC_AUTHORIZATION_FAILED
        return self._log(key)

    def _has_known_partition(self, plan: FetchPlan) -> bool:
        return not all(isinstance(self._log(key), Error) for key in plan.partitions)

    def _failed(self, version: int, request: FetchRequest, error: Error) -> FetchResponse:
        """Return the response to a request that Kafka fails to process, up to v12 with the error in each row."""
        topics = request.topics if self._dialect.failed_fetch_repeats_rows else each_once(request.topics)
        responses = tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=tuple(
                    replace(self._unknown(each.partition, error), records=self._no_records) for each in topic.partitions
                ),
            )
            for topic in (topics if version < TOPIC_ID_SINCE else ())
        )
        return FetchResponse(error_code=error, session_id=request.session_id, responses=responses)

    def grown(self, now: int, partitions: Iterable[tuple[str, int]]) -> list[Reply]:
        """Return responses to the parked fetches that an append to these partitions has satisfied.

        The cost depends on the fetches parked on these partitions only.
        """
        replies = []
        for name, partition in partitions:
            watchers = self._watchers.get((name, partition))
            for key, fetch in list(watchers.items()) if watchers else ():
                self._measure(fetch, name, partition)
                if fetch.is_satisfied:
                    replies.append(self._unpark(now, key))
        return replies

    def deleted(self, now: int, partitions: Iterable[tuple[str, int]]) -> list[Reply]:
        """Return responses to the fetches parked on deleted partitions."""
        return [self._unpark(now, key) for partition in partitions for key in list(self._watchers.get(partition, ()))]

    def leaders_changed(self, now: int) -> list[Reply]:
        """Return responses to the fetches parked on partitions that this node no longer serves.

        The others may have to poll from now on.
        """
        refused = []
        for key, fetch in self.parked.items():
            if any(self._is_refused(fetch, name, partition) for name, partition in fetch.readable):
                refused.append(key)
            else:
                self._set_timer(now, key, fetch)
        return [self._unpark(now, key) for key in refused]

    def _is_refused(self, fetch: ParkedFetch, name: str, partition: int) -> bool:
        topic = self._cluster.topics.find(name)
        if topic is None:
            return True
        requested = fetch.plan.partitions[self._key(fetch, name, partition)]
        return self._check(fetch, topic, partition, requested) is not Error.NONE

    def _check(self, fetch: ParkedFetch, topic: TopicState, partition: int, requested: FetchPartition) -> Error:
        """Return why this node does not serve a partition to a client."""
        # any negative epoch is an unknown one (`FetchRequest.optionalEpoch`)
        epoch = max(requested.current_leader_epoch, -1)
        return self._cluster.leaders.check(topic, partition, self._node_id, epoch, by_replica=fetch.by_replica)

    def expired(self, due: int, key: FetchTimeout) -> Reply | None:
        """Answer a parked fetch at its deadline; before that, poll its logs again."""
        fetch = self.parked[key]
        if due < fetch.deadline:
            for name, partition in fetch.readable:
                self._measure(fetch, name, partition)
            if not fetch.is_satisfied:
                self._set_timer(due, key, fetch)
                return None
        return self._unpark(due, key)

    def disconnected(self, connection: int) -> None:
        """Discard the parked fetches of a connection."""
        for key in list(self._by_connection.get(connection, ())):
            self._remove(key)

    def _measure_all(self, fetch: ParkedFetch) -> bool:
        """Record the available bytes of each partition; return whether a read fails."""
        failed = False
        bytes_left = fetch.request.max_bytes
        for key, requested in fetch.plan.partitions.items():
            log = self._log_for(fetch, key)
            if isinstance(log, Error):
                row = self._without_log(fetch.plan, key, log)
                failed = failed or row.error_code == Error.INCONSISTENT_TOPIC_ID
                continue
            error = self._refuse(fetch, key, log, requested, bytes_left)
            bytes_left = max(0, bytes_left)
            if error or _divergence(log, requested) is not None:
                failed = True
                continue
            is_redirected = self._selects_by_rack and self._preferred_replica(fetch, key, log, requested) >= 0
            failed = failed or (is_redirected and self._dialect.preferred_replicas_end_fetches)
            readable = 0 if is_redirected else _readable(fetch, log, requested)
            fetch.readable[self._name(key), key[1]] = readable
            fetch.total += readable
        return failed

    def _measure(self, fetch: ParkedFetch, name: str, partition: int) -> None:
        log = self._cluster.topics.log(name, partition)
        if log is not None:
            key = self._key(fetch, name, partition)
            requested = fetch.plan.partitions[key]
            if self._selects_by_rack and self._preferred_replica(fetch, key, log, requested) >= 0:
                return
            readable = _readable(fetch, log, requested)
            fetch.total += readable - fetch.readable[name, partition]
            fetch.readable[name, partition] = readable

    def _park(self, now: int, fetch: ParkedFetch) -> None:
        key = FetchTimeout(fetch.call.connection, fetch.call.correlation_id)
        self.parked[key] = fetch
        self._by_connection[fetch.call.connection].add(key)
        for partition in fetch.readable:
            self._watchers[partition][key] = fetch
        fetch.deadline = now + fetch.request.max_wait_ms
        self._set_timer(now, key, fetch)

    def _set_timer(self, now: int, key: FetchTimeout, fetch: ParkedFetch) -> None:
        polls = any(self._has_to_poll(*partition) for partition in fetch.readable)
        self.timers.set(key, min(fetch.deadline, now + POLL_INTERVAL_MS) if polls else fetch.deadline)

    def _has_to_poll(self, name: str, partition: int) -> bool:
        """Return whether nothing tells this node of appends: a log that reports them tells the leader."""
        topic = self._topic(name)
        if topic.leaders[partition] == self._node_id:
            return not topic.logs[partition].reports_appends
        return self._dialect.replicas_wake_fetches

    def _unpark(self, now: int, key: FetchTimeout) -> Reply:
        return self._reply(now, self._remove(key))

    def _remove(self, key: FetchTimeout) -> ParkedFetch:
        fetch = self.parked.pop(key)
        self.timers.cancel(key)
        for partition in fetch.readable:
            watchers = self._watchers[partition]
            del watchers[key]
            if not watchers:
                del self._watchers[partition]
        keys = self._by_connection[key.connection]
        keys.remove(key)
        if not keys:
            del self._by_connection[key.connection]
        return fetch

    def _reply(self, now: int, fetch: ParkedFetch) -> Reply:
        plan = fetch.plan
        if plan.session is not None and plan.session.epoch != plan.epoch:
            return Reply(fetch.call, FetchResponse(error_code=Error.INVALID_FETCH_SESSION_EPOCH))
        results = self._read(fetch)
        endpoints = self._add_hints(fetch, results) if fetch.call.api_version >= LEADER_HINT_SINCE else ()
        session_id = NO_SESSION
        if plan.session is not None:
            session_id, results = plan.session.session_id, plan.session.take_changes(results, self._name)
            plan.session.rotate(results, moves_all=self._dialect.responses_move_partitions)
        elif plan.opens:
            session_id = self.sessions.open(now, plan, results, self._name, by_id=fetch.by_id)
        if exceeds(fetch.call.api_version, results.values()):
            return Reply(fetch.call, self._failed(fetch.call.api_version, fetch.request, Error.UNSUPPORTED_VERSION))
        response = FetchResponse(session_id=session_id, responses=_by_topic(results), node_endpoints=endpoints)
        return Reply(fetch.call, response)

    def _read(self, fetch: ParkedFetch) -> dict[PartitionKey, PartitionData]:
        """Read every partition within all limits; the first batch is returned whatever its size (KIP-74).

        A negative limit of all bytes is that of the first partition only (`ReplicaManager.readFromLog`).
        """
        bytes_left = min(fetch.request.max_bytes, self._bytes_max)
        first_whole = fetch.call.api_version >= FIRST_WHOLE_SINCE
        results: dict[PartitionKey, PartitionData] = {}
        for key, requested in fetch.plan.partitions.items():
            log = self._log_for(fetch, key)
            if isinstance(log, Error):
                results[key] = self._without_log(fetch.plan, key, log)
                continue
            error = self._refuse(fetch, key, log, requested, bytes_left)
            bytes_left = max(0, bytes_left)
            if error:
                results[key] = _failed(key[1], error)
                continue
            preferred = self._preferred_replica(fetch, key, log, requested) if self._selects_by_rack else -1
            if preferred >= 0:
                results[key] = PartitionData(
                    partition_index=key[1],
                    high_watermark=log.end,
                    last_stable_offset=log.last_stable_offset,
                    log_start_offset=log.start,
                    aborted_transactions=None,
                    preferred_read_replica=preferred,
                    records=b"",
                )
                continue
            diverging = _divergence(log, requested)
            bytes_max = max(0, min(requested.partition_max_bytes, bytes_left))
            start, limit = requested.fetch_offset, fetch.limit(log)
            if fetch.request.replica_id >= 0:
                # a broker that is no replica learns only the high watermark
                bytes_max, limit = 0, start
            records = b"" if diverging else log.read(start, bytes_max, first_whole=first_whole, before=limit)
            # the broker puts empty records in the place of a first batch that is cut, and lists no transactions
            is_cut = not records and bytes_max > 0 and log.readable_bytes(start, bytes_max, limit) > 0
            bytes_left = max(0, bytes_left - len(records))
            first_whole = first_whole and not records
            if is_cut and fetch.call.api_version < FIRST_WHOLE_SINCE and self._dialect.returns_cut_batches:
                records = log.beginning(start, bytes_max, limit)
            elif fetch.call.api_version < MAGIC_2_SINCE:
                converted = down_converted(records, start, int(fetch.call.api_version >= MAGIC_1_SINCE))
                if isinstance(converted, Error):
                    results[key] = replace(_failed(key[1], converted), records=self._no_records)
                    continue
                records = converted
            results[key] = PartitionData(
                partition_index=key[1],
                high_watermark=log.end,
                last_stable_offset=log.last_stable_offset,
                log_start_offset=log.start,
                diverging_epoch=diverging or EpochEndOffset(),
                aborted_transactions=_aborted(log, start, len(records))
                if fetch.is_committed and not diverging and not is_cut
                else None,
                records=records,
            )
        return results

    def _add_hints(self, fetch: ParkedFetch, results: dict[PartitionKey, PartitionData]) -> tuple[NodeEndpoint, ...]:
        """Add the current leader to rows that were refused for the leader; return the addresses of these leaders."""
        hints = LeaderHints(self._cluster, fetch.call.listener)
        for key, row in results.items():
            if row.error_code in {Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH}:
                results[key] = replace(row, current_leader=hints.leader(self._topic(self._name(key)), key[1]))
        return hints.nodes()

    def _log(self, key: PartitionKey) -> PartitionLog | Error:
        topic, unknown = self._cluster.topics.find(self._name(key)), Error.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            return Error.UNKNOWN_TOPIC_ID if isinstance(key[0], UUID) else unknown
        return topic.log(key[1]) or unknown

    @property
    def _no_records(self) -> bytes | None:
        """The records of rows that fail without a look at the log."""
        return None if self._dialect.failed_fetch_has_null_records else b""

    def _refuse(
        self, fetch: ParkedFetch, key: PartitionKey, log: PartitionLog, requested: FetchPartition, bytes_left: int
    ) -> Error:
        error = self._check(fetch, self._topic(self._name(key)), key[1], requested)
        if error is Error.NONE and fetch.request.replica_id >= 0 and self._dialect.refuses_unknown_replicas:
            return Error.NOT_LEADER_OR_FOLLOWER
        if error is Error.NONE and (diverging := _divergence(log, requested)):
            # the end of a later epoch than the log's cannot be determined
            return Error.OFFSET_OUT_OF_RANGE if diverging.end_offset < 0 else error
        if error is Error.NONE and not log.start <= requested.fetch_offset <= log.end:
            return Error.OFFSET_OUT_OF_RANGE
        is_negative = min(requested.partition_max_bytes, bytes_left) < 0
        if error is Error.NONE and is_negative and requested.fetch_offset < fetch.limit(log):
            # `LogSegment.read` takes no negative size; at the end nothing is read
            return Error.UNKNOWN_SERVER_ERROR
        return error

    def _preferred_replica(
        self, fetch: ParkedFetch, key: PartitionKey, log: PartitionLog, requested: FetchPartition
    ) -> int:
        """Return the replica that this leader has a client fetch from instead, or -1.

        With `RackAwareReplicaSelector` it is the one with the greatest id of the in-sync replicas in the client's rack,
        if the leader is not in it and the offset exists (`ReplicaManager.findPreferredReadReplica`).
        """
        rack, brokers = fetch.request.rack_id, self._cluster.brokers
        if not (rack and fetch.by_replica and log.start <= requested.fetch_offset <= log.end):
            return -1
        topic, partition = self._topic(self._name(key)), key[1]
        reachable = (each for each in topic.replicas[partition] if brokers.endpoint(each, fetch.call.listener))
        in_rack = [each for each in reachable if brokers[each].rack == rack]
        is_leader = topic.leaders[partition] == self._node_id
        return max(in_rack) if in_rack and is_leader and self._node_id not in in_rack else -1

    def _without_log(self, plan: FetchPlan, key: PartitionKey, error: Error) -> PartitionData:
        """Return the row of a partition without a log.

        A session remembers the name of a deleted topic: 103 if another topic has it now (`ReplicaManager.read`), or 3.
        """
        name = plan.session.name_of(key) if plan.session is not None else ""
        if error is Error.UNKNOWN_TOPIC_ID and name:
            if self._cluster.topics.log(name, key[1]) is not None:
                return _failed(key[1], Error.INCONSISTENT_TOPIC_ID)
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
        return self._unknown(key[1], error)

    def _unknown(self, partition: int, error: Error) -> PartitionData:
        """Return the row of a partition that was not looked up."""
        row = _failed(partition, error)
        return replace(row, aborted_transactions=()) if self._dialect.unknown_partitions_have_aborted else row

    def _name(self, key: PartitionKey) -> str:
        """Return the name of a partition's topic, or "" for an unknown id; no topic is named ""."""
        if not isinstance(key[0], UUID):
            return key[0]
        topic = self._cluster.topics.find_id(key[0])
        return topic.name if topic else ""

    def _key(self, fetch: ParkedFetch, name: str, partition: int) -> PartitionKey:
        return (self._topic(name).topic_id if fetch.by_id else name), partition

    def _topic(self, name: str) -> TopicState:
        topic = self._cluster.topics.find(name)
        assert topic is not None, f"{name} has a log but no topic"
        return topic


def _divergence(log: PartitionLog, requested: FetchPartition) -> EpochEndOffset | None:
    """Return the end of the last fetched epoch if the client's log differs from ours (`Partition.readRecords`)."""
    last = requested.last_fetched_epoch
    if last < 0:
        return None
    epoch, end = log.epoch_end(last)
    return EpochEndOffset(epoch=epoch, end_offset=end) if epoch < last or end < requested.fetch_offset else None


def _aborted(log: PartitionLog, offset: int, size: int) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions of a read of `size` bytes; () and not null if there are none, as in Kafka."""
    before = log.upper_bound(offset, size) if size else offset
    return tuple(
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in log.producers.aborted(offset, before)
    )


def _readable(fetch: ParkedFetch, log: PartitionLog, requested: FetchPartition) -> int:
    """Return the number of bytes of a partition that a fetch may read now."""
    return log.readable_bytes(requested.fetch_offset, requested.partition_max_bytes, fetch.limit(log))


def _failed(partition: int, error: Error) -> PartitionData:
    return PartitionData(
        partition_index=partition, error_code=error, high_watermark=-1, aborted_transactions=None, records=b""
    )


def _by_topic(results: dict[PartitionKey, PartitionData]) -> tuple[FetchableTopicResponse, ...]:
    topics: dict[str | UUID, list[PartitionData]] = {}
    for (topic, _), data in results.items():
        topics.setdefault(topic, []).append(data)
    return tuple(
        FetchableTopicResponse(topic_id=topic, partitions=tuple(data))
        if isinstance(topic, UUID)
        else FetchableTopicResponse(topic=topic, partitions=tuple(data))
        for topic, data in topics.items()
    )
