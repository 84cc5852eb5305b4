"""The checks of transactions T01 to T03, over the lines of a whole trace: atomic offsets, isolation, and fencing.

A response that a fault rule changed is not judged, and neither is a transaction whose beginning the trace lacks.
Releases before 3.6 do not verify the batches of a fenced producer (KIP-890): there T03 may fail.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koordinator.trace.exchanges import Calls

from .observations import Observations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.trace.exchanges import Line

TITLES = {
    "T01": "the offsets of a transaction are committed when it commits, not before and not otherwise",
    "T02": "a read_committed consumer gets no undecided records, and knows the aborted ones",
    "T03": "nothing is written for a fenced producer",
}
"""The checks, with their titles."""

COMMITTING = frozenset({"PrepareCommit", "CompleteCommit"})


def check_transactions(lines: Iterable[Line]) -> dict[str, Observations]:
    """Return the observations of each check. `lines` are in the order of `seq`."""
    trace = _TransactionTrace()
    for line in lines:
        trace.add(line)
    return {"T01": trace.offsets, "T02": trace.isolation, "T03": trace.fencing}


@dataclass
class _Written:
    """The records of one transaction in one partition: offsets of its batches, and how it was decided, if it was."""

    producer_id: int
    offsets: list[int] = field(default_factory=list)
    is_commit: bool | None = None


class _TransactionTrace:
    """The transactions of a trace up to one line, and what the checks have observed."""

    def __init__(self) -> None:
        self.offsets, self.isolation, self.fencing = Observations(), Observations(), Observations()
        self._is_whole = True
        self._requests: Calls[Line] = Calls()
        self._states: dict[int, str] = {}
        self._epochs: dict[int, int] = {}
        self._sent: set[tuple[Any, ...]] = set()
        self._open: dict[tuple[str, int, int], _Written] = {}
        self._written: defaultdict[tuple[str, int], list[_Written]] = defaultdict(list)

    def add(self, line: Line) -> None:
        """Take the next line."""
        body = line.get("body") or {}
        match line["kind"]:
            case "dropped":
                self._is_whole = False
            case "transaction":
                self._states[body["producer_id"]] = line["state_to"]
                self._epochs[body["producer_id"]] = body["producer_epoch"]
            case "offsets" if "producer_id" in body:
                if line.get("cause") == "transaction_committed":
                    self._offsets_committed(line, body)
                # each transaction is judged by what was sent in it
                for row in (*body.get("committed", ()), *body.get("dropped", ())):
                    self._sent.discard((line.get("group_id"), body["producer_id"], *row))
            case "request":
                self._requests.take(line, line)
                for topic, partition, producer_id, _, is_commit in body.get("markers", ()):
                    written = self._open.pop((topic, partition, producer_id), None)
                    if written is not None:
                        written.is_commit = is_commit
            case "response":
                request = self._requests.pop(line)
                if request is not None and not line.get("rule_id"):
                    self._answered(request, line, body)

    def _answered(self, request: Line, line: Line, body: dict[str, Any]) -> None:
        asked = request.get("body") or {}
        match line.get("api"):
            case "TxnOffsetCommit":
                refused = {(topic, partition) for topic, partition, _ in body.get("refused", ())}
                for topic, partition, offset in asked.get("offsets", ()):
                    if (topic, partition) not in refused:
                        self._sent.add((line.get("group_id"), asked["producer_id"], topic, partition, offset))
                self._fenced(line, asked)
            case "Produce" if body.get("appended"):
                for topic, partition, offset in body["appended"]:
                    self._appended(topic, partition, offset, body["producer_id"])
                self._fenced(line, body)
            case "Fetch" if asked.get("isolation_level") == "read_committed":
                self._fetched(line, body)

    def _appended(self, topic: str, partition: int, offset: int, producer_id: int) -> None:
        written = self._open.get((topic, partition, producer_id))
        if written is None:
            written = self._open[topic, partition, producer_id] = _Written(producer_id)
            self._written[topic, partition].append(written)
        written.offsets.append(offset)

    def _offsets_committed(self, line: Line, body: dict[str, Any]) -> None:
        """Judge offsets that a marker has committed (T01)."""
        producer_id, group = body["producer_id"], line.get("group_id")
        state = self._states.get(producer_id)
        unsent = [row for row in body["committed"] if (group, producer_id, *row) not in self._sent]
        if self._is_whole and unsent:
            topic, partition, offset = unsent[0]
            text = f"{topic}-{partition}={offset} of group {group} is committed, but was in no transaction"
            self.offsets.add_failure(text, line)
        elif state is not None and state not in COMMITTING:
            text = f"offsets of group {group} are committed while the transaction of producer {producer_id} is {state}"
            self.offsets.add_failure(text, line)
        else:
            self.offsets.add_pass(line)

    def _fetched(self, line: Line, body: dict[str, Any]) -> None:
        """Judge the records of a fetch with read_committed (T02)."""
        known = {(topic, partition, producer_id) for topic, partition, producer_id, _ in body.get("aborted", ())}
        for topic, partition, begin, end in body.get("fetched", ()):
            wrong = []
            for written in self._written[topic, partition]:
                inside = [offset for offset in written.offsets if begin <= offset < end]
                if not inside or written.is_commit:
                    continue
                where = f"{topic}-{partition}@{inside[0]} of producer {written.producer_id}"
                if written.is_commit is None:
                    wrong.append(f"{where} is delivered before it is decided")
                elif (topic, partition, written.producer_id) not in known:
                    wrong.append(f"{where} is delivered, but not listed as aborted")
            for text in wrong:
                self.isolation.add_failure(text, line)
            if not wrong:
                self.isolation.add_pass(line)

    def _fenced(self, line: Line, body: dict[str, Any]) -> None:
        """Judge a successful write by its producer's epoch (T03)."""
        latest = self._epochs.get(body["producer_id"])
        if line.get("error") or latest is None:
            return
        if body["producer_epoch"] < latest:
            text = f"{line['api']} of producer {body['producer_id']} with epoch {body['producer_epoch']} succeeds"
            self.fencing.add_failure(f"{text}; its epoch is {latest}", line)
        else:
            self.fencing.add_pass(line)
