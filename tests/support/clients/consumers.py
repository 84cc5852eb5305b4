"""Group members: consumers of the real clients behind one interface, each polled by its own thread.

A test waits for the clients' own reports (`wait_until`), and asks the cluster for its view.
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

from koordinator.emulator.control.inspect.events import Events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from koordinator import Cluster, Group

    Partition = tuple[str, int]
    Record = tuple[str, int, int, bytes]

KINDS = ("kafka-python", "confluent-kafka", "aiokafka")

ASSIGNORS = {
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "confluent-kafka": ("range", "roundrobin", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
}
"""The assignors of each client."""

PATIENCE_S = 180.0
"""The default limit of a wait; successful waits take a second or two."""

LONG_SESSION_MS = 30_000
"""The session timeout of a member that sends its heartbeats."""

POLL_MS = 50
"""The length of a poll, and so the delay before a member acts on a request."""


WARNINGS_OF_CLIENTS = (
    # kafka-python loads its message schemas this way on import, and more of them later
    "ignore:(open|read)_text is deprecated:DeprecationWarning",
    # kafka-python sometimes forgets a connection that was opening during close
    "ignore:unclosed <socket.socket:ResourceWarning",
)
"""Warnings of the clients that any broker would cause."""


def patient_poll_ms(kind: str) -> int:
    """Return the poll length of a member whose topics change during the poll.

    If a poll of kafka-python 3.0.12 ends just when the leader has begun to rejoin because of new metadata alone, the
    next poll ignores the response (`join_group_async`, where `need_rejoin` is already false): the member owns nothing,
    sends no heartbeats, and does not rejoin after its session expires. So no poll should end during the change.
    """
    return 15_000 if kind == "kafka-python" else POLL_MS


def assignor_settings(kind: str, assignor: str) -> dict[str, Any]:
    """Return the client setting that selects a single assignor."""
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
            # it keeps its assignment on the class: each member of a process needs its own class
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
    """Return the client's own partition object."""
    if kind == "kafka-python":
        import kafka  # noqa: PLC0415

        return kafka.TopicPartition(topic, number)
    if kind == "aiokafka":
        import aiokafka  # noqa: PLC0415

        return aiokafka.TopicPartition(topic, number)
    import confluent_kafka  # noqa: PLC0415

    return confluent_kafka.TopicPartition(topic, number)


class Member:
    """A consumer and its thread. The test's thread may read its observations at any time.

    `poll_ms` is the length of a poll and may be changed. `assignment` is the client's own view, `records` the delivered
    ones, `callbacks` the rebalance callbacks, `missed` topics that the client reports as unknown, `error` the one that
    ended it. With `goes_on` it polls again after each error; `errors` has them all.
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

    @property
    def values(self) -> list[bytes]:
        """Return the values of the delivered records."""
        return [record[3] for record in self.records]

    def do(self, wish: Callable[[Any], Any]) -> Any:
        """Call a function with the client's consumer between two polls; return or raise its result."""
        return self.begin(wish).result(PATIENCE_S)

    def begin(self, wish: Callable[[Any], Any]) -> Future[Any]:
        """Call a function with the client's consumer without waiting."""
        result: Future[Any] = Future()
        self._wishes.put((wish, result))
        return result

    def commit(self) -> None:
        """Commit the consumed offsets, and wait."""
        self.begin_commit().result(PATIENCE_S)

    def begin_commit(self) -> Future[Any]:
        """Commit the consumed offsets without waiting."""
        how = {"asynchronous": False} if self.kind == "confluent-kafka" else {}
        return self.begin(lambda consumer: consumer.commit(**how))

    def close(self) -> None:
        """Close the client in an orderly way. Raises the error that ended it."""
        self.join()
        if self.error is not None:
            raise self.error

    def join(self) -> None:
        """Close the client, and keep the error that ended it in `error`."""
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{self!r} does not end"

    def wait_polled(self, until: float) -> None:
        """Wait for the end of the current poll, at most until a point of the monotonic clock."""
        with self._polled:
            self._polled.wait(until - time.monotonic())

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
        """Let an error of a poll end the member, unless it continues after errors."""
        try:
            yield
        except Exception as error:
            if not self.goes_on:
                raise
            self.errors.append(error)
            # some clients fail again at once
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
            # otherwise it joins before it knows the partitions, and again afterwards: see `patient_poll_ms`
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
                        # reported once; the client keeps looking for the topic
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
    """Return a client's name of its error: a code in confluent-kafka, classes in others, vague ones in aiokafka."""
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
    """Wait until the predicate holds, checking after each poll of the members; fail if one of them ends."""
    until = time.monotonic() + patience_s
    turn = 0
    while not predicate():
        for member in members:
            if member.error is not None:
                raise AssertionError(f"{what}: {member!r}") from member.error
        left = until - time.monotonic()
        assert left > 0, f"waited {patience_s:g} s in vain for: {what}; {list(members)}"
        # round robin, as any member may bring it about
        members[turn % len(members)].wait_polled(min(until, time.monotonic() + 4 * POLL_MS / 1000))
        turn += 1


