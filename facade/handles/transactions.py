"""The handle of a transactional id, and the part of `Cluster` that finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, Unpack

from koordinator.emulator.control.inspect.events import Events
from koordinator.emulator.control.inspect.verification import Verify
from koordinator.emulator.control.resolve import known
from koordinator.emulator.control.results import PendingOffset, ProducerInfo, TransactionInfo
from koordinator.emulator.control.transactions.operations import Transactions
from koordinator.emulator.control.transactions.producers import PuppetProducers
from koordinator.emulator.pages.timeline import last_events

from ..trace import Event
from .durations import Duration, ms_of, seconds_of
from .errors import KoordinatorTimeout
from .faults import Hold, HoldOptions, Rule, RuleOptions, add_hold, add_rule, scoped
from .handle import Handle
from .names import GroupLike, MemberLike, TopicKey, TopicLike, exact_glob, group_id_of, member_name, topic_name_of
from .nodes import Node
from .port import WAIT_S
from .renames import renamed, renamed_arguments
from .words import Markers, TransactionState  # noqa: TC001 - arguments are checked with them

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.emulator.control.faults.actions import Action
    from koordinator.emulator.control.record_inputs import RecordLike

    from .port import Port

__all__ = [
    "PendingOffset",
    "ProducerInfo",
    "PuppetProducer",
    "Transaction",
    "TransactionControls",
    "TransactionInfo",
    "TransactionTimeout",
]


class TransactionTimeout(KoordinatorTimeout):
    """A transaction did not reach a state in time. The text describes it."""


class Transaction(Handle):
    """A transactional id, which need not exist yet. Each property asks its coordinator.

    An override that is impossible in the current state raises ValueError and changes nothing.
    """

    id: str

    def __init__(self, port: Port, transactional_id: str) -> None:
        self._port = port
        self.id = transactional_id

    def __repr__(self) -> str:
        return f"<Transaction {self.id!r}>"

    def describe(self) -> TransactionInfo:
        """Return the whole transactional id at one moment."""
        return self._port.call(Transactions.describe, transaction=self.id)

    def events(self) -> list[Event]:
        """Return the events in the trace that name the transactional id, and the responses to its requests."""
        calls, events = set(), []
        for event in map(Event, self._port.call(Events.read)):
            if event.body.get("transactional_id") == self.id:
                calls.add(event.call)
                events.append(event)
            elif event.kind == "response" and event.call in calls:
                events.append(event)
        return events

    @property
    def state(self) -> str:
        """Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort; Dead if it does not exist."""
        return self.describe().state

    @property
    def producer_id(self) -> int:
        """The current producer id; -1 if the transactional id does not exist."""
        return self.describe().producer_id

    @property
    def producer_epoch(self) -> int:
        """The current epoch: requests with an earlier one are refused."""
        return self.describe().producer_epoch

    @property
    def partitions(self) -> Mapping[str, list[int]]:
        """The partitions of the open transaction by topic; once it is decided, those that lack their marker."""
        return self.describe().partitions

    @property
    def pending_offsets(self) -> dict[str, dict[tuple[str, int], int]]:
        """The offsets that the transaction will commit, by group, then by topic and partition."""
        found: dict[str, dict[tuple[str, int], int]] = {}
        for each in self.describe().pending_offsets:
            found.setdefault(each.group, {})[each.topic, each.partition] = each.offset
        return found

    @property
    def coordinator(self) -> Node | None:
        """The broker that coordinates the transactional id; None if no broker does."""
        node_id = self.describe().coordinator
        return None if node_id < 0 else Node(self._port, node_id)

    def wait_state(self, state: TransactionState, timeout: Duration = WAIT_S) -> Transaction:
        """Wait until the transactional id is in a state. Raises TransactionTimeout after `timeout`."""
        timeout_s = seconds_of(timeout)
        if not self._port.wait(Transactions.meets, timeout_s, transaction=self.id, state=state):
            message = f"transaction {self.id!r} was not {state} within {timeout_s:g} s; it is {self.describe()}"
            ids = self._port.call(Transactions.ids)
            elsewhere = [] if self.id in ids else [f"there is no transaction {self.id!r}{known(self.id, ids)}"]
            raise TransactionTimeout("\n".join([message, *elsewhere, *last_events(self.events())]))
        return self

    def abort(self) -> None:
        """Abort the Ongoing transaction and fence its producer, as an operator does with `Admin.fenceProducers`."""
        self._port.call(Transactions.abort, transaction=self.id)

    def expire(self) -> None:
        """Let the timeout of the Ongoing transaction pass now: it is aborted and its producer fenced."""
        self._port.call(Transactions.expire, transaction=self.id)

    def add_rule(self, api: str, action: Action, **options: Unpack[RuleOptions]) -> Rule:
        """Add a rule for requests of this transactional id, as `Group.add_rule` does."""
        return add_rule(self._port, api, action, scoped(options, "transaction", exact_glob(self.id), self.id))

    rule = renamed(add_rule)

    def hold(self, api: str, **options: Unpack[HoldOptions]) -> Hold:
        """Park requests of this transactional id, such as EndTxn, or WriteTxnMarkers between brokers."""
        return add_hold(self._port, api, scoped(options, "transaction", exact_glob(self.id), self.id))


class PuppetProducer(Handle):
    """A transactional producer that lives in the emulator and takes its steps when a test says so.

    Each step returns the producer after its immediate effects; `error` is its result. Nothing is retried. A transaction
    begins with the first record or offset. The transactional id of a stopped or fenced puppet stays its own, so that
    its next step is that of a zombie.
    """

    name: str

    def __init__(self, port: Port, name: str) -> None:
        self._port = port
        self.name = name

    def __repr__(self) -> str:
        return f"<PuppetProducer {self.name!r}>"

    def describe(self) -> ProducerInfo:
        """Return the whole producer at one moment."""
        return self._port.call(PuppetProducers.describe, name=self.name)

    @property
    def error(self) -> str | None:
        """The error of the last step; None if it succeeded or still waits."""
        return self.describe().error

    @property
    def waits_for(self) -> str | None:
        """The API of the pending request, such as one that a hold has parked."""
        return self.describe().waits_for

    @property
    def producer_id(self) -> int:
        """The producer id that the puppet sends; -1 before `init`."""
        return self.describe().producer_id

    @property
    def producer_epoch(self) -> int:
        """The epoch that the puppet sends, current or not."""
        return self.describe().producer_epoch

    def init(self, *, resume: bool = False) -> PuppetProducer:
        """Send InitProducerId, which fences other producers of the transactional id.

        With `resume` it names the puppet's own producer id and epoch, as after an abortable error (KIP-360).
        """
        self._port.call(PuppetProducers.init, name=self.name, resume=resume)
        return self

    def produce(self, topic: TopicLike, *records: RecordLike, partition: int = 0) -> PuppetProducer:
        """Send records to one partition, in one batch."""
        self._port.call(
            PuppetProducers.produce,
            name=self.name,
            topic=topic_name_of(topic),
            records=list(records),
            partition=partition,
        )
        return self

    def send_offsets(
        self,
        group: GroupLike,
        offsets: Mapping[tuple[TopicKey, int], int],
        member: MemberLike | None = None,
        generation: int | None = None,
    ) -> PuppetProducer:
        """Send offsets, by topic and partition, that the transaction commits.

        With `member` they are those of a member of the group in its current generation, or in `generation` (KIP-447).
        """
        self._port.call(
            PuppetProducers.send_offsets,
            name=self.name,
            group=group_id_of(group),
            offsets=[(topic_name_of(topic), partition, offset) for (topic, partition), offset in offsets.items()],
            member=None if member is None else member_name(member),
            generation=generation,
        )
        return self

    def commit(self) -> PuppetProducer:
        """Send EndTxn to commit the transaction."""
        self._port.call(PuppetProducers.commit, name=self.name)
        return self

    def abort(self) -> PuppetProducer:
        """Send EndTxn to abort the transaction."""
        self._port.call(PuppetProducers.abort, name=self.name)
        return self

    def stop(self) -> PuppetProducer:
        """Close the connections, like a killed process: the transaction stays open."""
        self._port.call(PuppetProducers.stop, name=self.name)
        return self

    def wait_answered(self, timeout: Duration = WAIT_S) -> PuppetProducer:
        """Wait until the pending step has ended. Raises TransactionTimeout after `timeout`."""
        timeout_s = seconds_of(timeout)
        if not self._port.wait(PuppetProducers.answered, timeout_s, name=self.name):
            raise TransactionTimeout(
                f"producer {self.name!r} got no response within {timeout_s:g} s; it is {self.describe()}"
            )
        return self


class TransactionControls(Handle):
    """The part of `Cluster` with transactions."""

    def transaction(self, transactional_id: str) -> Transaction:
        """Return the handle of a transactional id, which need not exist yet."""
        return Transaction(self._port, transactional_id)

    @property
    def transactions(self) -> dict[str, Transaction]:
        """The existing transactional ids, sorted."""
        return {each: Transaction(self._port, each) for each in self._port.call(Transactions.ids)}

    @renamed_arguments(transaction_timeout_s="transaction_timeout")
    def create_producer(
        self,
        name: str,
        transactional_id: str | None = None,
        *,
        client_id: str | None = None,
        transaction_timeout: Duration = 60,
    ) -> PuppetProducer:
        """Create a puppet producer, whose transactional id and client id default to its name.

        Raises ValueError for a name in use.
        """
        self._port.call(
            PuppetProducers.create,
            name=name,
            transactional_id=transactional_id,
            client_id=client_id,
            transaction_timeout_ms=ms_of(transaction_timeout),
        )
        return PuppetProducer(self._port, name)

    producer = renamed(create_producer)

    @property
    def producers(self) -> dict[str, PuppetProducer]:
        """The puppet producers by name, in order of creation."""
        return {each.name: PuppetProducer(self._port, each.name) for each in self._port.call(PuppetProducers.list)}

    def set_markers(self, topic: TopicLike, partition: int, markers: Markers) -> None:
        """Decide what happens to the transaction markers of a partition, until it is "written" again.

        With "delayed" a decided transaction stays in PrepareCommit or PrepareAbort. With "lost" it completes, but the
        records of the partition stay undecided: a hanging transaction blocks its read_committed consumers.
        """
        self._port.call(Transactions.set_markers, topic=topic_name_of(topic), partition=partition, markers=markers)

    def assert_no_open_transactions(self, timeout: Duration = 0) -> Self:
        """Assert that every transaction has ended, and that no partition has records of a hanging one.

        With `timeout` wait up to that time. Raises AssertionError with the open transactions.
        """
        timeout_s = seconds_of(timeout)
        if timeout_s:
            result = self._port.wait(Transactions.none_open, timeout_s)
        else:
            result = self._port.call(Transactions.none_open)
        if not result.ok:
            raise AssertionError(result.message)
        return self

    def assert_transactions_isolated(self) -> Self:
        """Assert that the trace shows no violation of transactions, T01 to T03.

        Offsets are committed with their transaction only, read_committed consumers get nothing undecided, and fenced
        producers write nothing. Raises AssertionError.
        """
        result = self._port.call(Verify.transactions)
        if not result.ok:
            raise AssertionError(result.message)
        return self
