"""The results of operations: one value class each, for the handles, the HTTP API and its OpenAPI document.

The JSON object of a result has its fields, in their order. A result with a field `ok` ends a wait when `ok` is true;
any other result ends a wait when it is true itself (`is_satisfied`).
"""

from __future__ import annotations

from dataclasses import field

from koordinator.trace.rebalances import Rebalance  # noqa: TC001 - read at run time
from koordinator.wire.values import value

from ..core.groups.classic.group import ClassicGroupState
from ..verify.conformance import Verdict  # noqa: TC001 - read at run time

Assignment = dict[str, list[int]]
"""Partitions by topic, in order."""


def is_satisfied(result: object) -> bool:
    """Return whether a result ends a wait."""
    return bool(getattr(result, "ok", result))


@value
class NodeState:
    """A node, its state (up, paused or down), and its rack (`broker.rack`), if any."""

    node: int
    state: str
    rack: str | None = None


@value
class ClientConnection:
    """An open connection of a client, by its number in the trace. Puppets have none."""

    connection: int
    node: int
    client_id: str
    client_host: str


@value
class Right:
    """An ACL: a principal (`User:alice`) may or may not do an operation with a resource, from a host or from any (`*`).

    A name with `*` at its end stands for all names that begin so.
    """

    principal: str
    permission: str
    operation: str
    resource: str
    name: str
    host: str


@value
class PartitionInfo:
    """A partition: its leader's node id (-1 without a leader) and the offset after its last record."""

    partition: int
    leader: int
    end_offset: int


@value
class TopicInfo:
    """A topic, its partitions by number, its id, and the configs that were set (not the defaults).

    A Kafka broker's configs are not read: there they are empty.
    """

    topic: str
    partitions: list[PartitionInfo]
    topic_id: str
    configs: dict[str, str]


@value
class Member:
    """A member of a group at one moment.

    `assignment` has the partitions of each topic; it is empty unless the group's protocol type is "consumer".
    `protocols` are the names of the offered protocols, most preferred first. A Kafka broker does not report
    protocols and timeouts: there they are empty and -1.

    The last four are those of a consumer group (KIP-848), whose members use the protocol "consumer" or "classic":
    `target` is what the member is to have, `pending_revocation` what it has to give up first.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: Assignment
    protocols: tuple[str, ...] = ()
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    type: str = "classic"
    epoch: int = -1
    target: Assignment = field(default_factory=dict)
    pending_revocation: Assignment = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The `group.instance.id` of a static member, else the member id."""
        return self.instance_id or self.member_id


@value
class SilentMember:
    """A member whose client is gone or silent.

    Its last request came `silent_ms` ago. `is_connected`: whether the connection of that request is open.
    `session_ends_ms` is the remaining time of its session, in the group's time; None if none runs, as in a rebalance.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    is_connected: bool
    silent_ms: int
    session_ends_ms: int | None

    def __str__(self) -> str:
        name = self.instance_id or self.member_id
        subject = name if self.is_connected else f"{name} has closed its connection without leaving the group; it"
        end = "" if self.session_ends_ms is None else f"; its session ends in {self.session_ends_ms / 1000:.1f} s"
        return f"{subject} was last heard from {self.silent_ms / 1000:.1f} s ago{end}"


@value
class GroupInfo:
    """A group at one moment. A group that does not exist is Dead, in generation -1, as in DescribeGroups.

    The `type` is "classic" or "consumer" (KIP-848). The generation of a consumer group is the epoch of its target, its
    protocol the server's assignor; `epoch` is that of the group, and it has no leader.
    """

    state: str = ClassicGroupState.DEAD.value
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    """The member id of the leader."""
    members: tuple[Member, ...] = ()
    """The members, in the order in which they joined."""
    waiting_for: tuple[str, ...] = ()
    """The ids of the members that have not sent SyncGroup in this generation, or do not have their target yet."""
    type: str = "classic"
    epoch: int = -1

    def __str__(self) -> str:
        size = f"{len(self.members)} member{'' if len(self.members) == 1 else 's'}"
        owned = "".join(f"; {member.label}: {_brief(member.assignment)}" for member in self.members)
        awaited, number = "no SyncGroup yet from", f"generation {self.generation}"
        if self.type != "classic":
            awaited, number = "not at its target yet:", f"epoch {self.epoch}"
        late = f"; {awaited} {', '.join(self.waiting_for)}" if self.waiting_for else ""
        return f"{self.state}, {number}, {size}{owned}{late}"


@value
class PartitionOffset:
    """The committed offset of a partition. A Kafka broker is not asked for the last three fields."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    commit_timestamp: int = -1


@value
class RecordsInFlight:
    """Records of a share group with one state: available, acquired, acknowledged or archived (KIP-932).

    Acquired records have the id of their member, and the rest of its lock in ms of the group's clock.
    """

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None = None
    lock_remaining_ms: int | None = None


