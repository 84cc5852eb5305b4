"""A broker node: its coordinators and its data plane behind one set of inputs."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import Coordinator as CoordinatorRow
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

from .data.topic import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, share_state_key
from .effects import Failed, Reply
from .refusal import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.wire.messages.init_producer_id import InitProducerIdRequest

    from .cluster import ClusterState
    from .data.data_plane import DataPlane
    from .effects import Call, Effect
    from .groups.coordinator import Coordinator
    from .share_state.coordinator import ShareCoordinator
    from .transactions.coordinator import TransactionCoordinator

    AnyCoordinator = Coordinator | TransactionCoordinator | ShareCoordinator

GROUP, TRANSACTION, SHARE = 0, 1, 2
"""The key types of FindCoordinator served here."""

TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC, SHARE: SHARE_STATE_TOPIC}
"""The topic of the coordinators of each type."""

SHARE_KEYS_SINCE = 6
"""The first version of FindCoordinator that finds share coordinators."""

ROWS_SINCE = 4
"""The first version of FindCoordinator whose rows have no text."""

SHARE_KEY_PARTS = 3
"""The parts of the key of a share partition: group, topic id and partition."""

MESSAGES = {
    Error.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    Error.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message was sent to"
        " an incompatible broker. See the broker logs for more details."
    ),
    Error.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
}
"""The messages of Kafka's `Errors` for a key without a coordinator."""


