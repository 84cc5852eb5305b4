"""Random histories of one group with members of both protocols, driven by the responses (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders import requests

from exploring.consumers.clients import CLASSIC, CONSUMER, TOPICS, Client, assignment_of, partitions_of, topics_of
from exploring.releases import versions_of
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartition,
    write_subscription,
)
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from exploring.consumers.pair import Pair
    from exploring.releases import Release
    from koordinator.wire.apis import Message
    from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from koordinator.wire.messages.sync_group import SyncGroupRequest

TIMEOUT_MS = 600_000
"""Longer than any history: no timer fires."""

STEPS = (15, 45)
MEMBERS_MAX = 5

OFFERS = (
    ("range",),
    ("range",),
    ("range", "roundrobin"),
    ("roundrobin", "range"),
    ("cooperative-sticky", "range"),
)

GONE = {Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.FENCED_INSTANCE_ID, Error.GROUP_ID_NOT_FOUND}


class MixedHistory:
    """One history; `play` sends its requests to a pair."""

    def __init__(self, rng: random.Random, pair: Pair, release: Release, topic_ids: Mapping[str, UUID]) -> None:
        self._rng, self._pair, self._release, self._topic_ids = rng, pair, release, topic_ids
        self._names = {topic_id: name for name, topic_id in topic_ids.items()}
        self._is_equal = release.line == "3.9" or rng.random() < 0.5
        pool = rng.sample(sorted(TOPICS), rng.randint(1, 3))
        self._pool = pool
        self._lean = rng.choice((0.2, 0.5, 0.8))
        self._clients = [self._client(number) for number in range(rng.randint(2, MEMBERS_MAX))]
        self._made = 0

    def play(self) -> None:
        """Play the history."""
        for number in range(self._rng.randint(*STEPS)):
            if number % 12 == 0:
                # the wave turns, upwards or downwards
                self._lean = self._rng.choice((0.1, 0.5, 0.9))
            (step,) = self._rng.choices(STEPS_OF, WEIGHTS)
            step(self)
        self.look()
        self._pair.finish()

    def _client(self, number: int) -> Client:
        rng = self._rng
        return Client(
            name=f"c{number}",
            instance_id=rng.choice((None, None, f"i{number}", "i0")),
            names=self._subscription(),
            offers=rng.choice(OFFERS),
            protocol=rng.choice((CLASSIC, CONSUMER)),
        )

    def _subscription(self) -> list[str]:
        if self._is_equal or self._chance(0.4):
            return list(self._pool)
        return self._rng.sample(self._pool, self._rng.randint(1, len(self._pool)))

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _free(self) -> list[Client]:
        return [client for client in self._clients if not client.is_parked]

    def _version(self, api: str, lowest: int = 0) -> int:
        first, last = versions_of(self._release, api)
        return self._rng.randint(max(first, lowest), last) if self._chance(0.25) else last

    # -- steps ---------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Let a client take its next step."""
        free = self._free()
        if not free:
            return self.look()
        urgent = [client for client in free if client.must_join or client.must_sync]
        client = self._rng.choice(urgent if urgent and self._chance(0.7) else free)
        if not client.is_member and not client.must_join:
            client.protocol = CLASSIC if self._chance(self._lean) else CONSUMER
            client.forget()
        if client.protocol == CONSUMER:
            self.beat(client) if client.is_member else self.join_consumer(client)
        elif client.must_sync:
            self.sync(client)
        elif client.must_join or not client.is_member:
            self.join_classic(client)
        else:
            self.classic_beat(client)
        return None

    def restless(self) -> None:
        """Let a client rejoin, change its subscription, or turn to the other protocol."""
        free = [client for client in self._free() if client.is_member]
        if not free:
            return self.go_on()
        client = self._rng.choice(free)
        if not self._is_equal and self._chance(0.4):
            client.names = self._subscription()
        if self._chance(0.35):
            client.protocol = CONSUMER if client.protocol == CLASSIC else CLASSIC
            client.must_join = client.must_sync = False
        if client.protocol == CLASSIC:
            self.join_classic(client)
        else:
            owned = client.given if self._chance(0.7) else {}
            self._heartbeat(client, client.epoch, owned=owned, names=client.names, timeout_ms=TIMEOUT_MS)
        return None

    def leave(self) -> None:
        """Let a client leave in its own way, for a while, or by the hand of an administrator."""
        free = [client for client in self._free() if client.is_member]
        if not free:
            return self.go_on()
        client = self._rng.choice(free)
        if self._chance(0.4):
            return self.batch_leave()
        if client.protocol == CLASSIC:
            return self._leave_group([client])
        epoch = -2 if client.instance_id and self._chance(0.6) else -1
        return self._heartbeat(client, epoch)

    def batch_leave(self) -> None:
        """Remove members of either protocol, and ids that nobody has, in one request."""
        clients = self._rng.sample(self._clients, self._rng.randint(1, min(3, len(self._clients))))
        return self._leave_group(clients, ghosts=self._rng.choice((0, 0, 1)))

    def mistake(self) -> None:
        """Let a client err in its epoch or its id, with any request."""
        client, other = self._rng.choice(self._clients), self._rng.choice(self._clients)
        if client.is_parked:
            return self.look()
        epoch = client.epoch + self._rng.choice((-1, -1, 0, 1, 7))
        who = self._rng.choice((client.id, other.id, "ghost"))
        instance_id = self._rng.choice((client.instance_id, other.instance_id, "zz", None))
        match self._rng.randint(0, 3):
            case 0 if who:
                owned = self._rng.choice((None, client.given, {}))
                self._ask(self._beat_request(who, max(epoch, 0), instance_id, owned=owned), self._heartbeat_version)
            case 1:
                request = HeartbeatRequest(
                    group_id=self._pair.group, generation_id=epoch, member_id=who, group_instance_id=instance_id
                )
                self._ask(request, self._version("Heartbeat", 3))
            case 2:
                request = self._sync_request(epoch, who, instance_id, self._rng.choice((None, "range", "other")))
                # a member could be parked by it
                if epoch not in (client.epoch, other.epoch):
                    self._ask(request, self._version("SyncGroup", 5))
            case _:
                self._commit(who, epoch, instance_id)
        return None

    def offsets(self) -> None:
        """Let a client commit or fetch."""
        client = self._rng.choice(self._clients)
        if self._chance(0.6):
            return self._commit(client.id, client.epoch, client.instance_id if client.protocol == CLASSIC else None)
        version = self._version("OffsetFetch", 8)
        by_member = version >= 9 and self._chance(0.6)
        member = (
            (client.id or None) if by_member else None,
            client.epoch if by_member and client.id else -1,
        )
        wanted = [("t", at) for at in range(4)]
        request = requests.offset_fetch(version, self._pair.group, wanted, member=member, ids=self._topic_ids)
        return self._ask(request, version)

    def look(self) -> None:
        """Look at the group as administrators do."""
        group = self._pair.group
        self._ask(ListGroupsRequest(), self._version("ListGroups", 4))
        self._ask(
            ConsumerGroupDescribeRequest(group_ids=(group,)), versions_of(self._release, "ConsumerGroupDescribe")[1]
        )
        self._ask(DescribeGroupsRequest(groups=(group,)), self._version("DescribeGroups", 4))

    def administer(self) -> None:
        """Delete the group, or offsets."""
        if self._chance(0.4):
            return self._ask(DeleteGroupsRequest(groups_names=(self._pair.group,)), 2)
        return self._ask(requests.offset_delete(self._pair.group, [("t", 0), ("u", 0)]), 0)

    # -- members of the consumer protocol ------------------------------------------------------------------------

    def join_consumer(self, client: Client) -> None:
        """Join with epoch 0; a static member may come with another id."""
        if not client.id or (client.instance_id and self._chance(0.3)):
            self._made += 1
            client.id = f"{client.name}.{self._made}"
        assignor = self._rng.choice((None, None, None, "range", "uniform"))
        self._heartbeat(client, 0, owned={}, names=client.names, timeout_ms=TIMEOUT_MS, assignor=assignor)

    def beat(self, client: Client) -> None:
        """Send a heartbeat, which may acknowledge all, a part, or nothing."""
        half = {name: at[: len(at) // 2] for name, at in client.given.items()}
        owned = self._rng.choice((None, None, client.given, client.given, client.given, half, {}))
        self._heartbeat(client, client.epoch, owned=owned)

    @property
    def _heartbeat_version(self) -> int:
        return versions_of(self._release, "ConsumerGroupHeartbeat")[1]

    def _beat_request(
        self,
        member_id: str,
        epoch: int,
        instance_id: str | None,
        *,
        owned: Mapping[str, list[int]] | None = None,
        names: list[str] | None = None,
        timeout_ms: int = -1,
        assignor: str | None = None,
    ) -> ConsumerGroupHeartbeatRequest:
        return requests.consumer_group_heartbeat(
            self._pair.group,
            member_id,
            epoch,
            instance_id,
            topics=names,
            owned=None if owned is None else {self._topic_ids[name]: at for name, at in owned.items()},
            rebalance_ms=timeout_ms,
            assignor=assignor,
        )

    def _heartbeat(self, client: Client, epoch: int, **fields: Any) -> None:
        instance_id = client.instance_id if self._chance(0.9) or epoch == -2 else None

        def hears(answer: Any) -> None:
            if answer.error_code:
                if answer.error_code in GONE:
                    client.forget()
                return
            client.is_member, client.is_away, client.epoch = epoch >= 0, epoch == -2, answer.member_epoch
            if answer.assignment is not None:
                rows = answer.assignment.topic_partitions
                client.given = {self._names[row.topic_id]: list(row.partitions) for row in rows}

        self._ask(self._beat_request(client.id, epoch, instance_id, **fields), self._heartbeat_version, hears)

    # -- members of the classic protocol -------------------------------------------------------------------------

    def join_classic(self, client: Client) -> None:
        """JoinGroup, with the id that the client has."""
        version = self._version("JoinGroup", 5)
        owned = tuple(TopicPartition(topic=name, partitions=tuple(at)) for name, at in client.given.items())
        subscription = ConsumerProtocolSubscription(
            topics=tuple(client.names), owned_partitions=owned if self._chance(0.8) else ()
        )
        metadata = write_subscription(subscription, self._rng.choice((0, 1, 1, 2, 3)))
        request = requests.join_group(
            self._pair.group,
            client.id,
            client.instance_id,
            session_ms=TIMEOUT_MS,
            rebalance_ms=TIMEOUT_MS,
            protocols=[(name, metadata) for name in client.offers],
        )

        def hears(answer: Any) -> None:
            client.is_parked = False
            if answer.error_code == Error.MEMBER_ID_REQUIRED:
                client.id, client.must_join = answer.member_id, True
            elif answer.error_code == Error.REBALANCE_IN_PROGRESS:
                client.must_join, client.id = True, client.id or answer.member_id
            elif answer.error_code:
                client.forget()
            else:
                client.id, client.epoch, client.chosen = answer.member_id, answer.generation_id, answer.protocol_name
                client.is_member, client.must_join, client.must_sync = True, False, True
                client.members = {row.member_id: topics_of(row.metadata) for row in answer.members}

        client.is_parked = True
        self._ask(request, version, hears)

    def sync(self, client: Client) -> None:
        """SyncGroup; a leader assigns, now and then what cannot be converted."""
        partitions = {name: list(range(TOPICS[name])) for name in self._pool}
        given: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in client.members}
        for name, listed in partitions.items():
            subscribers = [member_id for member_id, names in client.members.items() if name in names]
            for partition in listed if subscribers else ():
                given[subscribers[partition % len(subscribers)]].setdefault(name, []).append(partition)
        user_data = b"own" if self._chance(0.02) else None
        plan = {member_id: assignment_of(each, user_data) for member_id, each in given.items()}

        def hears(answer: Any) -> None:
            client.is_parked = False
            if answer.error_code == Error.REBALANCE_IN_PROGRESS:
                client.must_sync, client.must_join = False, True
            elif answer.error_code:
                client.forget()
            else:
                client.must_sync, client.given = False, partitions_of(answer.assignment)

        client.is_parked = True
        request = self._sync_request(client.epoch, client.id, client.instance_id, client.chosen, plan)
        self._ask(request, self._version("SyncGroup", 3), hears)

    def _sync_request(
        self,
        epoch: int,
        member_id: str,
        instance_id: str | None,
        name: str | None,
        plan: Mapping[str, bytes] | None = None,
    ) -> SyncGroupRequest:
        protocol = (name and "consumer", name)
        return requests.sync_group(self._pair.group, epoch, member_id, plan, instance_id, protocol=protocol)

    def classic_beat(self, client: Client) -> None:
        """Heartbeat."""

        def hears(answer: Any) -> None:
            if answer.error_code == Error.REBALANCE_IN_PROGRESS:
                client.must_join = True
            elif answer.error_code:
                client.forget()

        request = HeartbeatRequest(
            group_id=self._pair.group,
            generation_id=client.epoch,
            member_id=client.id,
            group_instance_id=client.instance_id,
        )
        self._ask(request, self._version("Heartbeat", 3), hears)

    def _leave_group(self, clients: list[Client], ghosts: int = 0) -> None:
        rows = [
            (
                client.id if self._chance(0.7) or not client.instance_id else "",
                client.instance_id if self._chance(0.8) else None,
            )
            for client in clients
        ]
        rows += [("ghost", None)] * ghosts

        def hears(answer: Any) -> None:
            for client, row in zip(clients, answer.members, strict=False):
                if not row.error_code and not client.is_parked:
                    client.forget()

        version = self._version("LeaveGroup", 3)
        self._ask(requests.leave_group(version, self._pair.group, *rows), version, hears)

    # -- requests ------------------------------------------------------------------------------------------------

    def _commit(self, who: str, epoch: int, instance_id: str | None) -> None:
        version, name = self._version("OffsetCommit", 7), self._rng.choice(sorted(TOPICS))
        partitions = self._rng.sample(range(TOPICS[name]), self._rng.randint(1, 2))
        offsets = {(name, at): self._pair.requests for at in partitions}
        request = requests.offset_commit(self._pair.group, offsets, epoch, who, instance_id, ids=self._topic_ids)
        self._ask(request, version)

    def _ask(self, request: Message, version: int, hears: Callable[[Any], None] = lambda _: None) -> None:
        self._pair.ask(request, version, hears)


STEPS_OF = (
    MixedHistory.go_on,
    MixedHistory.restless,
    MixedHistory.leave,
    MixedHistory.mistake,
    MixedHistory.offsets,
    MixedHistory.look,
    MixedHistory.administer,
)
WEIGHTS = (60, 8, 9, 7, 6, 9, 1)
