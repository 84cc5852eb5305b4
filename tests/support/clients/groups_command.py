"""`koordinator groups` and `offsets` in tests: running them, and raw members for them to show, on any cluster."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from builders import requests

from koordinator.cli import main
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.client.errors import RequiredVersion
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    write_assignment,
)
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.messages.offset_commit import (
    OffsetCommitResponse,
)
from koordinator.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WAIT_S = 60.0
SESSION_MS = 30_000


@dataclass
class Ran:
    """The exit status and output of a command."""

    command: str
    status: int
    out: str
    err: list[str]
    program: str = "groups"

    @property
    def failures(self) -> list[str]:
        """The lines on stderr, without the leading name of the command."""
        prefix = f"koordinator {self.program} {self.command}: "
        assert all(line.startswith(prefix) for line in self.err)
        return [line.removeprefix(prefix) for line in self.err]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the tables, split at two spaces, without the lines below the headers."""
        lines = [line.rstrip() for line in self.out.splitlines() if line.strip(" ─-")]
        return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def runner(capsys: pytest.CaptureFixture[str], program: str = "groups") -> Callable[..., Ran]:
    """Return a function that runs `koordinator groups`, or another program, in this process."""

    def run_it(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as end:
            main([program, *arguments])
        output = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Ran(arguments[0], end.value.code, output.out, output.err.splitlines(), program)

    return run_it


def link(bootstrap: str) -> BrokerConnection:
    host, _, port = bootstrap.rpartition(":")
    return BrokerConnection(Address(host, int(port)), Deadline(WAIT_S), "1")


BY_NAME_UNTIL = {ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9, ApiKey.FETCH: 12}
"""The last versions that name topics: later ones use topic ids."""


def ask(there: BrokerConnection, request: Any, need: ApiKey, response: type[Any]) -> Any:
    """Send a request in the newest version that names topics."""
    return there.send(request, there.version(RequiredVersion(need, 0, ""), BY_NAME_UNTIL.get(need)), response)


@dataclass
class _Raw:
    """A member on its own connection."""

    group_id: str
    topic: str
    instance_id: str | None
    there: BrokerConnection
    joined: JoinGroupResponse = field(default_factory=lambda: JoinGroupResponse(protocol_name=None))

    def join(self) -> None:
        request = requests.join_group(
            self.group_id,
            self.joined.member_id,
            self.instance_id,
            session_ms=SESSION_MS,
            rebalance_ms=SESSION_MS,
            protocols=(("range", requests.subscription(self.topic)),),
        )
        self.joined = ask(self.there, request, ApiKey.JOIN_GROUP, JoinGroupResponse)
        if self.joined.error_code == Error.MEMBER_ID_REQUIRED:
            self.join()
        assert self.joined.error_code == Error.NONE

    def sync(self, plan: Mapping[str, bytes]) -> None:
        request = requests.sync_group(
            self.group_id,
            self.joined.generation_id,
            self.joined.member_id,
            plan if self.joined.leader == self.joined.member_id else {},
            self.instance_id,
            protocol=("consumer", "range"),
        )
        assert ask(self.there, request, ApiKey.SYNC_GROUP, SyncGroupResponse).error_code == Error.NONE

    def beat(self) -> int:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.joined.generation_id,
            member_id=self.joined.member_id,
            group_instance_id=self.instance_id,
        )
        answer = ask(self.there, request, ApiKey.HEARTBEAT, HeartbeatResponse)
        assert isinstance(answer, HeartbeatResponse)
        return answer.error_code


def form(bootstrap: str, group_id: str, *instance_ids: str | None, topic: str = "t") -> list[str]:
    """Form a stable group with a static member per instance id, and a dynamic one for None.

    Members join in this order: each waits until the earlier ones have learned of the rebalance by a heartbeat. Each
    receives the partition of its index. Returns their member ids.
    """
    members: list[_Raw] = []
    with ThreadPoolExecutor(len(instance_ids)) as threads:
        for instance_id in instance_ids:
            there = link(bootstrap)
            newcomer = _Raw(group_id, topic, instance_id, there)
            joining = threads.submit(newcomer.join)
            for member in members:
                # the link's deadline bounds this
                while member.beat() != Error.REBALANCE_IN_PROGRESS:
                    assert there.deadline.left(), "nobody tells the members that there is a newcomer"
            for rejoining in [threads.submit(member.join) for member in members]:
                rejoining.result()
            joining.result()
            members.append(newcomer)
        plan = {
            member.joined.member_id: write_assignment(
                ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic=topic, partitions=(place,)),))
            )
            for place, member in enumerate(members)
        }
        list(threads.map(lambda member: member.sync(plan), members))
    for member in members:
        member.there.close()
    return [member.joined.member_id for member in members]


def commit(bootstrap: str, group_id: str, offsets: Mapping[int, int], topic: str = "t") -> None:
    """Commit offsets in a group without members."""
    there = link(bootstrap)
    request = requests.offset_commit(group_id, {(topic, number): offset for number, offset in offsets.items()})
    answer = ask(there, request, ApiKey.OFFSET_COMMIT, OffsetCommitResponse)
    assert {row.error_code for each in answer.topics for row in each.partitions} == {Error.NONE}
    there.close()
