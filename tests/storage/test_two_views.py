"""With a data directory answers and visible state never come apart: no input comes between a change and its write."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR
from builders import requests
from clients.frame_clients import Peer, Wire

from koordinator.emulator.config.options import Options
from koordinator.emulator.core.brokers import PLAINTEXT
from koordinator.emulator.server import build as assemble
from koordinator.emulator.storage.data_dir import DataDir
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from koordinator.wire.messages.offset_commit import (
        OffsetCommitRequest,
    )

START = 1_700_000_000_000
GROUPS = ("g", "h")
CONSUMERS = "consumers"
EVERY_GROUP = (*GROUPS, CONSUMERS)


class Watched(Wire):
    """A cluster in memory (no files) or on a disk, as the server runs it: some clients, and one that looks on."""

    def __init__(self, files: CrashingFiles | None) -> None:
        self.logged: list[str] = []
        self.files = files
        data_dir: Any = None if files is None else DataDir(DIR, self.logged.append, files)  # type: ignore[arg-type]
        config = {"group.max.size": 2, "group.consumer.assignment.interval.ms": 0}
        options = Options(seed=1, topics={"t": 4}, config=config)
        settings, _ = assemble._settings(options)
        self.built = assemble._build_cluster(options, lambda: START * 1000, settings, [], data_dir, self.logged.append)
        self.broker: Any = self.built.runtime
        self.now = START
        self.wall_us = START * 1000
        self.peers = {}
        self._numbers = count(1)
        self._correlation = 0
        self.onlooker = self.connect()

    def connect(self) -> Peer:
        peer = Peer(next(self._numbers))
        self.peers[peer.number] = peer
        self._perform(self.broker.connected(self.now, peer.number, "/127.0.0.1", 1, PLAINTEXT))
        return peer

    def view(self) -> list[Any]:
        """Return what the onlooker is told about all groups."""
        fetched = tuple(OffsetFetchRequestGroup(group_id=group, topics=None) for group in EVERY_GROUP)
        asked: list[tuple[Any, int]] = [
            (DescribeGroupsRequest(groups=GROUPS), 6),
            (ConsumerGroupDescribeRequest(group_ids=(CONSUMERS,)), 1),
            (ListGroupsRequest(), 5),
            (OffsetFetchRequest(groups=fetched), 9),
        ]
        self.onlooker.pieces.clear()
        described, consumers, listed, offsets = [
            self.ask(self.onlooker, message, version) for message, version in asked
        ]
        return [described, consumers, sorted(listed.groups, key=lambda row: row.group_id), offsets]

    def transact(self, message: Any, version: int) -> tuple[Any, list[Any]]:
        """Send a request on a new connection; return its response, None if it is parked, and what is seen then."""
        return self.ask(self.connect(), message, version), self.view()


def commit(group: str, offset: int, member_id: str = "", epoch: int = -1) -> tuple[OffsetCommitRequest, int]:
    return requests.offset_commit(group, {("t", 0): offset}, epoch, member_id), 9


def beat(member_id: str, epoch: int) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    joins: dict[str, Any] = {"rebalance_ms": 30_000, "topics": ("t",), "owned": {}}
    request = requests.consumer_group_heartbeat(CONSUMERS, member_id, epoch, **(joins if epoch == 0 else {}))
    return request, 1


class Story:
    """Random requests; ids and generations are those of earlier answers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.members: dict[str, list[str]] = {group: [] for group in GROUPS}
        self.generations = dict.fromkeys(GROUPS, 1)
        self.epochs: dict[str, int] = {}

    def next(self, number: int) -> tuple[Any, int]:
        group = self.chance.choice(GROUPS)
        member_id = self.chance.choice([*self.members[group], ""])
        consumer = self.chance.choice([*self.epochs, f"m{number}"])
        at = {"group_id": group, "generation_id": self.generations[group], "member_id": member_id}
        plan = dict.fromkeys(self.members[group], b"a")
        sync = requests.sync_group(group, self.generations[group], member_id, plan, protocol=("other", "range"))
        join = requests.join_group(
            group, member_id, rebalance_ms=10_000, protocols=(("range", b""),), protocol_type="other"
        )
        return self.chance.choice(
            [
                (join, 9),
                (join, 9),
                (join, 9),
                (sync, 5),
                (HeartbeatRequest(**at), 4),
                (requests.leave_group(5, group, member_id), 5),
                commit(group, number, member_id, self.generations[group] if member_id else -1),
                beat(consumer, 0),
                beat(consumer, self.epochs.get(consumer, 0)),
                beat(consumer, -1),
                commit(CONSUMERS, number, consumer, self.epochs.get(consumer, 0)),
                (DeleteGroupsRequest(groups_names=(self.chance.choice(EVERY_GROUP),)), 2),
            ]
        )

    def learn(self, request: Any, answer: Any) -> None:
        """Note the ids, generations and epochs of an answer."""
        if isinstance(request, JoinGroupRequest) and answer is not None and answer.member_id:
            if answer.member_id not in self.members[request.group_id]:
                self.members[request.group_id].append(answer.member_id)
            self.generations[request.group_id] = max(answer.generation_id, self.generations[request.group_id])
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            if answer.error_code or request.member_epoch < 0:
                self.epochs.pop(request.member_id, None)
            else:
                self.epochs[request.member_id] = answer.member_epoch


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_data_directory_changes_no_answer_and_nothing_that_others_see(seed: int) -> None:
    memory, disk, story = Watched(None), Watched(CrashingFiles()), Story(seed)
    for number in range(200):
        request, version = story.next(number)
        expected = memory.transact(request, version)
        assert disk.transact(request, version) == expected, number
        assert not disk.broker.broker(1).node.coordinator.store.writes, "a write is in flight"
        story.learn(request, expected[0])
        for each in (memory, disk):
            each.wait(100)


FAILING = {
    "a consumer joins": (beat("m2", 0), Error.NOT_COORDINATOR),
    "a consumer leaves": (beat("m1", -1), Error.NOT_COORDINATOR),
    "an offset is committed": (commit("g", 7), None),
    "a group is deleted": ((DeleteGroupsRequest(groups_names=("g",)), 2), None),
}


@pytest.mark.parametrize("change", FAILING)
def test_nobody_sees_a_state_that_a_failed_write_takes_back(change: str) -> None:
    files = CrashingFiles()
    disk = Watched(files)
    for request, version in (commit("g", 1), beat("m1", 0)):
        disk.transact(request, version)
    before = disk.view()
    files.room = files.used()
    (request, version), error = FAILING[change]
    answer, seen = disk.transact(request, version)
    if error is not None:
        assert Error(answer.error_code) is error
    assert seen == before
    files.room = None
    assert disk.transact(request, version)[1] != before
