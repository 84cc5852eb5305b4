"""Supervisor of a cluster's scripted producers: it sends their requests and delivers responses. A `Ticker` of nodes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS, REQUEST_KEYS, ApiKey

from ...broker.connections import Answer
from ...broker.releases import ACCEPTED
from ...core.data.topic import NO_LEADER
from ...core.transactions.ending import TV2

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from koordinator.wire.apis import Message

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Inbox, Output
    from .producer import ProducerStep, ScriptedProducer

VERSION_2_MAX: Mapping[ApiKey, int] = {ApiKey.PRODUCE: 12, ApiKey.TXN_OFFSET_COMMIT: 5}
"""The last versions that name topics; later ones have topic ids, which puppets do not resolve."""

VERSION_1_MAX: Mapping[ApiKey, int] = {
    ApiKey.PRODUCE: 11,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.END_TXN: 4,
}
"""The last versions before transaction version 2; later ones of AddPartitionsToTxn are for brokers (KIP-890)."""


class ProducerSupervisor:
    """The scripted producers of a cluster, by name."""

    def __init__(self, runtime: ClusterRuntime) -> None:
        self.producers: dict[str, ScriptedProducer] = {}
        self._runtime = runtime
        self._inbox: Inbox = deque()
        self._connections: dict[int, tuple[ScriptedProducer, int]] = {}
        self._outputs: list[Output] = []

    def add(self, producer: ScriptedProducer) -> None:
        """Add a producer, whose responses are delivered from now on."""
        self._runtime.tickers[self] = None
        self.producers[producer.name] = producer

    def stop_all(self, now: int) -> None:
        """Remove all producers, like killed processes: their transactions stay open."""
        for number in self._connections:
            self._runtime.disconnected(now, number)
        self._connections.clear()
        self._runtime.tickers.pop(self, None)
        self.producers.clear()

    def start(
        self, now: int, producer: ScriptedProducer, script: Generator[ProducerStep, Message | None, None]
    ) -> None:
        """Perform a step of a producer, as far as it needs no waiting."""
        producer.script = producer.guarded(script)
        self._advance(now, producer, None)

    def stop(self, now: int, producer: ScriptedProducer) -> None:
        """Close the connections of a producer, which gives its pending step up."""
        producer.script = producer.waits_for = producer.waits_at = None
        for number in [number for number, (owner, _) in self._connections.items() if owner is producer]:
            del self._connections[number]
            self._runtime.disconnected(now, number)

    # -- ticker ----------------------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """Return the time of the next `tick`: at once if responses wait for delivery."""
        return min((at for at, _ in self._inbox), default=None)

    def tick(self, now: int) -> list[Output]:
        """Deliver responses; return the outputs of the nodes."""
        while self._inbox:
            at, item = self._inbox.popleft()
            producer, _ = self._connections.get(item.connection, (None, 0))
            if not isinstance(item, Answer):
                self._connections.pop(item.connection, None)
            if producer is not None and producer.waits_at == item.connection:
                self._advance(max(at, now), producer, item.response if isinstance(item, Answer) else None)
        outputs, self._outputs = self._outputs, []
        return outputs

    def group_deadline(self, group_id: str) -> None:
        """Return None: no deadline depends on a group's clock."""

    def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
        """Do nothing: no deadline depends on a group's clock."""

    # -- network ---------------------------------------------------------------------------------------------

    @property
    def is_version_2(self) -> bool:
        """Whether clients of this cluster use transaction version 2."""
        broker = next(iter(self._runtime), None)
        return broker is not None and broker.node.transactions.store.transaction_version >= TV2

    def version(self, key: ApiKey) -> int:
        """Return the version of an API that the producers use."""
        newest = ACCEPTED[self._runtime.cluster.settings.kafka_version][key].max
        return min(newest, (VERSION_2_MAX if self.is_version_2 else VERSION_1_MAX).get(key, newest))

    def bootstrap_node(self) -> int:
        """Return a node to ask for a coordinator; NO_LEADER if all nodes are down."""
        return next((node_id for node_id, state in self._runtime.states.items() if state != "down"), NO_LEADER)

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader of a partition; without such a partition any node, which refuses the request."""
        known = self._runtime.cluster.topics.find(topic)
        return self.bootstrap_node() if known is None or known.log(partition) is None else known.leader(partition)

    def _advance(self, now: int, producer: ScriptedProducer, response: Message | None) -> None:
        script = producer.script
        assert script is not None, "a response belongs to a step"
        try:
            step = script.send(response)
        except StopIteration:
            producer.script = producer.waits_for = producer.waits_at = None
            return
        key = REQUEST_KEYS[type(step.request)]
        producer.waits_for = APIS[key].name
        number = producer.waits_at = self._connection(now, producer, step.node_id)
        self._outputs += self._runtime.send_message(now, number, self.version(ApiKey(key)), step.request)

    def _connection(self, now: int, producer: ScriptedProducer, node_id: int) -> int:
        for number, owner in self._connections.items():
            if owner == (producer, node_id):
                return number
        number = self._runtime.connect_in_process(now, node_id, producer.client_id, self._inbox)
        self._connections[number] = producer, node_id
        return number
