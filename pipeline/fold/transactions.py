"""The transactions of a trace, from their first partition to their last marker (KIP-98)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from koordinator.trace.exchanges import Calls

from .group_facts import ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from koordinator.trace.exchanges import Line

    from .group_facts import Row

OUTCOMES = {
    "Ongoing": "open",
    "PrepareCommit": "committing",
    "PrepareAbort": "aborting",
    "CompleteCommit": "committed",
    "CompleteAbort": "aborted",
}
"""The outcome of a transaction, by the last state of its transactional id."""

INTERNAL = "__"
"""The beginning of the names of internal topics."""


def transactions(trace_id: str, lines: Sequence[Line]) -> Iterator[Row]:
    """Return gold/transaction: every transaction whose beginning is in the trace."""
    open_: dict[str, Row] = {}
    offsets: defaultdict[str, set[tuple[Any, ...]]] = defaultdict(set)
    commits: Calls[Line] = Calls()
    for line in lines:
        body = line.get("body") or {}
        if line["kind"] == "request" and line.get("api") == "TxnOffsetCommit":
            commits.take(line, line)
        elif line["kind"] == "response" and line.get("api") == "TxnOffsetCommit":
            asked = ((commits.pop(line) or {}).get("body") or {}) | body
            # with transaction version 2 the request may have begun the transaction
            if asked.get("transactional_id") in open_:
                offsets[asked["transactional_id"]] |= _accepted(line.get("group_id"), asked)
        if line["kind"] != "transaction" or line.get("state_to") not in OUTCOMES:
            continue
        name = body.get("transactional_id", "")
        row = open_.get(name)
        if row is None and line["state_to"] == "Ongoing":
            row = open_[name] = _begun(trace_id, line, body)
        if row is None:
            continue
        row["outcome"] = OUTCOMES[line["state_to"]]
        if line["state_to"].startswith("Complete"):
            row |= {"end_seq": line["seq"], "total_ms": ms(row["t_start_us"], line["wall_ts"])}
            row["markers_ms"] = ms(row["t_start_us"] + round((row["decided_ms"] or 0) * 1000), line["wall_ts"])
            yield _with_offsets(open_.pop(name), offsets.pop(name, set()))
            continue
        row["partitions"] = _by_topic(body.get("partitions", ()))
        row["n_partitions"] = sum(map(len, row["partitions"].values()))
        if line["state_to"] != "Ongoing":
            row |= {"cause": line.get("cause"), "decided_ms": ms(row["t_start_us"], line["wall_ts"])}
    for name, row in open_.items():
        yield _with_offsets(row, offsets.pop(name, set()))


def _begun(trace_id: str, line: Line, body: dict[str, Any]) -> Row:
    return {
        "trace_id": trace_id,
        "transactional_id": body["transactional_id"],
        "start_seq": line["seq"],
        "started_at": line["wall_ts"],
        "t_start_us": line["wall_ts"],
        "producer_id": body.get("producer_id"),
        "producer_epoch": body.get("producer_epoch"),
        "client_id": line.get("client_id"),
        "decided_ms": None,
    }


def _accepted(group_id: str | None, body: dict[str, Any]) -> set[tuple[Any, ...]]:
    """Return the partitions whose offsets are not refused."""
    refused = {(topic, number) for topic, number, _ in body.get("refused", ())}
    return {(group_id, topic, number) for topic, number, _ in body.get("offsets", ()) if (topic, number) not in refused}


def _with_offsets(row: Row, offsets: set[tuple[Any, ...]]) -> Row:
    groups = sorted({str(group) for group, _, _ in offsets})
    return row | {"groups": groups, "n_offsets": len(offsets)}


def _by_topic(rows: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in rows:
        if not topic.startswith(INTERNAL):
            by_topic.setdefault(topic, []).append(number)
    return by_topic
