"""Transactions of Java, Go and Node.js clients: commit, abort, fencing, copying, failover (KIP-98, KIP-447)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.line_clients import TOOLS, ClientError, LineClients

from koordinator.emulator.core.data.topic import TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster

pytestmark = pytest.mark.koordinator(topics={"t": 2, "in": 1, "out": 1})

VERSIONS = [
    pytest.param(2, id="TV2"),
    pytest.param(1, id="TV1", marks=pytest.mark.koordinator(config={"transaction.version": 1})),
    pytest.param(0, id="3.9", marks=pytest.mark.koordinator(kafka_version="3.9")),
]
WITHOUT_MEMBER = "commits offsets without the member's generation"

ATTEMPTS_MAX = 100


KINDS = ("java", "franz-go", "kafkajs")
"""The clients that have a program of their own for transactions, with copiers."""


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.needs(TOOLS[kind])) for kind in KINDS])
def clients(request: pytest.FixtureRequest, koordinator: Cluster) -> Iterator[LineClients]:
    kind: str = request.param
    with LineClients(kind, koordinator.bootstrap_servers) as clients:
        yield clients


def skip_except(request: pytest.FixtureRequest, *kinds: str, because: str) -> None:
    kind = request.node.callspec.params["clients"]
    if kind not in kinds:
        pytest.skip(f"{kind} {because}")


@pytest.mark.parametrize("_version", VERSIONS)
def test_committed_records_are_read_and_aborted_ones_are_not(clients: LineClients, _version: int) -> None:
    clients.ask("producer", "a", "x")
    for value, end in (("one", "commit"), ("never", "abort"), ("two", "commit"), ("neither", "abort"), ("3", "commit")):
        clients.ask("begin", "a")
        clients.ask("send", "a", "t", value)
        clients.ask(end, "a")
    assert sorted(clients.ask("read", "t", 3).split()) == ["3", "one", "two"]


@pytest.mark.parametrize("_version", VERSIONS)
def test_a_second_producer_with_the_id_fences_the_first(clients: LineClients, _version: int) -> None:
    clients.ask("producer", "zombie", "x")
    clients.ask("begin", "zombie")
    clients.ask("send", "zombie", "out", "lost")
    clients.ask("producer", "heir", "x")
    clients.ask("begin", "heir")
    with pytest.raises(ClientError, match=r"(?i)fenced|epoch"):
        clients.ask("commit", "zombie")
    clients.ask("send", "heir", "out", "kept")
    clients.ask("commit", "heir")
    assert clients.ask("read", "out", 1) == "kept"


@pytest.mark.parametrize("_version", VERSIONS)
def test_copied_records_and_their_offsets_are_committed_together(
    koordinator: Cluster, clients: LineClients, _version: int
) -> None:
    koordinator.produce("in", ["a", "b", "c"])
    clients.ask("copier", "a", "x", "g", "in", "out")
    clients.ask("copy", "a", 2)
    assert koordinator.group("g").offsets == {}
    assert clients.ask("finish", "a") == "true"
    clients.ask("copy", "a", 1)
    assert clients.ask("finish", "a") == "true"
    assert clients.ask("read", "out", 3) == "a b c"
    assert koordinator.group("g").offsets == {("in", 0): 3}


def test_a_member_that_lost_its_partitions_aborts_and_copies_again(
    koordinator: Cluster, clients: LineClients, request: pytest.FixtureRequest
) -> None:
    skip_except(request, "java", "franz-go", because=WITHOUT_MEMBER)
    koordinator.produce("in", ["a", "b"])
    clients.ask("copier", "a", "x", "g", "in", "out")
    clients.ask("copy", "a", 2)
    group = koordinator.group("g")
    group.evict(group.members[0], as_if="session")
    assert clients.ask("finish", "a") == "false"
    assert group.offsets == {}
    # the consumer learns of its eviction with a heartbeat; until then each attempt is refused
    for _ in range(ATTEMPTS_MAX):
        clients.ask("copy", "a", 2)
        clients.ask("finish", "a")
        if group.offsets == {("in", 0): 2}:
            break
    assert clients.ask("read", "out", 2) == "a b"


@pytest.mark.koordinator(topics={"in": 2, "out": 1})
def test_a_rebalance_during_a_transaction_neither_loses_nor_repeats_records(
    koordinator: Cluster, clients: LineClients, request: pytest.FixtureRequest
) -> None:
    skip_except(request, "java", "franz-go", because=WITHOUT_MEMBER)
    values = [f"{number:02}" for number in range(40)]
    koordinator.produce("in", values)
    clients.ask("copier", "a", "x", "g", "in", "out")
    clients.ask("copy", "a", 5)
    with LineClients(request.node.callspec.params["clients"], koordinator.bootstrap_servers) as others:
        others.ask("copier", "b", "y", "g", "in", "out")
        joining = others.begin("copy", "b", 5)
        while sum(koordinator.group("g").offsets.values()) < len(values):
            clients.ask("finish", "a")
            clients.ask("copy", "a", 5)
            if joining.done():
                others.ask("finish", "b")
                joining = others.begin("copy", "b", 5)
        joining.result()
        others.ask("finish", "b")
    clients.ask("finish", "a")
    clients.ask("producer", "last", "z")
    clients.ask("begin", "last")
    clients.ask("send", "last", "out", "end")
    clients.ask("commit", "last")
    assert sorted(clients.ask("read", "out", len(values) + 1).split()) == [*values, "end"]


@pytest.mark.koordinator(brokers=2, config={"transaction.state.log.num.partitions": 1})
def test_a_commit_follows_its_coordinator_to_another_broker(
    koordinator: Cluster, clients: LineClients, request: pytest.FixtureRequest
) -> None:
    skip_except(request, "java", "franz-go", because="does not look up the coordinator of EndTxn again")
    clients.ask("producer", "a", "x")
    clients.ask("begin", "a")
    clients.ask("send", "a", "t", "once")
    with koordinator.hold("EndTxn") as hold:
        commit = clients.begin("commit", "a")
        koordinator.move_leader(TRANSACTIONS_TOPIC, 0, 3 - hold.wait_entered().node)
    commit.result()
    assert clients.ask("read", "t", 1) == "once"
    assert ended(koordinator) == ["CompleteCommit"]


@pytest.mark.koordinator(brokers=3)
def test_a_commit_survives_the_death_of_its_coordinator(
    koordinator: Cluster, clients: LineClients, request: pytest.FixtureRequest
) -> None:
    skip_except(request, "java", because="gives up EndTxn when its connection closes")
    clients.ask("producer", "a", "x")
    clients.ask("begin", "a")
    clients.ask("send", "a", "t", "once")
    with koordinator.hold("EndTxn") as hold:
        commit = clients.begin("commit", "a")
        coordinator = koordinator.nodes[hold.wait_entered().node]
        coordinator.kill()
    commit.result()
    coordinator.start()
    assert clients.ask("read", "t", 1) == "once"
    assert ended(koordinator) == ["CompleteCommit"]


@pytest.mark.needs("node")
@pytest.mark.koordinator(brokers=2, config={"transaction.state.log.num.partitions": 1})
@pytest.mark.parametrize("is_killed", [False, True], ids=["moved", "killed"])
def test_kafkajs_gives_a_commit_up_and_its_next_producer_writes_the_record_once(
    koordinator: Cluster,
    is_killed: bool,  # noqa: FBT001 - a parameter
) -> None:
    with LineClients("kafkajs", koordinator.bootstrap_servers) as clients:
        clients.ask("producer", "a", "x")
        clients.ask("begin", "a")
        clients.ask("send", "a", "t", "once")
        with koordinator.hold("EndTxn") as hold:
            commit = clients.begin("commit", "a")
            before = hold.wait_entered().node
            if is_killed:
                koordinator.nodes[before].kill()
            koordinator.move_leader(TRANSACTIONS_TOPIC, 0, 3 - before)
        with pytest.raises(ClientError):
            commit.result()
        if is_killed:
            koordinator.nodes[before].start()
        clients.ask("producer", "b", "x")
        clients.ask("begin", "b")
        clients.ask("send", "b", "t", "once")
        clients.ask("commit", "b")
        clients.ask("producer", "last", "y")
        clients.ask("begin", "last")
        clients.ask("send", "last", "t", "end")
        clients.ask("commit", "last")
        assert sorted(clients.ask("read", "t", 2).split()) == ["end", "once"]
    assert ended(koordinator) == ["CompleteAbort", "CompleteCommit", "CompleteCommit"]


def ended(koordinator: Cluster) -> list[object]:
    states = [event["state_to"] for event in koordinator.events() if event["kind"] == "transaction"]
    return [state for state in states if str(state).startswith("Complete")]
