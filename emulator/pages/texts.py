"""Texts of the timeline: durations, lists, partitions, and what happened in one line of the trace."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from koordinator.trace.events import is_error
from koordinator.trace.exchanges import EPOCH_HEARTBEATS

from ..trace.vocabulary import CONSUMER_GROUP_STATES, GROUP_STATES, TEST_ACTION_KINDS
from .share_texts import records_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from koordinator.trace.exchanges import Line


ROUTINE_APIS = {
    *("ApiVersions", "Metadata", "FindCoordinator", "DescribeCluster", "DescribeConfigs", "DescribeGroups"),
    *("ListGroups", "ListOffsets", "OffsetFetch", "OffsetForLeaderEpoch", "Fetch", "Heartbeat", "Produce"),
    *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ShareGroupHeartbeat", "ShareGroupDescribe"),
    *("StreamsGroupHeartbeat", "StreamsGroupDescribe"),
    *("ShareFetch", "ReadShareGroupState", "WriteShareGroupState", "InitializeShareGroupState"),
    "InitProducerId",
}
"""APIs that clients call all the time; their successful calls say nothing about the group."""

TIMERS = {
    "SessionExpiry": "session of {} expired",
    "PendingMemberExpiry": "{} did not return with its member id in time",
    "InitialDelay": "initial rebalance delay ended",
    "RebalanceTimeout": "rebalance timeout expired",
    "PendingSyncExpiry": "SyncGroup timeout expired",
    "RevocationTimeout": "{} did not revoke its partitions in time",
    "ClassicJoinTimeout": "{} did not rejoin in time",
    "ClassicSyncTimeout": "{} did not send SyncGroup in time",
    "PatternResolution": "topic patterns are resolved",
    "OffsetExpiryCheck": "check for expired offsets",
}
"""The texts of timers that fired, with a place for the member's name."""

OFFSETS_MAX = 4

UNITS = ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h"), (float("inf"), 86_400, "days"))
"""Units of durations: the limit in seconds, the seconds of one unit, its name."""


def duration(seconds: float) -> str:
    """Return a duration in a unit that suits it: 0.25 -> "250 ms"."""
    if not seconds:
        return "0 s"
    if abs(seconds) < 1:
        ms = abs(seconds) * 1000
        return f"{round(ms * 1000)} µs" if ms < 1 else f"{ms:.3g} ms"
    scale, unit = next((scale, unit) for limit, scale, unit in UNITS if abs(seconds) < limit)
    return f"{abs(seconds) / scale:.3g} {unit}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: (2, "member") -> "2 members"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def spaced(name: str) -> str:
    """Return a name with spaces: "expire_session" -> "expire session"."""
    return name.replace("_", " ")


def listed(names: Sequence[str], at_most: int = 4) -> str:
    """Return names in a row, and the number of those after the first `at_most`."""
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(names[:at_most]) + more


def partition_names(assignment: Mapping[str, Sequence[int]] | None) -> list[str]:
    """Return the partitions of an assignment: {"orders": [0, 3]} -> ["orders-0", "orders-3"]."""
    return [f"{topic}-{number}" for topic, numbers in (assignment or {}).items() for number in numbers]


def topic_and_number(name: str) -> tuple[str, int]:
    """Return the topic and the number of a partition: "orders-3" -> ("orders", 3)."""
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def partition_ranges(names: Iterable[str]) -> str:
    """Return partitions as ranges: ["orders-0", "orders-1", "orders-3"] -> "orders 0–1, 3"."""  # noqa: RUF002
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, number in map(topic_and_number, names):
        by_topic[topic].append(number)
    return ", ".join(f"{topic} {_ranges(sorted(numbers))}" for topic, numbers in by_topic.items())


def _ranges(numbers: Sequence[int]) -> str:
    ends: list[list[int]] = []
    for number in numbers:
        if ends and ends[-1][1] == number - 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ", ".join(f"{first}–{last}" if first != last else f"{first}" for first, last in ends)  # noqa: RUF001


