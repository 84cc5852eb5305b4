"""Play sequences to both sides, compare, confirm a difference by repetition, and minimise it."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from exploring.transactions.playing import SHORT_TIMEOUT_MS, Playing
from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Sequence as Rows

    from exploring.transactions.steps import Sequence
    from koordinator.client.connection import Address

AT_ONCE = 30
BATCH = 50
"""The sequences between two restarts of the broker."""

CREATE_S = 60

TIMED_OUT_S = 0.5
"""More than the interval between checks for timed-out transactions."""


class Target:
    """One side: a broker that can be restarted."""

    def __init__(self, address: Address, restart: Callable[[], None]) -> None:
        self._address = address
        self._restart = restart
        self._numbers: Iterator[int] = count(1)

    def play(self, sequences: Rows[Sequence]) -> list[list[object]]:
        """Play sequences, with one restart of the broker in all of them; return their outcomes."""
        playings = [Playing(each, self._address, f"e{next(self._numbers)}") for each in sequences]
        self._create([each.topic for each in playings])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(_begin, playings))
            if any(each.restart_after < len(each.steps) for each in sequences):
                self._restart()
                # however long the restart took, short transactions have timed out
                time.sleep(SHORT_TIMEOUT_MS / 1000 + TIMED_OUT_S)
            list(pool.map(_end, playings))
        return [each.outcomes for each in playings]

    def _create(self, topics: list[str]) -> None:
        link = BrokerConnection(self._address, Deadline(CREATE_S), "1")
        rows = tuple(CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in topics)
        answer = link.send(CreateTopicsRequest(topics=rows, timeout_ms=CREATE_S * 1000), 2, CreateTopicsResponse)
        link.close()
        assert {row.error_code for row in answer.topics} == {Error.NONE}, answer


def _begin(playing: Playing) -> None:
    playing.prepare()
    playing.play(0, playing.sequence.restart_after)
    playing.close()


def _end(playing: Playing) -> None:
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
    answer = outcome.get("answer")
    if answer == Error.TRANSACTION_ABORTABLE:
        return outcome | {"answer": int(Error.INVALID_TXN_STATE)}
    if answer == [Error.TRANSACTION_ABORTABLE, -1]:
        return outcome | {"answer": [int(Error.INVALID_TXN_STATE), -1]}
    return outcome


def explore(ours: Target, theirs: Target, sequences: Rows[Sequence], say: Callable[[str], None]) -> Findings:
    """Play all sequences to both sides; minimise the first difference of each kind."""
    found = Findings()
    for begin in range(0, len(sequences), BATCH):
        batch, suspects = sequences[begin : begin + BATCH], []
        for sequence, one, two in zip(batch, ours.play(batch), theirs.play(batch), strict=True):
            found.compared += 1
            found.requests += len(sequence.steps)
            for step, outcome in zip(sequence.steps, two, strict=False):
                assert isinstance(outcome, dict)
                found.answers[f"{step.name} {outcome['answer']}"] += 1
            difference = compare(sequence, one, two)
            if difference is not None:
                suspects.append(difference)
        for each, again in zip(suspects, _again(ours, theirs, [each.sequence for each in suspects]), strict=True):
            if again is None or again.kind != each.kind:
                found.unsteady.append(each)
            elif each.kind in {known.kind for known in found.differences}:
                found.differences.append(each)
            else:
                found.differences.append(_shrunk(ours, theirs, each))
                say(found.differences[-1].text())
        say(f"{found.compared} compared, {len(found.differences)} differences, {len(found.unsteady)} unsteady")
    return found


def _again(ours: Target, theirs: Target, sequences: Rows[Sequence]) -> list[Difference | None]:
    return list(map(compare, sequences, ours.play(sequences), theirs.play(sequences))) if sequences else []


def _shrunk(ours: Target, theirs: Target, difference: Difference) -> Difference:
    """Remove the restart, then steps, while the difference stays of its kind; candidates are played together."""
    while True:
        again = _again(ours, theirs, list(_smaller(difference.sequence, difference.step)))
        smaller = [each for each in again if each is not None and each.kind == difference.kind]
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
