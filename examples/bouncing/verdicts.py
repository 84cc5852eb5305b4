"""The claims of the demo and their evidence: a pure function from observations to verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bouncing import story

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bouncing.story import Fencing, GroupStory, Refusal, Upgrade

RECORDS = 10_000
CLIENTS = ("kafka-python", "confluent-kafka", "aiokafka")
EACH = 2

OWN_WORDS_FOR_FENCED = {
    "kafka-python": "FencedInstanceIdError",
    # librdkafka's error is _FATAL; only its text names the cause
    "confluent-kafka": "Static consumer fenced by other consumer with same group.instance.id",
}
OWN_WORDS_FOR_FULL = {
    "kafka-python": "GroupMaxSizeReachedError",
    "confluent-kafka": "GROUP_MAX_SIZE_REACHED",
    # aiokafka 0.14 does not know code 81
    "aiokafka": "UnknownError",
}


@dataclass(frozen=True)
class Verdict:
    """A claim, whether it held, and the observation."""

    act: str
    claim: str
    is_true: bool
    evidence: str


def of_static(seen: GroupStory) -> list[Verdict]:
    """Static membership: the group does not notice six bounces."""
    act = "static"
    timeout_s = seen.session_timeout_ms / 1000
    longest_s = max((bounce.away_s for bounce in seen.bounces), default=0.0)
    disturbed = [each for bounce in seen.bounces for each in bounce.disturbed]
    left = len(story.requests(seen.events, "LeaveGroup"))
    changes = story.state_changes(seen.events)
    avoided = story.avoided(seen.events)
    named = story.generations(seen.events)
    described = [seen.before, *(bounce.away for bounce in seen.bounces), seen.after]
    kept = all(each.state == "STABLE" and each.partitions == seen.before.partitions for each in described)
    return [
        _of_members(act, seen),
        Verdict(
            act,
            "each of the six was bounced within its session timeout",
            _everybody_bounced(seen) and not left and all(bounce.away_s < timeout_s for bounce in seen.bounces),
            f"{_of_ways(seen)}, {left} LeaveGroup requests, a new member id each; "
            f"away for {longest_s:.1f} s at most, the session timeout is {timeout_s:g} s",
        ),
        Verdict(
            act,
            "no rebalance: the group as described is the same",
            kept and seen.generation_before == seen.generation_after and named == {seen.generation_before},
            f"DescribeGroups: {_states(described)}, {'the same' if kept else 'another'} assignment; "
            f"generation {seen.generation_before} before, {seen.generation_after} after, "
            f"in the members' heartbeats {_listed(named)}",
        ),
        Verdict(
            act,
            "no rebalance: no callback in the survivors",
            not disturbed,
            f"{len(disturbed)} assign or revoke callbacks in {len(seen.bounces)} x 5 surviving processes",
        ),
        Verdict(
            act,
            "no rebalance: none in the trace",
            not changes and len(avoided) == len(seen.bounces),
            f"{len(changes)} state changes; {len(avoided)} times Kafka's "
            "'Static member which joins during Stable stage … will not trigger a rebalance'",
        ),
        *_of_records(act, seen),
    ]


def of_dynamic(seen: GroupStory) -> list[Verdict]:
    """Dynamic membership: every member notices each of the same six bounces."""
    act = "dynamic"
    rebalances = story.rebalances(seen.events)
    revoked = [sum(kind == "revoked" for _, kind in bounce.disturbed) for bounce in seen.bounces]
    left = len(story.requests(seen.events, "LeaveGroup"))
    grown = seen.generation_after - seen.generation_before
    return [
        _of_members(act, seen),
        Verdict(
            act,
            "each bounce rebalances the group",
            _everybody_bounced(seen) and len(rebalances) >= len(seen.bounces) and grown == len(rebalances),
            f"{len(rebalances)} rebalances in the trace, after {left} LeaveGroup requests; "
            f"generation {seen.generation_before} before, {seen.generation_after} after",
        ),
        Verdict(
            act,
            "each bounce takes the survivors' partitions away",
            bool(revoked) and all(count >= len(CLIENTS) * EACH - 1 for count in revoked),
            f"revoke callbacks in the survivors, for each bounce: {_listed(revoked)}",
        ),
        *_of_records(act, seen),
    ]


def of_upgrade(seen: Upgrade) -> list[Verdict]:
    """Rolling upgrade to the consumer protocol and back: the group goes on, and each record is processed once."""
    act = "upgrade"
    names = [process.name for process in seen.processes[: len(CLIENTS) * EACH]]
    clients = Counter(process.client for process in seen.processes[: len(names)])
    rolled = [(step.name, step.protocol) for step in seen.steps]
    protocols = list(dict.fromkeys(step.protocol for step in seen.steps))
    types = [step.group_type for step in seen.steps]
    idle_s = seen.longest_idle_s()
    again = seen.consumed.total() - len(seen.consumed)
    return [
        Verdict(
            act,
            "six members are replaced one by one: to the consumer protocol, and back",
            rolled == [(name, protocol) for protocol in ("consumer", "range") for name in names]
            and types == ["consumer"] * (len(rolled) - 1) + ["classic"],
            f"{_listed(f'{count} {client}' for client, count in clients.items())}; {len(rolled)} replacements to "
            f"{' and '.join(protocols)}; the group was then of type "
            f"{_listed(f'{kind} ({count} times)' for kind, count in Counter(types).items())}",
        ),
        Verdict(
            act,
            "the group never stops",
            0 <= idle_s < seen.session_timeout_ms / 1000,
            f"five or six members at any time; no partition had two owners, or none for more than {idle_s:.1f} s; "
            f"the session timeout is {seen.session_timeout_ms / 1000:g} s",
        ),
        Verdict(
            act,
            "each record is processed exactly once",
            not again and seen.produced == sum(seen.ends.values()),
            f"{seen.consumed.total():,} processed, {again:,} of them again",
        ),
        *_of_records(act, seen, seen.produced),
    ]


def of_fencing(seen: Sequence[Fencing]) -> list[Verdict]:
    """Two processes with one group.instance.id: the older one learns of it through its own client."""
    return [
        Verdict(
            "fenced",
            f"a duplicate group.instance.id fences the older process ({each.client})",
            OWN_WORDS_FOR_FENCED[each.client] in f"{each.error}: {each.text}"
            and each.status != 0
            and each.on_the_wire > 0
            and bool(each.taken_over),
            f"{each.client} ended with {_of_error(each, OWN_WORDS_FOR_FENCED[each.client])}; "
            f"{each.by_client} holds its {len(each.taken_over)} partitions",
        )
        for each in seen
    ]


def of_refusals(seen: Sequence[Refusal]) -> list[Verdict]:
    """A member too many: rejected with the client's own error; the group stays as it was."""
    return [
        Verdict(
            "full",
            f"a full group refuses one more ({each.client})",
            OWN_WORDS_FOR_FULL[each.client] in f"{each.error}: {each.text}"
            and each.status != 0
            and each.on_the_wire > 0
            and each.members_after == each.group_max_size,
            f"{each.client} ended with {_of_error(each, OWN_WORDS_FOR_FULL[each.client])}; "
            f"{each.members_after} members, group.max.size={each.group_max_size}",
        )
        for each in seen
    ]