def level_of(line: Line) -> str:
    """Return the level of a line among the events of a page, which decides its colour."""
    if is_error(line):
        return "bad"
    if line["kind"] == "state":
        return f"state k-{line.get('state_to')}"
    if line["kind"] == "avoided_static":
        return "good"
    if line.get("rule_id") or is_test_action(line) or line["kind"] == "timer":
        return "test"
    return "notice" if line.get("error") else "plain"


def is_routine(line: Line) -> bool:
    """Return whether a line is routine traffic, which says nothing about the group."""
    if line.get("error") or line.get("rule_id") or line.get("synthetic") or _throttle_text(line):
        return False
    match line["kind"]:
        case "request" | "response":
            return line.get("api") in ROUTINE_APIS
        case "puppet":
            return line.get("change") != "failed"
        case kind:
            return kind == "conn" and line.get("change") == "opened"


def is_test_action(line: Line) -> bool:
    """Return whether a test caused a line, outside Kafka's protocol."""
    return line["kind"] in TEST_ACTION_KINDS


def subject_of(line: Line) -> str:
    """Return the sender or the subject of a line that belongs to no lane."""
    names = ("instance_id", "client_id", "member_id", "kind")
    return str(next(line[name] for name in names if line.get(name)))


def timer_text(line: Line, member: str | None = None) -> str:
    """Return what a fired timer was for; `member` is the name of its member."""
    text = TIMERS.get(line.get("timer", ""), f"{line.get('timer')} expired")
    return text.format(member or line.get("member_id") or "a member")


def action_text(line: Line) -> str:
    """Return a timer or an action of a test in a few words."""
    body = line.get("body") or {}
    match line["kind"]:
        case "timer":
            return timer_text(line)
        case "clock":
            ahead_s = (body["to_ms"] - body["from_ms"]) / 1000
            cause = f" ({spaced(line['cause'])})" if line.get("cause") else ""
            return f"clock advanced by {duration(ahead_s)}{cause}" if ahead_s else f"clock mode set to {line['mode']}"
        case "rule":
            return _rule_text(line, body)
        case "hold":
            return _hold_text(line, body)
        case "verb":
            plain = [str(value) for value in body.values() if value is not None and not isinstance(value, dict | list)]
            return " ".join([spaced(line["verb"]), *plain])
        case "puppet":
            return f"puppet {line.get('puppet')} {line.get('change')}"
        case "leader":
            moved = "coordinator moved: " if line.get("group_id") else ""
            return f"{moved}{body['topic']}-{body['partition']} from broker {body['before']} to {line.get('node')}"
    words = [line["kind"], line.get("change"), line.get("reason") or line.get("cause")]
    shown = " ".join(f"{spaced(name)} {value}" for name, value in body.items() if not isinstance(value, dict | list))
    return " ".join(word for word in (*words, shown) if word)


def _rule_text(line: Line, body: Line) -> str:
    if line.get("change") == "added":
        return f"{line['rule_id']} added: {match_text(body.get('match', {}))} → {_values(body.get('action', {}))}"
    if line.get("change") == "used":
        return f"{line['rule_id']} acts on {line.get('api')}: {_values(body)}"
    return f"{line['rule_id']} {line.get('change')}"


def _hold_text(line: Line, body: Line) -> str:
    hold = line["hold_id"]
    match line.get("change"):
        case "added":
            return f"{hold} added: {match_text(body.get('match', {}))}"
        case "entered":
            return f"{hold} holds {line.get('api')}"
        case "behind":
            return f"{line.get('api')} waits behind {hold}"
        case change:
            return f"{hold} {change}" + (f": {line.get('api')} continues" if line.get("api") else "")


def match_text(conditions: Line) -> str:
    """Return the conditions of a rule or hold: {"api": "Fetch", "client_id": "a-*"} -> "Fetch, client id a-*"."""
    others = (f"{spaced(name)} {value}" for name, value in conditions.items() if name != "api")
    return ", ".join([conditions.get("api") or "any request", *others])


GENERATION, EPOCH = "generation", "epoch"
GENERATION_STATES = frozenset(GROUP_STATES) - frozenset(CONSUMER_GROUP_STATES)
EPOCH_STATES = frozenset(CONSUMER_GROUP_STATES) - frozenset(GROUP_STATES)
"""The names of a group's number, and the states that only one kind of group has."""

