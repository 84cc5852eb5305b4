"""The control of a cluster: every operation on it that is no part of Kafka's protocol, by name.

The Python handles and the HTTP API are two faces of this object.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..broker.steps import run
from .acls import Acls, remove_acls
from .credentials import Credentials
from .faults.fault_injector import FaultInjector
from .faults.faults import Faults
from .faults.holds import Holds
from .inspect.events import Events
from .inspect.groups import Groups
from .inspect.topics import Topics
from .inspect.verification import Verify
from .nodes import Nodes
from .operations import ASYNC, OPERATIONS, STEPWISE
from .puppets.operations import Puppets
from .puppets.supervisor import PuppetSupervisor
from .shares import Shares
from .snapshots.operations import Snapshots
from .time.clocks import Clocks
from .transactions.operations import Transactions
from .transactions.producers import PuppetProducers
from .transactions.supervisor import ProducerSupervisor
from .verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output
    from .nodes import Host


class Control:
    """The operations on one cluster.

    `deliver` sends the outputs of an operation; `seed` decides the draws of fault rules.
    """

    def __init__(
        self, runtime: ClusterRuntime, host: Host, deliver: Callable[[Iterable[Output]], None], seed: int
    ) -> None:
        self._runtime = runtime
        self._deliver = deliver
        injector, supervisor = FaultInjector(runtime, seed), PuppetSupervisor(runtime)
        producers = ProducerSupervisor(runtime)
        faults, holds = Faults(runtime, injector), Holds(runtime, injector, deliver)

        def remove_rules(now: int) -> None:
            for rule_id in list(injector.rule_stats):
                faults.remove_rule(now, rule=rule_id)

        def remove_holds(now: int) -> None:
            for hold_id in list(injector.hold_points):
                holds.remove(now, hold=hold_id)

        def stop_puppets(now: int) -> None:
            supervisor.stop_all(now)
            producers.stop_all(now)

        def revoke_all(_now: int) -> None:
            remove_acls(runtime)

        resets = {"acls": revoke_all, "rules": remove_rules, "holds": remove_holds, "puppets": stop_puppets}
        parts: tuple[object, ...] = (
            Acls(runtime),
            Clocks(runtime, deliver),
            Credentials(runtime, host),
            Events(runtime.trace),
            faults,
            Groups(runtime, deliver),
            holds,
            Nodes(runtime, host, deliver),
            PuppetProducers(runtime, deliver, producers),
            Puppets(runtime, deliver, supervisor),
            Shares(runtime, deliver),
            Snapshots(runtime, deliver, resets),
            Topics(runtime),
            Transactions(runtime, deliver),
            Verbs(runtime, deliver),
            Verify(runtime),
        )
        by_class = {type(part).__name__: part for part in parts}
        self.operations: dict[str, Callable[..., Any]] = {
            name: getattr(by_class[function.__qualname__.partition(".")[0]], function.__name__)
            for name, function in OPERATIONS.items()
        }

    def call(self, now: int, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - its own type
        """Perform an operation at once, after everything that is due by now.

        Raises KeyError for an unknown operation, and what the operation raises: ValueError for an invalid call.
        """
        result = self.begin(now, operation, arguments)
        return run(result, now, self._deliver) if isinstance(result, Generator) else result

    def begin(self, now: int, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - its own type
        """Perform an operation, and return its result, or its `Steps`. Raises the errors of `call`."""
        self.catch_up(now)
        return self.operations[operation](now, **arguments)

    def catch_up(self, now: int) -> None:
        """Perform everything that is due by now: at most a turn."""
        due = self._runtime.deadline()
        outputs = self._runtime.before_input(now)
        if due is not None and due <= now:
            # otherwise nothing has changed, and waits must not wake each other
            self._deliver(outputs)

    async def run(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - its own type
        """Perform an operation of `operations.ASYNC`."""
        return await self.operations[operation](**arguments)

    @staticmethod
    def is_async(operation: str) -> bool:
        """Return whether an operation opens or closes sockets: then it is awaited (`run`)."""
        return operation in ASYNC

    @staticmethod
    def is_stepwise(operation: str) -> bool:
        """Return whether an operation has steps, which clients' inputs may come between."""
        return operation in STEPWISE
