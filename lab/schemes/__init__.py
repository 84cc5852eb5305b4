"""The schemes, by name: each is made from a load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from .coordinator_assigns import AssigningScheme
from .experiments import HotStandbyScheme, PreregisteredScheme
from .on_core import CoreScheme, Members
from .zookeeper import ZookeeperScheme

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..load import Load
    from .scheme import Scheme


@dataclass(frozen=True, slots=True)
class SchemeInfo:
    """A scheme with its source; `open` starts it under a load. No released Kafka of today has one that is `other`."""

    summary: str
    source: str
    open: Callable[[Load], Scheme]
    is_other: bool = False


def _on_core(*protocols: str, **options: Any) -> Callable[[Load], Scheme]:  # noqa: ANN401 - the fields of Members
    return partial(CoreScheme, members=Members(protocols, **options))


EXPERIMENT = "experiment: KIP-345, future works"

SCHEMES: Mapping[str, SchemeInfo] = {
    "zookeeper": SchemeInfo(
        "each consumer watches ZooKeeper and claims partitions", "Kafka 0.8", ZookeeperScheme, is_other=True
    ),
    "coordinator-assigns": SchemeInfo(
        "a coordinator assigns; never released", "the article", AssigningScheme, is_other=True
    ),
    "eager": SchemeInfo("all members stop, then the leader assigns (range)", "Kafka 0.9", _on_core("range")),
    "static": SchemeInfo(
        "eager, and members keep their identity in a restart", "KIP-345", _on_core("range", is_static=True)
    ),
    "cooperative": SchemeInfo(
        "members give up only moving partitions, in two rounds", "KIP-429", _on_core("cooperative-sticky")
    ),
    "static-cooperative": SchemeInfo(
        "cooperative, with static members", "KIP-345, KIP-429", _on_core("cooperative-sticky", is_static=True)
    ),
    "connect": SchemeInfo(
        "workers wait for a lost worker before they move its tasks",
        "KIP-415",
        _on_core("sessioned", protocol_type="connect"),
    ),
    "consumer": SchemeInfo(
        "the coordinator assigns, and each member follows in its own time",
        "KIP-848",
        _on_core("uniform", group_protocol="consumer"),
    ),
    "preregistered": SchemeInfo(
        "static; the coordinator waits until a deployment is complete", EXPERIMENT, PreregisteredScheme, is_other=True
    ),
    "hot-standby": SchemeInfo(
        "static; a spare process takes a lost member's place", EXPERIMENT, HotStandbyScheme, is_other=True
    ),
}
