"""Transactions on the pages: bars with partitions, offsets, outcome and cause, in the groups that they concern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator import Simulation
from koordinator.emulator.pages.feed import Feed, drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster

Lines = list[dict[str, Any]]


def played(scene: Callable[[Cluster], None]) -> Lines:
    """Return the trace of a scene with group svc, whose member reads topic in."""
    with Simulation(topics={"in": 1, "out": 2}) as cluster:
        cluster.group("svc").create_puppet("a", topics=["in"]).join()
        cluster.group("svc").wait_stable(members=1)
        cluster.group("other").create_puppet("b", topics=["elsewhere"]).join()
        scene(cluster)
        return cluster._port.trace_lines()[1:]


def bars(lines: Lines, group: str = "svc") -> list[tuple[str, str, str]]:
    """Return the last row of each bar: id, state, text."""
    rows = [row for row in drawn(lines)["drawings"][group]["rows"] if row[0] == "transaction"]
    return [(name, state, text) for _, _, name, _, state, text in {(row[1], row[2]): row for row in rows}.values()]


def a_commit(cluster: Cluster) -> None:
    producer = cluster.create_producer("p").init().produce("out", "x", partition=1)
    producer.send_offsets("svc", {("in", 0): 3}).commit()


def test_a_transaction_is_a_bar_with_its_partitions_and_offsets() -> None:
    assert bars(played(a_commit)) == [("p", "committed", "committed · out 1 · offsets in-0@3")]


def test_a_transaction_is_shown_to_the_groups_that_it_concerns() -> None:
    lines = played(a_commit)
    assert bars(lines, "other") == []
    read = played(lambda cluster: cluster.create_producer("p").init().produce("in", "x") and None)
    assert bars(read) == [("p", "open", "open · in 0")]
    assert bars(read, "other") == []


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (lambda cluster: cluster.transaction("p").expire(), "aborted (the transaction was open for longer"),
        (lambda cluster: cluster.transaction("p").abort(), "aborted (a test aborts the transaction)"),
        (lambda cluster: cluster.create_producer("q", "p").init(), "aborted (another producer initialized"),
        (lambda cluster: cluster.set_markers("in", 0, "delayed") or cluster.producers["p"].commit(), "committing"),
    ],
)
def test_a_bar_has_its_outcome_and_the_cause_of_an_abort(end: Callable[[Cluster], None], text: str) -> None:
    def scene(cluster: Cluster) -> None:
        cluster.create_producer("p").init().produce("in", "x")
        end(cluster)

    ((_, _, shown),) = bars(played(scene))
    assert shown.startswith(text)
    assert shown.endswith("in 0")


def test_each_transaction_of_an_id_has_a_bar() -> None:
    def scene(cluster: Cluster) -> None:
        producer = cluster.create_producer("p").init()
        producer.produce("in", "x").commit().produce("in", "y").abort()

    assert [state for _, state, _ in bars(played(scene))] == ["committed", "aborted"]


def test_a_feed_in_pieces_has_the_same_bars() -> None:
    lines = played(a_commit)
    feed = Feed("svc")
    pieces = [row for line in lines for row in feed.take([line])["rows"]]
    last = {(row[0], row[1]): row for row in pieces if row[0] in {"transaction", "event"}}
    whole = {
        (row[0], row[1]): row for row in drawn(lines)["drawings"]["svc"]["rows"] if row[0] in {"transaction", "event"}
    }
    assert last == whole


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 30, 3))
def test_a_trace_that_begins_in_a_transaction_is_drawn(start: int) -> None:
    assert drawn(played(a_commit)[-start:])
