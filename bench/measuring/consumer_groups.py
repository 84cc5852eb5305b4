"""Consumer groups (KIP-848): heartbeats, joins of a thousand members, patterns, and growth of the assignors."""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import processes
from measuring.heartbeats import Contestant
from measuring.rows import Row

from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.effects import Append, Call
from koordinator.emulator.core.groups.consumer.assignment import GroupSpec, MemberSpec
from koordinator.emulator.core.groups.consumer.range_assignor import assign_ranges
from koordinator.emulator.core.groups.consumer.uniform import assign_equal_subscriptions
from koordinator.emulator.core.groups.consumer.uniform_mixed import assign_mixed_subscriptions
from koordinator.emulator.core.groups.coordinator import Coordinator
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.emulator.core.groups.consumer.assignment import Target

PART = "consumer groups"
MEMBERS = 50
ROUNDS, EACH = 20, 40
KFAKE_TARGET = 1.3
"""The largest ratio of our processor time to kfake's for a heartbeat."""

JOINING = (100, 1_000)
JOIN_TARGET_S = 4.0
"""With Kafka's default of one target a second: two targets, and their revocations. The profile `fast` computes one for
each join."""

ASSIGNED = (100, 10_000)
PARTITIONS_EACH = 5
SUBSCRIBED = (100, 10_000)
PATTERNS, TOPICS = 10, 1_000
GROWTH_TARGET = 2.0
NOW = 1_700_000_000_000


def rows(*, quick: bool) -> list[Row]:
    """Return a row for heartbeats, one for joins, one for each assignor, and one for patterns."""
    small, large = (2, 20) if quick else ASSIGNED
    few, many = (2, 20) if quick else SUBSCRIBED
    return [
        _heartbeats(quick=quick),
        _joins((2, 5) if quick else JOINING),
        *(_assignor(name, assign, small, large) for name, assign in ASSIGNORS.items()),
        _patterns(few, many),
    ]


def _heartbeats(*, quick: bool) -> Row:
    kfake = "not built for a quick run" if quick else processes.kfake_program()
    members, rounds, each = (3, 1, 4) if quick else (MEMBERS, ROUNDS, EACH)
    with ExitStack() as stack:
        servers = {"koordinator": stack.enter_context(processes.emulator("--topic", f"t:{members}"))}
        if isinstance(kfake, Path):
            servers["kfake"] = stack.enter_context(processes.Server(str(kfake), str(members)))
        found = {}
        for name, server in servers.items():
            load = stack.enter_context(processes.load())
            load.tell(order="consume", port=server.port, connections=members)
            found[name] = Contestant(name, server, load)
        for _ in range(rounds):
            for contestant in found.values():
                contestant.turn(each, members)
    ours, theirs = found["koordinator"], found.get("kfake")
    ratio = None if theirs is None else ours.cpu_us / theirs.cpu_us
    return Row(
        part=PART,
        work=f"heartbeats of {members} members that wait for their answers",
        measured=f"{ours.per_s:,.0f} a second, {ours.cpu_us:.1f} µs",
        beside="kfake" if theirs is None else f"kfake: {theirs.per_s:,.0f} a second, {theirs.cpu_us:.1f} µs",
        result=f"skipped: {kfake}" if ratio is None else f"{ratio:.2f} times its processor time",
        target=f"at most {KFAKE_TARGET} times its processor time",
        met=None if ratio is None else ratio <= KFAKE_TARGET,
        figures={"per_s": ours.per_s, "cpu_us": ours.cpu_us, "kfake_cpu_us": theirs and theirs.cpu_us},
    )


def _joins(sizes: tuple[int, int]) -> Row:
    """Measure from the first join until every member has its partition."""
    seconds, used = {}, {}
    for size in sizes:
        options = "--topic", f"t:{size}", "--config", "group.consumer.assignment.interval.ms=1000"
        with processes.emulator(*options) as server, processes.load() as load:
            before = server.processor_s()
            seconds[size] = load.tell(order="consume", port=server.port, connections=size)["seconds"]
            used[size] = server.processor_s() - before
    most = sizes[-1]
    return Row(
        part=PART,
        work=f"{most:,} members join and get their partitions",
        measured=f"{seconds[most]:.2f} s, {used[most]:.2f} s CPU",
        beside=f"itself, {sizes[0]:,} members: {seconds[sizes[0]]:.2f} s",
        result=f"{seconds[most] / most * 1e6:,.0f} µs a member",
        target=f"under {JOIN_TARGET_S:.0f} s",
        met=seconds[most] < JOIN_TARGET_S,
        figures={"seconds": _named(seconds), "processor_s": _named(used)},
    )


