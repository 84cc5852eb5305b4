"""What Prometheus is told of every cluster: under Kafka's own names (as its JMX exporter writes them) where it has one.

Counters begin when a cluster is first watched; gauges are as the cluster is when somebody asks.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from koordinator.wire.apis import APIS

from ..core.effects import StateChanged
from ..core.groups.classic.group import ClassicGroupState
from ..trace.events import ResponseSent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.metrics_core import Metric

    from ..server.cluster_registry import ClusterRegistry, RegisteredCluster
    from ..trace.events import TraceEvent

GROUPS = "kafka_coordinator_group_groupmetadatamanager_num"
"""How the metrics of Kafka's `GroupMetadataManager` begin."""

BUCKETS_S = (0.001, 0.01, 0.1, 0.5, 1, 3, 10, 30, 60, 300)
"""The upper bounds of the histogram of join barriers, in seconds of the group's time."""


class Watched:
    """What has been counted of one cluster."""

    def __init__(self, hosted: RegisteredCluster) -> None:
        self.hosted = hosted
        self.answers: Counter[tuple[int, str]] = Counter()
        self.rebalances: Counter[str] = Counter()
        self.barriers: Counter[float] = Counter()
        self.barriers_s = 0.0
        self._began: dict[str, int] = {}
        hosted.cluster.trace.observers.append(self.note)

    def note(self, happening: TraceEvent) -> None:
        """Something happened."""
        if isinstance(happening, ResponseSent):
            self.answers[happening.received.call.api_key, happening.error.name] += 1
        elif isinstance(happening, StateChanged):
            began = self._began.pop(happening.group_id, None)
            if happening.after == ClassicGroupState.PREPARING_REBALANCE.value:
                self.rebalances[happening.cause] += 1
                self._began[happening.group_id] = happening.group_now
            elif began is not None:
                lasted_s = (happening.group_now - began) / 1000
                self.barriers[next((bound for bound in BUCKETS_S if lasted_s <= bound), float("inf"))] += 1
                self.barriers_s += lasted_s


class Metrics:
    """A collector of `prometheus_client` for the clusters of a process."""

    def __init__(self, fleet: ClusterRegistry) -> None:
        self._fleet = fleet
        self._watched: dict[str, Watched] = {}
        for hosted in fleet:
            self._watch(hosted)
        fleet.on_added.append(self._watch)

    def _watch(self, hosted: RegisteredCluster) -> None:
        self._watched[hosted.id] = Watched(hosted)

    def collect(self) -> Iterator[Metric]:
        """Every metric of every cluster that there is."""
        there = {hosted.id for hosted in self._fleet}
        self._watched = {cluster: watched for cluster, watched in self._watched.items() if cluster in there}
        yield from _groups(self._watched)
        yield from _requests(self._watched)
        yield from _rebalances(self._watched)


def _groups(clusters: dict[str, Watched]) -> Iterable[Metric]:
    total = GaugeMetricFamily(f"{GROUPS}groups", "Groups.", labels=["cluster"])
    offsets = GaugeMetricFamily(f"{GROUPS}offsets", "Committed offsets.", labels=["cluster"])
    members = GaugeMetricFamily("koordinator_group_members", "Members of all groups.", labels=["cluster"])
    by_state = {
        state: GaugeMetricFamily(
            f"{GROUPS}groups{state.value.lower()}", f"Groups in {state.value}.", labels=["cluster"]
        )
        for state in ClassicGroupState
    }
    for cluster, watched in clusters.items():
        brokers = watched.hosted.cluster.runtime
        groups = [group for broker in brokers for group in broker.node.coordinator.groups.values()]
        total.add_metric([cluster], len(groups))
        offsets.add_metric([cluster], sum(len(group.offsets) for group in groups))
        members.add_metric([cluster], sum(len(group.members) for group in groups))
        for state, family in by_state.items():
            family.add_metric([cluster], sum(group.state is state for group in groups))
    return [total, offsets, members, *by_state.values()]


def _requests(clusters: dict[str, Watched]) -> Iterable[Metric]:
    requests = CounterMetricFamily(
        "kafka_network_requestmetrics_requests", "Requests that were answered.", labels=["cluster", "request"]
    )
    errors = CounterMetricFamily(
        "kafka_network_requestmetrics_errors",
        "Answers by error, NONE among them, as Kafka counts them.",
        labels=["cluster", "request", "error"],
    )
    connections = GaugeMetricFamily(
        "kafka_server_socket_server_metrics_connection_count", "Open connections.", labels=["cluster"]
    )
    parked = GaugeMetricFamily(
        "koordinator_parked_requests", "Requests that wait for their answer.", labels=["cluster", "request"]
    )
    for cluster, watched in clusters.items():
        by_api: Counter[int] = Counter()
        for (key, error), count in sorted(watched.answers.items()):
            by_api[key] += count
            errors.add_metric([cluster, APIS[key].name, error], count)
        for key, count in by_api.items():
            requests.add_metric([cluster, APIS[key].name], count)
        brokers = watched.hosted.cluster.runtime
        connections.add_metric([cluster], sum(len(broker.clients()) for broker in brokers))
        waiting = Counter(call.api_key for broker in brokers for call in broker.requests_in_flight())
        for key, count in sorted(waiting.items()):
            parked.add_metric([cluster, APIS[key].name], count)
    return [requests, errors, connections, parked]


def _rebalances(clusters: dict[str, Watched]) -> Iterable[Metric]:
    rebalances = CounterMetricFamily(
        "koordinator_rebalances", "Rebalances that began, by what caused them.", labels=["cluster", "cause"]
    )
    barriers = HistogramMetricFamily(
        "koordinator_join_barrier_seconds",
        "How long join phases lasted, in the group's time.",
        labels=["cluster"],
    )
    for cluster, watched in clusters.items():
        for cause, count in sorted(watched.rebalances.items()):
            rebalances.add_metric([cluster, cause], count)
        so_far, buckets = 0, []
        for bound in (*BUCKETS_S, float("inf")):
            so_far += watched.barriers[bound]
            buckets.append(("+Inf" if bound == float("inf") else str(bound), float(so_far)))
        barriers.add_metric([cluster], buckets, watched.barriers_s)
    return [rebalances, barriers]
