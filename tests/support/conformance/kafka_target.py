"""A running Kafka as a target, over sockets; it can be restarted on its own log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.socket_target import SocketTarget
from conformance.targets import CLOSE_S, Durable
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from brokers.real_kafka import RealKafka

LOAD_S = 30
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

    def crash(self, group: str) -> None:
        self._kafka.restart(crash=True)
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
