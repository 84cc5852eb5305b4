"""kio, whose readers are generated from Kafka's schemas, consumes every message."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from koordinator.wire.apis import APIS, Message
from koordinator.wire.codec import encode
from koordinator.wire.schema import FieldSpec, declaration_of

kio_index = pytest.importorskip("kio.index", reason="kio is not installed")
kio_serial = pytest.importorskip("kio.serial", reason="kio is not installed")
EntityType = pytest.importorskip("kio.static.constants").EntityType

Messages = Callable[..., st.SearchStrategy[Any]]

ERROR_CODES = [code.value for code in pytest.importorskip("kio.schema.errors").ErrorCode]
YEAR_9999 = 253_402_300_799_000

NARROWER = {
    # kio's errors are a closed enumeration
    "acknowledge_error_code": st.sampled_from(ERROR_CODES),
    "error_code": st.sampled_from(ERROR_CODES),
    "partition_error_code": st.sampled_from(ERROR_CODES),
    "topic_config_error_code": st.sampled_from(ERROR_CODES),
    # kio uses datetime and timedelta, whose range is smaller than int64
    "commit_timestamp": st.integers(-1, YEAR_9999),
    "log_append_time_ms": st.integers(-1, YEAR_9999),
    "retention_time_ms": st.integers(-1, YEAR_9999),
    "session_lifetime_ms": st.integers(-1, YEAR_9999),
    **dict.fromkeys(
        (
            "expiry_time_period_ms",
            "expiry_timestamp",
            "expiry_timestamp_ms",
            "issue_timestamp",
            "issue_timestamp_ms",
            "max_lifetime_ms",
            "max_timestamp",
            "max_timestamp_ms",
            "renew_period_ms",
            "transaction_start_time_ms",
        ),
        st.integers(0, YEAR_9999),
    ),
}
"""Fields for which kio accepts fewer values than Kafka."""


def narrower(name: str, _: FieldSpec) -> st.SearchStrategy[Any] | None:
    return NARROWER.get(name)


def kios(cls: Any, version: int) -> Any:
    """Return kio's class for the message, or None."""
    kind = EntityType.request if cls.__name__.endswith("Request") else EntityType.response
    try:
        module = kio_index.load_payload_module(declaration_of(cls).key, version, kind)
    except (kio_index.UnknownEntity, kio_index.UnknownAPIKey):
        return None
    return getattr(module, cls.__name__)


VERSIONS = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in declaration_of(cls).versions
    if kios(cls, version)
]


FIRST_IN_KAFKA_4 = {
    "AlterReplicaLogDirs": 1,
    "CreateAcls": 1,
    "CreateDelegationToken": 1,
    "CreateTopics": 2,
    "DeleteAcls": 1,
    "DeleteTopics": 1,
    "DescribeAcls": 1,
    "DescribeConfigs": 1,
    "DescribeDelegationToken": 1,
    "DescribeLogDirs": 1,
    "ExpireDelegationToken": 1,
    "Fetch": 4,
    "ListOffsets": 1,
    "OffsetCommit": 2,
    "OffsetFetch": 1,
    "OffsetForLeaderEpoch": 2,
    "Produce": 3,
    "RenewDelegationToken": 1,
    "WriteTxnMarkers": 1,
}
"""APIs whose older versions kio lacks, because Kafka 4.0 removed them."""

NEWER = {
    "ApiVersions": [5],
    "DeleteGroups": [3],
    "StreamsGroupDescribe": [1],
    "StreamsGroupHeartbeat": [1],
    "StreamsGroupTopologyDescriptionUpdate": [0],
    "TxnOffsetCommit": [6],
}
"""The versions of Kafka 4.4, which kio lacks; tests/kafka/test_schemas.py compares them."""


def test_kio_has_every_version_that_kafka_4_has() -> None:
    for api in APIS.values():
        for cls in (api.request, api.response):
            missing = [version for version in declaration_of(cls).versions if not kios(cls, version)]
            expected = [*range(FIRST_IN_KAFKA_4.get(api.name, 0)), *NEWER.get(api.name, ())]
            assert missing == expected, cls.__name__


def is_consumed(message: Message, version: int) -> None:
    written = encode(message, version)
    _, size = kio_serial.entity_reader(kios(type(message), version))(written, 0)
    assert size == len(written)


@pytest.mark.slow
def test_kio_reads_our_bytes(messages: Messages, for_examples: Callable[..., None]) -> None:
    for cls, version in VERSIONS:
        for_examples(cls, version, messages(cls, version, narrower), is_consumed, 4)