@value
class SharePosition:
    """Where a share group is in a partition: all before the start is finished, nothing after the end was delivered."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    records: tuple[RecordsInFlight, ...] = ()


@value
class PendingOffset:
    """An offset of a group that an open transaction will commit."""

    group: str
    topic: str
    partition: int
    offset: int


@value
class TransactionInfo:
    """A transactional id at one moment. One that does not exist is Dead, with producer id and epoch -1.

    `partitions` are those of the open transaction, by topic; once it is decided, those that still lack their marker.
    `started_ms` and `updated_ms` are in ms since the epoch, `started_ms` -1 before the first transaction. `client_id`
    is that of the last InitProducerId, or empty after the coordinator has moved. `coordinator` is a node id.
    """

    transactional_id: str
    state: str = "Dead"
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = -1
    started_ms: int = -1
    updated_ms: int = -1
    client_id: str = ""
    coordinator: int = -1
    partitions: Assignment = field(default_factory=dict)
    pending_offsets: list[PendingOffset] = field(default_factory=list)

    def __str__(self) -> str:
        offsets = "".join(
            f"; {each.group}: {each.topic}-{each.partition}={each.offset}" for each in self.pending_offsets
        )
        identity = f"producer {self.producer_id}, epoch {self.producer_epoch}"
        return f"{self.state}, {identity}; {_brief(self.partitions)}{offsets}"


@value
class ProducerInfo:
    """A puppet producer at one moment.

    Producer id and epoch are -1 before its first InitProducerId. `waits_for` is the API of its pending request, `error`
    the error of its last step; both may be None.
    """

    name: str
    transactional_id: str
    client_id: str
    producer_id: int
    producer_epoch: int
    waits_for: str | None
    error: str | None

    def __str__(self) -> str:
        pending = f", waiting for {self.waits_for}" if self.waits_for else ""
        error = f", error {self.error}" if self.error else ""
        return f"producer {self.producer_id}, epoch {self.producer_epoch}{pending}{error}"


@value
class ClockReading:
    """A group's clock: its mode, its time in ms since the epoch, and its lead over the node's clock in ms."""

    mode: str
    now_ms: int
    ahead_ms: int


@value
class Fired:
    """A timer that fired: `kind` is session, pending, initial_delay, join, sync, revocation, patterns or offsets.

    `deadline_ms` is in the group's time, in ms since the epoch. `member_id` and `instance_id` name the timer's member,
    if it has one. `generation` is the group's generation before the timer fired.
    """

    kind: str
    member_id: str | None
    instance_id: str | None
    deadline_ms: int
    generation: int

    def __str__(self) -> str:
        label = self.instance_id or self.member_id
        return self.kind if label is None else f"{self.kind} of {label}"


@value
class Timer:
    """A running timer; `remaining_ms` is in the group's time. The other fields are those of `Fired`."""

    kind: str
    member_id: str | None
    instance_id: str | None
    deadline_ms: int
    remaining_ms: int
    generation: int


@value
class GroupCheck:
    """The result of a check: `message` has the expectation, the observation and the closest miss, or is empty."""

    ok: bool
    message: str = ""

    def __post_init__(self) -> None:
        if self.ok:
            object.__setattr__(self, "message", "")


@value
class RebalanceCheck(GroupCheck):
    """The result of a check for a rebalance, and the completed rebalance."""

    rebalance: Rebalance | None = None


@value
class RequestCheck(GroupCheck):
    """The result of a check of requests, and the sequence numbers of the matching requests in the trace."""

    seqs: list[int] = field(default_factory=list)


@value
class ConformanceCheck(GroupCheck):
    """The result of the client checks C01 to C14, or of the checks of transactions T01 to T03, one verdict each."""

    checks: list[Verdict] = field(default_factory=list)


@value
class Request:
    """A request that a rule acted on, or that a hold has parked. Numbers are those of the trace."""

    api: str
    version: int
    connection: int
    correlation_id: int
    client_id: str | None
    group: str | None
    member_id: str | None
    node: int


@value
class RuleInfo:
    """A rule and its counters: `matched` requests, `hits` (it acted), and the last `requests` it acted on."""

    id: str
    match: dict[str, object]
    action: dict[str, object]
    trigger: dict[str, object]
    optional: bool
    text: str
    hits: int
    matched: int
    requests: list[Request]


@value
class UnusedRule:
    """A rule that never acted, its description, and the closest miss."""

    rule: dict[str, object]
    text: str
    near: str


@value
class HoldInfo:
    """A hold or a lock-step: `parked` are the parked requests, `behind` the requests queued on their connections.

    `entered` counts every request that was parked; `rounds` counts the completed rounds of a lock-step, whose
    participants are `clients`. `is_open`: the hold was released.
    """

    id: str
    match: dict[str, object]
    clients: list[str]
    entered: int
    parked: list[Request]
    behind: list[Request]
    rounds: int
    is_open: bool


@value
class HoldEntry:
    """The `first` request that a hold parked, or the reason why none can arrive (`deadlock`)."""

    ok: bool
    first: Request | None
    deadlock: str | None


@value
class LockstepRound:
    """The completed rounds of a lock-step, and the clients that the current round lacks."""

    ok: bool
    rounds: int
    missing: list[str]


@value
class PuppetInfo:
    """A puppet at one moment.

    `state` is out, joining, joined (SyncGroup is still to be sent), syncing, reconciling (the assignment is still to be
    acknowledged, KIP-848), stable, leaving or failed. `generation` is also the epoch of a member. `assignment` are its
    partitions by topic; of a Connect worker the tasks by connector, where -1 is the connector itself.
    `waits_for` is the API of its pending request, `error` the error of the last response; both may be None.
    """

    name: str
    group: str
    client_id: str
    instance_id: str | None
    protocol_type: str
    group_protocol: str
    behaviour: dict[str, object]
    state: str
    member_id: str
    generation: int
    protocol: str | None
    is_leader: bool
    assignment: Assignment
    waits_for: str | None
    error: str | None

    def __str__(self) -> str:
        pending = f", waiting for {self.waits_for}" if self.waits_for else ""
        error = f", error {self.error}" if self.error else ""
        return f"{self.state}, generation {self.generation}{pending}{error}"


def _brief(assignment: Assignment) -> str:
    return ", ".join(f"{topic} {partitions}" for topic, partitions in assignment.items()) or "nothing"
