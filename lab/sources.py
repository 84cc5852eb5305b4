"""The sources of schemes, situations and claims, by the names with which these refer to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .schemes import SCHEMES
from .situations import SITUATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SOURCES: Mapping[str, str] = {
    "the article": "\u201cconsumer group rebalance \u539f\u7406\u201d (the principles of consumer group rebalances), "
    "a lesson on Kafka's consumer by Yang Sizheng (\u6768\u56db\u6b63)",
    "Kafka 0.8": "the high-level consumer of Apache Kafka 0.8.2, on ZooKeeper",
    "Kafka 0.9": "the first consumer of Apache Kafka with a group coordinator",
    "KIP-62": "Allow consumer to send heartbeats from a background thread",
    "KIP-345": "Introduce static membership protocol to reduce consumer rebalances",
    "KIP-389": "Introduce a configurable consumer group size limit",
    "KIP-394": "Require member.id for initial join group request",
    "KIP-415": "Incremental Cooperative Rebalancing in Kafka Connect",
    "KIP-429": "Kafka Consumer Incremental Rebalance Protocol",
    "KIP-848": "The Next Generation of the Consumer Rebalance Protocol",
    "KIP-932": "Queues for Kafka",
    "KIP-1071": "Streams Rebalance Protocol",
}
"""The name of a source, and its title."""

KIPS = "cwiki.apache.org/confluence/display/KAFKA/Kafka+Improvement+Proposals"
"""The place of all KIPs."""


def names_in(text: str) -> list[str]:
    """Return the sources that a text refers to."""
    return [name for name in SOURCES if name in text]


def users_of(source: str, schemes: Iterable[str], situations: Iterable[str]) -> list[str]:
    """Return the names of those schemes and situations that have a source."""
    return [name for name in schemes if source in names_in(SCHEMES[name].source)] + [
        name for name in situations if source in names_in(SITUATIONS[name].source)
    ]
