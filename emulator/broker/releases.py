"""The versions of each API that a Kafka release accepts, and those that it advertises in ApiVersions.

Sources: `ApiKeys` of kafka-clients 2.4.1 and 2.8.2 (a broker with ZooKeeper); for 3.9.1, 4.0.2, 4.2.2, 4.3.1 and 4.4.0
`ApiVersionsResponse.filterApis` for the listener BROKER without unstable versions. Releases have further APIs that are
not served here. `koordinator.wire` declares every version that a release accepts of the served APIs.

Two details: release 4.0.0 removed JoinGroup 0-1, and 4.0.1 restored it (KAFKA-19444). Releases from 4.0 on advertise
Produce 0-2 without accepting it, because librdkafka derives compression support from it (KAFKA-18659).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.versions import Versions

from ..config.settings import RELEASES

if TYPE_CHECKING:
    from collections.abc import Mapping

_ACCEPTED: dict[ApiKey, tuple[str, ...]] = {
    ApiKey.PRODUCE: ("0-8", "0-9", "0-11", "3-12", "3-13", "3-13", "3-13"),
    ApiKey.FETCH: ("0-11", "0-12", "0-17", "4-17", "4-18", "4-18", "4-18"),
    ApiKey.LIST_OFFSETS: ("0-5", "0-6", "0-9", "1-10", "1-11", "1-11", "1-11"),
    ApiKey.METADATA: ("0-9", "0-11", "0-12", "0-13", "0-13", "0-13", "0-13"),
    ApiKey.OFFSET_COMMIT: ("0-8", "0-8", "0-9", "2-9", "2-10", "2-10", "2-10"),
    ApiKey.OFFSET_FETCH: ("0-6", "0-7", "0-9", "1-9", "1-10", "1-10", "1-10"),
    ApiKey.FIND_COORDINATOR: ("0-3", "0-3", "0-6", "0-6", "0-6", "0-6", "0-6"),
    ApiKey.JOIN_GROUP: ("0-6", "0-7", "0-9", "0-9", "0-9", "0-9", "0-9"),
    ApiKey.HEARTBEAT: ("0-4", "0-4", "0-4", "0-4", "0-4", "0-4", "0-4"),
    ApiKey.LEAVE_GROUP: ("0-4", "0-4", "0-5", "0-5", "0-5", "0-5", "0-5"),
    ApiKey.SYNC_GROUP: ("0-4", "0-5", "0-5", "0-5", "0-5", "0-5", "0-5"),
    ApiKey.DESCRIBE_GROUPS: ("0-5", "0-5", "0-5", "0-6", "0-6", "0-6", "0-6"),
    ApiKey.LIST_GROUPS: ("0-3", "0-4", "0-5", "0-5", "0-5", "0-5", "0-5"),
    ApiKey.SASL_HANDSHAKE: ("0-1", "0-1", "0-1", "0-1", "0-1", "0-1", "0-1"),
    ApiKey.API_VERSIONS: ("0-3", "0-3", "0-4", "0-4", "0-4", "0-4", "0-5"),
    ApiKey.CREATE_TOPICS: ("0-5", "0-7", "0-7", "2-7", "2-7", "2-7", "2-7"),
    ApiKey.DELETE_TOPICS: ("0-4", "0-6", "0-6", "1-6", "1-6", "1-6", "1-6"),
    ApiKey.DELETE_RECORDS: ("0-1", "0-2", "0-2", "0-2", "0-2", "0-2", "0-2"),
    ApiKey.INIT_PRODUCER_ID: ("0-2", "0-4", "0-5", "0-5", "0-5", "0-5", "0-5"),
    ApiKey.ADD_PARTITIONS_TO_TXN: ("0-1", "0-3", "0-5", "0-5", "0-5", "0-5", "0-5"),
    ApiKey.ADD_OFFSETS_TO_TXN: ("0-1", "0-3", "0-4", "0-4", "0-4", "0-4", "0-4"),
    ApiKey.END_TXN: ("0-1", "0-3", "0-4", "0-5", "0-5", "0-5", "0-5"),
    ApiKey.WRITE_TXN_MARKERS: ("0", "0-1", "0-1", "1", "1-2", "1-2", "1-2"),
    ApiKey.TXN_OFFSET_COMMIT: ("0-2", "0-3", "0-4", "0-5", "0-5", "0-5", "0-6"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ("0-3", "0-4", "0-4", "2-4", "2-4", "2-4", "2-4"),
    ApiKey.DESCRIBE_ACLS: ("0-1", "0-2", "0-3", "1-3", "1-3", "1-3", "1-3"),
    ApiKey.CREATE_ACLS: ("0-1", "0-2", "0-3", "1-3", "1-3", "1-3", "1-3"),
    ApiKey.DELETE_ACLS: ("0-1", "0-2", "0-3", "1-3", "1-3", "1-3", "1-3"),
    ApiKey.DESCRIBE_CONFIGS: ("0-2", "0-4", "0-4", "1-4", "1-4", "1-4", "1-4"),
    ApiKey.ALTER_CONFIGS: ("0-1", "0-2", "0-2", "0-2", "0-2", "0-2", "0-2"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ("0-1", "0-2", "0-2", "1-2", "1-2", "1-2", "1-2"),
    ApiKey.DESCRIBE_LOG_DIRS: ("0-1", "0-2", "0-4", "1-4", "1-4", "1-5", "1-5"),
    ApiKey.SASL_AUTHENTICATE: ("0-1", "0-2", "0-2", "0-2", "0-2", "0-2", "0-2"),
    ApiKey.CREATE_PARTITIONS: ("0-1", "0-3", "0-3", "0-3", "0-3", "0-3", "0-3"),
    ApiKey.CREATE_DELEGATION_TOKEN: ("0-2", "0-2", "0-3", "1-3", "1-3", "1-3", "1-3"),
    ApiKey.RENEW_DELEGATION_TOKEN: ("0-1", "0-2", "0-2", "1-2", "1-2", "1-2", "1-2"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ("0-1", "0-2", "0-2", "1-2", "1-2", "1-2", "1-2"),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ("0-1", "0-2", "0-3", "1-3", "1-3", "1-3", "1-3"),
    ApiKey.DELETE_GROUPS: ("0-2", "0-2", "0-2", "0-2", "0-2", "0-2", "0-3"),
    ApiKey.ELECT_LEADERS: ("0-2", "0-2", "0-2", "0-2", "0-2", "0-2", "0-2"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("0-1", "0-1", "0-1", "0-1", "0-1", "0-1", "0-1"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("0", "0", "0", "0", "0-1", "0-1", "0-1"),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ("0", "0", "0", "0", "0", "0", "0"),
    ApiKey.OFFSET_DELETE: ("0", "0", "0", "0", "0", "0", "0"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ("none", "0-1", "0-1", "0-1", "0-1", "0-1", "0-1"),
    ApiKey.ALTER_CLIENT_QUOTAS: ("none", "0-1", "0-1", "0-1", "0-1", "0-1", "0-1"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ("none", "0", "0", "0", "0", "0", "0"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("none", "0", "0", "0", "0", "0", "0"),
    ApiKey.DESCRIBE_QUORUM: ("none", "none", "0-2", "0-2", "0-2", "0-2", "0-2"),
    ApiKey.UPDATE_FEATURES: ("none", "0", "0-1", "0-2", "0-2", "0-2", "0-2"),
    ApiKey.DESCRIBE_CLUSTER: ("none", "0", "0-1", "0-2", "0-2", "0-2", "0-2"),
    ApiKey.DESCRIBE_PRODUCERS: ("none", "0", "0", "0", "0", "0", "0"),
    ApiKey.UNREGISTER_BROKER: ("none", "none", "0", "0", "0", "0", "0"),
    ApiKey.DESCRIBE_TRANSACTIONS: ("none", "none", "0", "0", "0", "0", "0"),
    ApiKey.LIST_TRANSACTIONS: ("none", "none", "0-1", "0-1", "0-2", "0-2", "0-2"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("none", "none", "0", "0-1", "0-1", "0-1", "0-1"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("none", "none", "0", "0-1", "0-1", "0-1", "0-1"),
    ApiKey.SHARE_GROUP_HEARTBEAT: ("none", "none", "none", "none", "1", "1", "1"),
    ApiKey.SHARE_GROUP_DESCRIBE: ("none", "none", "none", "none", "1", "1", "1"),
    ApiKey.SHARE_FETCH: ("none", "none", "none", "none", "1-2", "1-2", "1-2"),
    ApiKey.SHARE_ACKNOWLEDGE: ("none", "none", "none", "none", "1-2", "1-2", "1-2"),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ("none", "none", "none", "none", "0", "0", "0"),
    ApiKey.READ_SHARE_GROUP_STATE: ("none", "none", "none", "none", "0", "0", "0"),
    ApiKey.WRITE_SHARE_GROUP_STATE: ("none", "none", "none", "none", "0-1", "0-1", "0-1"),
    ApiKey.DELETE_SHARE_GROUP_STATE: ("none", "none", "none", "none", "0", "0", "0"),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ("none", "none", "none", "none", "0-1", "0-1", "0-1"),
    ApiKey.STREAMS_GROUP_HEARTBEAT: ("none", "none", "none", "none", "0", "0", "0-1"),
    ApiKey.STREAMS_GROUP_DESCRIBE: ("none", "none", "none", "none", "0", "0", "0-1"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ("none", "none", "none", "none", "0-1", "0-1", "0-1"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ("none", "none", "none", "none", "0", "0", "0"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ("none", "none", "none", "none", "0", "0", "0"),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: ("none", "none", "none", "none", "none", "none", "0"),
    ApiKey.LIST_CONFIG_RESOURCES: ("none", "none", "0", "0", "0-1", "0-1", "0-1"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ("none", "none", "0", "0", "0", "0", "0"),
    ApiKey.ADD_RAFT_VOTER: ("none", "none", "0", "0", "0-1", "0-1", "0-1"),
    ApiKey.REMOVE_RAFT_VOTER: ("none", "none", "0", "0", "0", "0", "0"),
}
"""A row for each served API, a column for each of RELEASES; "none": the release does not have the API."""

_ADVERTISED: dict[str, dict[ApiKey, str]] = {
    "4.0": {ApiKey.PRODUCE: "0-12"},
    "4.2": {ApiKey.PRODUCE: "0-13"},
    "4.3": {ApiKey.PRODUCE: "0-13"},
    "4.4": {ApiKey.PRODUCE: "0-13"},
}
"""The ranges that a release advertises but does not accept."""


def _ranges(column: int) -> dict[int, Versions]:
    ranges = {key: texts[column] for key, texts in _ACCEPTED.items()}
    return {int(key): Versions(text) for key, text in ranges.items() if text != "none"}


ACCEPTED: Mapping[str, Mapping[int, Versions]] = {release: _ranges(column) for column, release in enumerate(RELEASES)}
"""The accepted versions by release and API key. Any other API or version closes the connection, except versions of
ApiVersions (KIP-511)."""

ADVERTISED: Mapping[str, Mapping[int, Versions]] = {
    release: {**served, **{int(key): Versions(text) for key, text in _ADVERTISED.get(release, {}).items()}}
    for release, served in ACCEPTED.items()
}
"""The versions in ApiVersions responses, by release and API key."""


def other_release(release: str, key: int, version: int) -> str:
    """Return the end of a message: the nearest release that serves a version, and how to get it; "" if none does."""
    at = RELEASES.index(release)
    serving = [n for n, each in enumerate(RELEASES) if key in ACCEPTED[each] and version in ACCEPTED[each][key]]
    older = max((n for n in serving if n < at), default=None)
    if older is not None:
        return f", {RELEASES[older + 1]} removed it (KIP-896): use --kafka-version {RELEASES[older]}"
    newer = min((n for n in serving if n > at), default=None)
    return "" if newer is None else f", {RELEASES[newer]} has it: use --kafka-version {RELEASES[newer]}"
