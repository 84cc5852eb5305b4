"""Members of share groups at a partition leader, with a share coordinator that a test can stop or replace."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from koordinator.emulator.config.kafka_configs import GROUP
from koordinator.emulator.core.effects import SendRequest
from koordinator.wire.errors import Error
from koordinator.wire.messages import read_share_group_state as reading
from koordinator.wire.messages import share_acknowledge as acknowledging
from koordinator.wire.messages import share_fetch as fetching
from koordinator.wire.messages import write_share_group_state as writing
from koordinator.wire.messages.create_topics import CreateTopicsRequest
from koordinator.wire.messages.produce import ProduceRequest
from tests.core.data.conftest import Desk, Exchange

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from koordinator.emulator.core.effects import Effect

GROUP_ID = "g"

BROKER = 99
"""The connection of requests between brokers."""


@dataclass
class Stored:
    """The state of a share partition at the share coordinator; each offset has its state and delivery count."""

    state_epoch: int = 2
    leader_epoch: int = 0
    start: int = -1
    count: int = -1
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def runs(self) -> list[tuple[int, int, int, int]]:
        """First and last offset, state and count of neighbours that are equal, from the start offset on."""
        runs: list[tuple[int, int, int, int]] = []
        for at, each in sorted(self.offsets.items()):
            if at >= self.start:
                if runs and runs[-1][1:] == (at - 1, *each):
                    runs[-1] = (runs[-1][0], at, *each)
                else:
                    runs.append((at, at, *each))
        return runs

    @property
    def shown(self) -> str:
        """The state as `(2,0,[0-9/0/1])`."""
        return f"({self.state_epoch},{self.start},[{' '.join(f'{a}-{b}/{c}/{d}' for a, b, c, d in self.runs)}])"


class ShareCoordinator:
    """A share coordinator with an initialized state for every partition; the first `errors` are its next answers."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, UUID, int], Stored] = {}
        self.errors: deque[Error] = deque()
        self.writes: list[writing.PartitionData] = []

    def answer(self, request: Any) -> Any:
        is_read = isinstance(request, reading.ReadShareGroupStateRequest)
        module: Any = reading if is_read else writing
        topic = request.topics[0]
        row = topic.partitions[0]
        state = self.states.setdefault((request.group_id, topic.topic_id, row.partition), Stored())
        error = self.errors.popleft() if self.errors else self._refuse(state, row, is_read=is_read)
        result = {"partition": row.partition, "error_code": error, "error_message": f"error {error}" if error else None}
        if is_read and not error:
            state.leader_epoch = row.leader_epoch
            batches = [
                reading.StateBatch(first_offset=first, last_offset=last, delivery_state=each, delivery_count=count)
                for first, last, each, count in state.runs
            ]
            result |= {"state_epoch": state.state_epoch, "start_offset": state.start, "state_batches": tuple(batches)}
        elif not error:
            self._write(state, row)
        response = module.ReadShareGroupStateResponse if is_read else module.WriteShareGroupStateResponse
        inner = module.ReadStateResult if is_read else module.WriteStateResult
        rows = (module.PartitionResult(**result),)
        return response(results=(inner(topic_id=topic.topic_id, partitions=rows),))

    @staticmethod
    def _refuse(state: Stored, row: Any, *, is_read: bool) -> Error:
        if row.leader_epoch < state.leader_epoch:
            return Error.FENCED_LEADER_EPOCH
        return Error.NONE if is_read or row.state_epoch >= state.state_epoch else Error.FENCED_STATE_EPOCH

    def _write(self, state: Stored, row: writing.PartitionData) -> None:
        self.writes.append(row)
        state.start, state.count = row.start_offset, row.delivery_complete_count
        for each in row.state_batches:
            for at in range(each.first_offset, each.last_offset + 1):
                state.offsets[at] = (each.delivery_state, each.delivery_count)