def _of_members(act: str, seen: GroupStory) -> Verdict:
    names = set(seen.before.partitions)
    first = {process.name: process for process in reversed(seen.processes)}
    clients = Counter(process.client for process in first.values())
    pids = {process.pid for process in seen.processes}
    held = sorted(partition for held in seen.before.partitions.values() for partition in held)
    return Verdict(
        act,
        f"six {act} members, two of each client, each its own process, form one group",
        names == set(first)
        and clients == dict.fromkeys(CLIENTS, EACH)
        and len(pids) == len(seen.processes)
        and held == sorted(seen.ends),
        f"{_listed(f'{count} {client}' for client, count in clients.items())}; "
        f"{len(pids)} processes in all; {len(held)} partitions, each held once",
    )


def _of_records(act: str, seen: GroupStory | Upgrade, records: int = RECORDS) -> list[Verdict]:
    every = story.all_records(seen.ends)
    lost = every - seen.consumed.keys()
    invented = seen.consumed.keys() - every
    again = seen.consumed.total() - len(seen.consumed)
    return [
        Verdict(
            act,
            f"{records:,} records: each one consumed, none lost",
            len(every) == records and not lost and not invented,
            f"{len(every):,} in the log, {len(seen.consumed):,} consumed, {len(lost):,} lost, {again:,} seen again",
        ),
        Verdict(
            act,
            "the committed offsets are the ends of the log",
            dict(seen.committed) == dict(seen.ends),
            f"{sum(seen.committed.values()):,} committed in {len(seen.committed)} partitions",
        ),
    ]


def _everybody_bounced(seen: GroupStory) -> bool:
    names = {bounce.name for bounce in seen.bounces}
    before, after = seen.before.member_ids, seen.after.member_ids
    return (
        names == set(before) == set(after)
        and all(before[name] != after[name] for name in names)
        and all(bounce.pid_before != bounce.pid_after and bounce.partitions_after for bounce in seen.bounces)
    )


def _of_error(seen: Fencing | Refusal, own_words: str) -> str:
    said = f"{seen.error}: {seen.text}"
    return repr(own_words if own_words in said else said) if seen.error else "no error"


def _of_ways(seen: GroupStory) -> str:
    ways = Counter(bounce.how for bounce in seen.bounces)
    return _listed(f"{count} {how}" for how, count in ways.items())


def _states(described: Sequence[story.Described]) -> str:
    states = Counter(each.state for each in described)
    return _listed(f"{count} times {state}" for state, count in states.items())


def _listed(things: object) -> str:
    assert hasattr(things, "__iter__")
    return ", ".join(str(each) for each in things) or "none"
