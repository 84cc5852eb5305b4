"""Fetch sessions (KIP-227): the broker remembers a client's partitions and sends only changes.

The rules are those of Kafka's `FetchSessionCache` and `FetchManager`, except that a larger session does not evict a
smaller one: only a session unused for two minutes is evicted.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import EpochEndOffset, FetchTopic
from koordinator.wire.values import mutable, value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData

NO_SESSION = 0
"""The session id of a fetch without a session."""

INITIAL_EPOCH = 0
"""The epoch that requests a new session."""

FINAL_EPOCH = -1
"""The epoch that closes the session, or fetches without one."""

EVICTION_MS = 120_000
"""How long a session is unused before it can be evicted (`min.incremental.fetch.session.eviction.ms`)."""

PARTITIONS_MAX = 100_000
"""The limit of partitions in all sessions together. Kafka has none, but a request may name partitions that do not
exist, so that sessions could grow without bound. A client without a session still works."""

DIVERGING_SINCE = 12
"""The first version with diverging epochs (KIP-595)."""

NOT_DIVERGING = EpochEndOffset()

_INT_MAX = 2**31 - 1

PartitionKey = tuple["str | UUID", int]
"""The partition as the client names it: topic name (v0-12) or id (v13+), and partition index."""


def exceeds(version: int, rows: Iterable[PartitionData]) -> bool:
    """Return whether a row has a diverging epoch that the version cannot carry: a session remembers a newer request."""
    return version < DIVERGING_SINCE and any(row.diverging_epoch != NOT_DIVERGING for row in rows)


def each_once(topics: Iterable[FetchTopic]) -> tuple[FetchTopic, ...]:
    """Return topics with each of their partitions once, in the order of the request."""
    rows = {(topic.topic, each.partition): each for topic in topics for each in topic.partitions}
    by_topic = groupby(rows, key=itemgetter(0))
    return tuple(FetchTopic(topic=name, partitions=tuple(rows[at] for at in places)) for name, places in by_topic)


@mutable
class _SessionPartition:
    """A partition of a session: the client's request for it, and the offsets last sent; -1 for none.

    `name` is that of the topic since its id was known (`CachedPartition.maybeResolveUnknownName`).
    """

    request: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1
    name: str = ""


@mutable
class FetchSession:
    """A client's partitions in reading order. `epoch` is the epoch of its next fetch."""

    session_id: int
    by_id: bool
    epoch: int
    used_at: int
    partitions: dict[PartitionKey, _SessionPartition] = field(default_factory=dict)

    def name_of(self, key: PartitionKey) -> str:
        """Return the name that a partition's topic has, or had before its deletion; "" if its id was never known."""
        partition = self.partitions.get(key)
        return partition.name if partition is not None else ""

    def take_changes(
        self, results: dict[PartitionKey, PartitionData], name_now: Callable[[PartitionKey], str]
    ) -> dict[PartitionKey, PartitionData]:
        """Return the results that differ from those sent before, and remember them as sent.

        `name_now` returns the name of a partition's topic, or "" if its id is unknown.
        """
        changed: dict[PartitionKey, PartitionData] = {}
        for key, result in results.items():
            partition = self.partitions.get(key)
            if partition is None:
                continue
            partition.name = name_now(key) or partition.name
            sent = (partition.high_watermark, partition.log_start_offset)
            diverges = result.diverging_epoch.epoch >= 0
            is_sent = sent == (result.high_watermark, result.log_start_offset)
            is_redirected = result.preferred_read_replica >= 0
            if is_sent and not (result.records or result.error_code or diverges or is_redirected):
                continue
            changed[key] = result
            # -1 after an error, so that the partition is sent again once it recovers
            partition.high_watermark = result.high_watermark
            partition.log_start_offset = result.log_start_offset
        return changed

    def rotate(self, sent: dict[PartitionKey, PartitionData], *, moves_all: bool) -> None:
        """Move the partitions whose records were sent to the end, so that each gets its turn at `max_bytes`.

        With `moves_all` every partition of the response moves.
        """
        for key, result in sent.items():
            if result.records or moves_all:
                self.partitions[key] = self.partitions.pop(key)


