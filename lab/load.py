"""The load of a run: the size of a group, its timeouts, and the rates from which figures follow."""

from __future__ import annotations

from dataclasses import dataclass, fields

GROUP, TOPIC = "lab", "t"


@dataclass(frozen=True, slots=True)
class Load:
    """Parameters of a run; the timeouts have the defaults of Kafka's clients.

    `batch_s` is the mean time for which a member is busy with fetched records before it can rejoin; each member draws
    its own. `restart_s` is the downtime of a restarted process. `records_per_s` and `state_bytes` are per partition.
    `max_delay_s` is Connect's `scheduled.rebalance.max.delay.ms`. `config` has settings of the brokers.
    """

    members: int = 3
    partitions: int = 12
    seed: int = 1
    session_timeout_s: float = 45
    heartbeat_interval_s: float = 3
    rebalance_timeout_s: float = 300
    max_delay_s: float = 300
    batch_s: float = 1
    restart_s: float = 10
    commit_interval_s: float = 5
    records_per_s: float = 100
    state_bytes: int = 1 << 30
    restore_bytes_per_s: int = 100_000_000
    kafka_version: str | None = None
    config: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            number = getattr(self, each.name)
            lowest = 1 if each.name in {"members", "partitions", "restore_bytes_per_s"} else 0
            if isinstance(number, int | float) and number < lowest:
                raise ValueError(f"{each.name} must be at least {lowest}, not {number}")
