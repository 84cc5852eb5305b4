"""A broker node: its coordinator and its data plane behind one set of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import Coordinator as CoordinatorRow
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

from .refusal import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .cluster import ClusterState
    from .data.data_plane import DataPlane
    from .effects import Call, Effect
    from .groups.coordinator import Coordinator

GROUP, TRANSACTION = 0, 1
"""The key types of FindCoordinator served here."""

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

    Each input goes to the part it concerns. A request goes to `handlers[type(request)]`, after `tick`.
    """

    def __init__(self, node_id: int, cluster: ClusterState, coordinator: Coordinator, data: DataPlane) -> None:
        self.node_id = node_id
        self.cluster = cluster
        self.coordinator = coordinator
        self.data = data
        # bound methods: they are called several times per input
        self._groups_deadline, self._data_deadline = coordinator.store.deadlines.deadline, self.data.deadline
        self.handlers: dict[type, Callable[[int, Call, Any], list[Effect]]] = {
            FindCoordinatorRequest: self._find_coordinators,
            **dict.fromkeys(coordinator.serves, coordinator.handle),
            **dict.fromkeys(data.serves, data.handle),
        }
        """The handler of each request class; called with the node's time, the call and the request."""
        self._led: dict[int, int] = {}
        self.coordinator_overrides: dict[str, int] = {}
        """By group id, the coordinator that this node reports instead of the cluster's."""

    def tick(self, now: int) -> list[Effect]:
        """Fire everything due by `now`, in the order of the deadlines."""
        effects: list[Effect] = []
        while True:
            groups_due, data_due = self.coordinator.deadline(), self.data.deadline()
            if groups_due is not None and groups_due <= now and (data_due is None or groups_due <= data_due):
                effects += self.coordinator.tick(groups_due)
            elif data_due is not None and data_due <= now:
                effects += self.data.tick(data_due)
            else:
                return effects

    def leaders_changed(self, now: int) -> list[Effect]:
        """Unload the groups that other nodes coordinate now, and start to load those this node has taken over."""
        before, led = self._led, self.cluster.coordinated_by(self.node_id)
        self._led = led
        effects: list[Effect] = []
        # a changed epoch means that another node may have led the partition in between
        for partition in [partition for partition, epoch in before.items() if led.get(partition) != epoch]:
            effects += self.coordinator.unload(now, partition)
        for partition in [partition for partition, epoch in led.items() if before.get(partition) != epoch]:
            effects += self.coordinator.begin_load(now, partition)
        return effects + self.data.leaders_changed(now)

    def deadline(self) -> int | None:
        """Return the node time of the next `tick`, or None."""
        groups_due, data_due = self._groups_deadline(), self._data_deadline()
        if groups_due is None or data_due is None:
            return data_due if groups_due is None else groups_due
        return min(groups_due, data_due)

    def _find_coordinators(self, now: int, call: Call, request: FindCoordinatorRequest) -> list[Effect]:
        return self.data.respond(now, call, request, lambda: self._coordinators(call.listener, request))

    def _coordinators(self, listener: str, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        keys = request.coordinator_keys
        try:
            if request.key_type == GROUP:
                # as in Kafka, looking up a group's coordinator creates the topic
                self.cluster.offsets_topic()
        except RefusedError:
            rows = tuple(_no_coordinator(key, Error.COORDINATOR_NOT_AVAILABLE) for key in keys)
        else:
            rows = tuple(self._coordinator_of(listener, request.key_type, key) for key in keys)
        return FindCoordinatorResponse(coordinators=rows)

    def _coordinator_of(self, listener: str, key_type: int, key: str) -> CoordinatorRow:
        if key_type not in (GROUP, TRANSACTION):
            return _no_coordinator(key, self.coordinator.store.dialect.coordinator_type_error)
        # transactions are not emulated: a transactional id gets the coordinator of the group of that name
        node_id = self.coordinator_overrides.get(key, self.cluster.coordinator_of(key))
        endpoint = self.cluster.endpoint(node_id, listener)
        if endpoint is None:
            return _no_coordinator(key, Error.COORDINATOR_NOT_AVAILABLE)
        return CoordinatorRow(key=key, node_id=node_id, host=endpoint.host, port=endpoint.port, error_message="")


def _no_coordinator(key: str, error: Error) -> CoordinatorRow:
    return CoordinatorRow(key=key, node_id=-1, port=-1, error_code=error, error_message=MESSAGES[error])
