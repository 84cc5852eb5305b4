"""Checks of consumer groups (KIP-848): members C06, C11 and C12, the coordinator S11 and S12.

A heartbeat is the only request of the protocol. Its body in the trace has the fields that are not null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.trace.exchanges import HEARTBEAT, JOINING_EPOCH, OK

from .group_trace import after
from .observations import Observations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from koordinator.trace.exchanges import Exchange, Line

    from .group_trace import GroupTrace

Partition = tuple[str, int]

MEMBERSHIP_LOST = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")
"""Errors after which a member has to join with epoch 0."""

FULL = ("rebalance_timeout_ms", "owned")
"""The fields of a full heartbeat, besides a subscription by names or by a pattern."""

FORGETTING = ("loaded", "unloaded", "removed", "store_error", "group_downgrade")
"""The causes of a group's state after which epochs and owners may be others than the trace has shown."""


def heartbeats_of(trace: GroupTrace) -> Iterator[tuple[str, list[Exchange]]]:
    """Return each member id with its heartbeats of the protocol."""
    for member_id, exchanges in trace.by_member.items():
        own = [exchange for exchange in exchanges if exchange.api == HEARTBEAT]
        if own:
            yield member_id, own


def everything_after_error(trace: GroupTrace) -> Observations:
    """Find members that do not repeat everything after an error, or keep an epoch that the coordinator refused (C11).

    A coordinator that failed may not know the latest changes of a member (`HeartbeatRequestState` of Java's consumer).
    """
    observations = Observations()
    for member_id, own in heartbeats_of(trace):
        name = trace.describe(member_id)
        for failed in own:
            if failed.error in (OK, None) or failed.leaves:
                continue
            reaction = next(after(own, failed.response_seq or failed.seq), None)
            if reaction is None or reaction.leaves:
                continue
            if reaction.generation == JOINING_EPOCH:
                observations.add_pass(failed, reaction)
            elif failed.error in MEMBERSHIP_LOST:
                observations.add_failure(f"{name} did not join again after {failed}: {reaction}", failed, reaction)
            elif _is_full(reaction):
                observations.add_pass(failed, reaction)
            else:
                text = f"{name} did not repeat everything after {failed}: {reaction}"
                observations.add_failure(text, failed, reaction)
    return observations


def _is_full(heartbeat: Exchange) -> bool:
    body = heartbeat.request_body
    return all(body.get(field) is not None for field in FULL) and (
        body.get("topics") is not None or body.get("pattern") is not None
    )


def latest_epoch(trace: GroupTrace) -> Observations:
    """Find members whose heartbeat has another epoch than their latest response, or 0 to join (C12).

    A response may be lost with its connection, or by a rule of the test; then the epoch before it is right, too.
    """
    observations = Observations()
    for member_id, own in heartbeats_of(trace):
        previous: Exchange | None = None
        earlier: int | None = None
        for beat in own:
            epoch = None if previous is None else previous.member_epoch
            if beat.leaves or beat.generation == JOINING_EPOCH or epoch is None or previous is None:
                pass
            elif beat.generation == epoch or (beat.generation == earlier and _may_be_lost(previous, beat)):
                observations.add_pass(beat)
            else:
                text = f"{trace.describe(member_id)} was at epoch {epoch}, and sent {beat}"
                observations.add_failure(text, previous, beat)
            if beat.error == OK:
                earlier, previous = epoch, beat
    return observations


def _may_be_lost(answered: Exchange, later: Exchange) -> bool:
    return answered.connection != later.connection or answered.rule_id is not None


