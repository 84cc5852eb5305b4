"""Short lives of a group of puppets, on virtual time, as traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster, Group

Lines = list[dict[str, Any]]


def played(scene: Callable[[Simulation, Cluster], None]) -> Lines:
    """Return the trace of a scene of group svc on two brokers."""
    simulation = Simulation(topics={"orders": 4}, seed=1, brokers=2)
    with simulation as cluster:
        scene(simulation, cluster)
        simulation.pass_time(3)
        return cluster._port.trace_lines()


def a_pair(simulation: Simulation, cluster: Cluster) -> Group:
    """Return the group with two dynamic members, a and b, that is Stable."""
    group = cluster.group("svc")
    group.puppet("a").join()
    group.puppet("b").join()
    simulation.pass_time(3)
    return group


def two_processes(simulation: Simulation, cluster: Cluster) -> None:
    """Two processes join with one instance id."""
    group = cluster.group("svc")
    group.puppet("a", instance_id="a").join()
    group.puppet("b", instance_id="b").join()
    simulation.pass_time(3)
    group.puppet("b-again", instance_id="b").join()


def a_fence(simulation: Simulation, cluster: Cluster) -> None:
    """A test fences a static member, whose successor stays silent."""
    group = cluster.group("svc")
    group.puppet("a", instance_id="a").join()
    group.puppet("b").join()
    simulation.pass_time(3)
    group.fence("a")
    simulation.pass_time(20)


def an_eviction(simulation: Simulation, cluster: Cluster) -> None:
    """A test evicts a member, which rejoins."""
    a_pair(simulation, cluster).evict("b")


def a_crash(simulation: Simulation, cluster: Cluster) -> None:
    """A member crashes, expires and returns."""
    crashed = a_pair(simulation, cluster).puppets["b"]
    crashed.stop()
    simulation.pass_time(20)
    crashed.join()


def an_expired_session(simulation: Simulation, cluster: Cluster) -> None:
    """A test expires the session of a member, which rejoins."""
    a_pair(simulation, cluster).expire_session("b")


def a_failover(simulation: Simulation, cluster: Cluster) -> None:
    """The group moves to the other broker."""
    group = cluster.group("svc")
    group.puppet("a").join()
    group.puppet("b", instance_id="b").join()
    simulation.pass_time(3)
    node = cluster.coordinator("svc")
    cluster.move_coordinator("svc", to=2 if node.id == 1 else 1)


SHORT = (two_processes, a_fence, an_eviction, a_crash, an_expired_session, a_failover)
"""Every scene."""
