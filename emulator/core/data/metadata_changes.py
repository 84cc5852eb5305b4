"""Changes of metadata as values: with a data directory each must be durable before it takes effect.

Records are no metadata: see `unflushed_log`.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.values import ready, value

from ..refusal import Refusal, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from uuid import UUID

    from ..effects import Append, AppendTransaction, Retry

Replicas = tuple[tuple[int, ...], ...]
"""The replicas of each partition, as node ids."""


@ready
@value
class TopicCreated:
    """A new topic with one partition per row of `replicas`."""

    topic_id: UUID
    name: str
    replicas: Replicas
    configs: Mapping[str, str]


@value
class TopicGrown:
    """More partitions of a topic; `replicas` are those of the new ones."""

    topic_id: UUID
    replicas: Replicas


@value
class PartitionLed:
    """A new leader epoch of a partition; `replicas` are its replicas from now on."""

    topic_id: UUID
    partition: int
    replicas: tuple[int, ...]
    epoch: int


@value
class TopicConfigured:
    """The configs of a topic, replacing all earlier ones."""

    topic_id: UUID
    configs: Mapping[str, str]


@value
class ResourceConfigured:
    """The configs of a broker ("": all brokers), a group or a client metrics subscription, replacing earlier ones."""

    resource_type: int
    name: str
    configs: Mapping[str, str]


@value
class TopicDeleted:
    """The deletion of a topic with its records."""

    topic_id: UUID


@value
class RecordsDeleted:
    """The deletion of a partition's records before offset `start` (KIP-107)."""

    topic_id: UUID
    partition: int
    start: int


@value
class ProducerIdsReserved:
    """Producer ids below `end` may be in use."""

    end: int


@value
class FeatureLevelChanged:
    """The finalized level of a feature (KIP-584)."""

    name: str
    level: int


@value
class ClientQuotaSet:
    """A quota of an entity, given as names by type (None: the default); None removes the quota (KIP-546)."""

    entity: Mapping[str, str | None]
    key: str
    value: float | None


@value
class ScramCredentialSet:
    """The iterations of a user's SCRAM credential; None removes the credential (KIP-554)."""

    user: str
    mechanism: int
    iterations: int | None


Change = (
    TopicCreated
    | TopicGrown
    | PartitionLed
    | TopicConfigured
    | TopicDeleted
    | RecordsDeleted
    | ProducerIdsReserved
    | FeatureLevelChanged
    | ResourceConfigured
    | ClientQuotaSet
    | ScramCredentialSet
)


class PendingChanges:
    """The way of changes into effect: at once, or with a data directory once they are durable.

    A request proposes changes, and its node stages them with its log writes and parks the response. One proposal is in
    flight at a time, as in KRaft's controller; further ones are `deferred`, and never see unwritten metadata. `apply`
    brings changes into effect.
    """

    def __init__(self, apply: Callable[[Iterable[Change]], None]) -> None:
        self._apply = apply
        self._is_refusing = False
        self.is_durable = False
        """Whether changes take effect only once they are durable."""
        self.staged: tuple[Change, ...] = ()
        """The changes proposed by the input that is being processed."""
        self.is_in_flight = False
        """Whether a node or an operation waits for a proposal to be durable."""
        self.deferred: deque[tuple[int, Append | AppendTransaction | Retry]] = deque()
        """The inputs that repeat after the proposal in flight, with their nodes."""
        self.of_leaders: list[Change] = []
        """Changes of leaders: in effect already, and written with the next log write."""

    def propose(self, *changes: Change) -> None:
        """Apply changes, or stage them. Raises RefusedError (56) inside `refusing`."""
        if self._is_refusing:
            problem = "Disk error when trying to access the metadata log on the disk."
            raise RefusedError(Refusal(Error.KAFKA_STORAGE_ERROR, problem))
        if self.is_durable:
            self.staged += changes
        else:
            self._apply(changes)

    def take_staged(self) -> tuple[Change, ...]:
        """Take the staged changes."""
        staged, self.staged = self.staged, ()
        return staged

    def take_leaders(self) -> tuple[Change, ...]:
        """Take the changes of leaders to write."""
        changes, self.of_leaders = tuple(self.of_leaders), []
        return changes

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse all proposals: a request is answered again after its changes could not be written."""
        self._is_refusing = True
        try:
            yield
        finally:
            self._is_refusing = False
