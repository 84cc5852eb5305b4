"""Reactions of the real clients to the group errors of KIP-394, KIP-389 and KIP-345, in both numberings.

`tests/real_clients/test_error_codes_*.py` hold the clients to this table; docs/clients.md is generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from clients.consumers import error_name, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from clients.consumers import Member

    from koordinator import Group

MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED"
FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"

CODES = {
    "kafka": {MEMBER_ID_REQUIRED: 79, GROUP_MAX_SIZE_REACHED: 81, FENCED_INSTANCE_ID: 82},
    "kip": {MEMBER_ID_REQUIRED: 79, GROUP_MAX_SIZE_REACHED: 77, FENCED_INSTANCE_ID: 78},
}
"""The error codes, by numbering."""

WAIT_S = 120
"""The limit of every wait."""


class Then(Enum):
    """The client's behaviour afterwards, while its application keeps polling."""

    JOINS_WITH_THE_ID = "joins with the assigned member id"
    JOINS_WHEN_THERE_IS_ROOM = "retries, and joins once there is room"
    ASKS_NO_MORE = "sends no more group requests"
    TAKES_ITS_PLACE_BACK = "joins without a member id, and so fences the other member"
    IS_REFUSED_AGAIN = "joins with its old member id, and is refused, without end"
    IS_SILENT = "sends no more heartbeats, keeps its partitions, and fails at its next commit"
    BEATS_ON = "continues to send heartbeats, and keeps its partitions"
    GOES_ON = "keeps its partitions"
    TRIED_ON = "retries until the commit times out; keeps its partitions"
    IS_TOLD_AGAIN = "gets `_FATAL` from the next poll"
    WAS_UNNAMED = "sent no instance id: it gets UNKNOWN_MEMBER_ID (25), rejoins, and fences the other member"
    IN_THE_RESULT = "reports it in the result of `remove_group_members`, for that member"


@dataclass(frozen=True)
class Reaction:
    """The error that the application sees, by the client's own name (None: none), and the client's next action."""

    told: str | None
    then: Then


class Row(NamedTuple):
    """One error in one API: a client's reaction, by numbering."""

    error: str
    api: str
    kind: str
    kafka: Reaction
    kip: Reaction

    def reaction(self, numbering: str) -> Reaction:
        return self.kip if numbering == "kip" else self.kafka


def _same(error: str, api: str, kind: str, told: str | None, then: Then) -> Row:
    """Return a row with the same reaction in both numberings."""
    return Row(error, api, kind, Reaction(told, then), Reaction(told, then))


UNKNOWN = "KafkaError: UnknownError()"
"""aiokafka's name of an error it does not know."""

ROWS = (
    *(
        _same(MEMBER_ID_REQUIRED, "JoinGroup", kind, None, Then.JOINS_WITH_THE_ID)
        for kind in ("kafka-python", "confluent-kafka", "aiokafka")
    ),
    Row(
        GROUP_MAX_SIZE_REACHED,
        "JoinGroup",
        "kafka-python",
        Reaction("GroupMaxSizeReachedError", Then.JOINS_WHEN_THERE_IS_ROOM),
        Reaction("StaleBrokerEpochError", Then.JOINS_WHEN_THERE_IS_ROOM),
    ),
    Row(
        GROUP_MAX_SIZE_REACHED,
        "JoinGroup",
        "confluent-kafka",
        Reaction("GROUP_MAX_SIZE_REACHED", Then.JOINS_WHEN_THERE_IS_ROOM),
        Reaction("STALE_BROKER_EPOCH", Then.JOINS_WHEN_THERE_IS_ROOM),
    ),
    _same(GROUP_MAX_SIZE_REACHED, "JoinGroup", "aiokafka", UNKNOWN, Then.JOINS_WHEN_THERE_IS_ROOM),
    Row(
        FENCED_INSTANCE_ID,
        "JoinGroup",
        "kafka-python",
        Reaction("FencedInstanceIdError", Then.TAKES_ITS_PLACE_BACK),
        Reaction(None, Then.TAKES_ITS_PLACE_BACK),
    ),
    Row(
        FENCED_INSTANCE_ID,
        "JoinGroup",
        "confluent-kafka",
        Reaction("_FATAL", Then.ASKS_NO_MORE),
        Reaction("OFFSET_NOT_AVAILABLE", Then.TAKES_ITS_PLACE_BACK),
    ),
    _same(FENCED_INSTANCE_ID, "JoinGroup", "aiokafka", UNKNOWN, Then.TAKES_ITS_PLACE_BACK),
    Row(
        FENCED_INSTANCE_ID,
        "SyncGroup",
        "kafka-python",
        Reaction("FencedInstanceIdError", Then.IS_REFUSED_AGAIN),
        Reaction(None, Then.IS_REFUSED_AGAIN),
    ),
    Row(
        FENCED_INSTANCE_ID,
        "SyncGroup",
        "confluent-kafka",
        Reaction("_FATAL", Then.ASKS_NO_MORE),
        Reaction("OFFSET_NOT_AVAILABLE", Then.IS_REFUSED_AGAIN),
    ),
    _same(FENCED_INSTANCE_ID, "SyncGroup", "aiokafka", UNKNOWN, Then.IS_REFUSED_AGAIN),
    Row(
        FENCED_INSTANCE_ID,
        "Heartbeat",
        "kafka-python",
        Reaction(None, Then.IS_SILENT),
        Reaction(None, Then.BEATS_ON),
    ),
    Row(
        FENCED_INSTANCE_ID,
        "Heartbeat",
        "confluent-kafka",
        Reaction("_FATAL", Then.ASKS_NO_MORE),
        Reaction(None, Then.BEATS_ON),
    ),
    _same(FENCED_INSTANCE_ID, "Heartbeat", "aiokafka", None, Then.WAS_UNNAMED),
    Row(
        FENCED_INSTANCE_ID,
        "OffsetCommit",
        "kafka-python",
        Reaction("FencedInstanceIdError", Then.GOES_ON),
        Reaction("KafkaTimeoutError", Then.TRIED_ON),
    ),
    Row(
        FENCED_INSTANCE_ID,
        "OffsetCommit",
        "confluent-kafka",
        Reaction("FENCED_INSTANCE_ID", Then.IS_TOLD_AGAIN),
        Reaction("OFFSET_NOT_AVAILABLE", Then.GOES_ON),
    ),
    _same(FENCED_INSTANCE_ID, "OffsetCommit", "aiokafka", "CommitFailedError", Then.WAS_UNNAMED),
    Row(
        FENCED_INSTANCE_ID,
        "LeaveGroup",
        "kafka-python",
        Reaction("FencedInstanceIdError", Then.IN_THE_RESULT),
        Reaction("OffsetNotAvailableError", Then.IN_THE_RESULT),
    ),
)


