"""Runs of the fuzzer on three nodes: clients, control operations, failing nodes and a failing disk together.

Half of the clusters have a data directory, on an in-memory file system: log writes complete at once, later, or fail,
and the cluster restarts from its log. An `Audit` has every acknowledgement, and must hold after each restart. At the
end of a run the disturbances end: then consumer groups have every partition assigned, every request is answered or
superseded, and only empty groups are left. Groups are checked after each input by `scenes.group_invariants`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders.cluster_audits import AUDIT, Audit, Topics, check_clocks
from builders.cluster_ring import NODES, ClusterRing
from builders.random_clients import RandomClients
from builders.random_operations import RandomOperations
from builders.valid_frames import Valid, served
from koordinator.emulator.core.data.topic import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from koordinator.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    import random

WAITS_MS = (0, 0, 0, 1, 10, 100, 500, 1_000, 5_000, 12_000)


def _is_never_answered(request: Any) -> bool:
    """Return whether Kafka never answers a request, and so the emulator does not either."""
    match request:
        case ProduceRequest():
            return any(row.records is None for topic in request.topic_data for row in topic.partition_data)
        case AddPartitionsToTxnRequest():
            return not request.transactions
        case _:
            return False


class Cluster:
    """Clients of both protocols and transactions, beside control operations, failing nodes and a failing disk."""

    FRAMES = 2_000

    def __init__(self, chance: random.Random) -> None:
        self.ring = ring = ClusterRing(chance)
        self._chance = chance
        self._clients = RandomClients(chance)
        self._operations = RandomOperations(chance)
        self._audit, self._topics = Audit(), Topics()
        self._valid = Valid(chance, ring.cluster.topics["t"].topic_id)
        self._served = list(served())
        ring.learned = self._operations.learn

    def step(self) -> None:
        """Send a request, or do something to the cluster; then check all groups."""
        chance, ring = self._chance, self.ring
        what = chance.random()
        if what < 0.03:
            self._operate()
        elif what < 0.0305 and ring.files is not None:
            ring.restart(crashes=chance.random() < 0.5)
            self._audit.check(ring.runtime)
        else:
            self._send()
        if chance.random() < 0.15:
            ring.pass_time(chance.choice(WAITS_MS))
        if ring.alive and chance.random() < 0.01:
            ring.drop(chance.choice(ring.alive))
        self._disk()
        if chance.random() < 0.7:
            ring.go_on()
        ring.catch_up()
        for request, answer in ring.listen():
            self._clients.learn(request, answer)
            self._audit.note(request, answer, ring.tally.frames)
        check_clocks(ring.runtime)
        self._topics.check(ring.runtime)
        ring.runtime.failures.check()

    def _operate(self) -> None:
        name, arguments = self._operations.next()
        is_reset = name in {"snapshots.reset", "snapshots.restore"}
        scope = set(arguments.get("scope", ("groups",)))
        if self.ring.perform(name, arguments) and is_reset and scope & {"groups", "topics"}:
            # it ends what was acknowledged
            self._audit, self._topics = Audit(), Topics()
            for peer in list(self.ring.alive):
                self.ring.drop(peer)
            self.ring.answered.clear()
            self.ring.perform("topics.create", {"topic": AUDIT})

    def _send(self) -> None:
        chance, ring = self._chance, self.ring
        what = chance.random()
        if what < 0.85:
            request, version, key, kind = self._clients.next()
        elif what < 0.95:
            request, version, key, kind = self._audit.request(chance)
        else:
            api, version = chance.choice(self._served)
            request, key, kind = self._valid.request(api, version), None, 0
            if api == ApiKey.UNREGISTER_BROKER or _is_never_answered(request):
                return
        node_id = chance.choice(NODES)
        if key is not None and chance.random() < 0.95:
            topic = TRANSACTIONS_TOPIC if kind else OFFSETS_TOPIC
            node_id = ring.cluster.coordinator_of(key, topic)
        elif isinstance(request, ProduceRequest) and request.topic_data:
            leader = ring.cluster.topics.get(request.topic_data[0].name)
            node_id = node_id if leader is None else leader.leader(0)
        peer = ring.peer_at(node_id)
        if peer is not None:
            ring.ask_later(peer, request, version)

    def _disk(self) -> None:
        if self.ring.files is not None and self._chance.random() < 0.02:
            self.ring.fail_disk(self._chance.randrange(3))
