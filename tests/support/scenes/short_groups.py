"""Short lives of a group of puppets, on virtual time, as traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster, Group

Lines = list[dict[str, Any]]


def played(scene: Callable[[Cluster], None]) -> Lines:
    """Return the trace of a scene of group svc on two brokers."""
    with Simulation(topics={"orders": 4}, seed=1, brokers=2) as cluster:
        scene(cluster)
        cluster.pass_time(3)
        return cluster._port.trace_lines()


def a_pair(cluster: Cluster) -> Group:
    """Return the group with two dynamic members, a and b, that is Stable."""
    group = cluster.group("svc")
    group.create_puppet("a").join()
    group.create_puppet("b").join()
    cluster.pass_time(3)
    return group


def two_processes(cluster: Cluster) -> None:
    """Two processes join with one instance id."""
    group = cluster.group("svc")
    group.create_puppet("a", instance_id="a").join()
    group.create_puppet("b", instance_id="b").join()
    cluster.pass_time(3)
    group.create_puppet("b-again", instance_id="b").join()


def a_fence(cluster: Cluster) -> None:
    """A test fences a static member, whose successor stays silent."""
    group = cluster.group("svc")
    group.create_puppet("a", instance_id="a").join()
    group.create_puppet("b").join()
    cluster.pass_time(3)
    group.fence("a")
    cluster.pass_time(20)


def an_eviction(cluster: Cluster) -> None:
    """A test evicts a member, which rejoins."""
    a_pair(cluster).evict("b")


def a_crash(cluster: Cluster) -> None:
    """A member crashes, expires and returns."""
    crashed = a_pair(cluster).puppets["b"]
    crashed.stop()
    cluster.pass_time(20)
    crashed.join()


def an_expired_session(cluster: Cluster) -> None:
    """A test expires the session of a member, which rejoins."""
    a_pair(cluster).expire_session("b")


def a_failover(cluster: Cluster) -> None:
    """The group moves to the other broker."""
    group = cluster.group("svc")
    group.create_puppet("a").join()
    group.create_puppet("b", instance_id="b").join()
    cluster.pass_time(3)
    node = cluster.coordinator("svc")
    cluster.move_coordinator("svc", to=2 if node.id == 1 else 1)


SHORT = (two_processes, a_fence, an_eviction, a_crash, an_expired_session, a_failover)
"""Every scene."""
