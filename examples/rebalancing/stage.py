"""A stage for rebalances: a topic with the partitions P1, P2 …, a group, and members under the test's control.

No Kafka and no network: the members are the emulator's puppets, and time is a number that the test advances. All
results come from the trace, which records every request and response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator import Simulation
from koordinator.handles.simulation import BEGIN_MS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from koordinator import Puppet

TOPIC, PARTITIONS = "t", 6
SESSION_S, HEARTBEAT_S = 45, 3
"""Kafka's defaults of session.timeout.ms and heartbeat.interval.ms."""

INITIAL_DELAY_S = 3
"""Kafka's default of group.initial.rebalance.delay.ms: how long an empty group waits for more members."""

WHILE_S = 20
"""Long enough for every member to learn of a rebalance with its next heartbeat, twice."""


class Stage:
    """One group and one topic, as a context manager. `puppet` has the default arguments of every member.

    with Stage(protocols=["cooperative-sticky"]) as stage:
        stage.start("C1")
        assert stage.owns == {"C1": "P1 P2 P3 P4 P5 P6"}
    """

    def __init__(self, partitions: int = PARTITIONS, **puppet: object) -> None:
        simulation = Simulation(
            topics={TOPIC: partitions}, config={"group.initial.rebalance.delay.ms": INITIAL_DELAY_S * 1000}, seed=1
        )
        self._puppet: dict[str, Any] = {
            "session_timeout": SESSION_S,
            "rebalance_timeout": 300,
            "heartbeat_interval": HEARTBEAT_S,
            **puppet,
        }
        self.cluster = simulation.start()
        self.group = self.cluster.group("svc")
        self.now_s: float = BEGIN_MS / 1000
        self._told = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cluster.stop()

    def start(self, name: str, **puppet: object) -> Puppet:
        """Start a process: it joins, and time passes until the group settles."""
        member = self.group.create_puppet(name, **{**self._puppet, **puppet}).join()
        self.pass_time(WHILE_S)
        return member

    def start_together(self, **puppets: Mapping[str, object]) -> None:
        """Start processes that join within the initial delay (group.initial.rebalance.delay.ms), in one generation."""
        for name, puppet in puppets.items():
            self.group.create_puppet(name, **{**self._puppet, **puppet}).join()
        self.pass_time(INITIAL_DELAY_S + WHILE_S)

    def start_again(self, name: str) -> Puppet:
        """Restart the process of a member that left or died; only its configuration survives."""
        member = self.group.puppets[name].join()
        self.pass_time(WHILE_S)
        return member

    def leave(self, name: str, *, for_s: float = WHILE_S) -> None:
        """Close a consumer, which leaves its group, and let time pass."""
        self.group.puppets[name].leave()
        self.pass_time(for_s)

    def kill(self, name: str, *, for_s: float = WHILE_S) -> None:
        """Kill a process without a LeaveGroup, and let time pass. Closing a static member looks the same."""
        self.group.puppets[name].stop()
        self.pass_time(for_s)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with everything that falls due."""
        self.cluster.pass_time(seconds)
        self.now_s += seconds

    @property
    def owns(self) -> dict[str, str]:
        """The partitions of each member now: {"C1": "P1 P2"}; "" means none."""
        return {
            name: partitions(puppet.assignment)
            for name, puppet in self.group.puppets.items()
            if puppet.state not in {"out", "failed"}
        }

    @property
    def events(self) -> list[dict[str, Any]]:
        """The group's trace, line by line."""
        return self.group.events()

    def rounds(self) -> list[dict[str, str]]:
        """Return the assignment of every generation since the last call."""
        found: dict[int, dict[str, str]] = {}
        for line in self.events:
            if line["seq"] > self._told and line["kind"] == "puppet" and line["change"] == "assigned":
                found.setdefault(line["generation"], {})[line["puppet"]] = partitions(line["body"]["holds"])
        self.skip_rounds()
        return [{name: of[name] for name in sorted(of)} for of in found.values()]

    def skip_rounds(self) -> None:
        """Discard the rounds so far."""
        self._told = max((line["seq"] for line in self.events), default=0)


def partitions(holds: dict[str, list[int]]) -> str:
    """Name partition 0 P1, and so on. (Task -1 of a connector, the connector itself, is left out.)."""
    return " ".join(f"P{number + 1}" for numbers in holds.values() for number in sorted(numbers) if number >= 0)
