"""The rows of share groups and streams groups: deliveries of records, dead letters, and tasks (KIP-932, KIP-1071)."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from koordinator.trace.deliveries import SHARE_APIS, ShareDeliveries
from koordinator.trace.tasks import STREAMS_HEARTBEAT, TaskStays

from .group_facts import ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from koordinator.trace.deliveries import ShareDelivery

    from .group_facts import GroupFacts, Row


def delivery(facts: GroupFacts) -> Iterator[Row]:
    """Return gold/delivery: the deliveries whose acquisition is in the trace; neighbours of one fate are one row."""
    if not any(call.api in SHARE_APIS for call in facts.trace.exchanges):
        return
    in_order = sorted(_deliveries(facts), key=attrgetter("topic", "partition", "acquired_seq", "first_offset"))
    for each in _joined(in_order):
        yield facts.key | {
            "topic": each.topic,
            "partition": each.partition,
            "first_offset": each.first_offset,
            "last_offset": each.last_offset,
            "n_records": each.n_records,
            "delivery_count": each.delivery_count,
            "member_id": each.member_id,
            "member": facts.trace.label(each.member_id),
            "acquired_seq": each.acquired_seq,
            "ended_seq": each.ended_seq,
            "t_acquired_us": each.acquired_us,
            "held_ms": each.held_ms,
            "renewals": each.renewals,
            "outcome": each.outcome,
            "archived": each.is_archived,
        }


def _deliveries(facts: GroupFacts) -> Iterator[ShareDelivery]:
    reader = ShareDeliveries(facts.trace.group_id)
    for line in facts.trace.lines:
        if line.get("group_id") == facts.trace.group_id:
            yield from reader.feed(line)
        elif line["kind"] == "conn" and line.get("change") == "closed":
            reader.close(line)
    yield from reader.open


def _joined(deliveries: Iterable[ShareDelivery]) -> Iterator[ShareDelivery]:
    """Return the deliveries in order, with neighbours joined that differ in their offsets alone."""
    last: ShareDelivery | None = None
    for each in deliveries:
        if last is not None and each == replace(last, first_offset=last.last_offset + 1, last_offset=each.last_offset):
            last = replace(last, last_offset=each.last_offset)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def dead_letter(facts: GroupFacts) -> Iterator[Row]:
    """Return gold/dead_letter: the records that were given up in a group with a topic of dead letters (KIP-1191)."""
    for line in facts.trace.group_lines:
        if line["kind"] == "dead_letters":
            topic, partition, first, last, count = line["body"]["dead"]
            yield facts.key | {
                "seq": line["seq"],
                "at": line.get("wall_ts"),
                "topic": topic,
                "partition": partition,
                "first_offset": first,
                "last_offset": last,
                "n_records": last - first + 1,
                "delivery_count": count,
                "cause": line.get("cause"),
                "written_to": line["body"].get("written_to"),
                "problem": line["body"].get("problem"),
            }


def task(facts: GroupFacts) -> Iterator[Row]:
    """Return gold/task: every stay of a task with a member of a streams group."""
    if not any(call.api == STREAMS_HEARTBEAT for call in facts.trace.exchanges):
        return
    reader = TaskStays(facts.trace.group_id)
    ended = [stay for line in facts.trace.group_lines for stay in reader.feed(line)]
    for each in (*ended, *reader.open):
        yield facts.key | {
            "member_id": each.member_id,
            "member": facts.trace.label(each.member_id),
            "type": each.type,
            "subtopology": each.subtopology,
            "partition": each.partition,
            "given_seq": each.given_seq,
            "ended_seq": each.ended_seq,
            "t_given_us": each.given_us,
            "kept_ms": ms(each.given_us, each.ended_us),
        }