ASSIGNORS: Mapping[str, Callable[[GroupSpec], Mapping[str, Target]]] = {
    "uniform, equal subscriptions": lambda group: assign_equal_subscriptions(group, extra_stays=True),
    "uniform, mixed subscriptions": assign_mixed_subscriptions,
    "range": assign_ranges,
}


def _assignor(name: str, assign: Callable[[GroupSpec], Mapping[str, Target]], small: int, large: int) -> Row:
    """Measure a first target, and the next one when a member has left."""
    seconds = {members: _assigned_in(assign, members, is_equal="mixed" not in name) for members in (small, large)}
    return _growth_row(f"a target by {name}, time per member", seconds)


def _assigned_in(assign: Callable[[GroupSpec], Mapping[str, Target]], members: int, *, is_equal: bool) -> float:
    topics = [uuid.UUID(int=number << 64 | number) for number in range(1, 11)]
    partitions = dict.fromkeys(topics, members * PARTITIONS_EACH // len(topics) + 1)
    chosen = {f"m-{number}": tuple(topics if is_equal or number % 2 else topics[:5]) for number in range(members)}
    first = {member_id: MemberSpec(each, len(each), {}) for member_id, each in chosen.items()}
    begun = time.process_time()
    targets = assign(GroupSpec(first, partitions, set(), is_equal=is_equal))
    again = {member_id: MemberSpec(each, len(each), targets[member_id]) for member_id, each in chosen.items()}
    del again["m-0"]
    taken = {(topic, at) for each in again.values() for topic in each.previous for at in each.previous[topic]}
    assign(GroupSpec(again, partitions, taken, is_equal=is_equal))
    return time.process_time() - begun


def _patterns(few: int, many: int) -> Row:
    """Measure joins with patterns, and the resolution of all of them."""
    work = f"joins with {PATTERNS} patterns over {TOPICS:,} topics, time per member"
    if find_spec("re2") is not None:
        return _growth_row(work, {members: _subscribed_in(members) for members in (few, many)})
    return Row(
        part=PART,
        work=f"growth of {work}",
        measured="-",
        beside="itself",
        result="skipped: google-re2 is not installed",
        target=f"at most {GROWTH_TARGET:.0f} times",
        met=None,
        figures={"members": [few, many]},
    )


def _subscribed_in(members: int) -> float:
    values = {"group.consumer.max.assignment.interval.ms": 600_000, "group.consumer.assignment.interval.ms": 600_000}
    settings, _ = Settings.of("fast", values)
    cluster = ClusterState("bench", settings, uuid.uuid4)
    cluster.register(1, "127.0.0.1", 9092)
    for number in range(TOPICS):
        cluster.create_topic(f"t-{number % PATTERNS}-{number}", 1)
    coordinator = Coordinator(NOW, cluster, settings, uuid.uuid4)
    begun = time.process_time()
    for number in range(members):
        call = Call(number, number, 68, 1, "bench", "/127.0.0.1")
        request = ConsumerGroupHeartbeatRequest(
            group_id="bench",
            member_id=f"m-{number}",
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=f"t-{number % PATTERNS}-.*",
            topic_partitions=(),
        )
        effects = [*coordinator.handle(NOW + number, call, request), *coordinator.tick(NOW + number)]
        while effects:
            effect = effects.pop()
            if isinstance(effect, Append):
                effects += coordinator.appended(NOW + number, effect.token, Error.NONE)
    return time.process_time() - begun


def _growth_row(work: str, seconds: Mapping[int, float]) -> Row:
    small, large = seconds
    growth = (seconds[large] / large) / max(seconds[small] / small, 1e-9)
    return Row(
        part=PART,
        work=f"growth of {work}, {small:,} to {large:,} members",
        measured=f"{seconds[large] * 1e3:,.0f} ms",
        beside=f"itself {seconds[small] * 1e3:,.1f} ms",
        result=f"{growth:.2f} times",
        target=f"at most {GROWTH_TARGET:.0f} times",
        met=growth <= GROWTH_TARGET,
        figures={"seconds": _named(seconds), "growth": growth},
    )


def _named(figures: Mapping[int, float]) -> dict[str, float]:
    return {str(size): figure for size, figure in figures.items()}
