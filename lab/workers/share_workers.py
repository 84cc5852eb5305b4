"""Workers of a share group in virtual time (KIP-932): they acquire records, are busy with each, and accept it.

Each is a member of the group, and fetches from the partitions that it is assigned.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from koordinator.wire.messages import share_fetch as fetching

from ..cells import SETTLE_S
from ..load import GROUP, TOPIC
from ..schemes.on_core import CoreScheme, Members
from ..situations import names_of
from .backlog import RecordDelivery, WorkRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from ..load import Load
    from .backlog import Job

NODE, FETCH_VERSION = 1, 2
RECORD_LIMIT = 1
"""The mode in which a fetch acquires no more records than it asks for, not whole batches (KIP-1206)."""

ACCEPT, RELEASE = 1, 2
STEP_MS = 100
"""The time between two looks at idle workers."""

ROUNDS_MAX = 1_000
"""The limit of requests until an expected record comes."""


@dataclass(slots=True)
class _Worker:
    """A member with its share session: the session's epoch and partitions, and the record at hand."""

    name: str
    connection: int
    inbox: deque[Any]
    epoch: int = 0
    partitions: set[int] = field(default_factory=set)
    held: Job | None = None
    free_ms: int = 0


class ShareWorkers:
    """A share group of workers that take one record at a time, as a context manager. `work` has its record."""

    def __init__(self, load: Load) -> None:
        self.work = WorkRecord()
        self._partitions = range(load.partitions)
        self._scheme = CoreScheme(load, Members(group_protocol="share"), brokers=1)
        self._runtime = self._scheme.port.built.runtime
        self._begin_ms = 0
        names = names_of(load.members)
        for name in names:
            self._scheme.start(name)
        self._scheme.pass_time(SETTLE_S)
        self._topic_id = self._runtime.cluster.topics[TOPIC].topic_id
        self._workers = {name: self._connected(name) for name in names}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scheme.end()

    def write(self, records: int) -> None:
        """Write records to every partition; time counts from here."""
        rows = [{"partition": number, "value": "job"} for number in self._partitions for _ in range(records)]
        self._scheme.cluster.topic(TOPIC).produce(rows)
        self._begin_ms = self._scheme.now_ms

    def run(
        self,
        seconds: float,
        busy_s: Callable[[str, Job], float],
        *,
        fails: Callable[[Job], bool] = lambda _: False,
    ) -> WorkRecord:
        """Let workers work for some time: `busy_s` is a worker's time for a record; one that `fails` is given back."""
        until = self._scheme.now_ms + round(seconds * 1000)
        while self._scheme.now_ms < until:
            for each in self._workers.values():
                if each.free_ms <= self._scheme.now_ms:
                    self._next(each, busy_s, fails)
            self._scheme.port.pass_time(min(STEP_MS, max(0, until - self._scheme.now_ms)))
        return self.work

    def hang(self, name: str) -> None:
        """Let a worker hang: it keeps its connections and its record, and sends nothing."""
        self._scheme.pause(name)
        self._lose(name)

    def kill(self, name: str) -> None:
        """Kill a worker: its connections close."""
        self._scheme.kill(name)
        self._runtime.disconnected(self._scheme.now_ms, self._lose(name).connection)

    def _lose(self, name: str) -> _Worker:
        self.work.lost = name, self._elapsed_ms
        return self._workers.pop(name)

    @property
    def _elapsed_ms(self) -> int:
        return self._scheme.now_ms - self._begin_ms

    def _next(self, worker: _Worker, busy_s: Callable[[str, Job], float], fails: Callable[[Job], bool]) -> None:
        done, kind = worker.held, ACCEPT
        if done is not None:
            kind = RELEASE if fails(done) else ACCEPT
            if kind == ACCEPT:
                self.work.done_ms[done] = self._elapsed_ms
        worker.held = self._fetch(worker, done, kind)
        if worker.held is not None:
            self.work.started.append(RecordDelivery(self._elapsed_ms, worker.name, worker.held))
            worker.free_ms = self._scheme.now_ms + round(1000 * busy_s(worker.name, worker.held))

    def _connected(self, name: str) -> _Worker:
        inbox: deque[Any] = deque()
        connection = self._runtime.connect_in_process(self._scheme.now_ms, NODE, name, inbox)
        worker = _Worker(name, connection, inbox)
        # the first fetches load the partitions, which begin at their ends
        for _ in self._partitions:
            self._fetch(worker, None, ACCEPT)
        return worker

    def _fetch(self, worker: _Worker, done: Job | None, kind: int) -> Job | None:
        """Acknowledge a record and acquire another one; return it."""
        puppet = self._scheme.group.puppets[worker.name].describe()
        assigned = set(puppet.assignment.get(TOPIC, ()))
        batches: dict[int, tuple[fetching.AcknowledgementBatch, ...]] = {}
        if done is not None:
            number, offset = done
            batches[number] = (
                fetching.AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=(kind,)),
            )
        changed = assigned - worker.partitions | set(batches)
        forgotten = tuple(sorted(worker.partitions - assigned - changed))
        partitions = tuple(
            fetching.FetchPartition(partition_index=number, acknowledgement_batches=batches.get(number, ()))
            for number in sorted(changed)
        )
        request = fetching.ShareFetchRequest(
            group_id=GROUP,
            member_id=puppet.member_id,
            share_session_epoch=worker.epoch,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=1,
            batch_size=1,
            share_acquire_mode=RECORD_LIMIT,
            topics=(fetching.FetchTopic(topic_id=self._topic_id, partitions=partitions),) if partitions else (),
            forgotten_topics_data=(
                (fetching.ForgottenTopic(topic_id=self._topic_id, partitions=forgotten),) if forgotten else ()
            ),
        )
        answer = self._ask(worker, request)
        assert not answer.error_code, answer
        worker.epoch += 1
        worker.partitions = assigned | changed
        rows = (row for topic in answer.responses for row in topic.partitions)
        jobs = [(row.partition_index, each.first_offset) for row in rows for each in row.acquired_records]
        assert len(jobs) <= 1, jobs
        return jobs[0] if jobs else None

    def _ask(self, worker: _Worker, request: Any) -> Any:  # noqa: ANN401 - a message
        self._runtime.send_message(self._scheme.now_ms, worker.connection, FETCH_VERSION, request)
        for _ in range(ROUNDS_MAX):
            if worker.inbox:
                return worker.inbox.popleft()[1].response
            self._scheme.port.pass_time(1)
        raise AssertionError(f"{worker.name} got no response")
