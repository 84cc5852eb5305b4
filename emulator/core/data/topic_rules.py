"""Kafka's rules for the partitions and replicas of a topic (`ReplicationControlManager`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ..refusal import Refusal
from .topic import PARTITIONS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..cluster import ClusterState


def refuse_hidden_topic(name: str) -> Refusal:
    """Return the refusal of any change to a topic of the emulator: 17."""
    return Refusal(Error.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' is the emulator's own, and read-only.")


def refuse_shape(cluster: ClusterState, partitions: int, replication_factor: int) -> Refusal | None:
    """Return why a topic cannot have this many partitions (37) or replicas (38); -1 is the broker's default."""
    if partitions == 0 or partitions < -1:
        return Refusal(Error.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    if partitions > PARTITIONS_MAX:
        return Refusal(Error.INVALID_PARTITIONS, f"Number of partitions must not exceed {PARTITIONS_MAX}.")
    if replication_factor == 0 or replication_factor < -1:
        return Refusal(
            Error.INVALID_REPLICATION_FACTOR,
            "Replication factor was set to an invalid non-positive value.",
        )
    replicas = cluster.replication_factor(replication_factor)
    if replicas > max(1, len(cluster.brokers)):
        return Refusal(
            Error.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} "
            f"cannot be reached because only {len(cluster.brokers)} broker(s) are registered.",
        )
    return None


def refuse_assignment(cluster: ClusterState, assignment: Sequence[Sequence[int]]) -> Refusal | None:
    """Return why replicas cannot be placed like this (39); the index in `assignment` is the partition."""
    for partition, replicas in enumerate(assignment):
        if not replicas:
            problem = f"The manual partition assignment for partition {partition} includes no replicas."
        elif len(set(replicas)) != len(replicas):
            problem = f"The manual partition assignment includes the partition {partition} with a broker twice."
        elif len(replicas) != len(assignment[0]):
            problem = "The manual partition assignment includes partitions with different replication factors."
        elif unknown := [node for node in replicas if node not in cluster.brokers]:
            problem = f"The manual partition assignment includes broker {unknown[0]}, which is not registered."
        else:
            continue
        return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    return None
