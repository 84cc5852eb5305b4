"""Offsets of a group with members cannot be reset, and a tool that ignores the response reports success.

The OffsetCommit response has an error for each partition. A group with a live member rejects all of them with
UNKNOWN_MEMBER_ID, the tool prints its line, and the members continue from their own positions.

Evidence: https://github.com/deviceinsight/kafkactl/issues/43, https://github.com/deviceinsight/kafkactl/issues/217,
https://github.com/sentry-kubernetes/charts/issues/1911.
Reproduced by: `load_groups`: a group in any state, without a consumer.
"""

from contextlib import closing

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import NoError

pytestmark = pytest.mark.koordinator(topics={"orders": 2})

PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
MEMBERS = [{"client_id": "svc-1", "assignment": {"orders": [0, 1]}}]
OFFSETS = [{"group_id": "svc", "topic": "orders", "partition": n, "offset": 2} for n in (0, 1)]


def rewind_hopefully(admin, group):
    admin.reset_group_offsets(group, dict.fromkeys(PARTITIONS, OffsetSpec.EARLIEST))
    return f"{group}: {len(PARTITIONS)} partitions reset"


def rewind(admin, group):
    results = admin.reset_group_offsets(group, dict.fromkeys(PARTITIONS, OffsetSpec.EARLIEST))
    refused = {each: result["error"].__name__ for each, result in results.items() if result["error"] is not NoError}
    if refused:
        state = admin.describe_groups([group])[group]["group_state"]
        raise SystemExit(f"{group} is {state}, stop its members first: {refused}")
    return f"{group}: {len(results)} partitions reset"


@pytest.fixture
def admin(koordinator):
    with closing(KafkaAdminClient(bootstrap_servers=koordinator.bootstrap_servers)) as admin:
        yield admin


def test_a_tool_that_ignores_the_response_reports_a_false_success(koordinator, admin):
    koordinator.load_groups([{"group_id": "svc", "members": MEMBERS}, *OFFSETS])
    assert rewind_hopefully(admin, "svc") == "svc: 2 partitions reset"
    koordinator.group("svc").assert_committed({("orders", 0): 2, ("orders", 1): 2})


def test_a_tool_that_reads_the_response_names_the_blocking_members(koordinator, admin):
    koordinator.load_groups([{"group_id": "svc", "members": MEMBERS}, *OFFSETS])
    with pytest.raises(SystemExit, match=r"svc is Stable, .*UnknownMemberIdError"):
        rewind(admin, "svc")


def test_a_group_without_members_is_rewound(koordinator, admin):
    koordinator.load_groups([{"group_id": "svc"}, *OFFSETS])
    assert rewind(admin, "svc") == "svc: 2 partitions reset"
    koordinator.group("svc").assert_committed({("orders", 0): 0, ("orders", 1): 0})
