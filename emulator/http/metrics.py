"""Metrics of every cluster for Prometheus, with the names of Kafka's JMX exporter where they exist.

Counters start with the cluster's registration; gauges show the cluster at the time of the scrape.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from koordinator.wire.apis import APIS

from ..core.groups.classic.group import ClassicGroupState
from ..core.groups.facts import StateChanged
from ..trace.events import ResponseSent
from ..trace.vocabulary import ALL_GROUP_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.metrics_core import Metric

    from ..server.cluster_registry import ClusterRegistry, RegisteredCluster
    from ..trace.events import TraceEvent

GROUPS = "kafka_coordinator_group_groupmetadatamanager_num"
"""The prefix of metrics of Kafka's `GroupMetadataManager`."""

BUCKETS_S = (0.001, 0.01, 0.1, 0.5, 1, 3, 10, 30, 60, 300)
"""The upper bounds of the histogram of join barriers, in seconds of the group's time."""


class ClusterCounters:
    """The counters of one cluster."""

    def __init__(self, registered: RegisteredCluster) -> None:
        self.registered = registered
        self.responses: Counter[tuple[int, str]] = Counter()
        self.rebalances: Counter[str] = Counter()
        self.barriers: Counter[float] = Counter()
        self.barriers_s = 0.0
        self._began: dict[str, int] = {}
        registered.cluster.trace.observers.append(self.note)

    def note(self, event: TraceEvent) -> None:
        """Count an event of the trace."""
        if isinstance(event, ResponseSent):
            self.responses[event.received.call.api_key, event.error.name] += 1
        elif isinstance(event, StateChanged):
            began = self._began.pop(event.group_id, None)
            if event.after == ClassicGroupState.PREPARING_REBALANCE.value:
                self.rebalances[event.cause] += 1
                self._began[event.group_id] = event.group_now
            elif began is not None:
                lasted_s = (event.group_now - began) / 1000
                self.barriers[next((bound for bound in BUCKETS_S if lasted_s <= bound), float("inf"))] += 1
                self.barriers_s += lasted_s


class Metrics:
    """A collector of `prometheus_client` for the clusters of a process."""

    def __init__(self, registry: ClusterRegistry) -> None:
        self._registry = registry
        self._counters: dict[str, ClusterCounters] = {}
        for registered in registry:
            self._add(registered)
        registry.on_added.append(self._add)

    def _add(self, registered: RegisteredCluster) -> None:
        self._counters[registered.id] = ClusterCounters(registered)

    def collect(self) -> Iterator[Metric]:
        """Return every metric of every cluster."""
        existing = {registered.id for registered in self._registry}
        self._counters = {cluster: counters for cluster, counters in self._counters.items() if cluster in existing}
        yield from _groups(self._counters)
        yield from _requests(self._counters)
        yield from _rebalances(self._counters)


def _groups(clusters: dict[str, ClusterCounters]) -> Iterable[Metric]:
    total = GaugeMetricFamily(f"{GROUPS}groups", "Groups.", labels=["cluster"])
    offsets = GaugeMetricFamily(f"{GROUPS}offsets", "Committed offsets.", labels=["cluster"])
    members = GaugeMetricFamily("koordinator_group_members", "Members of all groups.", labels=["cluster"])
    by_state = {
        state: GaugeMetricFamily(f"{GROUPS}groups{state.lower()}", f"Groups in {state}.", labels=["cluster"])
        for state in ALL_GROUP_STATES
    }
    for cluster, counters in clusters.items():
        runtime = counters.registered.cluster.runtime
        groups = [group for broker in runtime for group in broker.node.coordinator.groups.values()]
        total.add_metric([cluster], len(groups))
        offsets.add_metric([cluster], sum(len(group.offsets) for group in groups))
        members.add_metric([cluster], sum(len(group.members) for group in groups))
        for state, family in by_state.items():
            family.add_metric([cluster], sum(group.state_name == state for group in groups))
    return [total, offsets, members, *by_state.values()]


def _requests(clusters: dict[str, ClusterCounters]) -> Iterable[Metric]:
    requests = CounterMetricFamily(
        "kafka_network_requestmetrics_requests", "Requests with a response.", labels=["cluster", "request"]
    )
    errors = CounterMetricFamily(
        "kafka_network_requestmetrics_errors",
        "Responses by error, including NONE, as Kafka counts them.",
        labels=["cluster", "request", "error"],
    )
    connections = GaugeMetricFamily(
        "kafka_server_socket_server_metrics_connection_count", "Open connections.", labels=["cluster"]
    )
    parked = GaugeMetricFamily(
        "koordinator_parked_requests", "Requests without a response yet.", labels=["cluster", "request"]
    )
    for cluster, counters in clusters.items():
        by_api: Counter[int] = Counter()
        for (key, error), count in sorted(counters.responses.items()):
            by_api[key] += count
            errors.add_metric([cluster, APIS[key].name, error], count)
        for key, count in by_api.items():
            requests.add_metric([cluster, APIS[key].name], count)
        runtime = counters.registered.cluster.runtime
        connections.add_metric([cluster], sum(len(broker.clients()) for broker in runtime))
        waiting = Counter(call.api_key for broker in runtime for call in broker.requests_in_flight())
        for key, count in sorted(waiting.items()):
            parked.add_metric([cluster, APIS[key].name], count)
    return [requests, errors, connections, parked]


def _rebalances(clusters: dict[str, ClusterCounters]) -> Iterable[Metric]:
    rebalances = CounterMetricFamily(
        "koordinator_rebalances", "Rebalances that began, by cause.", labels=["cluster", "cause"]
    )
    barriers = HistogramMetricFamily(
        "koordinator_join_barrier_seconds",
        "The duration of join phases, in the group's time.",
        labels=["cluster"],
    )
    for cluster, counters in clusters.items():
        for cause, count in sorted(counters.rebalances.items()):
            rebalances.add_metric([cluster, cause], count)
        total, buckets = 0, []
        for bound in (*BUCKETS_S, float("inf")):
            total += counters.barriers[bound]
            buckets.append(("+Inf" if bound == float("inf") else str(bound), float(total)))
        barriers.add_metric([cluster], buckets, counters.barriers_s)
    return [rebalances, barriers]
