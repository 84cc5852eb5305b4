"""The vocabulary of the scenarios: `play.join()`, `play.heartbeat(2, a).expect(27)`, `play.answers_at(6, joining)`.

Each request uses a connection without another request in flight. All times are scenario seconds since the last
`play.zero()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.join_group import JoinGroupRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offsets_topic import read_key
from koordinator.wire.records import read_batches, read_records
from scenarios.requests import LIMIT_S, Absent, Requests
from scenarios.situations import Situations
from scenarios.targets import ANSWER_MAX, OTHER, Cluster, Durable
from scenarios.transactions import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from uuid import UUID

    from koordinator.wire.records import BatchHeader
    from scenarios.answers import Partition, PendingJoin, PendingRequest
    from scenarios.targets import Target

__all__ = ["Absent", "Player"]

POLL_S = 0.125
"""The interval of looks at a broker's state: a binary fraction, which leaves virtual time exact."""

NO_OFFSET = -1
"""The offset of a partition without a commit."""

OFFSETS_TOPIC = "__consumer_offsets"

DEFAULT_BROKER_CONFIG = 3
"""The source of configs that all brokers have."""

NOT_OWN = {4, 5}
"""The sources of configs in brokers' properties files, and of defaults."""


class Player(Requests, Situations):
    """Plays a scenario to a target; `initial_delay` is the broker's, in seconds."""

    def __init__(self, target: Target, group: str, initial_delay: float = 0) -> None:
        super().__init__(target, group)
        self._initial_delay = initial_delay
        self._zero = 0.0
        self._silent: list[PendingRequest[Any]] = []

    @property
    def old(self) -> bool:
        """Whether the target runs the Scala coordinator."""
        return self.target.release.coordinator == "OLD"

    @property
    def new(self) -> bool:
        """Whether the target runs the Java coordinator."""
        return self.target.release.coordinator == "NEW"

    def since(self, *releases: str) -> bool:
        """Whether the broker includes a change of these releases: ("2.8.1",), or one per branch: ("2.6.1", "2.7.0").

        A broker is compared with the release of its own branch if there is one, otherwise with the last one.
        """
        own = _parts(self.target.release.version)
        there = {_parts(each)[:2]: _parts(each) for each in releases}
        return own >= there.get(own[:2], _parts(releases[-1]))

    @property
    def seconds(self) -> float:
        """Seconds since zero."""
        return self.target.seconds - self._zero

    def zero(self) -> None:
        """Set t = 0 to now."""
        self._zero = self.target.seconds

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.target.wait(seconds)

    def at(self, seconds: float) -> None:
        """Let time pass until t = `seconds`."""
        self.target.pass_time(lambda: False, self._zero + seconds)

    def answers_at(self, seconds: float, *asked: PendingRequest[Any]) -> None:
        """Expect all responses at about t = `seconds`: not earlier, and late only by the target's slack."""
        target, due = self.target, self._zero + seconds
        target.pass_time(lambda: all(each.is_over for each in asked), due + target.slack)
        for each in asked:
            assert each.at is not None, f"not answered at {seconds} s: {each}"
            at = each.at - self._zero
            assert seconds - target.early <= at <= seconds + target.slack, (
                f"answered at {at:.3f} s instead of {seconds} s: {each}"
            )

    def pass_initial_delay(self, *joins: PendingJoin) -> None:
        """Let the first join phase of a group pass (KIP-134)."""
        self.target.pass_time(lambda: all(each.is_over for each in joins), self.target.seconds + self._initial_delay)

    def heartbeats(self, until: float, *members: tuple[Any, ...], error: int = 0, every: float = 2) -> None:
        """Send heartbeats until t = `until` and expect `error` each time; members are (generation, member id[, instance
        id]).
        """
        while self.seconds < until:
            self.at(min(until, self.seconds + every))
            for member in members:
                code = self._heartbeat_error(*member)
                assert code == error, f"at {self.seconds:.3f} s the heartbeat of {member} has error {code}"

    def heartbeats_until(
        self, error: int, member: tuple[Any, ...], within: tuple[float, float], every: float = 1
    ) -> None:
        """Send heartbeats of one member until one has this `error`, within (earliest, latest) seconds; before, 0."""
        earliest, latest = within
        while (code := self._heartbeat_error(*member)) != error:
            assert code == Error.NONE, f"the heartbeat of {member} has error {code}, neither 0 nor {error}"
            assert self.seconds <= latest, f"the heartbeat of {member} still has no error {error}"
            self.wait(every)
        assert self.seconds >= earliest, f"the heartbeat of {member} is answered with {error} at {self.seconds:.3f} s"

    def _heartbeat_error(self, *member: Any) -> int:
        # not recorded: their number depends on timing
        return self.heartbeat(*member).unrecorded().error_code

    def expect_parked(self, *asked: PendingRequest[Any]) -> None:
        """Expect no response for a noticeable time."""
        self.target.is_parked(*(each.pending for each in asked))
        for each in asked:
            assert not each.is_over, f"answered at {(each.at or 0) - self._zero:.3f} s instead of parked: {each}"

    def expect_never(self, *asked: PendingRequest[Any]) -> None:
        """Expect no response before the scenario ends."""
        self.expect_parked(*asked)
        self._silent += asked

    def expect_generation(
        self,
        generation: int,
        *joins: PendingJoin,
        leader: str | None = None,
        protocol: str = "range",
        chosen: bool = True,
    ) -> str:
        """Expect all JoinGroups to be answered with one new generation of exactly these members. Return the leader.

        The leader receives all members, the others none. `chosen=False` keeps the answers out of the transcript,
        because Kafka is free to choose them.
        """
        answers = [each.answer() if chosen else each.unrecorded() for each in joins]
        ids = sorted(each.member_id for each in answers)
        led = leader if leader is not None else answers[0].leader
        for asked, answer in zip(joins, answers, strict=True):
            assert isinstance(asked.request, JoinGroupRequest)
            assert asked.request.member_id in {"", answer.member_id}, f"{asked} was answered for {answer.member_id}"
            asked.compare(
                answer,
                {
                    "error_code": 0,
                    "generation_id": generation,
                    # KIP-559
                    "protocol_type": asked.request.protocol_type if asked.version >= 7 else None,
                    "protocol_name": protocol,
                    "leader": led,
                    "skip_assignment": False,
                },
            )
            listed = sorted(row.member_id for row in answer.members)
            assert listed == (ids if answer.member_id == led else []), f"{asked} lists the members {listed}"
        assert led in ids, f"the leader {led} is none of the members {ids}"
        return led

    def finish(self) -> None:
        """End the scenario: requests that must never be answered are still unanswered."""
        if self._silent:
            self.expect_parked(*self._silent)

    def wait_until(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until the broker shows a state that it reaches by itself; AssertionError after LIMIT_S."""
        limit = self.limit
        while not is_so():
            assert self.target.seconds < limit, f"waited {LIMIT_S} s in vain: {what} ({self.g})"
            self.wait(POLL_S)

    def wait_visible(self, group: str | None = None) -> None:
        """Wait until DescribeGroups shows a new group. The NEW coordinator shows only written groups."""
        self.wait_until("the group is visible", lambda: self._row(group).group_state != "Dead")

    def wait_described(self, state: str, members: Iterable[str]) -> None:
        """Wait until the group has this state and these members, and compare what DescribeGroups returns."""
        wanted = (state, sorted(members))
        self.wait_until(
            f"the group is {state}",
            lambda: ((row := self._row()).group_state, sorted(each.member_id for each in row.members)) == wanted,
        )
        self.describe().expect(state, wanted[1])

    def _row(self, group: str | None = None) -> Any:
        return self.describe(group).unrecorded().groups[0]

    def wait_uncommitted(self, partition: Partition, group: str | None = None) -> None:
        """Wait until the partition has no committed offset."""

        def offset() -> int:
            answer = self.fetch(partition, group=group).unrecorded()
            return int(answer.topics[0].partitions[0].committed_offset)

        self.wait_until(f"{partition} is not committed", lambda: offset() == NO_OFFSET)

    def wait_config(self, kind: int, name: str, config: str, value: str | None) -> None:
        """Wait until DescribeConfigs has this value of a resource's own, None for no value of its own."""
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=(config,))

        def own() -> str | None:
            (result,) = self.slowly(DescribeConfigsRequest(resources=(resource,)), 1).results
            inherited = NOT_OWN | ({DEFAULT_BROKER_CONFIG} if name else set())
            # 3.9 returns all configs of client metrics
            rows = (row for row in result.configs if row.name == config and row.config_source not in inherited)
            return next((row.value for row in rows), None)

        self.wait_until(f"{config} of {name} is {value}", lambda: own() == value)

    def wait_expiry_check(self) -> None:
        """Wait until the broker has just checked for expired offsets; the next check follows after `check_interval`."""
        group = f"{self.g}.checked"
        # expires at once (KIP-211); the next check removes it
        self.commit(-1, "", version=2, retention=0, group=group).unrecorded()
        self.wait_uncommitted((self.t, 0), group)

    def transaction(self) -> Transaction:
        """Return an open transaction for offsets of the group."""
        return Transaction(self)

    def reload(self, *, max_size: int | None = None) -> None:
        """Reload the group's coordinator from its log after a clean shutdown; optionally change `group.max.size`."""
        self._durable.reload(self.g, {} if max_size is None else {"group.max.size": max_size})

    def crash(self) -> None:
        """Crash the group's coordinator: records that were not written are lost."""
        self._durable.restart(self.g, crash=True)

    def restart(self) -> None:
        """Shut the group's coordinator down and start it again."""
        self._durable.restart(self.g, crash=False)

    def resign(self) -> None:
        """Move the group's coordinator away for good."""
        self._cluster.resign(self.g)

    def loading(self) -> AbstractContextManager[None]:
        """Return a context in which the group's partition is being loaded."""
        return self._cluster.loading(self.g)

    def topic_id(self, topic: str) -> UUID:
        """Return the id of a topic, which transcripts show by its name."""
        (found,) = self.ask(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 10).unrecorded().topics
        self.transcript.name(str(found.topic_id), topic)
        topic_id: UUID = found.topic_id
        return topic_id

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic."""
        (found,) = self.ask(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 5).unrecorded().topics
        return sorted(row.partition_index for row in found.partitions)

    def batches(self, topic: str) -> list[tuple[BatchHeader, bytes]]:
        """Return the batches of a topic with their headers, partition by partition."""
        found: dict[int, list[tuple[BatchHeader, bytes]]] = {partition: [] for partition in self.partitions(topic)}
        unread = dict.fromkeys(found, 0)
        while unread:
            places = tuple(
                FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=ANSWER_MAX)
                for partition, offset in unread.items()
            )
            wanted = FetchTopic(topic=topic, partitions=places)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=ANSWER_MAX, topics=(wanted,))
            asked = self.ask(request, 4)
            # many partitions take a busy broker a while
            self.target.pass_time(lambda asked=asked: asked.is_over, self.limit)  # type: ignore[misc]
            (fetched,) = asked.unrecorded().responses
            for row in fetched.partitions:
                assert row.error_code == 0, row
                batches = list(read_batches(row.records or b""))
                found[row.partition_index] += batches
                del unread[row.partition_index]
                # a response does not pass the end of a segment
                if batches and (end := batches[-1][0].last_offset + 1) < row.high_watermark:
                    unread[row.partition_index] = end
        return [each for batches in found.values() for each in batches]

    def records(self) -> list[tuple[bytes, bytes | None]]:
        """Return keys and values of the group in `__consumer_offsets`, in log order."""
        return [
            (record.key, record.value)
            for header, batch in self.batches(OFFSETS_TOPIC)
            # markers of transactions that other scenarios have written
            if not header.is_control
            for record in read_records(batch)
            if record.key is not None and self._is_ours(record.key)
        ]

    def _is_ours(self, key: bytes) -> bool:
        read = read_key(key)
        return read is not None and read.group == self.g

    def other_node(self) -> Player:
        """Return a player on a broker that does not coordinate the group."""
        other = Player(self.target, self.g)
        other.transcript, other.prefix = self.transcript, OTHER
        return other

    def go_to_controller(self) -> None:
        """Send new connections to node 1, which is the only controller of a broker."""
        self._cluster.home = 1

    def without_other_node(self) -> AbstractContextManager[None]:
        """Return a context in which the other node is down: that without the group's coordinator, or node 2."""
        return self._cluster.without_other()

    @property
    def _durable(self) -> Durable:
        assert isinstance(self.target, Durable), f"{self.target.name} does not support this"
        return self.target

    @property
    def _cluster(self) -> Cluster:
        assert isinstance(self.target, Cluster), f"{self.target.name} does not support this"
        return self.target


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
