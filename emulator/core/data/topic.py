"""A topic: its logs, its leaders, and the rules for its name."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.values import mutable, value

from ..java.uuids import uuid_text

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping

    from ...config.settings import Settings
    from .log import PartitionLog

NO_LEADER = -1
"""The leader of a partition of which no replica is up."""

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
TRACE_TOPIC = "__koordinator_trace"
"""The trace as a topic, which Kafka does not have. It is read-only and never listed.

It is not marked as internal, because Spark's Kafka source does not read internal topics.
"""

INTERNAL_TOPICS = {
    OFFSETS_TOPIC: {"cleanup.policy": "compact", "compression.type": "producer"},
    TRANSACTIONS_TOPIC: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
    },
    SHARE_STATE_TOPIC: {"cleanup.policy": "delete", "retention.ms": "-1", "compression.type": "producer"},
}
"""Topics that clients may read but not write, with their configs (Kafka's `Topic.INTERNAL_TOPICS`)."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
NAME_MAX = 249


@value
class Reassignment:
    """The replicas that an ongoing reassignment adds to a partition, and those that it removes at its end."""

    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


@mutable
class TopicState:
    """A topic: per partition its log, replicas (preferred leader first), leader and epoch; and its configs."""

    name: str
    topic_id: uuid.UUID
    logs: list[PartitionLog] = field(default_factory=list)
    replicas: list[tuple[int, ...]] = field(default_factory=list)
    leaders: list[int] = field(default_factory=list)
    """The node id of each partition's leader, or NO_LEADER."""
    epochs: list[int] = field(default_factory=list)
    """The leader epoch of each partition."""
    reassignments: dict[int, Reassignment] = field(default_factory=dict)
    """The ongoing reassignments, by partition."""
    configs: dict[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    """The configs that it inherits from all brokers."""
    unknown: set[int] = field(default_factory=set)
    """The partitions that brokers do not know, because they have never had a leader; see `ClusterTopics.extend`."""
    next_keyless_partition: int = 0
    """The partition for the next record without a key from Python, before the modulus."""

    @property
    def is_internal(self) -> bool:
        """Whether clients may not write to it."""
        return self.name in INTERNAL_TOPICS

    @property
    def is_known(self) -> bool:
        """Whether brokers know one of its partitions."""
        return not self.unknown or len(self.unknown) < len(self.logs)

    @property
    def is_compacted(self) -> bool:
        """Whether its records need keys, and of each key the last one stays."""
        return "compact" in self.config("cleanup.policy")

    @property
    def has_retention(self) -> bool:
        """Whether its records expire, and clients may delete them."""
        return "delete" in self.config("cleanup.policy", "delete")

    @property
    def has_append_time(self) -> bool:
        """Whether the log sets the timestamps of records (KIP-32)."""
        return self.config("message.timestamp.type").strip() == "LogAppendTime"

    def config(self, name: str, default: str = "") -> str:
        """Return a config: the topic's own, that of all brokers, or `default`."""
        return self.configs.get(name, self.defaults.get(name, default))

    def leader(self, partition: int) -> int:
        """Return the node id of a partition's leader; NO_LEADER also for an unknown partition."""
        return self.leaders[partition] if 0 <= partition < len(self.leaders) else NO_LEADER

    def lasting_replicas(self, partition: int) -> tuple[int, ...]:
        """Return the replicas that a partition has after its ongoing reassignment, if there is one."""
        replicas, reassignment = self.replicas[partition], self.reassignments.get(partition)
        return replicas if reassignment is None else tuple(n for n in replicas if n not in reassignment.removing)

    def batch_bytes_max(self, settings: Settings) -> int:
        """Return the size limit of a batch in bytes: `max.message.bytes` of the topic, else `message.max.bytes`."""
        own = self.configs.get("max.message.bytes")
        return settings.message_max_bytes if own is None else int(own)

    def load_snapshots(self, node_id: int, is_up: Callable[[int], bool]) -> None:
        """Load the producers of a broker that was shut down, in the partitions without another live replica."""
        for log, replicas in zip(self.logs, self.replicas, strict=True):
            if node_id in replicas and not any(map(is_up, replicas)):
                log.producers.keep_last_batches()

    def log(self, partition: int) -> PartitionLog | None:
        """Return the log of a partition, or None if the partition does not exist or is unknown."""
        return self.logs[partition] if 0 <= partition < len(self.logs) and partition not in self.unknown else None


def internal_shape(settings: Settings, name: str) -> tuple[int, int]:
    """Return the number of partitions and the replication factor of an internal topic."""
    if name == OFFSETS_TOPIC:
        return settings.offsets_topic_num_partitions, settings.offsets_topic_replication_factor
    if name == SHARE_STATE_TOPIC:
        replicas = settings.share_coordinator_state_topic_replication_factor
        return settings.share_coordinator_state_topic_num_partitions, replicas
    return settings.transaction_state_log_num_partitions, settings.transaction_state_log_replication_factor


def share_state_key(group_id: str, topic_id: uuid.UUID, partition: int) -> str:
    """Return the key by which a share partition has a share coordinator (`SharePartitionKey.asCoordinatorKey`)."""
    return f"{group_id}:{uuid_text(topic_id)}:{partition}"


def illegal_name(name: str) -> str | None:
    """Return why a topic name is illegal, in Kafka's words (`Topic.validate`), or None."""
    if name == "":
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > NAME_MAX:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {NAME_MAX}"
    if not _LEGAL_NAME.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None
