"""Observations as values: the only input of verdicts and tables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping

    from bouncing.processes import Callback

Event = dict[str, Any]
"""An event of the emulator's trace, see `koordinator.emulator.trace.trace`."""

Record = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True)
class Described:
    """A group as DescribeGroups shows it to an admin client, by instance id (of dynamic members: by client id)."""

    state: str
    partitions: Mapping[str, tuple[int, ...]]
    member_ids: Mapping[str, str]


@dataclass(frozen=True)
class Process:
    """A member process and all its callbacks. Times in seconds since the epoch."""

    name: str
    client: str
    instance_id: str | None
    pid: int
    started_at: float
    ended_at: float
    callbacks: tuple[Callback, ...]


@dataclass(frozen=True)
class Bounce:
    """The replacement of one member's process by another.

    It lasts from `stopped_at`, when the old process was asked to stop, to `back_at`, when the new one owned its
    partitions. `away` is the DescribeGroups result in between; `disturbed` are the survivors' callbacks, as (name,
    kind).
    """

    name: str
    client: str
    how: str
    pid_before: int
    pid_after: int
    stopped_at: float
    back_at: float
    partitions_before: tuple[int, ...]
    partitions_after: tuple[int, ...]
    away: Described
    disturbed: tuple[tuple[str, str], ...]

    @property
    def away_s(self) -> float:
        """The time without a process in this place."""
        return self.back_at - self.stopped_at


@dataclass(frozen=True)
class GroupStory:
    """A group of six members and their six bounces.

    `events` is the group's trace from the moment it was complete to the end; generations and `before`/`after` are of
    those two moments. `began_at` and `ended_at` span all of it, in seconds since the epoch.
    """

    group_id: str
    session_timeout_ms: int
    began_at: float
    bounced_from: float
    ended_at: float
    processes: tuple[Process, ...]
    leader: str
    before: Described
    after: Described
    generation_before: int
    generation_after: int
    bounces: tuple[Bounce, ...]
    events: tuple[Event, ...]
    ends: Mapping[int, int]
    committed: Mapping[int, int]
    consumed: Counter[Record]


@dataclass(frozen=True)
class Step:
    """A replacement in a rolling upgrade: the protocol of the new process, and the group when it had its partitions."""

    name: str
    protocol: str
    group_type: str
    epoch: int


@dataclass(frozen=True)
class Upgrade:
    """A group of six members, and its rolling upgrade to `group.protocol=consumer` and back.

    Times in seconds since the epoch. `processes` come in the order of their start.
    """

    group_id: str
    session_timeout_ms: int
    rolled_from: float
    ended_at: float
    processes: tuple[Process, ...]
    steps: tuple[Step, ...]
    produced: int
    ends: Mapping[int, int]
    committed: Mapping[int, int]
    consumed: Counter[Record]

    def longest_idle_s(self) -> float:
        """Return the longest time in which a partition had no owner, by the members' own callbacks.

        Negative if two had the partition at the same time.
        """
        gaps = [0.0]
        for partition in self.ends:
            spans = sorted(span for process in self.processes for span in _spans(process, partition))
            gaps += [later[0] - earlier[1] for earlier, later in pairwise(spans) if later[0] > self.rolled_from]
        return min(gaps) if min(gaps) < 0 else max(gaps)


def _spans(process: Process, partition: int) -> Iterator[tuple[float, float]]:
    since: float | None = None
    for callback in process.callbacks:
        if since is None and partition in callback.held:
            since = callback.at
        elif since is not None and partition not in callback.held:
            yield since, callback.at
            since = None
    if since is not None:
        yield since, process.ended_at


@dataclass(frozen=True)
class Fencing:
    """A process whose group.instance.id a second process took. `on_the_wire`: its FENCED_INSTANCE_ID responses."""

    instance_id: str
    client: str
    pid: int
    by_client: str
    by_pid: int
    error: str
    text: str
    status: int
    on_the_wire: int
    taken_over: tuple[int, ...]


@dataclass(frozen=True)
class Refusal:
    """A process that found its group full. `on_the_wire`: its GROUP_MAX_SIZE_REACHED responses."""

    client: str
    pid: int
    group_max_size: int
    error: str
    text: str
    status: int
    on_the_wire: int
    members_after: int


@dataclass(frozen=True)
class Rebalance:
    """A rebalance, from the first state change to Stable or Empty (`state`). Times in microseconds since the epoch."""

    started_us: int
    ended_us: int
    generation_before: int
    generation_after: int
    state: str
    reason: str

    @property
    def took_s(self) -> float:
        """The time in which the group was not stable."""
        return (self.ended_us - self.started_us) / 1e6


def state_changes(events: Iterable[Event]) -> list[Event]:
    """Return the group's state changes. None of them: no rebalance."""
    return [event for event in events if event["kind"] == "state"]


def avoided(events: Iterable[Event]) -> list[Event]:
    """Return the returns of static members without a rebalance."""
    return [event for event in events if event["kind"] == "avoided_static"]


def requests(events: Iterable[Event], api: str) -> list[Event]:
    """Return the requests of one API."""
    return [event for event in events if event["kind"] == "request" and event["api"] == api]


def generations(events: Iterable[Event]) -> set[int]:
    """Return the generations that members name in their heartbeats."""
    return {event["generation"] for event in requests(events, "Heartbeat")}


def rebalances(events: Iterable[Event]) -> list[Rebalance]:
    """Return the completed rebalances, from the state changes."""
    found = []
    begun: Event | None = None
    for event in state_changes(events):
        if event["state_to"] == "PreparingRebalance" and begun is None:
            begun = event
        elif event["state_to"] in {"Stable", "Empty"} and begun is not None:
            found.append(
                Rebalance(
                    started_us=begun["wall_ts"],
                    ended_us=event["wall_ts"],
                    generation_before=begun["generation"],
                    generation_after=event["generation"],
                    state=event["state_to"],
                    reason=begun["reason"],
                )
            )
            begun = None
    return found


def all_records(ends: Mapping[int, int]) -> set[Record]:
    """Return every record of a topic with these end offsets."""
    return {(partition, offset) for partition, end in ends.items() for offset in range(end)}
