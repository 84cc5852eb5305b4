"""Record the traces for the tests of the pages: run `python tests/pages/record.py` by hand.

Real clients on the emulator. What every client does all the time (metadata, fetches) is left out, for the sake of size.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import kafka

from koordinator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator import Cluster

TRACES = Path(__file__).parent / "traces"
GROUP = "orders-svc"
LEFT_OUT = {"ApiVersions", "Metadata", "Fetch", "ListOffsets", "FindCoordinator"}
PATIENCE_S = 120


@contextmanager
def recorded(name: str) -> Iterator[Cluster]:
    with Emulator(topics={"orders": 6}, seed=1) as cluster:
        yield cluster
        lines = cluster._port.trace_lines()
    kept = [line for line in lines if line.get("error") or line.get("api") not in LEFT_OUT]
    (TRACES / f"{name}.jsonl").write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in kept))


class Member:
    """A consumer on its own thread, from `start` to `close`."""

    def __init__(self, cluster: Cluster, name: str, **extra: object) -> None:
        self.name = name
        self._config = cluster.client_config("kafka-python", group_id=GROUP, client_id=name, **extra)
        self._over = threading.Event()

    def start(self) -> None:
        self._over.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        consumer = kafka.KafkaConsumer("orders", **self._config)
        while not self._over.is_set():
            consumer.poll(timeout_ms=100)
        consumer.close()

    def close(self) -> None:
        self._over.set()
        self._thread.join()


def static_bounce() -> None:
    with recorded("static_bounce") as cluster:
        members = [Member(cluster, f"svc-{number}", group_instance_id=f"svc-{number}") for number in (1, 2, 3)]
        for count, member in enumerate(members, start=1):
            member.start()
            cluster.group(GROUP).wait_stable(members=count)
        time.sleep(1)
        members[1].close()
        time.sleep(0.6)
        members[1].start()
        time.sleep(1.2)
        kept = cluster.events()[-1]["seq"]
        for member in members:
            member.close()
    cut("static_bounce", kept)


def cooperative() -> None:
    with recorded("cooperative") as cluster:
        consumers = [librdkafka(cluster, name, "cooperative-sticky") for name in ("C1", "C2")]
        group = cluster.group(GROUP)
        poll_until(consumers, lambda: len(owned(group)) == len(consumers) and group.state == "Stable")
        poll_for(consumers, 1.2)
        consumers.append(librdkafka(cluster, "C3", "cooperative-sticky"))
        poll_until(consumers, lambda: len(owned(group)) == len(consumers) and group.state == "Stable")
        poll_for(consumers, 1.0)
        kept = cluster.events()[-1]["seq"]
        for consumer in consumers:
            consumer.close()
    cut("cooperative", kept)


def late_commit() -> None:
    """A member is too slow to rejoin, is removed when the join barrier expires, and commits."""
    with recorded("late_commit") as cluster:
        group = cluster.group(GROUP)
        slow = librdkafka(cluster, "slow", "range")
        # with a callback it rejoins only when it is polled
        slow.subscribe(["orders"], on_revoke=lambda *_: None)
        poll_until([slow], lambda: group.state == "Stable" and len(owned(group)) == 1)
        poll_for([slow], 0.5)
        quick = librdkafka(cluster, "quick", "range")
        poll_until([quick], lambda: group.state == "PreparingRebalance")
        poll_for([quick], 0.8)
        group.expire_join_phase()
        poll_until([quick], lambda: group.state == "Stable" and len(owned(group)) == 1)
        with suppress(confluent_kafka.KafkaException):
            slow.commit(offsets=[confluent_kafka.TopicPartition("orders", 2, 41)], asynchronous=False)
        group.assert_request("OffsetCommit", error="UNKNOWN_MEMBER_ID", times=1)
        poll_for([quick], 0.5)
        kept = cluster.events()[-1]["seq"]
        for consumer in (slow, quick):
            consumer.close()
    cut("late_commit", kept)


def librdkafka(cluster: Cluster, name: str, assignor: str) -> confluent_kafka.Consumer:
    extra: dict[str, Any] = {"group.id": GROUP, "client.id": name, "partition.assignment.strategy": assignor}
    consumer = confluent_kafka.Consumer(cluster.client_config("confluent-kafka", **extra))
    consumer.subscribe(["orders"])
    return consumer


def owned(group: Any) -> list[dict[str, list[int]]]:
    return [each for each in group.assignment.values() if any(each.values())]


def poll_for(consumers: list[confluent_kafka.Consumer], seconds: float) -> None:
    until = time.monotonic() + seconds
    poll_until(consumers, lambda: time.monotonic() > until)


def poll_until(consumers: list[confluent_kafka.Consumer], is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        for consumer in consumers:
            consumer.poll(0.02)


def cut(name: str, last_seq: int) -> None:
    """Remove the end of the trace, in which all members leave."""
    path = TRACES / f"{name}.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in lines if json.loads(line).get("seq", 0) <= last_seq))


if __name__ == "__main__":
    for record in (static_bounce, cooperative, late_commit):
        record()
