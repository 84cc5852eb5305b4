"""The control of a cluster: everything that may be asked of it from outside Kafka's protocol, by name.

The handles of tests and the HTTP API are two faces of this one object. An operation is called as `part.method`, such as
`groups.describe`, with plain data; what it does is said where it is defined, in `koordinator.emulator.control`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .faults.fault_injector import FaultInjector
from .faults.faults import Faults
from .faults.holds import Holds
from .inspect.events import Events
from .inspect.groups import Groups
from .inspect.topics import Topics
from .inspect.verification import Verify
from .nodes import Nodes
from .puppets.operations import Puppets
from .puppets.supervisor import PuppetSupervisor
from .snapshots.operations import Snapshots
from .time.clocks import Clocks
from .verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output
    from .nodes import Host


class Control:
    """The operations on a cluster. `leave` sends what an operation lets leave the nodes, at once.

    `seed` decides what rules leave to chance.
    """

    def __init__(
        self, brokers: ClusterRuntime, host: Host, leave: Callable[[Iterable[Output]], None], seed: int
    ) -> None:
        self._brokers = brokers
        self._leave = leave
        gatekeeper = FaultInjector(brokers, seed)
        faults, holds, troupe = (
            Faults(brokers, gatekeeper),
            Holds(brokers, gatekeeper, leave),
            PuppetSupervisor(brokers),
        )

        def no_rules(now: int) -> None:
            for rule_id in list(gatekeeper.rule_stats):
                faults.remove_rule(now, rule=rule_id)

        def no_holds(now: int) -> None:
            for hold_id in list(gatekeeper.hold_points):
                holds.remove(now, hold=hold_id)

        parts: dict[str, object] = {
            "clocks": Clocks(brokers, leave),
            "events": Events(brokers.trace),
            "faults": faults,
            "groups": Groups(brokers, leave),
            "holds": holds,
            "nodes": Nodes(brokers, host, leave),
            "puppets": Puppets(brokers, leave, troupe),
            "topics": Topics(brokers),
            "verbs": Verbs(brokers, leave),
            "verify": Verify(brokers),
            "world": Snapshots(brokers, leave, {"rules": no_rules, "holds": no_holds, "puppets": troupe.stop_all}),
        }
        self.operations: dict[str, Callable[..., Any]] = {
            f"{name}.{method}": operation
            for name, part in parts.items()
            for method, operation in inspect.getmembers(part, inspect.ismethod)
            if not method.startswith("_")
        }
        """Every operation, by name."""
        self._awaited = {name for name, operation in self.operations.items() if inspect.iscoroutinefunction(operation)}

    def takes_its_time(self, operation: str) -> bool:
        """Whether an operation opens or closes sockets: it is awaited (`run`), and has no time of its own."""
        return operation in self._awaited

    def call(self, now: int, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - plain data
        """Do something at once, after what was due before. KeyError for an unknown operation, else what it raises."""
        self._brokers.settle(now)
        due = self._brokers.deadline()
        if due is not None and due <= now:
            self._leave(self._brokers.tick(now))
        return self.operations[operation](now, **arguments)

    async def run(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - likewise
        """Do something that takes its time."""
        return await self.operations[operation](**arguments)


def is_met(given: Any) -> bool:  # noqa: ANN401 - likewise
    """Whether what an operation gives ends a wait: what is true; of a verdict, its `ok`."""
    return bool(given["ok"] if isinstance(given, dict) and "ok" in given else given)
