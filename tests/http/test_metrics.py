"""Metrics for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    import httpx

    from koordinator.handles.remote import Remote


def samples(http: httpx.Client) -> dict[tuple[str, ...], float]:
    """Name and the values of the labels beside the cluster's, in the order of their names, of the first cluster."""
    response = http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *(value for label, value in sorted(sample.labels.items()) if label != "cluster")): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if sample.labels["cluster"] == "default"
    }


@pytest.mark.slow
def test_metrics_tell_of_groups_requests_and_rebalances(http: httpx.Client, server: Remote) -> None:
    group = server.cluster().group("svc")
    for name in ("a", "b"):
        group.create_puppet(name, topics=["orders"]).join()
    group.wait_stable(members=2)
    waits = group.create_puppet("late", topics=["orders"])
    group.freeze("PreparingRebalance")
    waits.join()
    said = samples(http)
    assert said["kafka_coordinator_group_groupmetadatamanager_numgroups",] == 1
    assert said["kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",] == 1
    assert said["kafka_coordinator_group_groupmetadatamanager_numgroupsstable",] == 0
    assert said["koordinator_group_members",] == 3
    assert said["koordinator_rebalances_total", "member_join"] == 3
    assert said["koordinator_join_barrier_seconds_count",] == 2
    assert said["kafka_network_requestmetrics_errors_total", "MEMBER_ID_REQUIRED", "JoinGroup"] == 3
    assert said["kafka_network_requestmetrics_requests_total", "JoinGroup"] >= 5
    assert said["koordinator_parked_requests", "JoinGroup"] >= 1
    group.thaw()
    group.wait_stable(members=3)
    assert samples(http)["kafka_coordinator_group_groupmetadatamanager_numgroupsstable",] == 1


@pytest.mark.slow
def test_metrics_count_consumer_groups_by_their_states(http: httpx.Client, server: Remote) -> None:
    group = server.cluster().group("svc")
    owner, other = (
        group.create_puppet(name, topics=["orders"], group_protocol="consumer", behaviour="manual") for name in "ab"
    )
    owner.join()
    other.join()
    group.evict("b")
    assert samples(http)["kafka_coordinator_group_groupmetadatamanager_numgroupsassigning",] == 1
    # past the assignment interval
    group.advance(2)
    other.join()
    said = samples(http)
    assert said["kafka_coordinator_group_groupmetadatamanager_numgroupsreconciling",] == 1
    assert said["kafka_coordinator_group_groupmetadatamanager_numgroupsassigning",] == 0


@pytest.mark.slow
def test_a_stopped_cluster_has_no_metrics(http: httpx.Client, server: Remote) -> None:
    cluster = server.create("two")
    assert 'cluster="two"' in http.get("/metrics").text
    cluster.stop()
    assert 'cluster="two"' not in http.get("/metrics").text
