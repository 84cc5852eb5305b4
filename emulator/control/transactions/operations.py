"""Operations on transactional ids: describe, compare with an expectation, end, and disturb their markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.suggest import UnknownWord, did_you_mean
from ...core.data.producers import NONE
from ...core.data.topic import TRANSACTIONS_TOPIC
from ...core.transactions.markers import DELAYED, LOST
from ...core.transactions.transitions import TransactionCause, TransactionStatus
from ...trace.events import WHOLE_CLUSTER, VerbUsed
from ..resolve import known, transactions
from ..results import GroupCheck, PendingOffset, TransactionInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...broker.broker import Broker
    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.transactions.transaction import TransactionalId

STATES = tuple(status.value for status in TransactionStatus)
"""The states of a transactional id; Dead if it does not exist."""

WRITTEN = "written"
MARKERS = (WRITTEN, DELAYED, LOST)
"""What may happen to the markers of a partition."""

OPEN = (TransactionStatus.ONGOING, TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)


class Transactions:
    """Operations on the transactional ids of all nodes; those of a node that is down do not exist."""

    def __init__(self, runtime: ClusterRuntime, deliver: Callable[[Iterable[Output]], None]) -> None:
        self._runtime = runtime
        self._deliver = deliver

    def ids(self, _now: int) -> list[str]:
        """Return all transactional ids, sorted."""
        return list(transactions(self._runtime))

    def describe(self, _now: int, *, transaction: str) -> TransactionInfo:
        """Return a transactional id at this moment. One that does not exist is Dead."""
        found = transactions(self._runtime).get(transaction)
        if found is None:
            coordinator = self._runtime.cluster.coordinator_of(transaction, TRANSACTIONS_TOPIC)
            return TransactionInfo(transaction, coordinator=coordinator)
        return self._info(*found)

    def meets(self, now: int, *, transaction: str, state: str) -> bool:
        """Return whether a transactional id is in a state. Raises UnknownWord (a ValueError) for another state."""
        if state not in STATES:
            raise UnknownWord(f"state {state!r}: must be one of {', '.join(STATES)}{did_you_mean(state, STATES)}")
        return self.describe(now, transaction=transaction).state == state

    def none_open(self, _now: int) -> GroupCheck:
        """Check that every transaction has ended, and that no partition has records of an open one."""
        found = [self._info(broker, each) for broker, each in transactions(self._runtime).values()]
        is_open = {status.value for status in OPEN}
        problems = [f"{each.transactional_id!r}: {each}" for each in found if each.state in is_open]
        known_ids = {each.producer_id for each in found if each.state in is_open}
        problems += [
            f"{topic.name}-{partition}: producer {producer.id} has an open transaction that no coordinator will end"
            for topic in self._runtime.cluster.topics.values()
            for partition, log in enumerate(topic.logs)
            for producer in log.producers
            if producer.open_since != NONE and producer.id not in known_ids
        ]
        listed = "".join(f"\n  {problem}" for problem in problems)
        return GroupCheck(ok=not problems, message=f"expected no open transaction, seen {len(problems)}:{listed}")

    def abort(self, now: int, *, transaction: str) -> None:
        """Abort an Ongoing transaction and fence its producer, as an operator does with `Admin.fenceProducers`.

        Raises ValueError if there is no such transaction or it is in another state.
        """
        self._end(now, transaction, "abort_transaction", TransactionCause.OPERATOR)

    def expire(self, now: int, *, transaction: str) -> None:
        """Let the timeout of an Ongoing transaction pass now; no clock moves. Raises ValueError in another state."""
        self._end(now, transaction, "expire_transaction", TransactionCause.TIMED_OUT)

    def set_markers(self, _now: int, *, topic: str, partition: int, markers: str) -> None:
        """Decide what happens to the markers of a partition: "written", "delayed" or "lost".

        A transaction with a delayed marker stays in PrepareCommit or PrepareAbort until its markers are "written"
        again. One with a lost marker completes, but its records stay undecided: a hanging transaction (KIP-890).
        """
        if markers not in MARKERS:
            raise UnknownWord(
                f"markers={markers!r}: must be one of {', '.join(MARKERS)}{did_you_mean(markers, MARKERS)}"
            )
        cluster = self._runtime.cluster
        count = cluster.topics.partition_count(topic)
        if not 0 <= partition < count:
            numbers = f"; it has 0 to {count - 1}" if count else known(topic, cluster.topics)
            raise ValueError(f"there is no partition {partition} of topic {topic!r}{numbers}")
        if markers == WRITTEN:
            cluster.marker_faults.pop((topic, partition), None)
        else:
            cluster.marker_faults[topic, partition] = markers
        self._note("set_markers", topic=topic, partition=partition, markers=markers)

    def _end(self, now: int, name: str, verb: str, cause: TransactionCause) -> None:
        found = transactions(self._runtime)
        if name not in found:
            raise ValueError(f"there is no transaction {name!r}{known(name, found)}")
        broker, _ = found[name]
        node_id = broker.node.node_id
        if self._runtime.states[node_id] == "paused":
            raise ValueError(f"node {node_id}, which coordinates transaction {name!r}, is paused: resume it first")
        effects = broker.node.transactions.abort(now, name, cause)
        self._note(verb, transaction=name)
        self._deliver(broker.perform(now, effects))
        # the markers travel between the nodes
        self._deliver(self._runtime.links.exchange(now, self._runtime))

    def _note(self, verb: str, **arguments: object) -> None:
        trace = self._runtime.trace
        trace.add(trace.now_us(), VerbUsed(verb, None, 0, arguments), WHOLE_CLUSTER)

    def _info(self, broker: Broker, transaction: TransactionalId) -> TransactionInfo:
        data = transaction.data
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(transaction.unmarked if data.status.is_prepared else data.partitions):
            by_topic.setdefault(topic, []).append(partition)
        return TransactionInfo(
            transactional_id=transaction.id,
            state=data.status.value,
            producer_id=data.producer_id,
            producer_epoch=data.epoch,
            timeout_ms=data.timeout_ms,
            started_ms=data.started_ms,
            updated_ms=data.updated_ms,
            client_id=transaction.client_id,
            coordinator=broker.node.node_id,
            partitions=by_topic,
            pending_offsets=[
                PendingOffset(group.id, *at, pending.value.offset)
                for each in self._runtime
                for group in each.node.coordinator.groups.values()
                for at, pending in group.pending_offsets.get(data.producer_id, {}).items()
            ],
        )
