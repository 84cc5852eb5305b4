"""The claims of KIP-932, share groups: parallel work on the records of a partition."""

from __future__ import annotations

from ..load import Load
from ..schemes.on_core import CoreScheme, Members
from ..situations import name_of
from ..workers.backlog import LOCK_S
from ..workers.share_workers import ShareWorkers
from .claim import CONDITIONS, KIP_932, Finding, begin, claim

RECORD_S, SLOW_S = 1.0, 60.0
"""The time for a record, and for a slow one."""

DELIVERIES = 5
"""Kafka's default of `group.share.delivery.count.limit`."""

FIRST = (0, 0)
"""The first record of the first partition."""


@claim(f"{KIP_932}, motivation", "A group may have more members at work than the topic has partitions.")
def workers_may_exceed_partitions() -> Finding:
    """Let 2, 4 and 6 workers process 60 records of two partitions; count the members of a consumer group that can."""
    seconds = [_all_accepted_s(workers) for workers in (2, 4, 6)]
    with CoreScheme(Load(members=6, partitions=2), Members(("uniform",), group_protocol="consumer")) as scheme:
        begin(scheme)
        busy = sum(any(puppet.assignment.values()) for puppet in scheme.group.puppets.values())
    times = ", ".join(f"{each:g}" for each in seconds)
    text = f"60 records of 1 s take {times} s with 2, 4, 6 workers; {busy} of 6 members of a consumer group have work"
    return Finding(text, seconds == [30, 15, 10] and busy == 2)


def _all_accepted_s(workers: int) -> float:
    with ShareWorkers(Load(members=workers, partitions=2)) as group:
        group.write(30)
        work = group.run(40, lambda *_: RECORD_S)
    assert len(work.done_ms) == 60, work
    return max(work.done_ms.values()) / 1000


@claim(f"{KIP_932}, motivation", "A record that takes long does not hold up those behind it.")
def a_slow_record_holds_up_no_other() -> Finding:
    """Let the first of 20 records of a partition take 60 s, beside another worker."""
    with ShareWorkers(Load(members=2, partitions=1)) as group:
        group.write(20)
        work = group.run(LOCK_S - 1, lambda _, job: SLOW_S if job == FIRST else RECORD_S)
    others = max(work.done_ms.values()) / 1000
    text = f"{len(work.done_ms)} others are accepted within {others:g} s; in order they wait for {SLOW_S:g} s"
    return Finding(text, len(work.done_ms) == 19 and others < SLOW_S)


@claim(
    f"{KIP_932}, acquisition lock",
    "A record is processed by one member at a time.",
    CONDITIONS,
    "it takes no longer than the lock, or the member renews that (KIP-1222)",
)
def a_record_has_one_holder() -> Finding:
    """Count the deliveries of a record that takes twice as long as the lock, and of one that takes half of it."""
    slow, quick = (_deliveries_of_first(seconds) for seconds in (2 * LOCK_S, LOCK_S / 2))
    text = f"within {3 * LOCK_S} s: {slow} deliveries of a record that takes {2 * LOCK_S} s, {quick} of one that takes"
    return Finding(f"{text} {LOCK_S // 2} s", slow == 1, quick == 1 < slow)


def _deliveries_of_first(seconds: float) -> int:
    with ShareWorkers(Load(members=2, partitions=1)) as group:
        group.write(3)
        work = group.run(3 * LOCK_S, lambda _, job: seconds if job == FIRST else RECORD_S)
    return sum(each.job == FIRST for each in work.started)


@claim(f"{KIP_932}, acquisition lock", "The records of a member that hangs go to another one when their locks end.")
def a_lock_frees_the_records_of_a_hanging_member() -> Finding:
    """Let a worker hang with a record; nothing closes its connection."""
    with ShareWorkers(Load(members=2, partitions=1)) as group:
        group.write(10)
        group.run(0.1, lambda *_: RECORD_S)
        group.hang(name_of(0))
        work = group.run(2 * LOCK_S, lambda *_: RECORD_S)
    again = [each.at_ms / 1000 for each in work.started if each.job == FIRST]
    text = f"it is delivered again after {again[-1]:g} s; all {len(work.done_ms)} records are accepted"
    return Finding(text, len(work.done_ms) == 10 and LOCK_S <= again[-1] < LOCK_S + 1)


@claim(f"{KIP_932}, delivery count", "A record that nobody can process is given up, and holds up no other.")
def a_poison_record_is_given_up() -> Finding:
    """Let a record fail in each worker."""
    poison = (0, 3)
    with ShareWorkers(Load(members=2, partitions=1)) as group:
        group.write(10)
        work = group.run(2 * LOCK_S, lambda *_: RECORD_S, fails=lambda job: job == poison)
    deliveries = sum(each.job == poison for each in work.started)
    others = max(work.done_ms.values()) / 1000
    text = f"{deliveries} deliveries, then none; the {len(work.done_ms)} others are accepted within {others:g} s"
    return Finding(text, deliveries == DELIVERIES and len(work.done_ms) == 9)
