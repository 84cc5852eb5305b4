"""Values of groups files: texts and numbers of Kafka's size, subscriptions and assignments of the consumer protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.messages import consumer_protocol
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from koordinator.wire.primitives import Malformed
from koordinator.wire.values import value

from . import json_lines
from .json_lines import BadLine, array, describe, integer, mapping, require_fields, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SUBSCRIPTION_FIELDS = ("topics", "owned", "generation", "rack", "user_data", "version")
ASSIGNMENT_FIELDS = ("partitions", "user_data", "version")
"""The fields of the objects."""

TEXT_BYTES_MAX = 2**15 - 1
"""The maximum length of a string in bytes: Kafka has 16 bits for it."""

CLIENT_ID, CLIENT_HOST = "consumer", "/127.0.0.1"
SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS = 45_000, 300_000
"""Defaults of members."""

Line = dict[str, object]


@value
class Identity:
    """The part that members of all kinds of groups share."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int


def member_identity(at: str, place: int, data: Line) -> Identity:
    """Return the identity of a member; `at` is its name in errors. Raises BadLine."""
    instance_id = short_text_or_null(f"{at}.instance_id", data.get("instance_id"))
    client_id = short_text(f"{at}.client_id", data.get("client_id", CLIENT_ID))
    default_id = f"{client_id if instance_id is None else instance_id}-{UUID(int=place + 1)}"
    return Identity(
        member_id=short_text(f"{at}.member_id", data.get("member_id", default_id)),
        instance_id=instance_id,
        client_id=client_id,
        client_host=short_text(f"{at}.client_host", data.get("client_host", CLIENT_HOST)),
        rebalance_timeout_ms=int32(
            f"{at}.rebalance_timeout_ms", data.get("rebalance_timeout_ms", REBALANCE_TIMEOUT_MS)
        ),
    )


def _subscription_line(data: bytes) -> Line:
    subscription = consumer_protocol.read_subscription(data)
    line: Line = {"topics": list(subscription.topics)}
    if subscription.owned_partitions:
        line["owned"] = _by_topic(subscription.owned_partitions)
    if subscription.generation_id != -1:
        line["generation"] = subscription.generation_id
    if subscription.rack_id is not None:
        line["rack"] = subscription.rack_id
    return line | _rare_fields(data, subscription.user_data)


def _assignment_line(data: bytes) -> Line:
    assignment = consumer_protocol.read_assignment(data)
    partitions, rare = _by_topic(assignment.assigned_partitions), _rare_fields(data, assignment.user_data)
    return {"partitions": partitions, **rare} if rare else partitions


def _by_topic(rows: Iterable[TopicPartition]) -> Line:
    return {row.topic: list(row.partitions) for row in rows}


def _rare_fields(data: bytes, user_data: bytes | None) -> Line:
    """Return user data and version, without their usual values."""
    version = int.from_bytes(data[:2], "big", signed=True)
    line: Line = {} if user_data is None else {"user_data": json_lines.to_base64(user_data)}
    return line if version == consumer_protocol.NEWEST else line | {"version": version}


def subscription_value(data: bytes) -> Line | None:
    """Return the value of a subscription: readable if that encodes to the same bytes, else base64; null if empty."""
    return _readable(data, _subscription_line, subscription_bytes)


def assignment_value(data: bytes) -> Line | None:
    """Return the value of an assignment, as `subscription_value` does."""
    return _readable(data, _assignment_line, assignment_bytes)


def _readable(data: bytes, line: Callable[[bytes], Line], read: Callable[[object], bytes]) -> Line | None:
    if not data:
        return None
    try:
        readable = line(data)
        if read(readable) == data:
            return readable
    except (Malformed, BadLine):
        pass
    return {**json_lines.to_base64(data)}


