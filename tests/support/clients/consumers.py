"""Members of groups: consumers of the real clients, each polled by a thread of its own, all brought to one shape.

A test waits for what the clients themselves say (`wait_until`), and asks the cluster for its side of it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from koordinator import Cluster

    Partition = tuple[str, int]
    Record = tuple[str, int, int, bytes]

KINDS = ("kafka-python", "confluent-kafka", "aiokafka")

ASSIGNORS = {
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "confluent-kafka": ("range", "roundrobin", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
}
"""What each client has."""

PATIENCE_S = 45.0
"""How long a wait lasts before the test fails. What goes well takes a second or two."""

POLL_MS = 50
"""How long a poll waits, and so how soon a member does what it is told."""


WARNINGS_OF_CLIENTS = (
    # kafka-python loads its message schemas so when it is imported, and more of them later
    "ignore:(open|read)_text is deprecated:DeprecationWarning",
    # now and then kafka-python forgets a connection that was being made when it was closed
    "ignore:unclosed <socket.socket:ResourceWarning",
)
"""What the clients do in tests, and would do with any broker."""


def patient_poll_ms(kind: str) -> int:
    """How long each poll waits of a member whose topics change while it waits.

    If a poll of kafka-python 3.0.12 ends just when the leader has begun to join again because of new metadata, and for
    no other reason, the next poll does not look for the answer (`join_group_async`, where `need_rejoin` is false
    already): the member owns nothing, does not beat, and does not join again when its session has ended. So no poll
    should end meanwhile.
    """
    return 15_000 if kind == "kafka-python" else POLL_MS


def assignor_settings(kind: str, assignor: str) -> dict[str, Any]:
    """The client's setting that makes it use an assignor alone."""
    if kind == "confluent-kafka":
        return {"partition_assignment_strategy": assignor}
    return {"partition_assignment_strategy": [_assignor_class(kind, assignor)]}


def _assignor_class(kind: str, assignor: str) -> object:
    if kind == "aiokafka":
        from aiokafka.coordinator.assignors import range as by_range  # noqa: PLC0415
        from aiokafka.coordinator.assignors import roundrobin  # noqa: PLC0415
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # noqa: PLC0415

        return {
            "range": by_range.RangePartitionAssignor,
            "roundrobin": roundrobin.RoundRobinPartitionAssignor,
            # it remembers its assignment on the class: the members of one process need a class each
            "sticky": type("OwnSticky", (StickyPartitionAssignor,), {}),
        }[assignor]
    from kafka.coordinator.assignors import cooperative_sticky, range, roundrobin  # noqa: A004, PLC0415
    from kafka.coordinator.assignors.sticky.sticky_assignor import (  # noqa: PLC0415
        StickyPartitionAssignor as KafkaPythonSticky,
    )

    return {
        "range": range.RangePartitionAssignor,
        "roundrobin": roundrobin.RoundRobinPartitionAssignor,
        "sticky": KafkaPythonSticky,
        "cooperative-sticky": cooperative_sticky.CooperativeStickyAssignor,
    }[assignor]


def partition_of(kind: str, topic: str, number: int) -> Any:
    """The client's own name of a partition."""
    if kind == "kafka-python":
        import kafka  # noqa: PLC0415

        return kafka.TopicPartition(topic, number)
    if kind == "aiokafka":
        import aiokafka  # noqa: PLC0415

        return aiokafka.TopicPartition(topic, number)
    import confluent_kafka  # noqa: PLC0415

    return confluent_kafka.TopicPartition(topic, number)


