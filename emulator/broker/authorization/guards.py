"""Guards: the rights that a request needs, and the refusal of requests and rows that lack them.

A guard refuses a request, or admits it, perhaps without some of its rows. Their refusals are added to the response.
So the rules of groups, topics and transactions know nothing of ACLs. Kafka: `KafkaApis`, `ControllerApis`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from koordinator.wire.apis import APIS
from koordinator.wire.errors import Error
from koordinator.wire.schema import fields_of
from koordinator.wire.values import value

from ...core.acls.acl import CLUSTER_NAME, Operation, ResourceType
from ..error_responses import error_of, error_response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.apis import Message

    from ...core.acls.authorizer import Authorizer
    from ...core.cluster import ClusterState
    from ...core.effects import Call

ERRORS = {
    ResourceType.TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: Error.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error of a resource that a client may not use, by type."""

TEXTS = {
    ResourceType.TOPIC: "Topic authorization failed.",
    ResourceType.GROUP: "Group authorization failed.",
    ResourceType.CLUSTER: "Cluster authorization failed.",
    ResourceType.TRANSACTIONAL_ID: "Transactional Id authorization failed.",
}
"""Kafka's texts of these errors."""

EARLY = {Error.TOPIC_AUTHORIZATION_FAILED, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID}
"""Errors that a broker finds before it asks the coordinator; their rows are first."""


@value
class Refused:
    """A request that is not served, and its response; or why its connection closes instead."""

    response: Message
    closes: str = ""


@value
class Admitted:
    """A request that is served; `complete` adds the refused rows to its response.

    `closes`: why the connection closes after it.
    """

    request: Message
    complete: Callable[[Any], Any] | None = None
    closes: str = ""


Order = Literal["first", "last", "requested", "early"]
"""The place of refused rows in a response; see `needs_rows`."""

Guard = Callable[["Client", Any], Refused | Admitted]
"""Decides about a request, in the shape of the core."""


class Client:
    """The client of a request, as guards see it. `denied` are the operations that it asked for in vain."""

    def __init__(self, authorizer: Authorizer, cluster: ClusterState, call: Call, received: Message) -> None:
        self.cluster = cluster
        self.call = call
        self.denied: list[tuple[Operation, ResourceType, str]] = []
        self._authorizer = authorizer
        self._received = received

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return whether the client may do something; a refusal is for the log."""
        if self.can(operation, kind, name):
            return True
        self.denied.append((operation, kind, name))
        return False

    def can(self, operation: Operation, kind: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return the same for something that the client has not asked for."""
        return self._authorizer.allows(self.call, operation, kind, name)

    def can_any(self, operation: Operation, kind: ResourceType) -> bool:
        """Return whether the client may do something with any resource of a type."""
        return self._authorizer.allows_any(self.call, operation, kind)

    def operations(self, kind: ResourceType, name: str, bits: int) -> int:
        """Return those of some operations that the client may do with a resource, all as bits."""
        return bits if bits < 0 else self._authorizer.operations(self.call, kind, name, bits)

    def refuse(self, error: Error, text: str | None = "") -> Refused:
        """Refuse the whole request with an error, wherever its response has a place for one."""
        return Refused(with_text(error_response(self.call, self._received, error), text))

    def name_of(self, row: Any) -> str | None:  # noqa: ANN401 - a row of any request
        """Return the name of a row's topic; None if its id is unknown."""
        if isinstance(row, str):
            return row
        name: str | None = getattr(row, "name", None) or getattr(row, "topic", None) or getattr(row, "topic_name", None)
        topic_id = getattr(row, "topic_id", None)
        if name or topic_id is None:
            return name or ""
        topic = self.cluster.topics.find_id(topic_id)
        return None if topic is None else topic.name


def needs(operation: Operation, kind: ResourceType, field: str, *, text: str = "") -> Guard:
    """Refuse a request whose client may not use the resource that a field names."""

    def guard(client: Client, request: Message) -> Refused | Admitted:
        if client.may(operation, kind, getattr(request, field)):
            return Admitted(request)
        return client.refuse(ERRORS[kind], text)

    return guard


def needs_cluster(
    *operations: Operation, says_need: bool = True, in_rows: bool = False, text: str | None = None
) -> Guard:
    """Refuse a request whose client may do none of these operations with the cluster.

    `says_need`: the text names the request and the operation; else it is `text`. `in_rows`: the rows are refused, too.
    """

    def guard(client: Client, request: Message) -> Refused | Admitted:
        if any(client.can(each, ResourceType.CLUSTER) for each in operations[:-1]):
            return Admitted(request)
        if client.may(operations[-1], ResourceType.CLUSTER, CLUSTER_NAME):
            return Admitted(request)
        needed = f"Request {APIS[client.call.api_key].name} needs {operations[-1].name} permission."
        refused = client.refuse(ERRORS[ResourceType.CLUSTER], needed if says_need else text)
        if not in_rows:
            return refused
        rows = rows_refused(client, request, ResourceType.CLUSTER, needed)
        return Refused(replace(rows, **{name: getattr(refused.response, name) for name in top_fields(rows)}))

    return guard


