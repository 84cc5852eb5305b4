"""Play sequences to both sides, compare, confirm a difference by repetition, and minimise it."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Protocol

from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Sequence as Rows

    from exploring.transactions.steps import Sequence
    from koordinator.client.connection import Address

AT_ONCE = 60
BATCH = 200
"""The sequences between two restarts of the broker."""

REPEATS = 3
"""How often suspects are played again after all sequences; one that always differs in another way is a difference."""

CREATE_S = 60
LEARN_S = 8.0
"""A broker's group coordinators learn of a new topic after its partitions serve requests."""


class Plays(Protocol):
    """A sequence at a broker. `topics` exist before it, with two partitions; `outcomes` are equal for equal brokers.

    A patient one waits longer for what a broker does after its answer.
    """

    sequence: Sequence
    is_patient: bool
    topics: tuple[str, ...]
    outcomes: list[object]

    def prepare(self) -> None:
        """Wait until the broker is ready for the sequence."""

    def wait_ready(self) -> None:
        """Wait until the broker is ready for the rest of the sequence."""

    def play(self, begin: int, end: int) -> None:
        """Perform these steps."""

    def finish(self) -> None:
        """Add an outcome of the whole sequence."""

    def close(self) -> None:
        """Close the connection."""


class Target:
    """One side: a broker that can be restarted. `plays` is the class that plays a sequence."""

    def __init__(
        self, address: Address, restart: Callable[[], None], plays: Callable[[Sequence, Address, str], Plays]
    ) -> None:
        self._address = address
        self._restart = restart
        self._plays = plays
        self._numbers: Iterator[int] = count(1)

    def play(self, sequences: Rows[Sequence], patient: Rows[Sequence] = ()) -> list[list[object]]:
        """Play sequences, and others with patience, with one restart of the broker in all; return their outcomes."""
        playings = [self._plays(each, self._address, f"e{next(self._numbers)}") for each in (*sequences, *patient)]
        for each in playings[len(sequences) :]:
            each.is_patient = True
        topics = tuple(topic for each in playings for topic in each.topics)
        self._create(topics)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(_begin, playings))
            if any(each.sequence.restart_after < len(each.sequence.steps) for each in playings):
                self._restart()
            list(pool.map(_end, playings))
        self._delete(topics)
        return [each.outcomes for each in playings]

    def _create(self, topics: tuple[str, ...]) -> None:
        rows = tuple(CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in topics)
        with closing(BrokerConnection(self._address, Deadline(CREATE_S), "1")) as link:
            answer = link.send(CreateTopicsRequest(topics=rows, timeout_ms=CREATE_S * 1000), 2, CreateTopicsResponse)
        assert {row.error_code for row in answer.topics} == {Error.NONE}, answer
        time.sleep(LEARN_S)

    def _delete(self, topics: tuple[str, ...]) -> None:
        """Delete topics: a restart of Kafka takes as long as it has partitions."""
        with closing(BrokerConnection(self._address, Deadline(CREATE_S), "1")) as link:
            request = DeleteTopicsRequest(topic_names=topics, timeout_ms=CREATE_S * 1000)
            answer = link.send(request, 1, DeleteTopicsResponse)
        # a sequence may delete its topics
        errors = {row.error_code for row in answer.responses}
        assert errors <= {Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION}, answer


def _begin(playing: Plays) -> None:
    playing.prepare()
    playing.play(0, playing.sequence.restart_after)
    playing.close()


def _end(playing: Plays) -> None:
    playing.wait_ready()
    playing.play(playing.sequence.restart_after, len(playing.sequence.steps))
    playing.finish()


@dataclass(frozen=True)
class Difference:
    """The first step whose outcomes differ, and the two outcomes."""

    sequence: Sequence
    step: int
    ours: object
    theirs: object

    @property
    def kind(self) -> str:
        """The operation and the parts that differ."""
        steps = self.sequence.steps
        name = steps[self.step].name if self.step < len(steps) else "the end"
        return f"{name}: {', '.join(self._parts())}"

    def _parts(self) -> list[str]:
        ours, theirs = self.ours, self.theirs
        assert isinstance(ours, dict)
        assert isinstance(theirs, dict)
        return [name for name in ours if ours[name] != theirs[name]]

    def text(self) -> str:
        """Return the sequence and both outcomes."""
        assert isinstance(self.ours, dict)
        assert isinstance(self.theirs, dict)
        rows = [f"  {name}\n    ours:   {self.ours[name]}\n    broker: {self.theirs[name]}" for name in self._parts()]
        return "\n".join([self.sequence.text(), f"step {self.step}, {self.kind}", *rows])


