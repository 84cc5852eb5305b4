"""Puppets by hand: members of a group that live in the emulator, and do what a test tells them, or misbehave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .port import Port

STATE_WAIT_S = 30.0
"""How long a wait lasts if nothing else is said."""


class PuppetTimeout(AssertionError):
    """A puppet did not get where it was waited for. The text says how it is."""


class Puppet:
    """A member of a group that lives in the emulator. Each property asks anew.

    Its verbs return the puppet, when what they have brought about at once has happened. They raise ValueError where
    the puppet cannot do that now, and nothing has happened then. Docs: docs/puppets.md.
    """

    def __init__(self, port: Port, group_id: str, name: str) -> None:
        self._port = port
        self.group_id = group_id
        self.name = name

    def __repr__(self) -> str:
        return f"<Puppet {self.name!r} of {self.group_id!r}>"

    # -- what it is told -------------------------------------------------------------------------------------

    def join(self, reason: str | None = None) -> Puppet:
        """Send JoinGroup: for the first time, after it has left or failed, or anew. `reason` as in KIP-800."""
        return self._tell("puppets.join", reason=reason)

    def sync(self) -> Puppet:
        """Send SyncGroup; a leader assigns."""
        return self._tell("puppets.sync")

    def heartbeat(self) -> Puppet:
        """Send a heartbeat now; `error` is what it was told."""
        return self._tell("puppets.heartbeat")

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> Puppet:
        """Commit offsets, by topic and partition; `error` is what it was told."""
        return self._tell(
            "puppets.commit", offsets=[[topic, partition, at] for (topic, partition), at in offsets.items()]
        )

    def leave(self, reason: str | None = None) -> Puppet:
        """Send LeaveGroup, also as a static member; it stays out until it is told to join."""
        return self._tell("puppets.leave", reason=reason)

    def stop(self) -> Puppet:
        """End without a word, as a process that is killed; `join` starts it again, with nothing known."""
        return self._tell("puppets.stop")

    def wait(self, state: str, timeout: float = STATE_WAIT_S) -> Puppet:
        """Wait until it is in a state; `timeout` in seconds. Raises PuppetTimeout, and BlockingCallInLoop in a loop."""
        if not self._port.wait("puppets.meets", timeout, group=self.group_id, name=self.name, state=state):
            raise PuppetTimeout(f"puppet {self.name!r} was not {state} within {timeout:g} s; it is {self.describe()}")
        return self

    # -- how it is -------------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """All of it at one moment: see `koordinator.emulator.control.puppets.operations.Puppets.describe`."""
        described = self._port.call("puppets.describe", group=self.group_id, name=self.name)
        return cast("dict[str, Any]", described)

    @property
    def state(self) -> str:
        """out, joining, joined (it has its generation, and no assignment), syncing, stable, leaving or failed."""
        return str(self.describe()["state"])

    @property
    def member_id(self) -> str:
        """Its member id; empty while it has none."""
        return str(self.describe()["member_id"])

    @property
    def generation(self) -> int:
        """The generation it takes itself for a member of; -1 if of none."""
        return int(self.describe()["generation"])

    @property
    def is_leader(self) -> bool:
        """Whether it leads the group, as far as it knows."""
        return bool(self.describe()["is_leader"])

    @property
    def assignment(self) -> dict[str, list[int]]:
        """The partitions it holds, by topic; for Connect the tasks, by connector, -1 being the connector itself."""
        return cast("dict[str, list[int]]", self.describe()["assignment"])

    @property
    def error(self) -> str | None:
        """The name of the error its last request was answered with; None if all was well."""
        return cast("str | None", self.describe()["error"])

    @property
    def waits_for(self) -> str | None:
        """The API whose answer it waits for, or None."""
        return cast("str | None", self.describe()["waits_for"])

    def _tell(self, operation: str, **given: object) -> Puppet:
        self._port.call(operation, group=self.group_id, name=self.name, **given)
        return self


class PuppetControls:
    """The part of `Group` that has puppets."""

    _port: Port
    id: str

    def puppet(  # noqa: PLR0913 - what a consumer is configured with
        self,
        name: str,
        protocols: Sequence[str] | None = None,
        *,
        instance_id: str | None = None,
        topics: Sequence[str] | Mapping[str, int] | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        behaviour: str | Mapping[str, object] = "healthy",
        session_timeout_s: float = 6,
        rebalance_timeout_s: float = 30,
        heartbeat_interval_s: float | None = None,
        client_id: str | None = None,
        protocol_type: str = "consumer",
        scheduled_rebalance_max_delay_s: float | None = None,
    ) -> Puppet:
        """Make a puppet, which is in no group until it is told to `join`.

        `protocols`: its assignors, most preferred first; range and roundrobin if none are given. `topics` it is
        subscribed to; None is all there are. `owned`: partitions by topic it claims to hold when it joins first.
        `behaviour`: a name, or a mapping with `kind` and a parameter, as in docs/puppets.md. Its times are the
        group's; if no `heartbeat_interval_s` is given it beats every third of its session, and every 200 ms of real
        time. Its client id is its name, if none is given.

        A worker of Kafka Connect (`protocol_type="connect"`) speaks the protocols "sessioned", "compatible" and
        "default"; its `topics` are connectors with their numbers of tasks. Raises ValueError for what cannot be, and
        for a name that is taken.
        """
        self._port.call(
            "puppets.create",
            group=self.id,
            name=name,
            protocols=None if protocols is None else list(protocols),
            instance_id=instance_id,
            topics=topics,
            owned=owned,
            behaviour=behaviour,
            session_timeout_ms=round(session_timeout_s * 1000),
            rebalance_timeout_ms=round(rebalance_timeout_s * 1000),
            heartbeat_interval_ms=_ms(heartbeat_interval_s),
            client_id=client_id,
            protocol_type=protocol_type,
            scheduled_rebalance_max_delay_ms=_ms(scheduled_rebalance_max_delay_s),
        )
        return Puppet(self._port, self.id, name)

    @property
    def puppets(self) -> dict[str, Puppet]:
        """The puppets there are, by name."""
        listed = self._port.call("puppets.list", group=self.id)
        return {each["name"]: Puppet(self._port, self.id, each["name"]) for each in listed}


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