EPOCH_KINDS = ("target", "reconciliation")
"""The kinds of lines that only consumer groups have."""


def number_name(line: Line, before: str = GENERATION) -> str:
    """Return the name of a line's generation: "epoch" in a consumer group (KIP-848), as `before` if it does not show.

    Both kinds of groups can be Stable or Empty.
    """
    states = {line.get("state_from"), line.get("state_to")}
    if line["kind"] in EPOCH_KINDS or line.get("api") in EPOCH_HEARTBEATS or states & EPOCH_STATES:
        return EPOCH
    return GENERATION if states & GENERATION_STATES else before


def _values(action: Line) -> str:
    """Return the action of a rule: {"kind": "error", "name": "UNKNOWN_MEMBER_ID"} -> "error UNKNOWN_MEMBER_ID"."""
    others = [str(value) for name, value in action.items() if name != "kind"]
    return " ".join([spaced(str(action.get("kind", ""))), *others])


ENDS_OF_RECORDS = {"locks": "lock ended", "archived": "archived", "dead_letters": "dead letter"}
"""What happened to records of a share group, by the kind of a line."""


def summary(line: Line) -> str:
    """Return a line of the trace in a few words."""
    get = line.get
    generation = "" if get("generation") in {None, -1} else f" · {number_name(line)} {get('generation')}"
    match line["kind"]:
        case "request":
            return f"{line.get('api')}{generation}{_body_text(line)}"
        case "response":
            result = f"{get('error') or 'OK'}{generation}{_body_text(line)}"
            return f"{line.get('api')} → {result}{_throttle_text(line)}{_reason_text(line)}"
        case "state":
            return f"{get('state_from')} ⇒ {get('state_to')}{generation} · {why(line)}"
        case "member":
            return f"{get('change')} · {why(line)}"
        case "target":
            return f"target{generation} · {get('body', {}).get('assignor')}"
        case "reconciliation":
            return f"{spaced(str(get('change')))}{generation} · {_step_text(line)}"
        case "transaction":
            partitions = [f"{topic}-{number}" for topic, number in (get("body") or {}).get("partitions", ())]
            text = f"{get('state_from')} ⇒ {get('state_to')} · {spaced(why(line))} · {partition_ranges(partitions)}"
            return text.rstrip(" ·")
        case "locks" | "archived" | "dead_letters" as kind:
            return f"{ENDS_OF_RECORDS[kind]} · {spaced(str(get('cause')))}{_body_text(line)}"
        case "conn":
            return f"connection {get('conn_id')} {get('change')}" + (f" · {get('reason')}" if get("reason") else "")
        case "avoided_static":
            return f"no rebalance · {why(line)}"
        case "dropped":
            return f"{get('count')} older events were discarded"
        case _:
            return action_text(line)


def _body_text(line: Line) -> str:
    body = line.get("body") or {}
    if "assignment" in body:
        return f" · {partition_ranges(partition_names(body['assignment'])) or 'no partitions'}"
    if body.get("offsets"):
        return " · " + " ".join(f"{topic}-{number}@{at}" for topic, number, at, *_ in body["offsets"][:OFFSETS_MAX])
    if records := records_text(body):
        return f" · {records}"
    if line["kind"] == "response" and line.get("api") == "JoinGroup" and body.get("members"):
        return f" · leader of {count(len(body['members']), 'member')}"
    return ""


def _throttle_text(line: Line) -> str:
    throttle_ms = (line.get("body") or {}).get("throttle_time_ms")
    return f" · throttled for {duration(throttle_ms / 1000)}" if throttle_ms else ""


def _reason_text(line: Line) -> str:
    reason = (line.get("body") or {}).get("message") if line.get("error") else None
    return f" · {reason}" if reason else ""


def why(line: Line) -> str:
    """Return the reason of a line, or else its cause."""
    return line.get("reason") or line.get("cause") or ""


def _step_text(line: Line) -> str:
    body = line.get("body") or {}
    revoking = partition_ranges(partition_names(body.get("revoking")))
    owned = partition_ranges(partition_names(body.get("assigned"))) or "no partitions"
    return f"{owned}, gives up {revoking}" if revoking else owned
