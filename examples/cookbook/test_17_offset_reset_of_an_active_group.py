"""Offsets of a group that has members cannot be reset, and a tool that looks at no result reports success.

The answer to OffsetCommit has an error for each partition. Here a group with a live member refuses them all
with UNKNOWN_MEMBER_ID, the tool prints its line, and the members read on from where they were.

Evidence: https://github.com/deviceinsight/kafkactl/issues/43, https://github.com/deviceinsight/kafkactl/issues/217,
https://github.com/sentry-kubernetes/charts/issues/1911.
Lever: `load_groups`: a group in whichever state the tool is to meet, without a consumer.
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


def test_who_looks_at_no_result_reports_what_did_not_happen(koordinator, admin):
    koordinator.load_groups([{"group_id": "svc", "members": MEMBERS}, *OFFSETS])
    assert rewind_hopefully(admin, "svc") == "svc: 2 partitions reset"
    koordinator.group("svc").assert_committed({("orders", 0): 2, ("orders", 1): 2})


def test_who_looks_at_each_result_says_who_is_in_the_way(koordinator, admin):
    koordinator.load_groups([{"group_id": "svc", "members": MEMBERS}, *OFFSETS])
    with pytest.raises(SystemExit, match=r"svc is Stable, .*UnknownMemberIdError"):
        rewind(admin, "svc")


def test_a_group_without_members_is_rewound(koordinator, admin):
    koordinator.load_groups([{"group_id": "svc"}, *OFFSETS])
    assert rewind(admin, "svc") == "svc: 2 partitions reset"
    koordinator.group("svc").assert_committed({("orders", 0): 0, ("orders", 1): 0})
