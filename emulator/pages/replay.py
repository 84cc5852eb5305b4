"""A pytest test that replays the members of a trace with puppets: "Copy as test" on the pages."""

from __future__ import annotations

import json
import keyword
import re
from typing import TYPE_CHECKING

from .texts import topic_and_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .group_lanes import GroupLanes
    from .lane import Lane

    Step = tuple[int, str]

EXPIRED = frozenset({"session_expired", "join_timeout", "sync_timeout"})
"""Causes of removals that the test replays as a stop and an expired session."""

IDENTIFIER_MAX = 60
"""The characters of a name that become an identifier."""

TAKEN = frozenset({*keyword.kwlist, "group", "koordinator"})
"""Names that mean something else in a test."""


def source_of_test(group: GroupLanes) -> str:
    """Return the source of a test: joins, leaves, stops and removals; no rules and holds."""
    lines = [f"def test_{_plain(group.id)}(koordinator):"]
    lines += [
        f"    koordinator.create_topic({_quoted(topic)}, partitions={count})" for topic, count in _topics(group).items()
    ]
    lines.append(f"    group = koordinator.group({_quoted(group.id)})")
    puppets = _identifiers(group.lanes.values())
    lines += [f"    {name} = group.create_puppet({_options(lane)})" for name, lane in puppets.items() if lane.joins]
    steps = [step for name, lane in puppets.items() for step in _of_lane(name, lane)]
    steps += [(at, f"group.fence({_quoted(instance)})") for at, instance in group.fences]
    steps += _generations(group)
    lines += [f"    {code}" for _, code in sorted(steps, key=lambda step: step[0])]
    return "\n".join(lines) + "\n"


def _identifiers(lanes: Iterable[Lane]) -> dict[str, Lane]:
    """Return the lanes by the names of their puppets in the test, each of which is free there."""
    named: dict[str, Lane] = {}
    for lane in lanes:
        plain = _plain(lane.name)
        first = f"m_{plain}" if plain[0].isdigit() or plain in TAKEN else plain
        name, number = first, 1
        while name in named:
            number += 1
            name = f"{first}_{number}"
        named[name] = lane
    return named


def _of_lane(name: str, lane: Lane) -> Iterator[Step]:
    is_out = True
    for at, action in lane.actions:
        if action == "join" and is_out:
            yield at, f"{name}.join()"
        elif action == "stop" and not is_out:
            yield at, f"{name}.stop()  # without leaving"
        elif action in {"leave", "member_leave"} and not is_out:
            yield at, f"{name}.leave()"
        elif action == "fenced" and not is_out:
            yield at, f'{name}.wait_state("failed")  # fenced by another process'
        elif action in EXPIRED:
            if not is_out:
                yield at, f"{name}.stop()"
            yield at, f"group.expire_session({_quoted(lane.id)})"
        else:
            continue
        is_out = action != "join"


def _generations(group: GroupLanes) -> Iterator[Step]:
    for at, rebalance in group.story.rebalances:
        if rebalance.outcome == "completed":
            members = len(rebalance.members)
            yield at, f"group.wait_stable(members={members})  # generation {rebalance.generation}"


def _topics(group: GroupLanes) -> dict[str, int]:
    """Return the number of partitions by topic, as far as the trace shows it."""
    topics = {topic: 1 for lane in group.lanes.values() for topic in lane.topics}
    for topic, number in map(topic_and_number, group.owners):
        topics[topic] = max(topics.get(topic, 1), number + 1)
    return topics


def _options(lane: Lane) -> str:
    options = [_quoted(lane.name)]
    if lane.protocols:
        options.append(f"protocols={_tuple(lane.protocols)}")
    if lane.is_static:
        options.append(f"instance_id={_quoted(lane.id)}")
    elif lane.id != lane.name:
        options.append(f"client_id={_quoted(lane.id)}")
    if lane.topics:
        options.append(f"topics={_tuple(lane.topics)}")
    return ", ".join(options)


def _quoted(text: str) -> str:
    # a lone surrogate becomes an escape of Python's
    return json.dumps(text, ensure_ascii=False).encode(errors="backslashreplace").decode()


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(map(_quoted, names))}{',' if len(names) == 1 else ''})"


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name[:IDENTIFIER_MAX]).strip("_").lower() or "member"