class Member:
    """A consumer and its thread. What it has seen may be read from the test's thread at any time.

    `poll_ms`, how long each poll waits, may be changed. `assignment` is what the client says it owns, `records` what
    it was given, `callbacks` the rebalance callbacks that it made, `missed` topics it said it cannot find, `error`
    what it gave up with. With `goes_on` it polls again after an error, as often as it has to; `errors` has them all.
    """

    def __init__(
        self,
        kind: str,
        config: dict[str, object],
        topics: Sequence[str],
        poll_ms: int = POLL_MS,
        *,
        goes_on: bool = False,
    ) -> None:
        self.kind = kind
        self.goes_on = goes_on
        self.poll_ms = poll_ms
        self.config = config
        self.topics = list(topics)
        self.assignment: frozenset[Partition] = frozenset()
        self.records: list[Record] = []
        self.callbacks: list[tuple[str, frozenset[Partition]]] = []
        self.missed: list[str | None] = []
        self.errors: list[Exception] = []
        self.polls = 0
        self.error: BaseException | None = None
        self._polled = threading.Condition()
        self._wishes: queue.SimpleQueue[tuple[Callable[[Any], object], Future[Any]]] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member {kind}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        state = f"gave up with {self.error!r}" if self.error else f"owns {sorted(self.assignment)}"
        return f"<{self.kind} {state}, {len(self.records)} records>"

    # -- for the test ------------------------------------------------------------------------------------------

    @property
    def values(self) -> list[bytes]:
        """The values of the records that came."""
        return [record[3] for record in self.records]

    def do(self, wish: Callable[[Any], Any]) -> Any:
        """Call a function with the client's own consumer, between two polls; returns or raises what it does."""
        return self.begin(wish).result(PATIENCE_S)

    def begin(self, wish: Callable[[Any], Any]) -> Future[Any]:
        """The same without waiting for it."""
        result: Future[Any] = Future()
        self._wishes.put((wish, result))
        return result

    def commit(self) -> None:
        """Commit what was consumed, and wait for it."""
        self.begin_commit().result(PATIENCE_S)

    def begin_commit(self) -> Future[Any]:
        """Commit what was consumed."""
        how = {"asynchronous": False} if self.kind == "confluent-kafka" else {}
        return self.begin(lambda consumer: consumer.commit(**how))

    def close(self) -> None:
        """Close the client as a program does that ends in order. Raises what the client gave up with."""
        self.join()
        if self.error is not None:
            raise self.error

    def join(self) -> None:
        """The same, and whatever it gave up with is kept in `error`."""
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{self!r} does not end"

    def wait_polled(self, until: float) -> None:
        """Wait for the end of the poll that is running, not beyond a point of the monotonic clock."""
        with self._polled:
            self._polled.wait(until - time.monotonic())

    # -- on the member's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        run = {"kafka-python": self._kafka_python, "confluent-kafka": self._confluent, "aiokafka": self._aiokafka}
        try:
            run[self.kind]()
        except Exception as error:  # noqa: BLE001 - it belongs to the test
            self.error = error
        finally:
            self._saw((), ())
            while not self._wishes.empty():
                self._wishes.get()[1].set_exception(RuntimeError(f"{self!r} has ended"))

    def _saw(self, records: Iterable[Record], assignment: Iterable[Any]) -> None:
        with self._polled:
            self.polls += 1
            self.records.extend(records)
            self.assignment = _partitions(assignment)
            self._polled.notify_all()

    @contextmanager
    def _polling(self) -> Iterator[None]:
        """What a poll raises ends the member, unless it goes on."""
        try:
            yield
        except Exception as error:
            if not self.goes_on:
                raise
            self.errors.append(error)
            # there are clients that fail again at once
            self._stopped.wait(POLL_MS / 1000)

    def _callback(self, name: str) -> Callable[..., None]:
        return lambda *of: self.callbacks.append((name, _partitions(of[-1])))

    def _wished(self, consumer: object) -> Iterator[tuple[Future[Any], Any]]:
        while not self._wishes.empty():
            wish, result = self._wishes.get()
            try:
                yield result, wish(consumer)
            except Exception as error:  # noqa: BLE001 - it belongs to the test
                result.set_exception(error)

    def _kafka_python(self) -> None:
        import kafka  # noqa: PLC0415

        consumer = kafka.KafkaConsumer(**self.config)
        try:
            consumer.subscribe(self.topics, listener=self._listener(kafka.ConsumerRebalanceListener))
            # else it joins before it knows the partitions, and again when it does: see `patient_poll_ms`
            for topic in self.topics:
                consumer.partitions_for_topic(topic)
            while not self._stopped.is_set():
                batches: dict[Any, Any] = {}
                with self._polling():
                    batches = consumer.poll(timeout_ms=self.poll_ms)
                self._saw(_records(batches), consumer.assignment())
                for result, outcome in self._wished(consumer):
                    result.set_result(outcome)
        finally:
            consumer.close()

    def _confluent(self) -> None:
        from confluent_kafka import Consumer, KafkaError, KafkaException  # noqa: PLC0415

        consumer = Consumer(dict(self.config))
        try:
            callbacks = {f"on_{name}": self._callback(name) for name in ("assign", "revoke", "lost")}
            consumer.subscribe(self.topics, **callbacks)
            while not self._stopped.is_set():
                records = []
                for message in consumer.consume(500, timeout=self.poll_ms / 1000):
                    error = message.error()
                    if error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        # it says so once, and goes on looking for the topic
                        self.missed.append(message.topic())
                        continue
                    with self._polling():
                        if error is not None:
                            raise KafkaException(error)
                        records.append((message.topic(), message.partition(), message.offset(), message.value()))
                self._saw(records, consumer.assignment())  # type: ignore[arg-type]
                for result, outcome in self._wished(consumer):
                    result.set_result(outcome)
        finally:
            consumer.close()

    def _aiokafka(self) -> None:
        import aiokafka  # noqa: PLC0415

        async def consume() -> None:
            consumer = aiokafka.AIOKafkaConsumer(**self.config)
            try:
                consumer.subscribe(self.topics, listener=self._listener(aiokafka.ConsumerRebalanceListener))
                with self._polling():
                    await consumer.start()
                while not self._stopped.is_set():
                    batches: dict[Any, Any] = {}
                    with self._polling():
                        batches = await consumer.getmany(timeout_ms=self.poll_ms)
                    self._saw(_records(batches), consumer.assignment())
                    for result, outcome in self._wished(consumer):
                        try:
                            result.set_result(await outcome if inspect.isawaitable(outcome) else outcome)
                        except Exception as error:  # noqa: BLE001 - it belongs to the test
                            result.set_exception(error)
            finally:
                await consumer.stop()

        asyncio.run(consume())

    def _listener(self, base: type) -> object:
        return type(
            "Listener",
            (base,),
            {
                "on_partitions_assigned": self._callback("assign"),
                "on_partitions_revoked": self._callback("revoke"),
                "on_partitions_lost": self._callback("lost"),
            },
        )()


