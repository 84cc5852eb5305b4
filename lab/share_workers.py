"""Workers of a share group in virtual time (KIP-932): they acquire records, are busy with each, and accept it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from koordinator.emulator.config.options import Options
from koordinator.handles.cluster import Cluster
from koordinator.handles.simulation import HOST, VirtualTimePort
from koordinator.wire.messages import share_fetch as fetching
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

GROUP, TOPIC = "workers", "jobs"
HEARTBEAT_VERSION, FETCH_VERSION = 1, 2
RECORD_LIMIT = 1
"""The mode in which a fetch acquires no more records than it asks for, not whole batches (KIP-1206)."""

ACCEPT, RELEASE = 1, 2
STEP_MS = 100
"""The time between two looks at idle workers."""

ROUNDS_MAX = 1_000
"""The limit of requests until an expected record comes."""

Job = tuple[int, int]
"""A partition and an offset."""


@dataclass(slots=True)
class _Worker:
    name: str
    connection: int
    inbox: deque[Any]
    epoch: int = 0
    held: Job | None = None
    free_at: int = 0


@dataclass(frozen=True, slots=True)
class RecordDelivery:
    """A delivery: the time in ms since the records were written, the worker, the record."""

    at_ms: int
    worker: str
    job: Job


@dataclass(slots=True)
class WorkRecord:
    """The deliveries of the records, and the time in ms at which each was accepted."""

    started: list[RecordDelivery] = field(default_factory=list)
    accepted_ms: dict[Job, int] = field(default_factory=dict)


class ShareWorkers:
    """A share group of workers that take one record at a time, as a context manager. `work` has its record."""

    def __init__(self, workers: int, partitions: int) -> None:
        self.work = WorkRecord()
        self._partitions = range(partitions)
        self._port = VirtualTimePort(Options(host=HOST, topics={TOPIC: partitions}, seed=1))
        self._runtime = self._port.built.runtime
        self._cluster = Cluster(self._port)
        self._topic_id: Any = None
        self._begun = 0
        self._workers = [self._joined(f"worker-{number}") for number in range(workers)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.stop()

    def write(self, records: int) -> None:
        """Write records to every partition; time counts from here."""
        rows = [{"partition": number, "value": "job"} for number in self._partitions for _ in range(records)]
        self._cluster.topic(TOPIC).produce(rows)
        self._begun = self._port.now

    def run(
        self, seconds: float, busy_s: Callable[[Job], float], *, fails: Callable[[Job], bool] = lambda _: False
    ) -> WorkRecord:
        """Let workers work for some time: `busy_s` is the time for a record; one that `fails` is given back."""
        until = self._port.now + round(seconds * 1000)
        while self._port.now < until:
            for each in self._workers:
                if each.free_at <= self._port.now:
                    self._next(each, busy_s, fails)
            self._port.pass_time(STEP_MS)
        return self.work

    def hang(self, name: str) -> None:
        """Let a worker hang: it keeps its connection and its record, and sends nothing."""
        self._workers = [each for each in self._workers if each.name != name]

    def _next(self, worker: _Worker, busy_s: Callable[[Job], float], fails: Callable[[Job], bool]) -> None:
        done, kind = worker.held, ACCEPT
        if done is not None:
            kind = RELEASE if fails(done) else ACCEPT
            if kind == ACCEPT:
                self.work.accepted_ms[done] = self._port.now - self._begun
        worker.held = self._fetch(worker, done, kind)
        if worker.held is not None:
            self.work.started.append(RecordDelivery(self._port.now - self._begun, worker.name, worker.held))
            worker.free_at = self._port.now + round(1000 * busy_s(worker.held))

    def _joined(self, name: str) -> _Worker:
        inbox: deque[Any] = deque()
        worker = _Worker(name, self._runtime.connect_in_process(self._port.now, 1, name, inbox), inbox)
        epoch = 0
        for _ in range(ROUNDS_MAX):
            topics = None if epoch else (TOPIC,)
            request = ShareGroupHeartbeatRequest(
                group_id=GROUP, member_id=name, member_epoch=epoch, subscribed_topic_names=topics
            )
            answer = self._ask(worker, HEARTBEAT_VERSION, request)
            epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                self._topic_id = answer.assignment.topic_partitions[0].topic_id
                break
            self._port.pass_time(STEP_MS)
        # the first fetches load the partitions, which begin at their ends
        for _ in self._partitions:
            self._fetch(worker, None, ACCEPT)
        return worker

    def _fetch(self, worker: _Worker, done: Job | None, kind: int) -> Job | None:
        """Acknowledge a record and acquire another one; return it."""
        batches: dict[int, tuple[fetching.AcknowledgementBatch, ...]] = {}
        if done is not None:
            number, offset = done
            batches[number] = (
                fetching.AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=(kind,)),
            )
        partitions = tuple(
            fetching.FetchPartition(partition_index=number, acknowledgement_batches=batches.get(number, ()))
            for number in (batches if worker.epoch else self._partitions)
        )
        request = fetching.ShareFetchRequest(
            group_id=GROUP,
            member_id=worker.name,
            share_session_epoch=worker.epoch,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=1,
            batch_size=1,
            share_acquire_mode=RECORD_LIMIT,
            topics=(fetching.FetchTopic(topic_id=self._topic_id, partitions=partitions),) if partitions else (),
        )
        answer = self._ask(worker, FETCH_VERSION, request)
        assert not answer.error_code, answer
        worker.epoch += 1
        rows = (row for topic in answer.responses for row in topic.partitions)
        jobs = [(row.partition_index, each.first_offset) for row in rows for each in row.acquired_records]
        assert len(jobs) <= 1, jobs
        return jobs[0] if jobs else None

    def _ask(self, worker: _Worker, version: int, request: Any) -> Any:  # noqa: ANN401 - a message
        self._runtime.send_message(self._port.now, worker.connection, version, request)
        for _ in range(ROUNDS_MAX):
            if worker.inbox:
                return worker.inbox.popleft()[1].response
            self._port.pass_time(1)
        raise AssertionError(f"{worker.name} got no response")
