"""Render a sequence as a conformance scenario, with the answers of core and broker to each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exploring.actors import T_AND_U, T
from exploring.comparison import Names, rendered
from exploring.steps import GROUP, NO_MEMBER, UNKNOWN_TOPIC, Id, TopicId
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest
from koordinator.wire.messages.leave_group import LeaveGroupRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.offset_commit import OffsetCommitRequest
from koordinator.wire.messages.offset_delete import OffsetDeleteRequest
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest
from koordinator.wire.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from exploring.steps import Outcome, Setup
    from exploring.verdicts import Judgement
    from koordinator.wire.apis import Message
    from koordinator.wire.messages.offset_commit import OffsetCommitRequestTopic
    from koordinator.wire.messages.offset_fetch import OffsetFetchRequestTopic, OffsetFetchRequestTopics

HEAD = '''"""Found by `make explore`, sequence {name}, on Apache Kafka {version} ({coordinator} coordinator).

{difference}
"""

from builders.requests import subscription
from scenarios.player import Player
from scenarios.registry import scenario

T, T_AND_U = subscription("t"), subscription("t", "u")


@scenario(kip="base"{configuration})
def test_e999_{function}(play: Player) -> None:
    play.zero()
'''


def render_scenario(judgement: Judgement, version: str, coordinator: str) -> str:
    """Return the source of a scenario module."""
    sequence = judgement.sequence
    lines = [
        HEAD.format(
            name=sequence.name,
            version=version,
            coordinator=coordinator,
            difference=judgement.difference or "No difference.",
            configuration=_configuration(sequence.setup),
            function=sequence.name.replace(".", "_").replace("/", "_"),
        )
    ]
    ours, theirs = Names(judgement.ours), Names(judgement.theirs)
    for number, step in enumerate(sequence.steps):
        lines.append(f"    play.at({step.at_ms / 1_000:g})  # {judgement.states[number]}\n")
        lines.append(f"    s{number} = {_asking(step.request, step.version, step.client_id)}\n")
        words = _heard(judgement.ours.outcomes[number], ours), _heard(judgement.theirs.outcomes[number], theirs)
        if words[0][1] == words[1][1]:
            lines.append(f"    # both {words[0][0]}: {words[0][1]}\n")
        else:
            lines.extend(
                f"    # {who} {at}: {what}\n" for who, (at, what) in zip(("core", "broker"), words, strict=True)
            )
    lines.append(f"    play.at({sequence.end_ms / 1_000:g})\n")
    return "".join(lines)


def _heard(outcome: Outcome, names: Names) -> tuple[str, str]:
    at = "in the end" if outcome.at_ms is None else f"at {outcome.at_ms / 1_000:.3f}"
    return at, rendered(outcome, names)


def _configuration(setup: Setup) -> str:
    delay = f", initial_delay={setup.initial_delay_ms / 1_000:g}" if setup.initial_delay_ms else ""
    return delay + (f", max_size={setup.size_max}" if setup.size_max is not None else "")


def _asking(request: Message, version: int, client_id: str) -> str:
    """Render a request in the player's vocabulary."""
    match request:
        case JoinGroupRequest():
            words = [
                f"session={request.session_timeout_ms / 1_000:g}",
                f"rebalance={request.rebalance_timeout_ms / 1_000:g}",
                f"protocols={_value(tuple((row.name, row.metadata) for row in request.protocols))}",
                *_unless("protocol_type", request.protocol_type, "consumer"),
                *_unless("reason", request.reason, None),
                f"client_id={client_id!r}",
            ]
            return _call("join", (request.member_id, request.group_instance_id), version, request.group_id, words)
        case SyncGroupRequest():
            plan = ", ".join(f"{_value(row.member_id)}: {row.assignment!r}" for row in request.assignments)
            words = [
                f"{{{plan}}}",
                *_unless("instance_id", request.group_instance_id, None),
                *(
                    (f"protocol_type={request.protocol_type!r}", f"protocol_name={request.protocol_name!r}")
                    if version >= 5
                    else ()
                ),
            ]
            return _call("sync", (request.generation_id, request.member_id), version, request.group_id, words)
        case HeartbeatRequest():
            who = (request.generation_id, request.member_id, request.group_instance_id)
            return _call("heartbeat", who, version, request.group_id)
        case LeaveGroupRequest() if version < 3:
            return _call("leave", (request.member_id,), version, request.group_id)
        case LeaveGroupRequest():
            rows = tuple((row.member_id, row.group_instance_id) for row in request.members)
            reason = request.members[0].reason if request.members else None
            return _call("leave", rows, version, request.group_id, _unless("reason", reason, None))
        case _:
            return _asking_as_admin(request, version)


