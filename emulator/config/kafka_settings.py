"""The settings of an Apache Kafka broker that have no effect here.

Each is accepted with a warning, so that a broker's settings can be reused as they are. Settings with an effect are
fields of `koordinator.emulator.config.settings.Settings`.
"""

from __future__ import annotations

from .kafka_configs import broker_config_names

INTERNAL: frozenset[str] = frozenset(
    """
    controller.performance.always.log.threshold.ms
    controller.performance.sample.period.ms controller.quorum.retry.backoff.max.ms
    group.consumer.assignor.offload.enable
    group.coordinator.append.max.buffer.size group.share.assignor.offload.enable group.share.dlq.manager.class.name
    group.share.enable group.streams.acceptable.recovery.lag group.streams.min.task.offset.interval.ms
    group.share.initialize.retry.interval.ms group.share.max.renew.acknowledge.enable
    group.share.persister.class.name group.share.record.lock.partition.limit group.streams.assignor.offload.enable
    group.streams.max.warmup.replicas group.streams.num.warmup.replicas group.streams.task.offset.interval.ms
    internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
    internal.metadata.log.segment.min.bytes internal.metadata.max.batch.size.in.bytes
    internal.metadata.max.fetch.size.in.bytes log.deletion.max.segments.per.run
    log.max.id.map.snapshots metadata.log.segment.min.bytes remote.log.manager.task.retry.backoff.max.ms
    remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter sasl.oauthbearer.header.urlencode
    send.share.coordinator.state.batch.enable server.max.startup.time.ms
    share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.state.topic.prune.interval.ms
    unclean.leader.election.interval.ms unstable.api.versions.enable unstable.feature.versions.enable
    zookeeper.metadata.migration.min.batch.size
    """.split()  # noqa: SIM905 - a line for each would be longer
)
"""Settings that brokers do not describe: internal ones, and those of parts that they load."""

PREFIXES = ("config.providers.", "listener.name.", "rlmm.config.", "rsm.config.")
"""Prefixes of settings with free suffixes (`listener.name.internal.ssl.key.password`)."""


def kafka_settings() -> frozenset[str]:
    """Return the names of all settings of brokers, of all releases."""
    return broker_config_names() | INTERNAL


def is_kafka_setting(name: str) -> bool:
    """Return whether a Kafka broker has a setting of this name."""
    return name in kafka_settings() or any(name.startswith(prefix) and len(name) > len(prefix) for prefix in PREFIXES)