@dataclass
class Findings:
    """The results. `unsteady` differences did not appear again: timeouts are real, and machines slow."""

    compared: int = 0
    requests: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    unsteady: list[Difference] = field(default_factory=list)


def compare(sequence: Sequence, ours: list[object], theirs: list[object]) -> Difference | None:
    """Return the first difference."""
    for step, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        if _regular(one) != _regular(two):
            return Difference(sequence, step, one, two)
    return None


def _regular(outcome: object) -> object:
    """Return an outcome without Kafka's chance of 120 in place of 48.

    It sends the verifications of several requests together, and refuses all of them as the version of the first one
    knows (`AddPartitionsToTxnManager`).
    """
    assert isinstance(outcome, dict)
    return outcome | {"answer": _without_120(outcome.get("answer"), "error_code")}


def _without_120(part: object, name: str) -> object:
    match part:
        case dict():
            return {key: _without_120(each, key) for key, each in part.items()}
        case list():
            return [_without_120(each, name) for each in part]
        case Error.TRANSACTION_ABORTABLE if name.endswith("error_code"):
            return int(Error.INVALID_TXN_STATE)
        case _:
            return part


def explore(ours: Target, theirs: Target, sequences: Rows[Sequence], say: Callable[[str], None]) -> Findings:
    """Play all sequences to both sides; minimise the first difference of each kind."""
    found = Findings()
    suspects: list[Difference] = []
    batches = [sequences[begin : begin + BATCH] for begin in range(0, len(sequences), BATCH)]
    # the suspects of a batch are played again with the next one, with patience; the last batches have none but them
    for batch in (*batches, *[()] * REPEATS):
        played = _played(ours, theirs, batch, [each.sequence for each in suspects])
        for sequence, (_, outcomes) in zip(batch, played, strict=False):
            found.compared += 1
            found.requests += len(sequence.steps)
            for step, outcome in zip(sequence.steps, outcomes, strict=False):
                assert isinstance(outcome, dict)
                found.answers[f"{step.name} {outcome['answer']}"] += 1
        others: list[Difference] = []
        for each, (difference, _) in zip(suspects, played[len(batch) :], strict=True):
            if difference is None:
                found.unsteady.append(each)
            elif difference.kind != each.kind:
                # what differed before may have hidden this
                others.append(difference)
            elif each.kind in {known.kind for known in found.differences}:
                found.differences.append(difference)
            else:
                say(f"seed {each.sequence.name}, {each.text()}\nshrinking")
                found.differences.append(_shrunk(ours, theirs, each))
                say(found.differences[-1].text())
        suspects = others + [difference for difference, _ in played[: len(batch)] if difference is not None]
        if batch:
            say(f"{found.compared} compared, {len(found.differences)} differences, {len(found.unsteady)} unsteady")
    found.differences += suspects
    return found


def _played(
    ours: Target, theirs: Target, sequences: Rows[Sequence], patient: Rows[Sequence]
) -> list[tuple[Difference | None, list[object]]]:
    """Play sequences to both sides at once; return each one's difference, and the outcomes of theirs."""
    if not sequences and not patient:
        return []
    with ThreadPoolExecutor(2) as pool:
        sides = [pool.submit(side.play, sequences, patient) for side in (ours, theirs)]
        one, two = (side.result() for side in sides)
    return [(compare(*each), each[2]) for each in zip((*sequences, *patient), one, two, strict=True)]


def _shrunk(ours: Target, theirs: Target, difference: Difference) -> Difference:
    """Remove the restart, then steps, while the difference stays of its kind; candidates are played together."""
    while True:
        played = _played(ours, theirs, (), list(_smaller(difference.sequence, difference.step)))
        smaller = [each for each, _ in played if each is not None and each.kind == difference.kind]
        if not smaller:
            return difference
        difference = smaller[0]


def _smaller(sequence: Sequence, step: int) -> Iterator[Sequence]:
    if step + 1 < len(sequence.steps):
        yield replace(sequence, steps=sequence.steps[: step + 1], restart_after=min(sequence.restart_after, step + 1))
    if sequence.restart_after < len(sequence.steps):
        yield replace(sequence, restart_after=len(sequence.steps))
    if sequence.has_member:
        yield replace(sequence, has_member=False)
    for at in range(len(sequence.steps) - 1):
        steps = sequence.steps[:at] + sequence.steps[at + 1 :]
        was = sequence.restart_after
        yield replace(sequence, steps=steps, restart_after=was - 1 if at < was else was)