class ShareDesk(Desk):
    """A partition leader with topic `x` of one partition, read by group `g` from the earliest record on.

    Methods have the names of the scenarios: `F` fetches, `A` acknowledges, `P` produces, `R` is the stored state. With
    `is_held` the share coordinator answers no more, until `flow`. The first `letter_answers` are the next answers to
    requests for dead letters.
    """

    def __init__(self, brokers: int = 1, **settings: object) -> None:
        self.coordinator = ShareCoordinator()
        self.is_held = False
        self.held: deque[SendRequest] = deque()
        self.letters_sent = 0
        self.letter_answers: deque[Any] = deque()
        super().__init__(brokers, **settings)
        self.cluster.coordinator_of = lambda *_: 1  # type: ignore[method-assign,assignment,misc]
        self.x = self.topic("x")
        self.configs(share_auto_offset_reset="earliest")

    def configs(self, group_id: str = GROUP_ID, **configs: str) -> None:
        own = self.cluster.resource_configs[GROUP].setdefault(group_id, {})
        own.update({name.replace("_", "."): value for name, value in configs.items()})

    def _perform(self, effects: Iterable[Effect]) -> None:
        effects = list(effects)
        super()._perform(each for each in effects if not isinstance(each, SendRequest))
        self.held += [each for each in effects if isinstance(each, SendRequest)]
        if not self.is_held:
            self.flow()

    def wait(self, ms: int) -> None:
        """Advance the time, with a step at each deadline."""
        end = self.now + ms
        while (due := self.data.timers.next_deadline) is not None and due < end:
            super().wait(max(0, due - self.now))
        super().wait(end - self.now)

    def flow(self, count: int = 1000) -> None:
        """Let the share coordinator answer what it was sent."""
        for _ in range(count):
            if self.held:
                sent = self.held.popleft()
                self._perform(self.data.answered(self.now, sent.token, self._answer(sent)))

    def _answer(self, sent: SendRequest) -> Any:
        """Return the answer to a request between brokers: of the share coordinator, or of this node."""
        if not isinstance(sent.request, ProduceRequest | CreateTopicsRequest):
            return self.coordinator.answer(sent.request)
        self.letters_sent += 1
        if self.letter_answers:
            return self.letter_answers.popleft()
        return self.send(sent.request, sent.version, BROKER).response

    def P(self, *sizes: int, topic: str = "x", **fields: Any) -> None:  # noqa: N802 - as in the scenarios
        for size in sizes:
            row = self.produce(self.batch(*[b"v"] * size, **fields), topic)
            assert row.error_code == 0

    def F(  # noqa: N802 - as in the scenarios
        self,
        member_id: str | None,
        epoch: int,
        *partitions: tuple[UUID, int] | int,
        ack: str = "",
        forget: Iterable[tuple[UUID, int] | int] = (),
        group_id: str | None = GROUP_ID,
        version: int = 2,
        connection: int = 0,
        wait: int = 0,
        **fields: Any,
    ) -> Exchange:
        """Send a ShareFetch; a number is a partition of `x`."""
        rows = {self._key(each): () for each in partitions}
        if ack:
            rows[self.x, 0] = _batches(fetching, ack)
        sizes = {"max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, "min_bytes": int(wait > 0)} | fields
        request = fetching.ShareFetchRequest(
            group_id=group_id,
            member_id=member_id,
            share_session_epoch=epoch,
            max_wait_ms=wait,
            topics=tuple(
                fetching.FetchTopic(
                    topic_id=topic_id,
                    partitions=(fetching.FetchPartition(partition_index=at, acknowledgement_batches=batches),),
                )
                for (topic_id, at), batches in rows.items()
            ),
            forgotten_topics_data=tuple(
                fetching.ForgottenTopic(topic_id=topic_id, partitions=(at,)) for topic_id, at in map(self._key, forget)
            ),
            **sizes,
        )
        return self.send(request, version, connection)

    def A(  # noqa: N802 - as in the scenarios
        self,
        member_id: str | None,
        epoch: int,
        *texts: str,
        at: tuple[UUID, int] | int = 0,
        more: dict[tuple[UUID, int], str] | None = None,
        group_id: str | None = GROUP_ID,
        version: int = 2,
        connection: int = 0,
        **fields: Any,
    ) -> Exchange:
        """Send a ShareAcknowledge: `0-4=1`, `10-14=[0,1,2,3,1]`; of `more` partitions one text each."""
        rows = {self._key(at): texts} | {key: (text,) for key, text in (more or {}).items()}
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=group_id,
            member_id=member_id,
            share_session_epoch=epoch,
            topics=tuple(
                acknowledging.AcknowledgeTopic(
                    topic_id=topic_id,
                    partitions=(
                        acknowledging.AcknowledgePartition(
                            partition_index=index, acknowledgement_batches=_batches(acknowledging, *each)
                        ),
                    ),
                )
                for (topic_id, index), each in rows.items()
            ),
            **fields,
        )
        return self.send(request, version, connection)

    def _key(self, at: tuple[UUID, int] | int) -> tuple[UUID, int]:
        return (self.x, at) if isinstance(at, int) else at

    def S1(self) -> None:  # noqa: N802 - as in the scenarios
        self.P(5, 5)

    def S2(self, member_id: str = "A", connection: int = 0) -> None:  # noqa: N802 - as in the scenarios
        self.S1()
        assert shown(self.F(member_id, 0, 0, wait=500, connection=connection)) == "[0-9 x1]"

    @property
    def R(self) -> str:  # noqa: N802 - as in the scenarios
        """The stored state of x-0."""
        return self.coordinator.states[GROUP_ID, self.x, 0].shown

    @property
    def writes(self) -> list[str]:
        """What was written, as `0,5: 0-4/2/1`."""
        return [
            f"{row.start_offset},{row.delivery_complete_count}: "
            + " ".join(
                f"{each.first_offset}-{each.last_offset}/{each.delivery_state}/{each.delivery_count}"
                for each in row.state_batches
            )
            for row in self.coordinator.writes
        ]


def _batches(module: Any, *texts: str) -> tuple[Any, ...]:
    out = []
    for text in texts:
        offsets, _, types = text.partition("=")
        first, _, last = offsets.partition("-")
        kinds = tuple(int(each) for each in types.strip("[]").split(",") if each)
        out.append(
            module.AcknowledgementBatch(
                first_offset=int(first), last_offset=int(last or first), acknowledge_types=kinds
            )
        )
    return tuple(out)


def shown(exchange: Exchange) -> str:
    """Show an answer: `[0-9 x1]`, `empty row` or an error for partition 0, others with numbers; `no row`, `parked`."""
    if exchange.parked:
        return "parked"
    response = exchange.response
    rows = [(row.partition_index, row) for topic in response.responses for row in topic.partitions]
    texts = [_shown(row) if at == 0 else f"{at}: {_shown(row)}" for at, row in sorted(rows, key=lambda each: each[0])]
    if response.error_code:
        texts.insert(0, str(response.error_code))
    return "; ".join(texts) or "no row"


def _shown(row: Any) -> str:
    if row.error_code:
        message = f" {row.error_message}" if row.error_message else ""
        return f"{row.error_code}{message}"
    if not hasattr(row, "records"):
        return "ok"
    if row.acknowledge_error_code:
        return f"empty row, {row.acknowledge_error_code} {row.acknowledge_error_message}"
    acquired = [f"[{each.first_offset}-{each.last_offset} x{each.delivery_count}]" for each in row.acquired_records]
    assert bool(acquired) == bool(row.records)
    return "".join(acquired) or "empty row"


@pytest.fixture
def share() -> ShareDesk:
    return ShareDesk()