def wait_settled(group: Group) -> None:
    """Wait until no member of a stable classic group has a reason to rejoin.

    kafka-python 3.0.12 discards a join that completes between two polls (`join_group_async`, where `_join_task` is
    already done) and joins again; if it leads the group, that is a rebalance. It sends heartbeats only after it has
    taken the result. So every member must have had a successful heartbeat in the current generation.
    """
    until = time.monotonic() + PATIENCE_S
    events: list[dict[str, Any]] = []
    while True:
        since = events[-1]["seq"] if events else 0
        events += group._port.wait(Events.read, until - time.monotonic(), group=group.id, since=since)
        seen = group.describe()
        beating = {
            event["member_id"]
            for event in events
            if (event["kind"], event.get("api"), event.get("generation")) == ("response", "Heartbeat", seen.generation)
            and not event["error_code"]
        }
        if seen.state == "Stable" and beating >= {member.member_id for member in seen.members}:
            return
        assert time.monotonic() < until, f"no heartbeats of all members: {seen}, {beating}"


class Members:
    """Adds members to groups of a cluster, with the settings of `Cluster.client_config`; ends them all."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.all: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for member in self.all:
                # stop all at the same time and wait for each, even if another fails
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
        """Add a member. `instance` makes it static; `extra` are the client's own settings.

        Its session is long, so that on a busy machine only a test's own doing ends it.
        """
        extra.setdefault("session_timeout_ms", LONG_SESSION_MS)
        if instance is not None:
            extra["group_instance_id"] = instance
        config = self.cluster.client_config(kind, group_id=group, **extra)
        return self.start(kind, config, topics, poll_ms, goes_on=goes_on)

    def default(self, kind: str, *, topics: Sequence[str] = ("t",), group: str = "g") -> Member:
        """Add a member with only the settings that its client needs to join a group."""
        if kind == "confluent-kafka":
            config: dict[str, object] = {"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": group}
        else:
            config = {"bootstrap_servers": self.cluster.bootstrap_servers, "group_id": group}
        return self.start(kind, config, topics)

    @contextmanager
    def process(self, kind: str, *, group: str = "g", **extra: object) -> Iterator[subprocess.Popen[bytes]]:
        """Run a member of topic t in its own process; it is killed at the end at the latest."""
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
        """Add a member with these settings."""
        member = Member(kind, config, topics, poll_ms, goes_on=goes_on)
        self.all.append(member)
        return member


def main() -> None:
    """Run a member of topic t until this process is killed or its parent ends."""
    member = Member(sys.argv[1], json.loads(sys.argv[2]), ["t"])
    sys.stdin.read()
    member.close()


if __name__ == "__main__":
    main()