def subscription_bytes(value: object, field: str = "subscription") -> bytes:
    """Return the bytes of a subscription. Raises BadLine."""
    if value is None:
        return b""
    data = mapping(field, value)
    if json_lines.is_base64(data):
        return json_lines.from_base64(field, data)
    require_fields(data, SUBSCRIPTION_FIELDS, f"{field}: ")
    if "topics" not in data:
        raise BadLine(f'{field}: expected {{"topics": [...]}}, {{"base64": "..."}} or null')
    subscription = ConsumerProtocolSubscription(
        topics=tuple(short_text(f"{field}.topics", topic) for topic in array(f"{field}.topics", data["topics"])),
        user_data=_user_data(field, data),
        owned_partitions=_partitions(f"{field}.owned", data.get("owned", {})),
        generation_id=int32(f"{field}.generation", data.get("generation", -1)),
        rack_id=short_text_or_null(f"{field}.rack", data.get("rack")),
    )
    version = _version(field, data)
    encoded = consumer_protocol.write_subscription(subscription, version)
    if consumer_protocol.read_subscription(encoded) != subscription:
        raise BadLine(f"{field}: version {version} has no room for all of {', '.join(sorted(data))}")
    return encoded


def assignment_bytes(value: object, field: str = "assignment") -> bytes:
    """Return the bytes of an assignment. Raises BadLine."""
    if value is None:
        return b""
    data = mapping(field, value)
    if json_lines.is_base64(data) and not isinstance(data["base64"], list):
        return json_lines.from_base64(field, data)
    partitions = partitions_in(data)
    if partitions is data:
        return consumer_protocol.write_assignment(
            ConsumerProtocolAssignment(assigned_partitions=_partitions(field, data))
        )
    require_fields(data, ASSIGNMENT_FIELDS, f"{field}: ")
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=_partitions(f"{field}.partitions", partitions), user_data=_user_data(field, data)
    )
    return consumer_protocol.write_assignment(assignment, _version(field, data))


def partitions_in(assignment: Line) -> object:
    """Return the partitions by topic: the field `partitions` if it is an object, else the assignment itself."""
    partitions = assignment.get("partitions")
    return partitions if isinstance(partitions, dict) else assignment


def _partitions(field: str, value: object) -> tuple[TopicPartition, ...]:
    rows = numbers_by_topic(field, value).items()
    return tuple(TopicPartition(topic=topic, partitions=numbers) for topic, numbers in rows)


def numbers_by_topic(field: str, value: object) -> dict[str, tuple[int, ...]]:
    """Return partitions by topic. Raises BadLine."""
    return {
        short_text(field, topic): tuple(int32(f"{field}.{topic}", each) for each in array(f"{field}.{topic}", numbers))
        for topic, numbers in mapping(field, value).items()
    }


def _user_data(field: str, data: Line) -> bytes | None:
    value = data.get("user_data")
    if value is None:
        return None
    if not json_lines.is_base64(value):
        raise BadLine(f'{field}.user_data: expected {{"base64": "..."}} or null, not {describe(value)}')
    return json_lines.from_base64(f"{field}.user_data", value)


def _version(field: str, data: Line) -> int:
    newest = consumer_protocol.NEWEST
    return integer(f"{field}.version", data.get("version", newest), 0, newest)


def short_text(field: str, value: object) -> str:
    """Return a string of Kafka's size. Raises BadLine."""
    string = text(field, value)
    size = len(string.encode())
    if size > TEXT_BYTES_MAX:
        raise BadLine(f"{field}: {size} bytes; {TEXT_BYTES_MAX} are allowed")
    return string


def short_text_or_null(field: str, value: object) -> str | None:
    """Return a string of Kafka's size, or None. Raises BadLine."""
    return None if value is None else short_text(field, value)


def int32(field: str, value: object) -> int:
    """Return an integer of 32 bits. Raises BadLine."""
    return integer(field, value, -(2**31), 2**31 - 1)


def int64(field: str, value: object) -> int:
    """Return an integer of 64 bits. Raises BadLine."""
    return integer(field, value, -(2**63), 2**63 - 1)


def require_unique(field: str, values: list[str]) -> None:
    """Raise BadLine if two members have the same value."""
    for each in values:
        if values.count(each) > 1:
            raise BadLine(f"members: two of them have the {field} {each!r}")