def error_name(error: BaseException) -> str:
    """What a client calls its error: confluent-kafka names the code, the others have classes, aiokafka vague ones."""
    name = type(error).__name__
    if name == "KafkaException":
        return str(error.args[0].name())
    return str(error) if name == "KafkaError" else name


def _partitions(of: Iterable[Any]) -> frozenset[Partition]:
    return frozenset((each.topic, each.partition) for each in of)


def _records(batches: Any) -> Iterator[Record]:
    for batch in batches.values():
        for record in batch:
            yield record.topic, record.partition, record.offset, record.value


def wait_until(what: str, predicate: Callable[[], bool], *members: Member, patience_s: float = PATIENCE_S) -> None:
    """Wait until the predicate holds, looking after each poll of the members; fails if one of them gives up."""
    until = time.monotonic() + patience_s
    turn = 0
    while not predicate():
        for member in members:
            if member.error is not None:
                raise AssertionError(f"{what}: {member!r}") from member.error
        left = until - time.monotonic()
        assert left > 0, f"waited {patience_s:g} s in vain for: {what}; {list(members)}"
        # each in turn, as any of them may be the one to bring it about
        members[turn % len(members)].wait_polled(min(until, time.monotonic() + 4 * POLL_MS / 1000))
        turn += 1


class Members:
    """Lets members join the groups of a cluster, with the settings of `Cluster.client_config`; ends them all."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.all: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for member in self.all:
                # they end at the same time, and each is waited for, whatever the others do
                member._stopped.set()
                stack.callback(member.join)

    def __call__(
        self,
        kind: str,
        *,
        topics: Sequence[str] = ("t",),
        group: str = "g",
        instance: str | None = None,
        poll_ms: int = POLL_MS,
        goes_on: bool = False,
        **extra: object,
    ) -> Member:
        """One more member. `instance` makes it a static one; `extra` are the client's own settings."""
        if instance is not None:
            extra["group_instance_id"] = instance
        config = self.cluster.client_config(kind, group_id=group, **extra)
        return self.start(kind, config, topics, poll_ms, goes_on=goes_on)

    def default(self, kind: str, *, topics: Sequence[str] = ("t",), group: str = "g") -> Member:
        """One more member, with nothing set that its client does not need to join a group."""
        if kind == "confluent-kafka":
            config: dict[str, object] = {"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": group}
        else:
            config = {"bootstrap_servers": self.cluster.bootstrap_servers, "group_id": group}
        return self.start(kind, config, topics)

    @contextmanager
    def process(self, kind: str, *, group: str = "g", **extra: object) -> Iterator[subprocess.Popen[bytes]]:
        """One more member, of topic t, as a process of its own; it is killed at the end, if not before."""
        config = json.dumps(self.cluster.client_config(kind, group_id=group, **extra))
        with subprocess.Popen([sys.executable, __file__, kind, config], stdin=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()

    def start(
        self,
        kind: str,
        config: dict[str, object],
        topics: Sequence[str],
        poll_ms: int = POLL_MS,
        *,
        goes_on: bool = False,
    ) -> Member:
        """One more member, with these settings."""
        member = Member(kind, config, topics, poll_ms, goes_on=goes_on)
        self.all.append(member)
        return member


def main() -> None:
    """A member of topic t in a process of its own, until it is killed, or who started it has ended."""
    member = Member(sys.argv[1], json.loads(sys.argv[2]), ["t"])
    sys.stdin.read()
    member.close()


if __name__ == "__main__":
    main()