def _asking_as_admin(request: Message, version: int) -> str:
    """Render a request that non-members also send."""
    match request:
        case OffsetCommitRequest():
            offsets = {(_topic(t), p.partition_index): p.committed_offset for t in request.topics for p in t.partitions}
            notes = {(_topic(t), p.partition_index): p.committed_metadata for t in request.topics for p in t.partitions}
            words = [
                *_unless("instance_id", request.group_instance_id, None),
                *((f"metadata={notes!r}",) if any(notes.values()) else ()),
            ]
            return _call(
                "commit", (request.generation_id_or_member_epoch, request.member_id, offsets), version, GROUP, words
            )
        case OffsetFetchRequest():
            topics = request.topics if version < 8 else request.groups[0].topics
            words = ["stable=True"] if request.require_stable else []
            if topics is None:
                return _call("fetch", (), version, GROUP, ["everything=True", *words])
            return _call("fetch", [(_topic(t), p) for t in topics for p in t.partition_indexes], version, GROUP, words)
        case OffsetDeleteRequest():
            partitions = ", ".join(repr((t.name, p.partition_index)) for t in request.topics for p in t.partitions)
            return f"play.delete_offsets({partitions})"
        case DescribeGroupsRequest():
            words = ["operations=True"] if request.include_authorized_operations else []
            return _call("describe", (), version, GROUP, words)
        case ListGroupsRequest():
            words = [*_unless("states", request.states_filter, ()), *_unless("types", request.types_filter, ())]
            return _call("listed", (), version, GROUP, words)
        case DeleteGroupsRequest():
            return _call("delete", (), version, GROUP)
        case _:
            raise AssertionError(f"there is no word for {request}")


def _topic(row: OffsetCommitRequestTopic | OffsetFetchRequestTopic | OffsetFetchRequestTopics) -> str:
    """Return the topic's name; for versions with topic ids, the difference is rendered in the version below."""
    topic_id = getattr(row, "topic_id", None)
    return topic_id.name if isinstance(topic_id, TopicId) else row.name or UNKNOWN_TOPIC


def _call(word: str, given: object, version: int, group: str, words: list[str] | None = None) -> str:
    assert isinstance(given, tuple | list)
    named = [] if group == GROUP else [f"group={group!r}"]
    spoken = min(version, NAMES_UNTIL) if word in BY_NAME else version
    return f"play.{word}({', '.join([*map(_value, given), *(words or []), f'version={spoken}', *named])})"


def _unless(name: str, value: object, usual: object) -> list[str]:
    return [] if value == usual else [f"{name}={value!r}"]


def _value(value: object) -> str:
    """Render a value as Python; a placeholder becomes the earlier step's response."""
    match value:
        case Id(number):
            return f"s{number}.answer().member_id"
        case bytes() if value in NAMED:
            return NAMED[value]
        case tuple():
            return f"({''.join(f'{_value(each)}, ' for each in value)})"
        case str() if value == NO_MEMBER:
            return repr(NO_MEMBER)
        case _:
            return repr(value)


BY_NAME = ("commit", "fetch")

NAMES_UNTIL = 9
"""The last version of those requests with names of topics."""

NAMED = {T: "T", T_AND_U: "T_AND_U"}
