"""Who in a cluster is to be asked, and asking again while that changes.

A group is administered by its coordinator, a partition by its leader. Both move; the broker that was right a moment
ago then says so (NOT_COORDINATOR), or is still reading the group (COORDINATOR_LOAD_IN_PROGRESS). Such questions are
asked again, of whoever is right by then, at growing intervals, until one deadline for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

from .conversation import CLIENT_ID
from .link import Address, Deadline, Link
from .problems import ClientError, Lost, Need, Refusal, Secured, Unreachable, refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from types import TracebackType

_T = TypeVar("_T")
_K = TypeVar("_K", bound="Hashable")

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
"""Between two tries: Kafka's retry.backoff.ms, doubled up to its retry.backoff.max.ms (KIP-580)."""

MOVING = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})
"""What a broker says of a group whose coordinator is about to be another one, or itself."""

_ELECTING = frozenset({Error.NOT_CONTROLLER})

TopicPartition: TypeAlias = tuple[str, int]

_FIND = Need(ApiKey.FIND_COORDINATOR, 0, "0.10")
_FIND_SEVERAL_SINCE = 4
_BROKERS = Need(ApiKey.METADATA, 1, "0.10")
_TOPICS = Need(ApiKey.METADATA, 4, "0.11")
"""Before v4 a topic that is asked about is made, if it does not exist."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A broker and its address, as the cluster advertises it."""

    node_id: int
    address: Address

    def __str__(self) -> str:
        return f"broker {self.node_id} at {self.address}"


