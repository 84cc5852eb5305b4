"""Retention and compaction of logs by the configs of their topics.

Only whole segments are deleted, and the active segment is not compacted. Segments exist only in the eyes of these
rules: nothing else depends on them.

Rules: `UnifiedLog.deleteOldSegments`, `LogCleanerManager.grabFilthiestCompactedLog`, `Cleaner` of Apache Kafka.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from koordinator.wire.primitives import Malformed

from ...config.kafka_configs import TOPIC, configs_of
from ...config.settings import RELEASES
from ..refusal import RefusedError
from ..timers import CleanLogs
from .metadata_changes import RecordsDeleted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..cluster import ClusterState
    from ..timers import DataTimerKey, Timers
    from .log import LogSegment, PartitionLog
    from .topic import TopicState


class LogCleaner:
    """The retention checks and the cleaner of the logs that a node leads, from its start (`started_at`) on.

    Both act at fixed times since then, so that a large step of the clock equals many small ones. As in Kafka the
    cleaner also deletes the expired records of compacted topics.
    """

    def __init__(
        self,
        started_at: int,
        node_id: int,
        cluster: ClusterState,
        timers: Timers[DataTimerKey],
    ) -> None:
        self._started_at = started_at
        self._node_id = node_id
        self._cluster = cluster
        self._timers = timers

    def schedule(self, now: int) -> None:
        """Schedule the next run after `now` for every topic with records."""
        topics = self._cluster.topics.values()
        self.written(now, [topic.name for topic in topics if any(log.size for log in topic.logs)])

    def written(self, now: int, names: Iterable[str]) -> None:
        """Schedule the next run after `now` for topics with records, unless an earlier one is scheduled."""
        topics = (topic for name in names if (topic := self._cluster.topics.get(name)) and not topic.is_internal)
        runs = (_next(now, *self._times(topic)) for topic in topics)
        due, scheduled = min(runs, default=None), self._timers.get(CleanLogs())
        if due is not None and (scheduled is None or due < scheduled):
            self._timers.set(CleanLogs(), due)

    def _times(self, topic: TopicState) -> tuple[int, int]:
        """Return the time of the first run that concerns a topic, and the interval of later ones."""
        settings = self._cluster.settings
        if topic.is_compacted:
            return self._started_at + settings.log_cleaner_backoff_ms, settings.log_cleaner_backoff_ms
        return self._started_at + settings.log_initial_task_delay_ms, settings.log_retention_check_interval_ms

    def run(self, now: int) -> Iterator[tuple[TopicState, int]]:
        """Delete expired records, and yield the partitions that were compacted."""
        by_default = self._cluster.settings.log_retention_by_default
        for topic in [topic for topic in self._cluster.topics.values() if not topic.is_internal]:
            if _next(now - 1, *self._times(topic)) != now:
                continue
            for partition, log in enumerate(topic.logs):
                if topic.leaders[partition] != self._node_id:
                    continue
                if topic.is_compacted and _clean(now, topic, log):
                    yield topic, partition
                if not topic.has_retention:
                    continue
                start = _retained_from(now, topic, log, by_default=by_default)
                if start > log.start:
                    if start == log.end:
                        log.roll()
                    # the next run tries again
                    with suppress(RefusedError):
                        self._cluster.storage.propose(RecordsDeleted(topic.topic_id, partition, start))


def _next(now: int, first: int, interval_ms: int) -> int:
    """Return the first time after `now` of those that begin at `first`."""
    return first + max(0, (now - first) // interval_ms + 1) * interval_ms


def _number(topic: TopicState, name: str) -> float:
    """Return a config of a topic, or Kafka's default, which is the same in all releases."""
    return float(topic.config(name) or configs_of(TOPIC, RELEASES[-1])[name].default or 0)


def _segments(topic: TopicState, log: PartitionLog) -> list[LogSegment]:
    duration_ms = _number(topic, "segment.ms")
    if topic.is_compacted:
        # `LogConfig.maxSegmentMs`
        duration_ms = min(duration_ms, _number(topic, "max.compaction.lag.ms"))
    return log.segments(_number(topic, "segment.bytes"), duration_ms)


def _retained_from(now: int, topic: TopicState, log: PartitionLog, *, by_default: bool) -> int:
    """Return the end of the oldest segments that are expired: first by `retention.ms`, then by `retention.bytes`.

    Kafka's default of `retention.ms` counts only `by_default`.
    """
    segments = [segment for segment in _segments(topic, log) if segment.size]
    retention_ms = _number(topic, "retention.ms") if by_default or topic.config("retention.ms") else -1
    retention_bytes = _number(topic, "retention.bytes")
    start, excess = log.start, log.size - retention_bytes
    for segment in segments:
        is_too_old = retention_ms >= 0 <= segment.max_timestamp < now - retention_ms
        excess -= segment.size
        if not is_too_old and not (retention_bytes >= 0 and excess >= 0):
            break
        start = segment.end
    return start


def _clean(now: int, topic: TopicState, log: PartitionLog) -> bool:
    """Compact the closed segments if they are dirty enough, and return whether it did.

    A tombstone goes with the first compaction that comes `delete.retention.ms` after the one that has first seen it.
    """
    closed = _segments(topic, log)[:-1]
    lag_ms, end = _number(topic, "min.compaction.lag.ms"), log.cleaned
    for segment in closed:
        if segment.end > log.cleaned and lag_ms > 0 and segment.max_timestamp > now - lag_ms:
            break
        end = max(end, segment.end)
    end = min(end, log.last_stable_offset)
    dirty = [segment for segment in closed if log.cleaned < segment.end <= end]
    dirty_bytes = sum(segment.size for segment in dirty)
    clean_bytes = sum(segment.size for segment in closed if segment.end <= log.cleaned)
    if not dirty_bytes:
        return False
    is_dirty = dirty_bytes / (clean_bytes + dirty_bytes) > _number(topic, "min.cleanable.dirty.ratio")
    waits_ms = now - min(segment.first_timestamp for segment in dirty)
    if not is_dirty and waits_ms <= _number(topic, "max.compaction.lag.ms"):
        return False
    horizon_ms = now + int(_number(topic, "delete.retention.ms"))

    def keeps_tombstone(offset: int) -> bool:
        if offset not in log.tombstones:
            log.tombstones[offset] = horizon_ms
            return True
        return now < log.tombstones[offset]

    try:
        log.compact(end, keeps_tombstone)
    except (Malformed, ImportError):
        # a batch that cannot be opened: as in Kafka, the partition is not cleaned
        return False
    return True
