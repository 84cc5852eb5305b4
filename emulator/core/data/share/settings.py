"""The settings of a share group: its own, or those of the brokers (KIP-932; Kafka: `GroupConfig`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

from ....config.durations import duration_ns
from ....config.kafka_configs import BY_DURATION
from ...dialect import dialect_of
from ..group_configs import DEAD_LETTER_TOPIC, group_text, group_value
from .acquisition import Limits

if TYPE_CHECKING:
    from ...cluster import ClusterState
    from ..log import PartitionLog

LATEST, EARLIEST = -1, -2
"""The timestamps of ListOffsets for the end and the start of a partition."""

_NS_PER_MS = 1_000_000


@value
class ShareSettings:
    """The settings of one share group, whether it exists or not. Each property is read anew: configs may change."""

    cluster: ClusterState
    group_id: str

    @property
    def record_lock_duration_ms(self) -> int:
        """How long a record is locked for the member that acquires it, in ms; in force from the next lock on."""
        return self._number("share.record.lock.duration.ms")

    @property
    def delivery_count_limit(self) -> int:
        """How often a record is delivered until it is archived."""
        return self._number("share.delivery.count.limit")

    @property
    def partition_max_record_locks(self) -> int:
        """The most records in flight of a partition."""
        return self._number("share.partition.max.record.locks")

    @property
    def auto_offset_reset(self) -> str:
        """The place where a share partition without a start offset begins: earliest, latest or by_duration:PT1H."""
        return self._text("share.auto.offset.reset")

    @property
    def isolation_level(self) -> str:
        """The records that members get: read_uncommitted, all; read_committed, not those of aborted transactions."""
        return self._text("share.isolation.level")

    @property
    def renew_acknowledge_enable(self) -> bool:
        """Whether a member may extend the lock of a record (KIP-1222)."""
        if not dialect_of(self.cluster.settings).renewals_may_be_forbidden:
            return True
        return self._text("share.renew.acknowledge.enable") == "true"

    @property
    def dead_letter_topic(self) -> str:
        """The topic for records that are given up, or an empty text (KIP-1191)."""
        return self._text(DEAD_LETTER_TOPIC).strip()

    @property
    def copies_dead_letters(self) -> bool:
        """Whether dead letters have the keys and values of their records."""
        return self._text("errors.deadletterqueue.copy.record.enable") == "true"

    @property
    def limits(self) -> Limits:
        """The limits of deliveries, records in flight and locks, as the state of a share partition needs them."""
        return Limits(
            deliveries=self.delivery_count_limit,
            in_flight=self.partition_max_record_locks,
            lock_ms=self.record_lock_duration_ms,
            renews=self.renew_acknowledge_enable,
            has_dead_letters=self.cluster.features.writes_dead_letters and bool(self.dead_letter_topic),
        )

    @property
    def reads_committed(self) -> bool:
        """Whether members get committed records only."""
        return self.isolation_level == "read_committed"

    def start_offset(self, log: PartitionLog, now: int) -> int:
        """Return where a share partition begins that has no start offset (`startOffsetDuringInitialization`)."""
        timestamp = self.start_timestamp(now)
        if timestamp < 0:
            return log.start if timestamp == EARLIEST else log.end
        found = log.first_at_or_after(timestamp)
        return log.end if found is None else found[0]

    def start_timestamp(self, now: int) -> int:
        """Return `auto_offset_reset` as a timestamp of ListOffsets: LATEST, EARLIEST, or a time in ms.

        A time is `now` less the duration, down to the ms (`ShareGroupAutoOffsetResetStrategy.timestamp`). It is not
        negative: to all records the epoch is early enough, and negative timestamps have meanings of their own.
        """
        text = self.auto_offset_reset
        if not text.startswith(BY_DURATION):
            return EARLIEST if text == "earliest" else LATEST
        return max(0, now + -(duration_ns(text.removeprefix(BY_DURATION)) or 0) // _NS_PER_MS)

    def _number(self, name: str) -> int:
        return group_value(self.cluster, self.group_id, name)

    def _text(self, name: str) -> str:
        return group_text(self.cluster, self.group_id, name)