class Admin:
    """The connections to a cluster, opened when they are needed; close it, or use it as a context manager.

    Args:
        bootstrap: where to begin; the first that answers is asked who else there is.
        timeout_s: how long everything together may take, in seconds from now.
        software_version: ours, for ApiVersions (KIP-511).
        client_id: what to be called in requests.

    Methods raise ClientError where none of the bootstrap servers answers; what goes wrong with another broker is
    the Refusal of what it was to be asked.
    """

    def __init__(
        self, bootstrap: Sequence[Address], timeout_s: float, software_version: str, client_id: str = CLIENT_ID
    ) -> None:
        self._client_id = client_id
        self.deadline = Deadline(timeout_s)
        self._bootstrap = tuple(bootstrap)
        self._software_version = software_version
        self._links: dict[Address, Link] = {}
        self._is_plaintext = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for address in list(self._links):
            self._drop(address)

    # -- who is there ----------------------------------------------------------------------------------------

    def brokers(self) -> list[ClusterNode]:
        """The brokers of the cluster, by id."""

        def ask(link: Link) -> MetadataResponse:
            return link.ask(MetadataRequest(), link.version(_BROKERS), MetadataResponse)

        return sorted(nodes_of(self._ask_any(ask)).values(), key=lambda node: node.node_id)

    def controller(self) -> ClusterNode | Refusal:
        """The broker that makes and deletes topics; without ZooKeeper, one that passes it on."""

        def ask(link: Link) -> MetadataResponse:
            return link.ask(MetadataRequest(topics=()), link.version(_BROKERS), MetadataResponse)

        answer = self._ask_any(ask)
        node = nodes_of(answer).get(answer.controller_id)
        return node or refusal(Error.NOT_CONTROLLER, "there is no controller at the moment", again=_ELECTING)

    def topics(self, names: Iterable[str]) -> MetadataResponse:
        """The partitions of topics and their leaders. A topic that does not exist is not made."""
        asked = tuple(MetadataRequestTopic(name=name) for name in names)

        def ask(link: Link) -> MetadataResponse:
            request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
            return link.ask(request, link.version(_TOPICS), MetadataResponse)

        return self._ask_any(ask)

    def coordinators(self, group_ids: Sequence[str]) -> dict[str, ClusterNode | Refusal]:
        """Who coordinates each of the groups."""

        def ask(link: Link) -> dict[str, ClusterNode | Refusal]:
            version = link.version(_FIND)
            if version >= _FIND_SEVERAL_SINCE:
                request = FindCoordinatorRequest(coordinator_keys=tuple(group_ids))
                rows = link.ask(request, version, FindCoordinatorResponse).coordinators
                found = {row.key: _coordinator(row) for row in rows}
                return {group_id: found.get(group_id, unanswered(link)) for group_id in group_ids}
            singly = {}
            for group_id in group_ids:
                one = link.ask(FindCoordinatorRequest(key=group_id), version, FindCoordinatorResponse)
                singly[group_id] = _coordinator(one)
            return singly

        return self._ask_any(ask)

    # -- asking them -----------------------------------------------------------------------------------------

    def persist(
        self, wanted: Iterable[_K], attempt: Callable[[list[_K]], Mapping[_K, _T | Refusal]]
    ) -> dict[_K, _T | Refusal]:
        """What `attempt` makes of each that is wanted, tried again for those that may succeed later.

        `attempt` gets those that are left, and answers for each of them.
        """
        outcomes: dict[_K, _T | Refusal] = {}
        pending = list(wanted)
        pause = FIRST_PAUSE_S
        while pending:
            outcomes.update(attempt(pending))
            pending = [each for each in pending if _may_pass(outcomes[each])]
            if pending and not self.deadline.pause(pause):
                break
            pause = min(2 * pause, LONGEST_PAUSE_S)
        for each in pending:
            outcome = outcomes[each]
            assert isinstance(outcome, Refusal)
            outcomes[each] = replace(outcome, message=f"{outcome.message}, after {self.deadline} of trying")
        return outcomes

    def at_coordinators(
        self,
        group_ids: Iterable[str],
        ask: Callable[[Link, ClusterNode, list[str]], Mapping[str, _T | Refusal]],
        *,
        resend: bool = True,
    ) -> dict[str, _T | Refusal]:
        """Ask the coordinators of groups, each about its own.

        `ask` gets a connection, whose it is, and the groups. Without `resend` nothing is asked again after a
        connection was lost: for requests that change something.
        """

        def attempt(pending: list[str]) -> dict[str, _T | Refusal]:
            return self.at_nodes(self.coordinators(pending), ask, resend=resend)

        return self.persist(group_ids, attempt)

    def at_nodes(
        self,
        homes: Mapping[_K, ClusterNode | Refusal],
        ask: Callable[[Link, ClusterNode, list[_K]], Mapping[_K, _T | Refusal]],
        *,
        resend: bool = True,
    ) -> dict[_K, _T | Refusal]:
        """Ask each node about what is at home there, once; they share the time that is left."""
        outcomes: dict[_K, _T | Refusal] = {}
        there: dict[ClusterNode, list[_K]] = {}
        for key, home in homes.items():
            if isinstance(home, Refusal):
                outcomes[key] = home
            else:
                there.setdefault(home, []).append(key)
        for number, (node, keys) in enumerate(there.items()):
            try:
                link = self._link(node.address, self.deadline.share(len(there) - number))
                answers = ask(link, node, keys)
            except ClientError as error:
                self._drop(node.address)
                outcomes.update(dict.fromkeys(keys, refusal_of(error, resend=resend)))
            else:
                outcomes.update({key: answers.get(key, unanswered(link)) for key in keys})
        return outcomes

    def _ask_any(self, ask: Callable[[Link], _T]) -> _T:
        """Ask the first bootstrap server that answers; if its connection was lost, once more."""
        link = self._any_link()
        try:
            answer = ask(link)
        except Lost as error:
            self._drop(link.address)
            if not self._is_plaintext:
                # a listener with SASL answers ApiVersions, and closes at anything else (KIP-43)
                raise Secured(str(error), "SASL") from None
            answer = ask(self._any_link())
        self._is_plaintext = True
        return answer

    def _any_link(self) -> Link:
        failures: list[ClientError] = []
        for number, address in enumerate(self._bootstrap):
            try:
                link = self._link(address, self.deadline.share(len(self._bootstrap) - number))
            except Lost as error:
                failures.append(error if self._is_plaintext else Secured(str(error), "TLS or SASL"))
            except ClientError as error:
                failures.append(error)
            else:
                link.deadline = self.deadline
                return link
        if len(failures) == 1:
            raise failures[0]
        raise Unreachable("; ".join(map(str, failures)), again=False)

    def _link(self, address: Address, deadline: Deadline) -> Link:
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = Link(address, deadline, self._software_version, self._client_id)
        link.deadline = deadline
        return link

    def _drop(self, address: Address) -> None:
        link = self._links.pop(address, None)
        if link is not None:
            link.close()


def nodes_of(response: MetadataResponse) -> dict[int, ClusterNode]:
    """The brokers in an answer, by id."""
    return {row.node_id: ClusterNode(row.node_id, Address(row.host, row.port)) for row in response.brokers}


def _coordinator(row: Coordinator | FindCoordinatorResponse) -> ClusterNode | Refusal:
    if row.error_code == Error.NONE:
        return ClusterNode(row.node_id, Address(row.host, row.port))
    return refusal(row.error_code, row.error_message, again=MOVING)


def unanswered(link: Link) -> Refusal:
    """What was asked about is not in the answer."""
    return Refusal(None, f"{link.address}: says nothing about it in its answer")


def _may_pass(outcome: object) -> bool:
    return isinstance(outcome, Refusal) and outcome.again
