"""Operations on scripted producers: create one, and let it take its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.records import Record

from ..record_inputs import seed_records
from ..resolve import group_named, known, member_named
from ..results import ProducerInfo
from .producer import ConsumerGroupMetadata, ScriptedProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from koordinator.wire.apis import Message

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from .producer import ProducerStep
    from .supervisor import ProducerSupervisor

TIMEOUT_MS = 60_000
"""The default of `transaction.timeout.ms` in Kafka's clients."""


class PuppetProducers:
    """Operations on puppet producers. Each returns the producer's state, after all responses that need no waiting.

    They raise ValueError for an unknown producer, and while an earlier step still waits for its response.
    """

    def __init__(
        self, runtime: ClusterRuntime, deliver: Callable[[Iterable[Output]], None], supervisor: ProducerSupervisor
    ) -> None:
        self._runtime = runtime
        self._deliver = deliver
        self._supervisor = supervisor

    def create(
        self,
        _now: int,
        *,
        name: str,
        transactional_id: str | None = None,
        client_id: str | None = None,
        transaction_timeout_ms: int = TIMEOUT_MS,
    ) -> ProducerInfo:
        """Create a producer without a producer id; `init` fetches one. The ids default to the name."""
        if not name:
            raise ValueError("name '': must not be empty")
        producers = self._supervisor.producers
        if name in producers:
            raise ValueError(f"there is a producer {name!r} already")
        producer = ScriptedProducer(
            self._supervisor,
            name,
            name if transactional_id is None else transactional_id,
            name if client_id is None else client_id,
            transaction_timeout_ms,
        )
        self._supervisor.add(producer)
        return _info(producer)

    def list(self, _now: int) -> list[ProducerInfo]:
        """Return all producers, in order of creation."""
        return [_info(producer) for producer in self._supervisor.producers.values()]

    def describe(self, _now: int, *, name: str) -> ProducerInfo:
        """Return a producer's identity and state."""
        return _info(self._producer(name))

    def answered(self, _now: int, *, name: str) -> bool:
        """Return whether a producer waits for no response."""
        return self._producer(name).script is None

    def init(self, now: int, *, name: str, resume: bool = False) -> ProducerInfo:
        """Send InitProducerId, which fences other producers of the transactional id.

        With `resume` it names the producer's identity, to continue after an abortable error (KIP-360).
        """
        return self._perform(now, name, lambda producer: producer.init(resume=resume))

    def produce(self, now: int, *, name: str, topic: str, records: Sequence[Any], partition: int = 0) -> ProducerInfo:
        """Send records, in one batch; first of all AddPartitionsToTxn, where the release needs that."""
        seeds = seed_records(records)
        if not seeds:
            raise ValueError(f"producer {name!r} cannot produce: the list of records is empty")
        rows = [
            Record(
                timestamp=now if each.timestamp is None else each.timestamp,
                key=each.key,
                value=each.value,
                headers=each.headers,
            )
            for each in seeds
        ]
        return self._perform(now, name, lambda producer: producer.produce(topic, partition, rows))

    def send_offsets(
        self,
        now: int,
        *,
        name: str,
        group: str,
        offsets: Sequence[tuple[str, int, int]],
        member: str | None = None,
        generation: int | None = None,
    ) -> ProducerInfo:
        """Send offsets, a list of (topic, partition, offset), to the group's coordinator as part of the transaction.

        With `member` they are those of a member (KIP-447) in the current generation, unless `generation` is given.
        """
        membership = ConsumerGroupMetadata(-1 if generation is None else generation)
        if member is not None:
            target = group_named(self._runtime, group)
            found = member_named(target, member)
            current = target.generation if generation is None else generation
            membership = ConsumerGroupMetadata(current, found.id, found.instance_id)
        by_partition = {(topic, partition): offset for topic, partition, offset in offsets}
        return self._perform(now, name, lambda producer: producer.send_offsets(group, by_partition, membership))

    def commit(self, now: int, *, name: str) -> ProducerInfo:
        """Send EndTxn to commit the transaction."""
        return self._perform(now, name, lambda producer: producer.end(commit=True))

    def abort(self, now: int, *, name: str) -> ProducerInfo:
        """Send EndTxn to abort the transaction."""
        return self._perform(now, name, lambda producer: producer.end(commit=False))

    def stop(self, now: int, *, name: str) -> ProducerInfo:
        """Close the connections of a producer, like a killed process: its transaction stays open.

        Its identity stays: a later step is that of a zombie.
        """
        producer = self._producer(name)
        self._supervisor.stop(now, producer)
        return _info(producer)

    def _perform(
        self, now: int, name: str, script: Callable[[ScriptedProducer], Generator[ProducerStep, Message | None, None]]
    ) -> ProducerInfo:
        producer = self._producer(name)
        if producer.script is not None:
            raise ValueError(f"producer {name!r} still waits for the response to its {producer.waits_for}")
        self._supervisor.start(now, producer, script(producer))
        self._deliver(self._supervisor.tick(now))
        self._deliver(self._runtime.tick(now))
        return _info(producer)

    def _producer(self, name: str) -> ScriptedProducer:
        producers = self._supervisor.producers
        if name not in producers:
            raise ValueError(f"there is no producer {name!r}{known(name, producers)}")
        return producers[name]


def _info(producer: ScriptedProducer) -> ProducerInfo:
    return ProducerInfo(
        name=producer.name,
        transactional_id=producer.transactional_id,
        client_id=producer.client_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        waits_for=producer.waits_for,
        error=None if producer.error is None else producer.error.name,
    )
