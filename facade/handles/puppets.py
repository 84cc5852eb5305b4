"""Puppets: scripted members of a group that live in the emulator, well-behaved or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from koordinator.emulator.control.inspect.events import Events
from koordinator.emulator.control.puppets.operations import Puppets
from koordinator.emulator.control.results import PuppetInfo

from .durations import Duration, ms_if_any, ms_of, seconds_of
from .errors import KoordinatorTimeout
from .names import GroupHandle, PuppetHandle, TopicKey, TopicLike, topic_name_of
from .port import WAIT_S
from .renames import renamed, renamed_arguments
from .words import Behaviour, GroupProtocol, PuppetState  # noqa: TC001 - arguments are checked with them

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Puppet", "PuppetControls", "PuppetInfo", "PuppetTimeout"]


class PuppetTimeout(KoordinatorTimeout):
    """A puppet did not reach a state in time. The text describes the puppet."""


class Puppet(PuppetHandle):
    """A member of a group that lives in the emulator. Each property reads its current state.

    Its actions return the puppet, after their immediate effects. An action that is impossible in the current state
    raises ValueError and does nothing. See docs/puppets.md.
    """

    def join(self, reason: str | None = None) -> Puppet:
        """Join the group: the first join, a rejoin, or after it left or failed. `reason` as in KIP-800."""
        self._port.call(Puppets.join, group=self.group_id, name=self.name, reason=reason)
        return self

    def sync(self) -> Puppet:
        """Send SyncGroup; the leader sends assignments. In the consumer protocol, acknowledge the assignment."""
        self._port.call(Puppets.sync, group=self.group_id, name=self.name)
        return self

    def heartbeat(self) -> Puppet:
        """Send a heartbeat now; `error` is its result."""
        self._port.call(Puppets.heartbeat, group=self.group_id, name=self.name)
        return self

    def commit(self, offsets: Mapping[tuple[TopicKey, int], int]) -> Puppet:
        """Commit offsets, by topic and partition; `error` is the result."""
        rows = [(topic_name_of(topic), partition, at) for (topic, partition), at in offsets.items()]
        self._port.call(Puppets.commit, group=self.group_id, name=self.name, offsets=rows)
        return self

    def leave(self, reason: str | None = None, *, temporarily: bool = False) -> Puppet:
        """Leave the group, even as a static member; the puppet stays out until `join`.

        `temporarily` keeps the partitions of a static member of the consumer protocol until its session ends.
        """
        self._port.call(Puppets.leave, group=self.group_id, name=self.name, reason=reason, temporarily=temporarily)
        return self

    def stop(self) -> Puppet:
        """Stop without leaving, like a killed process; `join` starts it again without its member id."""
        self._port.call(Puppets.stop, group=self.group_id, name=self.name)
        return self

    def wait_state(self, state: PuppetState, timeout: Duration = WAIT_S) -> Puppet:
        """Wait until the puppet is in a state. Raises PuppetTimeout after `timeout`, and BlockingCallInLoop."""
        timeout_s = seconds_of(timeout)
        if not self._port.wait(Puppets.meets, timeout_s, group=self.group_id, name=self.name, state=state):
            now = self.describe()
            text = f"puppet {self.name!r} was not {state} within {timeout_s:g} s; it is {now}{self._refusal(now)}"
            raise PuppetTimeout(text)
        return self

    def _refusal(self, now: PuppetInfo) -> str:
        """Return the reason of the error in the puppet's last response, after a colon, if the trace has one."""
        if now.error is None:
            return ""
        responses = (
            event
            for event in reversed(self._port.call(Events.read, group=self.group_id))
            if event["kind"] == "response" and event.get("error") == now.error and event["client_id"] == now.client_id
        )
        body = next(responses, {}).get("body")
        reason = body.get("message") if isinstance(body, dict) else None
        return f": {reason}" if reason else ""

    wait = renamed(wait_state)

    @property
    def state(self) -> str:
        """out, joining, joined (without an assignment yet), syncing, stable, leaving or failed.

        In the consumer protocol also reconciling: it has not acknowledged its assignment yet.
        """
        return self.describe().state

    @property
    def member_id(self) -> str:
        """Its member id; empty before it has one."""
        return self.describe().member_id

    @property
    def generation(self) -> int:
        """The generation of its last successful JoinGroup, or its epoch; -1 outside the group."""
        return self.describe().generation

    @property
    def is_leader(self) -> bool:
        """Whether it is the leader of its generation."""
        return self.describe().is_leader

    @property
    def assignment(self) -> dict[str, list[int]]:
        """Its partitions by topic; of a Connect worker the tasks by connector, where -1 is the connector itself."""
        return self.describe().assignment

    @property
    def error(self) -> str | None:
        """The name of the error in the last response; None after a success."""
        return self.describe().error

    @property
    def waits_for(self) -> str | None:
        """The API of its pending request, or None."""
        return self.describe().waits_for


