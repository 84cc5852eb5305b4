"""The rights of members of streams groups: the group, the topics of a topology, and the creation of internal ones."""

from __future__ import annotations

from typing import Any

import pytest
from brokers.guarded_wire import THE_CLUSTER, G, GuardedNodes, T, right
from builders.acl_requests import LITERAL, OPERATIONS, TOPIC
from scenes.streams_play import internal, subtopology, topology

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

READ, CREATE, DESCRIBE = (OPERATIONS[name] for name in ("Read", "Create", "Describe"))

CHANGELOG = (TOPIC, "app-changelog", LITERAL)

MISSING = "Internal topics are missing: app-changelog"


@pytest.fixture
def nodes() -> GuardedNodes:
    """Return a broker whose clients may join group g, and describe t."""
    nodes = GuardedNodes()
    nodes.allow(right(G, READ), right(T, DESCRIBE))
    return nodes


def join(nodes: GuardedNodes, source: str = "t", changelog: str | None = None, epoch: int = 0) -> Any:
    """Send the heartbeat of a member whose topology reads a topic, and may have state."""
    changelogs = () if changelog is None else (internal(changelog),)
    first = {
        "topology": topology(subtopology(sources=[source], state_changelog_topics=changelogs)),
        "rebalance_timeout_ms": 1_000,
        **dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ()),
    }
    fields = {"group_id": "g", "member_id": "m", "member_epoch": epoch, **({} if epoch else first)}
    return nodes.asked(0, ApiKey.STREAMS_GROUP_HEARTBEAT, **fields)


def described(nodes: GuardedNodes, group: str = "g") -> Any:
    (row,) = nodes.asked(0, ApiKey.STREAMS_GROUP_DESCRIBE, group_ids=[group]).groups
    return row


def test_a_heartbeat_reads_the_group() -> None:
    assert join(GuardedNodes()).error_code == Error.GROUP_AUTHORIZATION_FAILED


def test_a_topology_has_topics_that_the_client_may_describe(nodes: GuardedNodes) -> None:
    assert join(nodes, "u").error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert join(nodes, "t", "app-changelog").error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert join(nodes, "t").error_code == Error.NONE


def test_names_that_no_topic_may_have_are_refused_for_that(nodes: GuardedNodes) -> None:
    assert join(nodes, "a b").error_code == Error.STREAMS_INVALID_TOPOLOGY
    assert join(nodes, "__consumer_offsets").error_code == Error.STREAMS_INVALID_TOPOLOGY


def test_internal_topics_need_the_right_to_create_them(nodes: GuardedNodes) -> None:
    nodes.allow(right(CHANGELOG, DESCRIBE))
    joined = join(nodes, "t", "app-changelog")
    text = f"{MISSING}; Unauthorized to CREATE on topics app-changelog."
    assert [(row.status_code, row.status_detail) for row in joined.status] == [(3, text)]
    assert "app-changelog" not in nodes.cluster.topics


@pytest.mark.parametrize("resource", [CHANGELOG, THE_CLUSTER])
def test_the_right_to_create_is_for_the_topics_or_the_cluster(nodes: GuardedNodes, resource: Any) -> None:
    nodes.allow(right(CHANGELOG, DESCRIBE), right(resource, CREATE))
    joined = join(nodes, "t", "app-changelog")
    assert [(row.status_code, row.status_detail) for row in joined.status] == [(3, MISSING)]
    assert len(nodes.cluster.topics["app-changelog"].logs) == len(nodes.cluster.topics["t"].logs)
    assert join(nodes, epoch=joined.member_epoch).active_tasks


def test_a_group_is_described_with_its_topics_or_not_at_all(nodes: GuardedNodes) -> None:
    join(nodes, "t")
    assert described(nodes).group_state == "Stable"
    assert described(nodes, "h").error_code == Error.GROUP_AUTHORIZATION_FAILED
    nodes.allow(right(T, DESCRIBE, 2))
    row = described(nodes)
    text = "The described group uses topics that the client is not authorized to describe."
    assert (row.error_code, row.error_message) == (Error.TOPIC_AUTHORIZATION_FAILED, text)
    assert (row.topology, row.members) == (None, ())


def test_the_description_of_a_topology_needs_the_right_to_read_the_group(nodes: GuardedNodes) -> None:
    def update(nodes: GuardedNodes) -> tuple[int, str | None]:
        answer = nodes.asked(0, ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, group_id="g", member_id="m")
        return answer.error_code, answer.error_message

    assert update(GuardedNodes()) == (Error.GROUP_AUTHORIZATION_FAILED, None)
    text = "The broker has no streams group topology description plugin configured."
    assert update(nodes) == (Error.UNSUPPORTED_VERSION, text)