def needs_rows(
    operation: Operation,
    kind: ResourceType,
    field: str,
    *,
    order: Order = "last",
    text: str = "",
    asks_on: bool = False,
) -> Guard:
    """Take the rows away that the client may not use. They are answered `first`, `last`, or as `requested`.

    `early`: before those of the coordinator, together with the rows of unknown topics. A request without rows is
    answered here, unless it `asks_on` about the group alone.
    """

    def guard(client: Client, request: Any) -> Refused | Admitted:  # noqa: ANN401 - a request of any API
        allowed: list[Any] = []
        refused: list[Any] = []
        may: dict[str, bool] = {}
        rows = getattr(request, field)
        for row in rows:
            name = client.name_of(row)
            if name is not None and name not in may:
                may[name] = client.may(operation, kind, name)
            (allowed if name is None or may[name] else refused).append(row)
        if not refused:
            return Admitted(request)
        rest = replace(request, **{field: tuple(refused)})
        refusal = rows_refused(client, rest, kind, text)
        if not allowed and not asks_on:
            return Refused(refusal)
        return Admitted(
            replace(request, **{field: tuple(allowed)}), lambda response: merged(response, refusal, rows, order)
        )

    return guard


def rows_refused(client: Client, request: Message, kind: ResourceType, text: str = "") -> Any:  # noqa: ANN401 - of any API
    """Return the response that refuses each row of a request, and not the request as a whole."""
    has_top = bool(top_fields(APIS[client.call.api_key].response))
    return with_text(error_of(client.call, request, ERRORS[kind], "partition" if has_top else None), text)


def top_fields(response: Any) -> list[str]:  # noqa: ANN401 - a response, or its class
    """Return the fields of an error of the whole request."""
    cls = response if isinstance(response, type) else type(response)
    return [name for name in ("error_code", "error_message") if name in fields_of(cls)]


def if_served(guard: Guard, kind: Literal["consumer", "share", "streams"] = "consumer") -> Guard:
    """Return a guard of groups of one kind; where they are off, rights are not looked at."""
    serves = f"serves_{kind}_groups"

    def served(client: Client, request: Message) -> Refused | Admitted:
        return guard(client, request) if getattr(client.cluster.features, serves) else Admitted(request)

    return served


def all_of(*guards: Guard) -> Guard:
    """Return a guard that asks others in turn."""

    def guard(client: Client, request: Message) -> Refused | Admitted:
        complete: list[Callable[[Any], Any]] = []
        for each in guards:
            verdict = each(client, request)
            if isinstance(verdict, Refused):
                return verdict
            request = verdict.request
            if verdict.complete is not None:
                complete.append(verdict.complete)
        return Admitted(request, composed(complete) if complete else None)

    return guard


def answering(complete: Callable[[Client, Any], Any]) -> Guard:
    """Return a guard that admits every request, and changes the response."""
    return lambda client, request: Admitted(request, lambda response: complete(client, response))


def composed(changes: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return the changes of a response as one; the last guard's is the first, because it is next to the core."""

    def complete(response: Any) -> Any:  # noqa: ANN401 - a response of any API
        for change in reversed(changes):
            response = change(response)
        return response

    return complete


def merged(response: Any, refusal: Any, requested: Sequence[Any], order: Order) -> Any:  # noqa: ANN401 - of any API
    """Add the rows of a refusal to a response. One that fails as a whole has no rows."""
    if getattr(response, "error_code", 0):
        return response
    found: dict[str, tuple[Any, ...]] = {}
    for name, spec in fields_of(type(refusal)).items():
        rows = getattr(refusal, name)
        if spec.is_array and rows:
            answered = getattr(response, name)
            both = (*rows, *answered) if order == "first" else (*answered, *rows)
            if order == "requested":
                both = tuple(in_order(both, requested))
            elif order == "early":
                early, others = early_rows(both)
                both = (*in_order(early, requested), *others)
            found[name] = both
    return replace(response, **found)


def early_rows(rows: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return the rows of topics that a broker refuses before it asks the coordinator, and the others."""
    early: list[Any] = []
    others: list[Any] = []
    for row in rows:
        is_early = any(each.error_code in EARLY for each in row.partitions)
        (early if is_early else others).append(row)
    return early, others


def in_order(rows: Iterable[Any], requested: Iterable[Any]) -> list[Any]:
    """Return rows in the order in which a request names them."""
    turns: dict[object, int] = {}
    for turn, row in enumerate(requested):
        turns.setdefault(_identity(row), turn)
    return sorted(rows, key=lambda row: turns.get(_identity(row), len(turns)))


def _identity(row: Any) -> object:  # noqa: ANN401 - a row of any message
    if isinstance(row, str):
        return row
    names = ("key", "group_id", "transactional_id", "name", "topic", "topic_name", "resource_name", "topic_id")
    return next((found for each in names if (found := getattr(row, each, None))), None)


def with_text(message: Any, text: str | None) -> Any:  # noqa: ANN401 - a response, or a row of one
    """Return a response with a text beside each error that has a place for one; "" leaves it as it is."""
    if text == "":
        return message
    changes: dict[str, Any] = {}
    for name, spec in fields_of(type(message)).items():
        if name == "error_message" and message.error_code:
            changes[name] = text
        elif spec.is_array and isinstance(spec.type, type) and getattr(message, name):
            changes[name] = tuple(with_text(row, text) for row in getattr(message, name))
    return replace(message, **changes) if changes else message
