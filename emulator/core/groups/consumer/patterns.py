"""Subscriptions by regular expression (KIP-848), and when the group looks for matching topics.

Kafka: `GroupMetadataManager.maybeUpdateRegularExpressions`, `TopicRegexResolver`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_records import ConsumerGroupRegularExpressionValue

from ...acls.acl import Operation, ResourceType
from ...expressions import InvalidExpressionError, compiled
from ...java.hash_tables import HashTable
from ...refusal import refused
from ...timers import PatternResolution
from ..causes import Cause, Reason
from ..modern.changes import write
from .epochs import raise_epoch
from .records import pattern_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...effects import Call
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import ConsumerGroup
    from .member import ConsumerMember

REFRESH_MIN_INTERVAL_MS = 10_000
"""The shortest time between two resolutions (`REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`)."""


def _compiled(pattern: str) -> Any:  # noqa: ANN401 - the library has no types
    """Return the compiled expression.

    Raises RefusedError with INVALID_REGULAR_EXPRESSION if it is invalid, or the library is missing.
    """
    try:
        return compiled(pattern)
    except InvalidExpressionError as problem:
        text = f"SubscribedTopicRegex `{pattern}` {problem}"
        raise refused(Error.INVALID_REGULAR_EXPRESSION, text) from None


def matching(pattern: str, topics: Iterable[str]) -> tuple[str, ...]:
    """Return the topics whose whole name matches, sorted; none if the expression cannot be compiled here."""
    try:
        expression = compiled(pattern)
    except InvalidExpressionError:
        # a log of another coordinator may have it
        return ()
    return tuple(sorted(name for name in topics if expression.fullmatch(name)))


def change_pattern(
    store: GroupStore, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember
) -> tuple[list[CoordinatorRecord], bool]:
    """Return the tombstone of a pattern that loses its last member, and whether the group epoch rises at once.

    Raises RefusedError with INVALID_REGULAR_EXPRESSION for an invalid one that is new to the group.
    """
    old, new = before.regex, after.regex
    if old == new:
        return [], False
    records = [pattern_record(group.id, old, None)] if old and group.subscribers[old] == 1 else []
    if new and new not in group.subscribers:
        _compiled(new)
        return records, not store.dialect.new_patterns_keep_epoch
    return records, not new or new in group.patterns or not store.dialect.new_patterns_keep_epoch


def orphaned(group: ConsumerGroup, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    """Return the tombstones of patterns that have no members without these."""
    gone = Counter(group.members[member_id].regex for member_id in set(member_ids))
    lost = {pattern for pattern, count in gone.items() if group.subscribers.get(pattern) == count}
    return [pattern_record(group.id, pattern, None) for pattern in HashTable(sorted(lost))]


def needs_resolution(store: GroupStore, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> bool:
    """Return whether the patterns are to be resolved after a request: at most once in ten seconds, and if it may help.

    The group is as it was before the request: a pattern that loses its last member counts as resolved.
    """
    is_new = bool(after.regex) and after.regex not in group.subscribers
    if not (is_new or group.subscribers) or PatternResolution() in group.timers:
        return False
    used = Counter(group.subscribers)
    used.subtract(filter(None, [before.regex]))
    used.update(filter(None, [after.regex]))
    used = +used
    if not used:
        return False
    latest = max(group.patterns.values(), key=lambda each: each.timestamp, default=None)
    if latest is None:
        return True
    age_ms = group.now - latest.timestamp
    is_outdated = (
        is_new
        or len(used) != len(group.patterns)
        or not store.cluster.topics.newest_version <= latest.version <= store.cluster.topics.version
        or age_ms > store.settings.group_consumer_regex_refresh_interval_ms
    )
    return age_ms > REFRESH_MIN_INTERVAL_MS and is_outdated


def schedule_resolution(group: ConsumerGroup, call: Call) -> None:
    """Resolve the patterns after this request.

    Topics that its client may not describe are left out, for all members.
    """
    group.resolving_call = call
    group.timers.set(PatternResolution(), group.now)


def _described_topics(store: GroupStore, group: ConsumerGroup) -> Iterable[str]:
    """Return the topics that the client of the resolution may describe (`filterTopicDescribeAuthorizedTopics`)."""
    topics, authorizer, call = store.cluster.topics, store.cluster.authorizer, group.resolving_call
    if authorizer is None or call is None:
        return topics
    return [name for name in topics if authorizer.allows(call, Operation.DESCRIBE, ResourceType.TOPIC, name)]


def resolve(store: GroupStore, group: ConsumerGroup) -> None:
    """Look up the topics of all patterns; the group epoch rises if they differ, and the next heartbeat assigns them."""
    used = HashTable(sorted(group.subscribers))
    version, topics = store.cluster.topics.version, _described_topics(store, group)
    found = {
        pattern: ConsumerGroupRegularExpressionValue(
            topics=matching(pattern, topics), version=version, timestamp=group.now
        )
        for pattern in used
    }
    changed = any(group.matches(pattern) != value.topics for pattern, value in found.items())
    names = {name for member in group.members.values() for name in member.names}
    names.update(name for value in found.values() for name in value.topics)
    _, epoch_records = raise_epoch(store, group, names, changed=changed)
    records = [*(pattern_record(group.id, pattern, value) for pattern, value in found.items()), *epoch_records]
    if records:
        write(store, group, records, Reason(Cause.TOPIC_CHANGE, "The topics of a regular expression have changed."))
