"""A running Kafka as a target, over sockets: one broker that can be restarted on its own log, or two."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from koordinator.client.admin import Admin
from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.emulator.core.data.topic import OFFSETS_TOPIC
from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from scenarios.socket_target import SocketTarget
from scenarios.targets import CLOSE_S, Cluster, Durable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from brokers.real_kafka import RealKafka

    from koordinator.client.connection import Address
    from scenarios.targets import Target

LOAD_S = 60
"""Time limit for a restarted broker to load a group."""

LOOK_S = 0.1


class KafkaTarget(SocketTarget, Durable):
    """A running broker. Restarts affect everyone connected to it."""

    def __init__(self, kafka: RealKafka, scale: float) -> None:
        super().__init__(f"Kafka {kafka.release.name}", kafka.address, kafka.release, scale)
        self._kafka = kafka
        self._changed = False

    def reload(self, group: str, settings: Mapping[str, object]) -> None:
        self._kafka.restart({name: str(value) for name, value in settings.items()})
        self._changed = bool(settings)
        self._loaded(group)

    def restart(self, group: str, *, crash: bool) -> None:
        self._kafka.restart(crash=crash)
        self._loaded(group)

    def stop(self) -> None:
        super().stop()
        if self._changed:
            self._kafka.restart()

    def _loaded(self, group: str) -> None:
        self.hung_up(CLOSE_S)
        limit = self.seconds + LOAD_S
        while self._state(group) != Error.NONE:
            assert self.seconds < limit, f"{self.name} has not loaded {group} in {LOAD_S} s"
            self.wait(LOOK_S)

    def _state(self, group: str) -> int:
        answer = self.ask("loaded", DescribeGroupsRequest(groups=(group,)), 0).unrecorded()
        assert isinstance(answer, DescribeGroupsResponse)
        return answer.groups[0].error_code


class KafkaPair(SocketTarget, Cluster):
    """Two running brokers."""

    def __init__(self, nodes: Sequence[RealKafka], scale: float) -> None:
        super().__init__(f"Kafka {nodes[0].release.name}", nodes[0].address, nodes[0].release, scale)
        self._nodes = {node.node_id: node for node in nodes}

    def _address_of(self, connection: str) -> Address:
        return self._nodes[self.node_of(connection)].address

    def _coordinator_of(self, group: str) -> int:
        with closing(BrokerConnection(self._nodes[1].address, Deadline(LOAD_S), "1")) as link:
            answer = link.send(FindCoordinatorRequest(key=group), 2, FindCoordinatorResponse)
        assert answer.error_code == Error.NONE, answer
        return answer.node_id

    def _move(self, group: str, node: int, load_s: float = 0) -> None:
        assert not load_s, f"{self.name} loads as fast as it can"
        with Admin((self._nodes[1].address,), LOAD_S, "1") as admin:
            count = len(admin.topics([OFFSETS_TOPIC]).topics[0].partitions)
        row = ReassignablePartition(partition_index=offsets_partition(group, count), replicas=(node,))
        request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=OFFSETS_TOPIC, partitions=(row,)),))
        # node 1 is the controller, or knows it
        with closing(BrokerConnection(self._nodes[1].address, Deadline(LOAD_S), "1")) as link:
            answer = link.send(request, 0, AlterPartitionReassignmentsResponse)
        assert answer.error_code == answer.responses[0].partitions[0].error_code == Error.NONE, answer
        limit = self.seconds + LOAD_S
        while self._coordinator_of(group) != node:
            assert self.seconds < limit, f"{self.name} has not moved {group} in {LOAD_S} s"
            self.wait(LOOK_S)

    def _end(self, node: int, *, crash: bool) -> None:
        self._nodes[node].end(crash=crash)

    def _start_again(self, node: int) -> None:
        self._nodes[node].start_again(crashed=True)


def kafka_target(nodes: Sequence[RealKafka], scale: float) -> Target:
    """Return one broker, or two, as a target."""
    return KafkaTarget(*nodes, scale) if len(nodes) == 1 else KafkaPair(nodes, scale)
