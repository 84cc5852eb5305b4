"""Hand-written trace lines: a coordinator's view of scripted members."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from koordinator.emulator.verify.conformance import Verdict, conformance
from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.ownership import MemberAssignment
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Line

STABLE, PREPARING, COMPLETING, EMPTY = "Stable", "PreparingRebalance", "CompletingRebalance", "Empty"

SESSION_MS, REBALANCE_MS = 6_000, 30_000

INTERVAL_MS = 5_000
"""The heartbeat interval of consumer groups."""

FULL = {"topics": ["t"], "rebalance_timeout_ms": REBALANCE_MS}
"""The fields of a full heartbeat of a consumer group, besides the owned partitions."""

StableAssignment = tuple[tuple[MemberAssignment, ...], dict[str, int]]
"""The members of a stable group and the partition counts of its topics."""


class Tale:
    """Writes trace lines of one group on one node. Each member has one connection, under its name."""

    def __init__(self, group_id: str = "g") -> None:
        self.group_id = group_id
        self.lines: list[Line] = []
        self._seq = count(1)
        self._correlation = count(1)
        self._connections: dict[str, int] = {}
        self._wall_ms = self._group_ms = 1_000_000
        self._generation = 0

    @property
    def trace(self) -> GroupTrace:
        """Parse the lines."""
        return GroupTrace(self.lines, self.group_id)

    @property
    def seq(self) -> int:
        """The sequence number of the last line."""
        return int(self.lines[-1]["seq"])

    def passes(self, ms: float) -> None:
        """Let time pass."""
        self._wall_ms += ms
        self._group_ms += ms

    def jumps(self, ms: float) -> None:
        """Advance the group's clock without real time."""
        self._group_ms += ms

    def line(self, kind: str, *, of_group: bool = True, **columns: Any) -> Line:
        """Add a line; columns without a value are left out."""
        named = {"group_id": self.group_id, "group_ts_us": int(self._group_ms * 1000)} if of_group else {}
        told = {
            "seq": next(self._seq),
            "wall_ts": int(self._wall_ms * 1000),
            "node": 1,
            "kind": kind,
            **named,
            **columns,
        }
        self.lines.append({name: value for name, value in told.items() if value is not None})
        return self.lines[-1]

    def state(self, before: str, after: str, generation: int, cause: str = "", **more: Any) -> Line:
        """Change the group's state."""
        return self.line(
            "state", state_from=before, state_to=after, generation=generation, cause=cause, reason=cause, **more
        )

    def member(self, change: str, member_id: str, cause: str = "", instance: str | None = None) -> Line:
        """Add, remove or replace a member."""
        return self.line(
            "member", change=change, member_id=member_id, instance_id=instance, cause=cause, reason=f"because {cause}"
        )

    def asks(self, api: str, client: str, **columns: Any) -> Line:
        """Add a request; its response follows later."""
        connection = self._connections.setdefault(columns.pop("connection", client), len(self._connections) + 1)
        return self.line(
            "request",
            api=api,
            api_version=9,
            client_id=client,
            conn_id=connection,
            correlation_id=next(self._correlation),
            **columns,
        )

    def answers(self, asked: Line, error: str | None = None, **columns: Any) -> Line:
        """Add the response to a request."""
        same = {
            name: value
            for name, value in asked.items()
            if name not in ("seq", "wall_ts", "group_ts_us", "kind", "body")
        }
        of_group = same.pop("group_id", None) is not None
        same.pop("node", None)
        return self.line("response", of_group=of_group, **{**same, "error": error, **columns})

    def call(self, api: str, client: str, error: str | None = None, told: Line | None = None, **columns: Any) -> int:
        """Add a request with an immediate response; return its sequence number."""
        asked = self.asks(api, client, **columns)
        self.answers(asked, error, body=told)
        return int(asked["seq"])

    def beat(self, client: str, generation: int | None = None, error: str | None = None) -> int:
        """Add a heartbeat of the member named like its client."""
        generation = self._generation if generation is None else generation
        return self.call("Heartbeat", client, error, member_id=client, generation=generation)

    def beats(
        self,
        client: str,
        epoch: int,
        to: int | None = None,
        *,
        error: str | None = None,
        given: list[int] | None = None,
        instance: str | None = None,
        **body: Any,
    ) -> Line:
        """Add a heartbeat of a consumer group, answered with epoch `to` and perhaps partitions; return its request."""
        asked = self.asks(
            "ConsumerGroupHeartbeat",
            client,
            member_id=client,
            instance_id=instance,
            generation=epoch,
            body=body or None,
        )
        told: Line = {"heartbeat_interval_ms": INTERVAL_MS, **({} if given is None else {"assignment": {"t": given}})}
        if error is None:
            self.answers(asked, generation=epoch if to is None else to, body=told)
        else:
            self.answers(asked, error)
        return asked

    def enters(self, client: str, epoch: int, given: list[int], instance: str | None = None) -> None:
        """Let a member join a consumer group and acknowledge its partitions."""
        self.beats(client, 0, epoch, given=given, instance=instance, **FULL, owned={})
        self.beats(client, epoch, instance=instance, owned={"t": given})

    def takes(self, client: str, *rows: tuple[int, int, int], partition: int = 0, **columns: Any) -> Line:
        """Add a share fetch that delivers rows of first and last offset and delivery count; return its request."""
        asked = self.asks("ShareFetch", client, member_id=client, body={"session_epoch": 1})
        acquired = [["t", partition, *row] for row in rows]
        self.answers(asked, body={"acquired": acquired}, **columns)
        return asked

    def acknowledges(
        self,
        client: str,
        *rows: tuple[int, int, str],
        api: str = "ShareAcknowledge",
        error: int | None = None,
        **columns: Any,
    ) -> Line:
        """Add acknowledgements of first and last offset with a type, accepted or refused; return the request."""
        acknowledged = [["t", 0, first, last, [kind]] for first, last, kind in rows]
        body = {"session_epoch": 2, "acknowledged": acknowledged}
        asked = self.asks(api, client, member_id=client, body=body)
        told = None if error is None else {"refused": [["t", 0, error]]}
        self.answers(asked, None if error is None else Error(error).name, body=told, **columns)
        return asked

    def ends_locks(self, member_id: str, first: int, last: int, count: int, state: str = "available") -> Line:
        """End the locks of records."""
        ended = [["t", 0, first, last, count, state]]
        return self.line("locks", member_id=member_id, cause="lock_expired", body={"ended": ended})

    def step(self, member_id: str, epoch: int, assigned: list[int], revoking: list[int] | None = None) -> Line:
        """Let a member of a consumer group take a step."""
        body = {"assigned": {"t": assigned}, "revoking": {"t": revoking or []}}
        return self.line("reconciliation", change="stable", generation=epoch, member_id=member_id, body=body)

    def commits(self, client: str, generation: int, *partitions: int, error: str | None = None) -> int:
        """Add a commit for partitions of the topic "t"."""
        body = {"offsets": [["t", number, 5] for number in partitions or (0,)]}
        return self.call("OffsetCommit", client, error, member_id=client, generation=generation, body=body)

    def closes(self, client: str, reason: str | None = None) -> Line:
        """Close a client's connection."""
        return self.line(
            "conn", of_group=False, change="closed", conn_id=self._connections[client], client_id=client, reason=reason
        )

    def fetches(self, client: str, *, records: bool = True) -> int:
        """Add a fetch with a record, or one that was refused in its partition."""
        asked = self.asks("Fetch", client, of_group=False)
        self.answers(asked, body={"fetched": [["t", 0, 0, 1]]} if records else None)
        return int(asked["seq"])

    def joins(self, client: str, *, instance: str | None = None, owned: Any = None, **columns: Any) -> Line:
        """Add a JoinGroup with an id, to be answered when the generation forms."""
        body = {
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": ["range"],
            "topics": ["t"],
            **({"owned": owned} if owned else {}),
        }
        return self.asks(
            "JoinGroup", client, member_id=columns.pop("member_id", client), instance_id=instance, body=body
        )

    def forms(
        self,
        assignment: dict[str, list[int]],
        *,
        before: str = EMPTY,
        cause: str = "member_join",
        instances: dict[str, str] | None = None,
        protocol: str = "range",
        owned: dict[str, list[int]] | None = None,
        begins: bool = True,
    ) -> int:
        """Form the next generation: these members join, sync and own partitions of the topic "t". Return its number."""
        instances = instances or {}
        trigger = list(assignment)[-1]
        joins = {}
        for name in assignment:
            claim = (owned or {}).get(name)
            joins[name] = self.joins(name, instance=instances.get(name), owned={"t": claim} if claim else None)
            if begins and name == next(iter(assignment)):
                self.state(before, PREPARING, self._generation, cause, member_id=trigger)
        return self.completes(joins, assignment, protocol=protocol)

    def completes(self, joins: dict[str, Line], assignment: dict[str, list[int]], *, protocol: str = "range") -> int:
        """Complete the join phase: the members that joined form the next generation and sync."""
        self._generation += 1
        generation = self._generation
        self.state(PREPARING, COMPLETING, generation, "joined")
        leader = next(iter(joins))
        for name, asked in joins.items():
            members = list(joins) if name == leader else []
            told = {"protocol": protocol, "leader": leader, "members": members}
            self.answers(asked, generation=generation, body=told)
        given = {name: {"t": numbers} for name, numbers in assignment.items()}
        syncs = {}
        for name, asked in joins.items():
            body = {"assignments": given} if name == leader else None
            syncs[name] = self.asks(
                "SyncGroup",
                name,
                member_id=name,
                instance_id=asked.get("instance_id"),
                generation=generation,
                body=body,
            )
        self.state(COMPLETING, STABLE, generation, "assigned", member_id=leader)
        for name, asked in syncs.items():
            self.answers(asked, body={"assignment": given.get(name)})
        return generation


def judge(
    tale: Tale, check: str, current: StableAssignment | None = None, *, auto_commit: bool | None = None
) -> Verdict:
    """Return the verdict of one client check on the lines."""
    verdicts = {verdict.id: verdict for verdict in conformance(tale.trace, current, auto_commit=auto_commit)}
    return verdicts[check]
