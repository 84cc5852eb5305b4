"""Fetch sessions (KIP-227): the broker remembers what a client reads, and tells it only what has changed.

The rules are those of Kafka's `FetchSessionCache` and `FetchManager`, except that a session which is larger
does not push out one that is smaller: only a session unused for two minutes makes room for another.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION = 0
"""The session id of a fetch that is in no session."""

INITIAL_EPOCH = 0
"""The epoch with which a client asks for a new session."""

FINAL_EPOCH = -1
"""The epoch with which a client ends its session, or does without one."""

EVICTION_MS = 120_000
"""How long a session has to be unused to make room (`min.incremental.fetch.session.eviction.ms`)."""

PARTITIONS_MAX = 100_000
"""The most partitions all sessions may have together. Kafka has no such bound; but partitions need not exist to be
asked for, so that sessions could grow for ever. A client that gets no session, or loses it, does without."""

_INT_MAX = 2**31 - 1

PartitionKey = tuple["str | UUID", int]
"""What a client calls a partition: its topic's name (v0-12) or id (v13+), and its index."""


@dataclass(slots=True)
class _Told:
    """A partition of a session: how it is read, and the offsets the client knows of it; -1 for none."""

    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1


@dataclass(slots=True)
class FetchSession:
    """One client's partitions, in the order of reading. `epoch` is the one its next fetch must have."""

    session_id: int
    by_id: bool
    epoch: int
    used_at: int
    partitions: dict[PartitionKey, _Told] = field(default_factory=dict)

    def changes(self, results: dict[PartitionKey, PartitionData]) -> dict[PartitionKey, PartitionData]:
        """The results that say something new; they are remembered as told.

        A partition that brought records goes to the end of the line, so that each gets its turn at
        `max_bytes`.
        """
        news: dict[PartitionKey, PartitionData] = {}
        for key, result in results.items():
            told = self.partitions.get(key)
            if told is None:
                continue
            offsets = (result.high_watermark, result.log_start_offset)
            if not (result.records or result.error_code or offsets != (told.high_watermark, told.log_start_offset)):
                continue
            news[key] = result
            # with an error this is -1, so that the partition is told again when it is well
            told.high_watermark = result.high_watermark
            told.log_start_offset = result.log_start_offset
            if result.records:
                self.partitions[key] = self.partitions.pop(key)
        return news


@dataclass(frozen=True, slots=True)
class Wish:
    """What a fetch is to read, after its session has been looked at.

    `session` None and `opens` false: every partition is answered. `epoch` is what the session's epoch has
    to be when the answer is made; a fetch that was overtaken by the next one of its session is refused.
    """

    partitions: dict[PartitionKey, FetchPartition]
    session: FetchSession | None = None
    epoch: int = 0
    opens: bool = False


class FetchSessions:
    """At most `max.incremental.fetch.session.cache.slots` sessions. Their ids are made of `new_uuid`'s."""

    def __init__(self, slots: int, new_uuid: Callable[[], UUID]) -> None:
        self._slots = slots
        self._new_uuid = new_uuid
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._sessions)

    def wish(self, now: int, request: FetchRequest, *, by_id: bool) -> Wish | Error:
        """What this fetch is to read; or 70 (no such session), 71 (wrong epoch), 106 (names became ids)."""
        asked = _asked(request, by_id=by_id)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            return Wish(asked, opens=request.session_epoch == INITIAL_EPOCH)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Error.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return Error.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return Error.FETCH_SESSION_TOPIC_ID_ERROR
        before = len(session.partitions)
        for key, wanted in asked.items():
            told = session.partitions.get(key)
            if told is None:
                session.partitions[key] = _Told(wanted)
            else:
                told.wanted = wanted
        if len(session.partitions) > before and self._partitions() > PARTITIONS_MAX:
            # the client begins a new one, or does without
            del self._sessions[session.session_id]
            return Error.FETCH_SESSION_ID_NOT_FOUND
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                session.partitions.pop((topic.topic_id if by_id else topic.topic, partition), None)
        if not session.partitions:
            del self._sessions[session.session_id]
            return Wish(asked)
        session.epoch = _next_epoch(session.epoch)
        session.used_at = now
        self._sessions.move_to_end(session.session_id)
        return Wish({key: told.wanted for key, told in session.partitions.items()}, session, session.epoch)

    def open(self, now: int, wish: Wish, results: dict[PartitionKey, PartitionData], *, by_id: bool) -> int:
        """Open a session that has been told `results`; its id, or NO_SESSION if there is no room."""
        if not self._make_room(now) or self._partitions() + len(wish.partitions) > PARTITIONS_MAX:
            return NO_SESSION
        session_id = self._new_id()
        session = FetchSession(session_id, by_id, INITIAL_EPOCH + 1, now)
        session.partitions = {key: _Told(wanted) for key, wanted in wish.partitions.items()}
        session.changes(results)
        self._sessions[session_id] = session
        return session_id

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


def _asked(request: FetchRequest, *, by_id: bool) -> dict[PartitionKey, FetchPartition]:
    return {
        (topic.topic_id if by_id else topic.topic, wanted.partition): wanted
        for topic in request.topics
        for wanted in topic.partitions
    }


def _next_epoch(epoch: int) -> int:
    return 1 if epoch == _INT_MAX else epoch + 1
