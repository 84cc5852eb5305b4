"""Raw members of a consumer group (KIP-848), on the connections of the load process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from measuring.peers import LIMIT_S, Connection, Peers, request

from koordinator.wire import frames
from koordinator.wire.codec import decode
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = 1
KEY = 68
TIMEOUT_MS = 300_000
"""The rebalance timeout: nothing expires during a measurement."""


@dataclass(slots=True)
class ConsumerMember:
    """One member on its connection, with its latest epoch and partitions."""

    connection: Connection
    id: str
    epoch: int = 0
    owned: tuple[TopicPartitions, ...] = ()
    interval_ms: int = 0

    @property
    def partitions(self) -> int:
        """The number of its partitions."""
        return sum(len(row.partitions) for row in self.owned)


class ConsumerMembers:
    """The members of one group, which subscribe to topic t."""

    def __init__(self, peers: Peers, connections: Sequence[Connection], group: str) -> None:
        self.members = {each.fd: ConsumerMember(each, f"m-{number}") for number, each in enumerate(connections)}
        self._group = group
        self._peers = peers

    def settle(self) -> float:
        """Join, and send heartbeats in rounds until each member has one partition; return the seconds.

        Topic t has as many partitions as there are members.
        """
        begun = time.perf_counter()
        self._round()
        while any(member.partitions != 1 for member in self.members.values()) or len(self._epochs()) > 1:
            if time.perf_counter() - begun > LIMIT_S:
                raise TimeoutError(f"after {LIMIT_S:.0f} s the members have the epochs {sorted(self._epochs())}")
            self._round()
        return time.perf_counter() - begun

    def heartbeats(self, member: ConsumerMember, count: int) -> bytes:
        """Return the frames of bare heartbeats, with correlation ids from 0."""
        message = ConsumerGroupHeartbeatRequest(group_id=self._group, member_id=member.id, member_epoch=member.epoch)
        return b"".join(request(message, VERSION, number) for number in range(count))

    def _epochs(self) -> set[int]:
        return {member.epoch for member in self.members.values()}

    def _round(self) -> None:
        for member in self.members.values():
            joins = member.epoch == 0
            message = ConsumerGroupHeartbeatRequest(
                group_id=self._group,
                member_id=member.id,
                member_epoch=member.epoch,
                rebalance_timeout_ms=TIMEOUT_MS if joins else -1,
                subscribed_topic_names=("t",) if joins else None,
                topic_partitions=member.owned,
            )
            member.connection.send(request(message, VERSION))
        self._peers.answers([member.connection for member in self.members.values()], self._beaten)

    def _beaten(self, connection: Connection, frame: bytes) -> None:
        _, body = frames.read_response_header(KEY, VERSION, frame)
        answer = decode(ConsumerGroupHeartbeatResponse, VERSION, frame[body:])
        if answer.error_code:
            raise AssertionError(f"a heartbeat was answered with {Error(answer.error_code).name}")
        member = self.members[connection.fd]
        member.epoch, member.interval_ms = answer.member_epoch, answer.heartbeat_interval_ms
        if answer.assignment is not None:
            member.owned = answer.assignment.topic_partitions
