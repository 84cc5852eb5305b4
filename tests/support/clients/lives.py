"""What a client of any language does in groups and transactions: a play for each, with programs of `line_clients`.

A play returns what was seen; AssertionError or ClientError says why the client does not do it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.consumers import PATIENCE_S
from clients.line_clients import ClientError, LineClients

from koordinator import Emulator
from koordinator.client.connection import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator import Cluster

TOPIC, PARTITIONS = "t", 4

DYNAMIC = "-"

SETTINGS = {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.assignment.interval.ms": 0}


def join(members: LineClients, name: str, protocol: str, instance: str = DYNAMIC) -> None:
    members.ask("join", name, "g", protocol, instance, TOPIC)


def owned(members: LineClients, name: str, count: int) -> set[str]:
    return set(members.ask("owned", name, count).split())


def share(members: LineClients, *names: str) -> list[set[str]]:
    """Wait until two members own all partitions by their own accounts; return those of each."""
    deadline = Deadline(PATIENCE_S)
    while True:
        found = [owned(members, name, PARTITIONS // len(names)) for name in names]
        # each may have told of a time before the other's
        if len(set.union(*found)) == PARTITIONS:
            return found
        assert deadline.left(), f"not all partitions: {found}"


def pair(_: Cluster, members: LineClients, protocol: str) -> str:
    """Two members share the partitions."""
    join(members, "a", protocol)
    join(members, "b", protocol)
    share(members, "a", "b")
    return "2 + 2 partitions"


def rebalance(cluster: Cluster, members: LineClients, protocol: str) -> str:
    """A third member joins and leaves, and then the second."""
    for name in "abc":
        join(members, name, protocol)
    cluster.group("g").wait_stable(members=3, all_owned=True)
    members.ask("leave", "c")
    share(members, "a", "b")
    members.ask("leave", "b")
    owned(members, "a", PARTITIONS)
    return "3, 2, 1 members"


def static(cluster: Cluster, members: LineClients, protocol: str) -> str:
    """A static member is closed and returns to its partitions."""
    join(members, "a", protocol, "i1")
    join(members, "b", protocol, "i2")
    before = share(members, "a", "b")
    group = cluster.group("g")
    group.wait_stable(members=2, all_owned=True)
    generation = group.generation
    members.ask("leave", "a")
    join(members, "back", protocol, "i1")
    after = share(members, "back", "b")
    assert group.generation == generation, "closing it starts a rebalance"
    assert after == before, f"other partitions after the restart: {after}, not {before}"
    return "the same partitions, no rebalance"


def resume(cluster: Cluster, members: LineClients, protocol: str) -> str:
    """A member commits, and its successor continues from there."""
    cluster.produce(TOPIC, *({"value": f"v{number}", "partition": 0} for number in range(3)))
    join(members, "a", protocol)
    assert members.ask("first", "a") == "v0"
    members.ask("commit", "a", TOPIC, 0, 2)
    members.ask("leave", "a")
    assert cluster.group("g").offsets == {(TOPIC, 0): 2}
    join(members, "b", protocol)
    assert members.ask("first", "b") == "v2"
    return "continues from 2"


def transactions(_: Cluster, clients: LineClients, __: str) -> str:
    """Committed records are read, and aborted ones are not."""
    clients.ask("producer", "p", "x")
    for value, end in (("one", "commit"), ("never", "abort"), ("two", "commit"), ("neither", "abort"), ("3", "commit")):
        clients.ask("begin", "p")
        clients.ask("send", "p", TOPIC, value)
        clients.ask(end, "p")
    assert sorted(clients.ask("read", TOPIC, 3).split()) == ["3", "one", "two"]
    return "3 committed, 2 aborted"


def records(_: Cluster, clients: LineClients, __: str) -> str:
    """What a client without groups writes, it reads."""
    for value in ("one", "two"):
        clients.ask("write", TOPIC, value)
    assert clients.ask("read", TOPIC, 2) == "one two"
    return "2 records written and read"


Play = tuple["Callable[[Cluster, LineClients, str], str]", str, str]

OF_GROUPS = {"a group of two": pair, "a rebalance": rebalance, "a static restart": static, "commit and resume": resume}

CLASSIC: Mapping[str, Play] = {name: (play, "joining", "classic") for name, play in OF_GROUPS.items()}
CONSUMER: Mapping[str, Play] = {f"KIP-848: {name}": (play, "joining", "consumer") for name, play in OF_GROUPS.items()}
TRANSACTIONS: Mapping[str, Play] = {"transactions": (transactions, "transacting", "")}
RECORDS: Mapping[str, Play] = {"records": (records, "joining", "")}

LIVES: Mapping[str, Mapping[str, Play]] = {
    "confluent-kafka": CLASSIC | CONSUMER | TRANSACTIONS,
    "java": CLASSIC | CONSUMER | TRANSACTIONS,
    "spring": CLASSIC | CONSUMER | TRANSACTIONS,
    "franz-go": CLASSIC | CONSUMER | TRANSACTIONS,
    "sarama": CLASSIC | TRANSACTIONS,
    "platformatic": CLASSIC | CONSUMER | TRANSACTIONS,
    "confluent-js": CLASSIC | CONSUMER | TRANSACTIONS,
    "rust-rdkafka": CLASSIC | CONSUMER | TRANSACTIONS,
    "rskafka": RECORDS,
}
"""The plays of each client of `line_clients.TOOLS`."""


def lived(kind: str, name: str) -> str:
    """Play one play with a client; return what was seen, or `no: ` and the reason."""
    play, program, protocol = LIVES[kind][name]
    with (
        Emulator(topics={TOPIC: PARTITIONS}, config=SETTINGS) as cluster,
        LineClients(kind, cluster.bootstrap_servers, program) as clients,
    ):
        try:
            return play(cluster, clients, protocol)
        except (AssertionError, ClientError) as error:
            return f"no: {str(error).splitlines()[0]}"