def row_of(error: str, api: str, kind: str) -> Row:
    """Return the row of one client."""
    return next(row for row in ROWS if (row.error, row.api, row.kind) == (error, api, kind))


def cases(error: str, api: str, *kinds: str) -> list[Any]:
    """Return parameters `row` and `numbering` for all clients, or for the given ones, in both numberings."""
    return [
        pytest.param(row, numbering, id=f"{row.kind}-{numbering}", marks=pytest.mark.koordinator(error_codes=numbering))
        for row in ROWS
        if (row.error, row.api) == (error, api) and row.kind in (kinds or (row.kind,))
        for numbering in CODES
    ]


class Watched:
    """A client in group g, and its requests and responses; rivals do not count."""

    def __init__(self, group: Group, member: Member, row: Row, numbering: str) -> None:
        self.group = group
        self.member = member
        self.row = row
        self.code = CODES[numbering][row.error]
        self.reaction = row.reaction(numbering)

    def requests(self, api: str | None = None, since: int = 0) -> list[dict[str, Any]]:
        """Return the trace events of its requests."""
        return [event for event in self._events("request", since) if api in {None, event["api"]}]

    def refusals(self, api: str, code: int | None = None) -> list[dict[str, Any]]:
        """Return the trace events of its error responses."""
        code = self.code if code is None else code
        return [event for event in self._events("response") if (event["api"], event["error_code"]) == (api, code)]

    def _events(self, kind: str, since: int = 0) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.group.events()
        found = [event for event in events if event["kind"] == kind and event["client_id"] != "rival"]
        return [event for event in found if event["seq"] > since]

    def wait(self, what: str, predicate: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        wait_until(what, lambda: bool(predicate()), self.member, patience_s=WAIT_S)

    def wait_refused(self, times: int = 1, api: str | None = None) -> None:
        """Wait until it has received the error `times` times."""
        api = self.row.api if api is None else api
        self.wait(f"{times} times {self.code} from {api}", lambda: len(self.refusals(api)) >= times)

    def wait_polls(self, polls: int = 20) -> None:
        """Let it continue: 20 polls are a second, and five heartbeats."""
        until = self.member.polls + polls
        self.wait(f"{polls} polls", lambda: self.member.polls >= until)

    def check_told(self) -> None:
        """Check that polls raised the expected error, once or more, or none."""
        told = self.reaction.told
        if told is not None:
            self.wait(f"it is told {told}", lambda: self.member.errors)
        assert {error_name(error) for error in self.member.errors} == ({told} - {None})

    def check_asks_no_more(self) -> None:
        """Check that it sends no more group requests."""
        since = max(event["seq"] for event in self.group.events())
        self.wait_polls()
        assert self.requests(since=since) == []
