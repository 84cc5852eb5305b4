"""A monitor that lists the groups sees only those that it may describe, and reports no lag of the others.

ListGroups leaves out groups without an error. Only a request that names the group is refused, so a monitor needs the
names of the groups that have to be there.

Evidence: https://github.com/seglo/kafka-lag-exporter/issues/42, https://github.com/tchiotludo/akhq/issues/908.
Reproduced by: an ACL for a prefix of the groups; puppets as members.
"""

from contextlib import closing

import pytest
from kafka import KafkaAdminClient
from kafka.errors import GroupAuthorizationFailedError

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}

pytestmark = pytest.mark.koordinator(security="sasl_plaintext", config=AUTHORIZER, topics={"orders": 1})

EXPECTED = {"shop-billing", "audit"}


def state_of(admin, group):
    return admin.describe_groups([group])[group]["group_state"]


def states_of_listed(admin):
    return {each["group_id"]: state_of(admin, each["group_id"]) for each in admin.list_groups()}


def states_of_expected(admin):
    return {group: state_of(admin, group) for group in sorted(EXPECTED)}


@pytest.fixture
def admin(koordinator):
    for group in EXPECTED:
        koordinator.group(group).create_puppet("worker").join()
    koordinator.allow("alice", "describe", group="shop-*")
    access = koordinator.client_config("kafka-python", user="alice")
    ours = {name: access[name] for name in access if name.startswith(("bootstrap", "security", "sasl"))}
    with closing(KafkaAdminClient(**ours)) as admin:
        yield admin


def test_wrong_a_monitor_of_listed_groups_misses_one(admin):
    assert states_of_listed(admin) == {"shop-billing": "Stable"}


def test_right_a_monitor_of_expected_groups_fails_until_it_has_the_right(koordinator, admin):
    with pytest.raises(GroupAuthorizationFailedError):
        states_of_expected(admin)
    koordinator.allow("alice", "describe", group="audit")
    assert states_of_expected(admin) == dict.fromkeys(EXPECTED, "Stable")