def owned_as_assigned(trace: GroupTrace, observations: Observations) -> None:
    """Find members that report partitions which they were not assigned, or have given up before (C06).

    A member that is still busy with an assignment reports that one, although it has received the next one.
    """
    for member_id, own in heartbeats_of(trace):
        known: set[Partition] | None = None
        latest: set[Partition] = set()
        assigned: set[Partition] = set()
        for beat in own:
            owned = beat.request_body.get("owned")
            if beat.generation == JOINING_EPOCH:
                known, latest, assigned = set(), set(), set()
            elif owned is not None and known is not None and not beat.leaves:
                foreign = _partitions(owned) - known - assigned
                if foreign:
                    topic, number = min(foreign)
                    text = f"{trace.describe(member_id)} reports {topic} {number}, which it was not assigned: {beat}"
                    observations.add_failure(text, beat)
                else:
                    observations.add_pass(beat)
                known, assigned = _partitions(owned), set(latest)
            given = beat.response_body.get("assignment")
            if beat.error == OK and given is not None:
                latest = _partitions(given)
                assigned |= latest


def released_first(trace: GroupTrace) -> Observations:
    """Check that a partition has one member at a time, and another one only after its release (S11).

    A member releases a partition with its acknowledgement, or when it is removed; until then it holds the partition,
    assigned or pending revocation. A topic that was deleted and created again has other partitions of the same names.
    """
    observations = Observations()
    holders = Holders()
    for line in trace.group_lines:
        taken = holders.follow(line)
        if line["kind"] == "reconciliation":
            for (topic, number), step in sorted(taken.items()):
                names = trace.label(line["member_id"]), trace.label(step["member_id"])
                observations.add_failure(f"{topic} {number} went to {names[0]} while {names[1]} held it", step, line)
            if not taken:
                observations.add_pass(line, of=line["member_id"])
    return observations


class Holders(dict[Partition, "Line"]):
    """The reconciliation of the member that holds each partition, assigned or to be revoked."""

    def follow(self, line: Line) -> dict[Partition, Line]:
        """Apply a line of the trace; return the partitions that it gives to a member while another one holds them."""
        if _forgets(line) or (line["kind"] == "state" and line.get("cause") == "topic_change"):
            self.clear()
        elif line["kind"] == "member" and line.get("change") in ("removed", "replaced"):
            self._release(line["member_id"])
        elif line["kind"] == "reconciliation":
            self._release(line["member_id"])
            held = _partitions(line["body"]["assigned"]) | _partitions(line["body"]["revoking"])
            taken = {partition: self[partition] for partition in held if partition in self}
            self.update(dict.fromkeys(held, line))
            return taken
        return {}

    def _release(self, member_id: str) -> None:
        for partition in [each for each, line in self.items() if line["member_id"] == member_id]:
            del self[partition]


def epochs_rise(trace: GroupTrace) -> Observations:
    """Check that targets have rising epochs, and that the epoch of a member never goes back (S12)."""
    observations = Observations()
    target: Line | None = None
    steps: dict[str, Line] = {}
    for line in trace.group_lines:
        if _forgets(line):
            target, steps = None, {}
        elif line["kind"] == "target":
            if target is not None and line["generation"] <= target["generation"]:
                text = f"the target of epoch {line['generation']} came after that of {target['generation']}"
                observations.add_failure(text, target, line)
            else:
                observations.add_pass(line)
            target = line
        elif line["kind"] == "member" and line.get("change") != "loaded":
            steps.pop(line.get("member_id", ""), None)
        elif line["kind"] == "reconciliation":
            before = steps.get(line["member_id"])
            if before is not None and 0 <= line["generation"] < before["generation"]:
                name = trace.label(line["member_id"])
                text = f"the epoch of {name} went back from {before['generation']} to {line['generation']}"
                observations.add_failure(text, before, line)
            else:
                observations.add_pass(line, of=line["member_id"])
            steps[line["member_id"]] = line
    return observations


def _forgets(line: Line) -> bool:
    return line["kind"] == "state" and line.get("cause") in FORGETTING


def _partitions(by_topic: Mapping[str, list[int]]) -> set[Partition]:
    return {(topic, number) for topic, numbers in by_topic.items() for number in numbers}
