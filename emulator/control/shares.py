"""Operations on the records of share groups (KIP-932): their holders, and the early end of their locks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.data.share.batches import RecordState
from ..core.groups.share.group import SHARE
from ..trace.events import VerbUsed
from .resolve import group_named, member_named, partitioned, topic_named
from .results import RecordsInFlight, SharePosition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..broker.broker import Broker
    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output
    from ..core.data.share.batches import Delivery
    from ..core.data.share.partition import SharePartition
    from ..core.data.share.state_requests import LedPartition
    from ..core.groups.group import BaseGroup

OFFSET_MAX = 2**63 - 1


class Shares:
    """Operations on share partitions, which are in the memory of their leaders once a member has fetched them."""

    def __init__(self, runtime: ClusterRuntime, deliver: Callable[[Iterable[Output]], None]) -> None:
        self._runtime = runtime
        self._deliver = deliver

    def positions(self, now: int, *, group: str, topic: str | None = None) -> list[SharePosition]:
        """Return where a share group is in each partition that it has read, and the records in flight."""
        if topic is not None:
            topic_named(self._runtime, topic)
        names = {each.topic_id: each.name for each in self._runtime.cluster.topics.values()}
        group_now = self._runtime.cluster.clocks.of(group, now).read(now)
        found = [
            SharePosition(
                names[led.topic_id],
                led.partition,
                led.state.start,
                led.state.end,
                tuple(_in_flight(led.state, group_now)),
            )
            for _, led in self._led(group)
            if led.state is not None and names.get(led.topic_id) is not None and topic in (None, names[led.topic_id])
        ]
        return sorted(found, key=lambda each: (each.topic, each.partition))

    def expire_locks(
        self,
        now: int,
        *,
        group: str,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        member: str | None = None,
    ) -> int:
        """End the locks of records now, as if their time was over, and return the number of the records.

        They are available again, or archived at the delivery limit. Of all locks of the group, those of a topic, a
        partition, an offset or a member, by its member id, or by the client id that no other member has. Raises
        ValueError for an unknown name, and for an offset without a topic and a partition.
        """
        if offset is not None and (topic is None or partition is None):
            raise ValueError(f"offset={offset}: an offset belongs to a topic and a partition; name both")
        existing = group_named(self._runtime, group)
        if existing.kind != SHARE:
            raise ValueError(f"group {group!r} is a {existing.kind} group: only members of share groups lock records")
        topic_id = None if topic is None else partitioned(self._runtime, topic, partition).topic_id
        member = None if member is None else self._holder(existing, member)
        arguments = {"topic": topic, "partition": partition, "offset": offset, "member": member}
        given: dict[str, object] = {name: value for name, value in arguments.items() if value is not None}
        first, last = (0, OFFSET_MAX) if offset is None else (offset, offset)
        ended = 0
        for broker, led in list(self._led(group)):
            if topic_id in (None, led.topic_id) and partition in (None, led.partition):
                self._note(now, group, given, broker.node.node_id)
                count, effects = broker.node.data.shares.end_locks(now, led, first, last, member)
                ended += count
                outputs = broker.perform(now, effects)
                # the share coordinator has them before the operation ends
                self._deliver(outputs + self._runtime.links.exchange(now, self._runtime))
        return ended

    def _holder(self, group: BaseGroup, name: str) -> str:
        """Return the id of a member, or of one that has left: leaving ends no lock."""
        batches = (batch for _, led in self._led(group.id) if led.state is not None for batch in led.state.batches)
        holders = {each.member_id for batch in batches for each in batch.deliveries}
        return name if name in holders else member_named(group, name).id

    def _led(self, group: str) -> Iterator[tuple[Broker, LedPartition]]:
        for broker in self._runtime:
            for led in list(broker.node.data.shares.partitions.led.values()):
                if led.group_id == group and led.state is not None:
                    yield broker, led

    def _note(self, now: int, group: str, given: dict[str, object], node_id: int) -> None:
        group_now = self._runtime.cluster.clocks.of(group, now).read(now)
        trace = self._runtime.trace
        trace.add(trace.now_us(), VerbUsed("expire_locks", group, group_now, given), node_id)


def _in_flight(state: SharePartition, group_now: int) -> list[RecordsInFlight]:
    """Return the records in flight; neighbours that are alike are one row."""
    rows: list[RecordsInFlight] = []
    for each in (each for batch in state.batches for each in batch.deliveries if each.last >= state.start):
        row = _row(each, group_now)
        if rows and rows[-1].last_offset + 1 == row.first_offset:
            joined = replace(row, first_offset=rows[-1].first_offset)
            if joined == replace(rows[-1], last_offset=row.last_offset):
                rows[-1] = joined
                continue
        rows.append(row)
    return rows


def _row(delivery: Delivery, group_now: int) -> RecordsInFlight:
    is_held = delivery.state is RecordState.ACQUIRED
    return RecordsInFlight(
        delivery.first,
        delivery.last,
        delivery.state.name.lower(),
        delivery.count,
        delivery.member_id if is_held else None,
        delivery.lock.deadline - group_now if is_held and delivery.lock is not None else None,
    )