class PuppetControls(GroupHandle):
    """The part of `Group` that creates puppets."""

    @renamed_arguments(
        session_timeout_s="session_timeout",
        rebalance_timeout_s="rebalance_timeout",
        heartbeat_interval_s="heartbeat_interval",
        scheduled_rebalance_max_delay_s="scheduled_rebalance_max_delay",
    )
    def create_puppet(  # noqa: PLR0913 - the configuration of a consumer
        self,
        name: str,
        protocols: Sequence[str] | None = None,
        *,
        instance_id: str | None = None,
        topics: Sequence[TopicLike] | Mapping[str, int] | None = None,
        owned: Mapping[TopicKey, Sequence[int]] | None = None,
        behaviour: Behaviour | Mapping[str, object] = "healthy",
        session_timeout: Duration | None = None,
        rebalance_timeout: Duration = 30,
        heartbeat_interval: Duration | None = None,
        client_id: str | None = None,
        protocol_type: str = "consumer",
        scheduled_rebalance_max_delay: Duration | None = None,
        group_protocol: GroupProtocol = "classic",
        pattern: str | None = None,
        metadata: Mapping[str, bytes] | None = None,
    ) -> Puppet:
        """Create a puppet, which is outside the group until `join`.

        `protocols` are its assignors, most preferred first (range and roundrobin by default); any name is allowed, and
        `metadata` replaces the subscription of such an assignor, by its name, as bytes. `topics` is its
        subscription; None subscribes to all topics. `owned` are the partitions by topic that its first JoinGroup
        claims. `behaviour` is a name, or a mapping with `kind` and a parameter, as in docs/puppets.md. All times are in
        the group's time. Without `heartbeat_interval` it sends a heartbeat three times per session timeout, and every
        200 ms of real time, with more than 100 puppets less often. The session timeout is 6 s by default, the client id
        its name.

        With `group_protocol="consumer"` (KIP-848), the group has the session timeout and the heartbeat interval; with
        "share" (KIP-932), too, and the puppet fetches no records. With "streams" (KIP-1071) it has tasks of the
        application, or else of `topics`, and processes no records; its assignment has them by subtopology.
        `protocols` is then at most one assignor of the coordinator, and `pattern` a regular expression for topics.

        A worker of Kafka Connect (`protocol_type="connect"`) offers the protocols "sessioned", "compatible" and
        "default"; its `topics` are connectors with their numbers of tasks. Raises ValueError for invalid arguments and
        for a name in use.
        """
        self._port.call(
            Puppets.create,
            group=self.id,
            name=name,
            protocols=None if protocols is None else list(protocols),
            instance_id=instance_id,
            topics=topics if topics is None or isinstance(topics, Mapping) else list(map(topic_name_of, topics)),
            owned=None if owned is None else {topic_name_of(topic): held for topic, held in owned.items()},
            behaviour=behaviour,
            session_timeout_ms=ms_if_any(session_timeout),
            rebalance_timeout_ms=ms_of(rebalance_timeout),
            heartbeat_interval_ms=ms_if_any(heartbeat_interval),
            client_id=client_id,
            protocol_type=protocol_type,
            scheduled_rebalance_max_delay_ms=ms_if_any(scheduled_rebalance_max_delay),
            group_protocol=group_protocol,
            pattern=pattern,
            metadata=metadata,
        )
        return Puppet(self._port, self.id, name)

    puppet = renamed(create_puppet)

    @property
    def puppets(self) -> dict[str, Puppet]:
        """The group's puppets, by name."""
        puppets = self._port.call(Puppets.list, group=self.id)
        return {each.name: Puppet(self._port, self.id, each.name) for each in puppets}
