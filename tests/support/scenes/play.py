"""Scripted clients of a coordinator, in process and on virtual time.

`play.wait(45_000)` takes no time. A request that parks is answered later, on the same `Exchange`. Writes to
`__consumer_offsets` succeed at once unless `play.writes` says otherwise. Every response is encoded and decoded in the
version of its request, so that a test sees what a client would see.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from koordinator.emulator.broker.api_table import ADAPTERS, kafka
from koordinator.emulator.broker.releases import ACCEPTED
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.effects import Append, Call, Effect, Failed, Reply, SendRequest
from koordinator.emulator.core.groups.coordinator import Coordinator
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from scenes.coordinator_requests import START, CoordinatorRequests, Exchange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.emulator.core.groups.classic.group import ClassicGroup
    from koordinator.wire.apis import Message

__all__ = ["START", "Exchange", "Play"]

F = TypeVar("F")


class Play(CoordinatorRequests):
    """A coordinator and its clients; topics are t (4 partitions) and u (2)."""

    def __init__(self, **settings: object) -> None:
        self.now = START
        self._random = random.Random(7)
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings, _ = Settings.of("fast", named)
        self.cluster = ClusterState("play", self.settings, self.new_uuid)
        self.cluster.register(1, "127.0.0.1", 9092)
        self.cluster.create_topic("t", 4)
        self.cluster.create_topic("u", 2)
        self.coordinator = Coordinator(self.now, self.cluster, self.settings, self.new_uuid)
        self.writes: Error | None = Error.NONE
        """The result of writes; None keeps them in flight until `complete_writes`."""
        self.in_flight: list[Append] = []
        self.verified: Error | None = Error.NONE
        """The transaction coordinator's answer; None keeps its requests in flight until `verify`."""
        self.verifications: list[SendRequest] = []
        self.appended: list[Append] = []
        self.facts: list[Effect] = []
        self._exchanges: dict[Call, Exchange[Any]] = {}
        self._correlation = 0

    def new_uuid(self) -> UUID:
        """Return the next id of a topic or a member."""
        return UUID(int=self._random.getrandbits(128), version=4)

    def wait(self, ms: int) -> None:
        """Advance the time."""
        self.now += ms
        self._perform(self.coordinator.tick(self.now))

    def keep_alive(self, ms: int, *alive: tuple[Any, ...], group: str = "g") -> Error:
        """Advance the time while members send a heartbeat every second: (generation, member id[, instance id]).

        Returns the error of the first member's last heartbeat.
        """
        expected = Error.NONE
        for passed in range(0, ms, 1_000):
            self.wait(min(1_000, ms - passed))
            answers = [self.heartbeat(*member, group=group) for member in alive]
            expected = answers[0]
        return expected

    def settle(self) -> None:
        """Fire what is due now."""
        self.wait(0)

    def complete_writes(self, error: Error = Error.NONE) -> None:
        """Complete the writes in flight, successfully or not."""
        while self.in_flight:
            self._perform(self.coordinator.appended(self.now, self.in_flight.pop(0).token, error))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(call, response):
                    assert response is not None
                    self._exchanges[call].responses.append(self._seen(call, response))
                case Append():
                    self.appended.append(effect)
                    self.in_flight.append(effect)
                case Failed(error):
                    raise error
                case SendRequest():
                    self.verifications.append(effect)
                case _:
                    self.facts.append(effect)
        if self.writes is not None and self.in_flight:
            self.complete_writes(self.writes)
        if self.verified is not None:
            self.verify(self.verified)

    def reload(self, group: str) -> None:
        """Unload the partition of a group, and load it from all of its records."""
        partition = self.cluster.partition_of(group)
        written = [record for append in self.appended if append.partition == partition for record in append.records]
        for effects in (
            self.coordinator.unload(self.now, partition),
            self.coordinator.begin_load(self.now, partition),
            self.coordinator.loaded(self.now, partition, written),
        ):
            self._perform(effects)

    def verify(self, error: Error) -> None:
        """Answer the requests to the transaction coordinator that are in flight."""
        while self.verifications:
            sent = self.verifications.pop(0)
            assert isinstance(sent.request, AddPartitionsToTxnRequest)
            (wanted,) = sent.request.transactions
            row = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error)
            topic = AddPartitionsToTxnTopicResult(name=wanted.topics[0].name, results_by_partition=(row,))
            result = AddPartitionsToTxnResult(transactional_id=wanted.transactional_id, topic_results=(topic,))
            response = AddPartitionsToTxnResponse(results_by_transaction=(result,))
            self._perform(self.coordinator.answered(self.now, sent.token, response))

    def end_transaction(self, producer_id: int, *, commit: bool, group: str = "g") -> None:
        """Write a producer's marker to the partition that stores a group."""
        partition = self.cluster.partition_of(group)
        self._perform(self.coordinator.transaction_ended(self.now, partition, producer_id, is_commit=commit))

    def _seen(self, call: Call, response: Message) -> Message:
        rendered = ADAPTERS[call.api_key].rendered(response, call.api_version, kafka)
        return decode(type(rendered), call.api_version, encode(rendered, call.api_version), exact=True)

    def newest(self, key: ApiKey) -> int:
        """Return the newest version of an API that a broker of this release serves."""
        return ACCEPTED[self.settings.kafka_version][key].max

    def send(self, request: object, version: int, client_id: str = "c", connection: int | None = None) -> Exchange[Any]:
        """Send a request in a version, on a connection of its own unless one is given."""
        self._correlation += 1
        key = next(key for key, api in APIS.items() if api.request is type(request))
        release = self.settings.kafka_version
        assert version in ACCEPTED[release][key], f"a broker of {release} does not serve {APIS[key].name} v{version}"
        number = self._correlation if connection is None else connection
        call = Call(number, self._correlation, key, version, client_id, "/127.0.0.1")
        sent: Exchange[Any] = Exchange(call)
        self._exchanges[call] = sent
        normalized = ADAPTERS[key].normalized(cast("Any", request), version)
        self._perform([*self.coordinator.tick(self.now), *self.coordinator.handle(self.now, call, normalized)])
        return sent

    def advance(self, ms: int, group: str = "g") -> None:
        """Advance a group's clock."""
        self._perform(self.coordinator.move_clock(self.now, group, self.group_now(group) + ms))

    def set_clock(self, mode: str, group: str = "g") -> None:
        """Set the mode of a group's clock: real, manual or auto."""
        self._perform(self.coordinator.set_clock(self.now, group, mode))

    def group_now(self, group: str = "g") -> int:
        """Return the time of a group's clock."""
        return self.cluster.clocks.of(group, self.now).read(self.now)

    def facts_of(self, kind: type[F]) -> list[F]:
        """Return the facts of one kind, in order."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def group(self, group: str = "g") -> ClassicGroup:
        return self.coordinator.groups[group]

    def stable_member(self, **join: Any) -> str:
        """Form a Stable group of one member at generation 1; return its id."""
        a = self.new_id(**join)
        joined = self.join(a, **join)
        self.settle()
        assert joined.response.generation_id == 1
        self.sync(1, a, {a: b"a1"}, group=join.get("group", "g"))
        return a

    def joined_by(self, *members: str, **join: Any) -> tuple[str, int]:
        """Add a dynamic member to a Stable group, without syncing; return its id and the generation."""
        b = self.new_id(**join)
        joins = [self.join(b, **join), *(self.join(member, **join) for member in members)]
        generation = joins[0].response.generation_id
        assert all(sent.response.generation_id == generation for sent in joins)
        return b, generation

    def unsynced_pair(self, **join: Any) -> tuple[str, str]:
        """Form a group of two members at generation 2, without syncing; return their ids, leader first."""
        a = self.stable_member(**join)
        b, _ = self.joined_by(a, **join)
        return a, b

    def stable_pair(self, **join: Any) -> tuple[str, str]:
        """Form a Stable group of two members at generation 2; return their ids, leader first."""
        a, b = self.unsynced_pair(**join)
        self.sync(2, b)
        self.sync(2, a, {a: b"a2", b: b"b2"})
        return a, b

    def stable_trio(self) -> tuple[str, str, str]:
        """Form a Stable group of three members at generation 3; return their ids, leader first."""
        a, b = self.stable_pair()
        c, generation = self.joined_by(a, b)
        self.sync(generation, a, {a: b"a3", b: b"b3", c: b"c3"})
        self.sync(generation, b)
        self.sync(generation, c)
        return a, b, c

    def static_member(self, **join: Any) -> str:
        """Form a Stable group of one static member, i1, at generation 1; return its id."""
        sent = self.join("", "i1", **join)
        self.settle()
        p = sent.response.member_id
        self.sync(1, p, {p: b"p1"}, instance_id="i1")
        return p

    def static_pair(self, *, synced: bool = True, **join: Any) -> tuple[str, str]:
        """Form a group of two static members, i1 and i2, at generation 2; return their ids, leader (i1) first."""
        p = self.static_member(**join)
        second = self.join("", "i2", **join)
        self.join(p, "i1", **join)
        q = second.response.member_id
        if synced:
            self.sync(2, p, {p: b"p2", q: b"q2"}, instance_id="i1")
            self.sync(2, q, instance_id="i2")
        return p, q

    def emptied(self) -> str:
        """Form a group that its only member has left, at generation 2; return the member's old id."""
        a = self.stable_member()
        self.leave(a)
        return a
