"""A UI shows a busy consumer group as Dead and without members: it asks with the API of classic groups (KIP-848).

ListGroups lists it as Stable. DescribeGroups knows classic groups alone, and answers Dead, since Kafka 4.0 with
GROUP_ID_NOT_FOUND. ConsumerGroupDescribe has its members, and what each of them will get.

Evidence: https://github.com/redpanda-data/console/issues/1815, https://github.com/IBM/sarama/issues/3746,
https://github.com/redpanda-data/kminion/pull/352.
Reproduced by: puppets of both protocols.
"""

import warnings

import pytest
from confluent_kafka.admin import AdminClient

pytestmark = pytest.mark.koordinator(topics={"orders": 2})


def overview_of_classic_groups(admin):
    with warnings.catch_warnings():
        # librdkafka's older call, which sends ListGroups and DescribeGroups
        warnings.simplefilter("ignore", DeprecationWarning)
        return {group.id: (group.state, len(group.members)) for group in admin.list_groups(timeout=10)}


def overview(admin):
    """Return state and number of members of all groups; the client chooses the API by the group's type."""
    listed = admin.list_consumer_groups().result(10).valid
    described = admin.describe_consumer_groups([group.group_id for group in listed])
    groups = {name: answer.result(10) for name, answer in described.items()}
    return {name: (group.state.name.capitalize(), len(group.members)) for name, group in groups.items()}


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        pytest.param(overview_of_classic_groups, ("Dead", 0), id="wrong"),
        pytest.param(overview, ("Stable", 2), id="right"),
    ],
)
def test_a_page_shows_groups_of_both_protocols(koordinator, page, shown):
    for name, protocol in (("old", "classic"), ("new", "consumer")):
        for puppet in ("a", "b"):
            koordinator.group(name).create_puppet(puppet, group_protocol=protocol).join()
        koordinator.group(name).wait_stable(members=2, all_owned=True)
    admin = AdminClient({"bootstrap.servers": koordinator.bootstrap_servers})
    assert page(admin) == {"old": ("Stable", 2), "new": shown}