@value
class FetchPlan:
    """The partitions of a fetch, resolved with its session.

    With neither `session` nor `opens` every partition is answered. `epoch` is the session epoch that the response
    requires: a fetch overtaken by the next one of its session is refused.
    """

    partitions: dict[PartitionKey, FetchPartition]
    session: FetchSession | None = None
    epoch: int = 0
    opens: bool = False


class FetchSessions:
    """At most `max.incremental.fetch.session.cache.slots` sessions, with ids derived from `new_uuid`."""

    def __init__(self, slots: int, new_uuid: Callable[[], UUID]) -> None:
        self._slots = slots
        self._new_uuid = new_uuid
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, now: int, request: FetchRequest, *, by_id: bool) -> FetchPlan | Error:
        """Resolve the partitions of a fetch; or return 70 (unknown session), 71 (wrong epoch), 106 (id mismatch)."""
        requested: dict[PartitionKey, FetchPartition] = {
            (topic.topic_id if by_id else topic.topic, partition.partition): partition
            for topic in request.topics
            for partition in topic.partitions
        }
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            return FetchPlan(requested, opens=request.session_epoch == INITIAL_EPOCH)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Error.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return Error.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return Error.FETCH_SESSION_TOPIC_ID_ERROR
        before = len(session.partitions)
        for key, partition_request in requested.items():
            known = session.partitions.get(key)
            if known is None:
                session.partitions[key] = _SessionPartition(partition_request)
            else:
                known.request = partition_request
        if len(session.partitions) > before and self._partitions() > PARTITIONS_MAX:
            # the client opens a new session or continues without one
            del self._sessions[session.session_id]
            return Error.FETCH_SESSION_ID_NOT_FOUND
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                session.partitions.pop((topic.topic_id if by_id else topic.topic, partition), None)
        if not session.partitions:
            del self._sessions[session.session_id]
            return FetchPlan(requested)
        session.epoch = session.epoch % _INT_MAX + 1
        session.used_at = now
        self._sessions.move_to_end(session.session_id)
        partitions = {key: partition.request for key, partition in session.partitions.items()}
        return FetchPlan(partitions, session, session.epoch)

    def open(
        self,
        now: int,
        plan: FetchPlan,
        results: dict[PartitionKey, PartitionData],
        name_now: Callable[[PartitionKey], str],
        *,
        by_id: bool,
    ) -> int:
        """Open a session to which `results` are sent; return its id, or NO_SESSION if there is no room."""
        if not self._make_room(now) or self._partitions() + len(plan.partitions) > PARTITIONS_MAX:
            return NO_SESSION
        session_id = self._new_id()
        session = FetchSession(session_id, by_id, INITIAL_EPOCH + 1, now)
        session.partitions = {key: _SessionPartition(request) for key, request in plan.partitions.items()}
        session.take_changes(results, name_now)
        self._sessions[session_id] = session
        return session_id

    def take_back(self, request: FetchRequest, response: FetchResponse) -> int:
        """Count the rows of a response as not sent, because a throttled response has none; return its session id.

        A session that the response would have opened is not (`FullFetchContext.getThrottledResponse`).
        """
        session = self._sessions.get(response.session_id)
        if session is None or request.session_epoch == INITIAL_EPOCH:
            self._sessions.pop(response.session_id, None)
            return NO_SESSION
        for topic in response.responses:
            for row in topic.partitions:
                partition = session.partitions.get(
                    (topic.topic_id if session.by_id else topic.topic, row.partition_index)
                )
                if partition is not None:
                    partition.high_watermark = partition.log_start_offset = -1
        return session.session_id

    def _partitions(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def _make_room(self, now: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now - oldest.used_at <= EVICTION_MS:
            return False
        del self._sessions[oldest.session_id]
        return True

    def _new_id(self) -> int:
        while True:
            session_id = self._new_uuid().int % _INT_MAX + 1
            if session_id not in self._sessions:
                return session_id
