"""Share sessions (KIP-932): a broker remembers the partitions that a member fetches, and sends what is new.

A session belongs to a member of a group. ShareFetch and ShareAcknowledge count in one sequence of epochs, without
repetitions: a lost answer stays lost.
Rules: `ShareSessionCache`, `ShareSession` and `SharePartitionManager.newContext`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.values import mutable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.messages.share_fetch import PartitionData

OPENS = 0
"""The epoch that opens a session."""

CLOSES = -1
"""The epoch that closes the session."""

MEMBER_ID_MAX = 36
"""The longest id of a member."""

PARTITIONS_MAX = 100_000
"""The limit of partitions in all sessions together. Kafka has none, but a request may name partitions that do not
exist, so that sessions could grow without bound."""

_INT_MAX = 2**31 - 1

SessionKey = tuple[str, str]
"""Group id and member id."""

PartitionKey = tuple["UUID", int]
"""Topic id and partition index."""


def is_member_id(member_id: str | None) -> bool:
    """Return whether this can be the id of a member (`KafkaApis.isMemberIdValid`)."""
    return member_id is not None and 0 < len(member_id) <= MEMBER_ID_MAX


@mutable
class ShareSession:
    """The partitions of a member, each with whether the next answer must have its row. `epoch` is the next one."""

    key: SessionKey
    connection: int
    epoch: int = OPENS + 1
    partitions: dict[PartitionKey, bool] = field(default_factory=dict)

    def take_news(self, rows: Mapping[PartitionKey, PartitionData]) -> dict[PartitionKey, PartitionData]:
        """Return the rows to send: with records or an error, or of a partition that is new or had an error before.

        Partitions with records move to the end.
        """
        news: dict[PartitionKey, PartitionData] = {}
        for key, row in rows.items():
            if row.records or row.error_code or self.partitions[key]:
                news[key] = row
                self.partitions[key] = bool(row.error_code)
                if row.records:
                    self.partitions[key] = self.partitions.pop(key)
        return news


@mutable
class _Opened:
    """The session that a connection has opened last, and whether one that it has opened is closed."""

    key: SessionKey
    is_stale: bool = False


class ShareSessions:
    """The share sessions of a node; idle ones are kept."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}
        self._opened: dict[int, _Opened] = {}
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        """Return the session of a member, or None."""
        return self._sessions.get(key)

    def open(
        self, key: SessionKey, connection: int, partitions: Iterable[PartitionKey], sessions_max: int
    ) -> ShareSession | Error:
        """Open a session in place of an earlier one, whose records stay acquired.

        Returns SHARE_SESSION_LIMIT_REACHED if there is no room, and UNKNOWN_SERVER_ERROR for a repeated partition
        (`ImplicitLinkedHashCollection.mustAdd`).
        """
        self.close(key)
        partitions = list(partitions)
        if len(set(partitions)) < len(partitions):
            return Error.UNKNOWN_SERVER_ERROR
        if len(self._sessions) >= sessions_max:
            return Error.SHARE_SESSION_LIMIT_REACHED
        session = ShareSession(key, connection, partitions=dict.fromkeys(partitions, False))
        self._partitions += len(session.partitions)
        if self._partitions > PARTITIONS_MAX:
            self._partitions -= len(session.partitions)
            return Error.SHARE_SESSION_LIMIT_REACHED
        self._sessions[key] = session
        self._members[key[0]] = self._members.get(key[0], 0) + 1
        self._opened[connection] = _Opened(key)
        return session

    def resume(self, key: SessionKey, epoch: int) -> ShareSession | Error:
        """Return the session of a request, whose epoch is used up.

        Returns SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(key)
        if session is None:
            return Error.SHARE_SESSION_NOT_FOUND
        if epoch == CLOSES:
            return session
        if session.epoch != epoch:
            return Error.INVALID_SHARE_SESSION_EPOCH
        session.epoch = next_epoch(epoch)
        return session

    def change(self, session: ShareSession, added: Iterable[PartitionKey], forgotten: Iterable[PartitionKey]) -> None:
        """Add partitions to a session, and then remove the forgotten ones."""
        self._partitions -= len(session.partitions)
        for key in added:
            if key not in session.partitions and self._partitions + len(session.partitions) < PARTITIONS_MAX:
                session.partitions[key] = True
        for key in forgotten:
            session.partitions.pop(key, None)
        self._partitions += len(session.partitions)

    def close(self, key: SessionKey) -> ShareSession | None:
        """Close the session of a member, if there is one, and return it."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._partitions -= len(session.partitions)
            self._members[key[0]] -= 1
            if not self._members[key[0]]:
                del self._members[key[0]]
            opened = self._opened.get(session.connection)
            if opened is not None:
                opened.is_stale = True
        return session

    def disconnected(self, connection: int) -> tuple[ShareSession | None, str | None]:
        """Close the session that a connection has opened; return it, and the group if that has no session any more.

        As in Kafka only the last one that a connection has opened closes with it, and none if it has closed another.
        """
        opened = self._opened.pop(connection, None)
        if opened is None:
            return None, None
        session = None if opened.is_stale else self.close(opened.key)
        group_id = opened.key[0]
        return session, group_id if group_id not in self._members else None


def next_epoch(epoch: int) -> int:
    """Return the epoch after this one; it stays positive."""
    return epoch % _INT_MAX + 1