class NodeCore:
    """The groups and topics that one broker serves.

    Each input goes to the part it concerns. A request goes to `handlers[call.api_key]`, after `tick`.
    """

    def __init__(
        self,
        node_id: int,
        cluster: ClusterState,
        coordinator: Coordinator,
        transactions: TransactionCoordinator,
        shares: ShareCoordinator,
        data: DataPlane,
    ) -> None:
        self.node_id = node_id
        self.cluster = cluster
        self.coordinator = coordinator
        self.transactions = transactions
        self.shares = shares
        self.data = data
        self._parts = (
            (coordinator.store.deadlines, coordinator.tick),
            (transactions.store.timers, transactions.tick),
            (data.timers, data.tick),
        )
        self.handlers: dict[int, Callable[[int, Call, Any], list[Effect]]] = {
            ApiKey.FIND_COORDINATOR: self._find_coordinators,
            **dict.fromkeys(coordinator.serves, coordinator.handle),
            **dict.fromkeys(transactions.serves, transactions.handle),
            **dict.fromkeys(shares.serves, shares.handle),
            **dict.fromkeys(data.serves, data.handle),
            ApiKey.INIT_PRODUCER_ID: self._init_producer_id,
        }
        """The handler of each API; called with the node's time, the call and the request."""
        self.coordinators: dict[str, AnyCoordinator] = {
            OFFSETS_TOPIC: coordinator,
            TRANSACTIONS_TOPIC: transactions,
            SHARE_STATE_TOPIC: shares,
        }
        """The coordinators, by the internal topic in which they store their state."""
        self._led: dict[str, dict[int, int]] = {topic: {} for topic in self.coordinators}
        self.coordinator_overrides: dict[str, int] = {}
        """By group id, the coordinator that this node reports instead of the cluster's."""

    def tick(self, now: int) -> list[Effect]:
        """Fire everything due by `now`, in the order of the deadlines."""
        effects: list[Effect] = []
        while (due := self.deadline()) is not None and due <= now:
            tick = next(tick for timers, tick in self._parts if timers.next_deadline == due)
            try:
                effects += tick(due)
            except Exception as error:
                if self.deadline() == due:
                    # nothing was fired: to go on would be endless
                    raise
                effects.append(Failed(error))
        return effects

    def deadline(self) -> int | None:
        """Return the node time of the next `tick`, or None."""
        due = None
        for timers, _ in self._parts:
            deadline = timers.next_deadline
            if deadline is not None and (due is None or deadline < due):
                due = deadline
        return due

    def leaders_changed(self, now: int) -> list[Effect]:
        """Unload what other nodes coordinate now, and start to load what this node has taken over."""
        effects: list[Effect] = []
        for topic, coordinator in self.coordinators.items():
            before, led = self._led[topic], self.cluster.coordinated_by(self.node_id, topic)
            self._led[topic] = led
            # a changed epoch means that another node may have led the partition in between
            for partition in [partition for partition, epoch in before.items() if led.get(partition) != epoch]:
                effects += coordinator.unload(now, partition)
            for partition in [partition for partition, epoch in led.items() if before.get(partition) != epoch]:
                effects += coordinator.begin_load(now, partition)
        return effects + self.data.leaders_changed(now)

    def topics_deleted(self, now: int, names: Iterable[str]) -> list[Effect]:
        """Forget what the coordinators keep of deleted topics: committed offsets, and the state of share partitions."""
        return self.coordinator.topics_deleted(now, names) + self.shares.topics_deleted(now)

    def answered(self, now: int, token: int, response: Any) -> list[Effect]:  # noqa: ANN401 - of the request's API
        """Pass the response to a `SendRequest` on; None if the broker could not be reached."""
        if token in self.coordinator.store.requests:
            return self.coordinator.answered(now, token, response)
        if token in self.transactions.store.markers:
            return self.transactions.answered(now, token, response)
        return self.data.answered(now, token, response)

    def _init_producer_id(self, now: int, call: Call, request: InitProducerIdRequest) -> list[Effect]:
        part = self.data if request.transactional_id is None else self.transactions
        return part.handle(now, call, request)

    def _find_coordinators(self, now: int, call: Call, request: FindCoordinatorRequest) -> list[Effect]:
        del now
        return [Reply(call, self._coordinators(call, request))]

    def _coordinators(self, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        keys, topic, dialect = request.coordinator_keys, TOPICS.get(request.key_type), self.coordinator.store.dialect
        has_shares = dialect.share_versions.max >= 0 or dialect.finds_no_share_coordinators
        if topic is None or (topic == SHARE_STATE_TOPIC and not has_shares):
            rows = tuple(_no_coordinator(key, dialect.coordinator_type_error) for key in keys)
        elif topic == SHARE_STATE_TOPIC and call.api_version < SHARE_KEYS_SINCE:
            text = MESSAGES[Error.INVALID_REQUEST] if call.api_version < ROWS_SINCE else ""
            rows = tuple(replace(_no_coordinator(key, Error.INVALID_REQUEST), error_message=text) for key in keys)
        elif topic == SHARE_STATE_TOPIC and dialect.finds_no_share_coordinators:
            rows = tuple(
                replace(_no_coordinator(key, Error.COORDINATOR_NOT_AVAILABLE), error_message="") for key in keys
            )
        elif self._has_topic(topic):
            rows = tuple(self._coordinator_of(call.listener, topic, key) for key in keys)
        else:
            rows = tuple(_no_coordinator(key, Error.COORDINATOR_NOT_AVAILABLE) for key in keys)
        return FindCoordinatorResponse(coordinators=rows)

    def _has_topic(self, name: str) -> bool:
        """Return whether there is an internal topic; create it if not (`KafkaApis.getCoordinator`)."""
        existed = name in self.cluster.topics
        try:
            self.cluster.internal_topic(name)
        except RefusedError:
            return False
        return existed or self.cluster.settings.coordinator_found_at_once

    def _coordinator_of(self, listener: str, topic: str, key: str) -> CoordinatorRow:
        found = _share_key(key) if topic == SHARE_STATE_TOPIC else key
        if found is None:
            return replace(_no_coordinator(key, Error.INVALID_REQUEST), error_message="")
        node_id = self.cluster.coordinator_of(found, topic)
        if topic == OFFSETS_TOPIC:
            node_id = self.coordinator_overrides.get(key, node_id)
        endpoint = self.cluster.brokers.endpoint(node_id, listener)
        if endpoint is None:
            return _no_coordinator(key, Error.COORDINATOR_NOT_AVAILABLE)
        return CoordinatorRow(key=key, node_id=node_id, host=endpoint.host, port=endpoint.port, error_message="")


def _share_key(key: str) -> str | None:
    """Return the key of a share partition, or None for one that is not valid (`SharePartitionKey.getInstance`)."""
    parts = key.split(":")
    if len(parts) != SHARE_KEY_PARTS or not parts[0].strip():
        return None
    try:
        topic_id, partition = UUID(bytes=urlsafe_b64decode(parts[1] + "==")), int(parts[2])
    except ValueError:
        return None
    return share_state_key(parts[0], topic_id, partition)


def _no_coordinator(key: str, error: Error) -> CoordinatorRow:
    return CoordinatorRow(key=key, node_id=-1, port=-1, error_code=error, error_message=MESSAGES[error])
