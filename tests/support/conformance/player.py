"""The words of the scenarios: `play.join()`, `play.heartbeat(2, a).expect(27)`, `play.answers_at(6, joining)`.

Each request goes over a connection that has none in hand. All times are seconds of the scenario, counted from the last
`play.zero()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.requests import CHANGED, RANGE, Absent, Requests, protocols, subscription
from conformance.situations import Situations
from conformance.targets import ANSWER_MAX, OTHER, Cluster, Durable
from conformance.transactions import Transaction
from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.join_group import JoinGroupRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offsets_topic import read_key
from koordinator.wire.records import read_batches, read_records

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from conformance.answers import Asked, Joining, Partition
    from conformance.targets import Target

__all__ = ["CHANGED", "RANGE", "Absent", "Player", "protocols", "subscription"]

SOON = 20
"""How many seconds something may take that has no time of its own, such as a group that is to be seen."""

NOTHING = -1
"""The offset where none is committed."""

OFFSETS_TOPIC = "__consumer_offsets"


class Player(Requests, Situations):
    """Plays a scenario to a target; `initial_delay` is its broker's, in seconds."""

    def __init__(self, target: Target, group: str, initial_delay: float = 0) -> None:
        super().__init__(target, group)
        self._initial_delay = initial_delay
        self._zero = 0.0
        self._silent: list[Asked[Any]] = []

    # -- who is asked ----------------------------------------------------------------------------------------

    @property
    def old(self) -> bool:
        """Whether the coordinator is the one in Scala."""
        return self.target.release.coordinator == "OLD"

    @property
    def new(self) -> bool:
        """Whether the coordinator is the one in Java."""
        return self.target.release.coordinator == "NEW"

    def since(self, *releases: str) -> bool:
        """Whether the broker has what came with these releases: ("2.8.1",), or one for each branch: ("2.6.1", "2.7.0").

        On its own branch a broker is compared with that branch's release, otherwise with the last one named.
        """
        own = _parts(self.target.release.version)
        there = {_parts(each)[:2]: _parts(each) for each in releases}
        return own >= there.get(own[:2], _parts(releases[-1]))

    # -- time ------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """The time since zero."""
        return self.target.seconds - self._zero

    def zero(self) -> None:
        """Now is t = 0."""
        self._zero = self.target.seconds

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.target.wait(seconds)

    def at(self, seconds: float) -> None:
        """Let time pass until it is t = `seconds`."""
        self.target.pass_time(lambda: False, self._zero + seconds)

    def answers_at(self, seconds: float, *asked: Asked[Any]) -> None:
        """All of these are answered at about t = `seconds`; not earlier, and not much later."""
        target, due = self.target, self._zero + seconds
        target.pass_time(lambda: all(each.is_over for each in asked), due + target.slack)
        for each in asked:
            assert each.at is not None, f"not answered at {seconds} s: {each}"
            at = each.at - self._zero
            assert seconds - target.early <= at <= seconds + target.slack, (
                f"answered at {at:.3f} s instead of {seconds} s: {each}"
            )

    def pass_initial_delay(self, *joins: Joining) -> None:
        """Let time pass until the first join phase of a group is over (KIP-134)."""
        self.target.pass_time(lambda: all(each.is_over for each in joins), self.target.seconds + self._initial_delay)

    def beating(self, until: float, *members: tuple[Any, ...], told: int = 0, every: float = 2) -> None:
        """Until t = `until` members, each (generation, member id[, instance id]), send heartbeats, all answered so."""
        while self.seconds < until:
            self.at(min(until, self.seconds + every))
            for member in members:
                said = self._beat(*member)
                assert said == told, f"at {self.seconds:.3f} s the heartbeat of {member} is answered with {said}"

    def beats_until(self, error: int, member: tuple[Any, ...], within: tuple[float, float], every: float = 1) -> None:
        """A member sends heartbeats, each answered 0 until one is answered `error`, at a time between these two."""
        earliest, latest = within
        while (said := self._beat(*member)) != error:
            assert said == Error.NONE, f"the heartbeat of {member} is answered with {said}, neither 0 nor {error}"
            assert self.seconds <= latest, f"the heartbeat of {member} is still not answered with {error}"
            self.wait(every)
        assert self.seconds >= earliest, f"the heartbeat of {member} is answered with {error} at {self.seconds:.3f} s"

    def _beat(self, *member: Any) -> int:
        # how many there are depends on times, so they are not recorded
        return self.heartbeat(*member).unrecorded().error_code

    # -- what is expected ------------------------------------------------------------------------------------

    def expect_parked(self, *asked: Asked[Any]) -> None:
        """Nothing comes of any of these for a noticeable time."""
        self.target.is_parked(*(each.pending for each in asked))
        for each in asked:
            assert not each.is_over, f"answered at {(each.at or 0) - self._zero:.3f} s instead of parked: {each}"

    def expect_never(self, *asked: Asked[Any]) -> None:
        """None of these is answered before the scenario ends."""
        self.expect_parked(*asked)
        self._silent += asked

    def formed(
        self, generation: int, *joins: Joining, leader: str | None = None, protocol: str = "range", chosen: bool = True
    ) -> str:
        """All these joins are answered with one new generation of exactly these members. Returns the leader.

        The leader is told of all, the others of nobody. `chosen` False: Kafka chooses as it likes, so that the
        answers stay out of the transcript.
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
            told = sorted(row.member_id for row in answer.members)
            assert told == (ids if answer.member_id == led else []), f"{asked} was told of the members {told}"
        assert led in ids, f"the leader {led} is none of the members {ids}"
        return led

    def finish(self) -> None:
        """The scenario is over: what was never to be answered has not been."""
        if self._silent:
            self.expect_parked(*self._silent)

    def visible(self, group: str | None = None) -> None:
        """A group that has just been made can be described. The NEW coordinator shows what has been written only."""
        limit = self.target.seconds + SOON
        while self.describe(group).unrecorded().groups[0].group_state == "Dead":
            assert self.target.seconds < limit, "nobody sees the group"
            self.wait(0.1)

    def gone(self, partition: Partition, group: str | None = None) -> None:
        """Returns when nothing is committed there any more."""
        limit = self.target.seconds + SOON
        while self.fetch(partition, group=group).unrecorded().topics[0].partitions[0].committed_offset != NOTHING:
            assert self.target.seconds < limit, f"{partition} is still committed"
            self.wait(0.1)

    def just_checked(self) -> None:
        """Returns when the broker has just looked for what has expired: it does so again after `check_interval`."""
        group = f"{self.g}.checked"
        # it expires at once (KIP-211), and is found with the next look
        self.commit(-1, "", version=2, retention=0, group=group).unrecorded()
        self.gone((self.t, 0), group)

    def transaction(self) -> Transaction:
        """An open transaction for offsets of our group."""
        return Transaction(self)

    # -- more than one node, and a log that outlives it -----------------------------------------------------------

    def reload(self, *, max_size: int | None = None) -> None:
        """The coordinator of our group is loaded anew from its log, in good order; the broker may be set otherwise."""
        self._durable.reload(self.g, {} if max_size is None else {"group.max.size": max_size})

    def crash(self) -> None:
        """The same, and what had not been written is lost."""
        self._durable.crash(self.g)

    def resign(self) -> None:
        """The coordinator of our group loses its partition, and does not get it back."""
        self._cluster.resign(self.g)

    def loading(self) -> AbstractContextManager[None]:
        """Meanwhile, the partition of our group is being loaded."""
        return self._cluster.loading(self.g)

    def records(self) -> list[tuple[bytes, bytes | None]]:
        """Keys and values of our group in `__consumer_offsets`, in the order in which they were written."""
        topic = MetadataRequestTopic(name=OFFSETS_TOPIC)
        (found,) = self.ask(MetadataRequest(topics=(topic,)), 5).unrecorded().topics
        places = tuple(
            FetchPartition(partition=row.partition_index, fetch_offset=0, partition_max_bytes=ANSWER_MAX)
            for row in found.partitions
        )
        wanted = FetchTopic(topic=OFFSETS_TOPIC, partitions=places)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=ANSWER_MAX, topics=(wanted,))
        (told,) = self.ask(request, 4).unrecorded().responses
        assert [row.error_code for row in told.partitions] == [0] * len(places), told
        written = [
            (record.key, record.value)
            for row in told.partitions
            for _, batch in read_batches(row.records or b"")
            for record in read_records(batch)
        ]
        return [(key, value) for key, value in written if key is not None and self._is_ours(key)]

    def _is_ours(self, key: bytes) -> bool:
        read = read_key(key)
        return read is not None and read.group == self.g

    def other_node(self) -> Player:
        """Plays to a broker that does not coordinate our group."""
        other = Player(self.target, self.g)
        other.transcript, other.prefix = self.transcript, OTHER
        return other

    @property
    def _durable(self) -> Durable:
        assert isinstance(self.target, Durable), f"nobody can do that to {self.target.name}"
        return self.target

    @property
    def _cluster(self) -> Cluster:
        assert isinstance(self.target, Cluster), f"nobody can do that to {self.target.name}"
        return self.target


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
