"""Random histories of one streams group, driven by the responses (KIP-1071)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from builders import requests
from scenarios.streams_members import StreamsMembers, internal_topic, subtopology, task_rows, topology

from exploring.consumers.clients import TOPICS
from exploring.consumers.histories import GONE, TIMEOUT_MS
from exploring.releases import versions_of
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from koordinator.wire.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskOffset,
    Topology,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from exploring.consumers.pair import Pair
    from exploring.consumers.rounds import Side
    from koordinator.wire.apis import Message

STEPS = (15, 50)
MEMBERS = (2, 6)

MISSING_INTERNAL = 3
"""The status of internal topics that the broker is about to create."""

OFFSETS_SINCE = "4.4"
"""The first release that takes offsets of tasks, and static members."""

Given = dict[str, list[int]]


@dataclass
class Client:
    """A client as it knows itself: its tasks, and the epoch of the endpoints that it has seen."""

    name: str
    instance_id: str | None
    process_id: str
    id: str = ""
    epoch: int = -1
    active: Given = field(default_factory=dict)
    standby: Given = field(default_factory=dict)
    endpoint_epoch: int = -1
    is_member: bool = False


class StreamsHistory:
    """One history; `play` sends its requests to a pair."""

    def __init__(self, rng: random.Random, pair: Pair, side: Side) -> None:
        self._rng, self._pair, self._side = rng, pair, side
        self._topic_ids: Mapping[str, UUID] = {name: topic_id for name, (_, topic_id) in side.topics.items()}
        self._later = f"{pair.group}-later"
        self._topology = self._any_topology()
        self._clients = [self._client(number) for number in range(rng.randint(*MEMBERS))]
        self._made = 0

    def play(self) -> None:
        """Play the history."""
        for _ in range(self._rng.randint(*STEPS)):
            (step,) = self._rng.choices(STEPS_OF, WEIGHTS)
            step(self)
            if self._chance(0.3):
                self.look()
        self.look()

    def _client(self, number: int) -> Client:
        rng = self._rng
        statics = (None, f"i{number}", "i0", "i1") if self._release.line >= OFFSETS_SINCE else (None,)
        return Client(
            name=f"c{number}", instance_id=rng.choice(statics), process_id=rng.choice((f"p{number}", "p0", "p1"))
        )

    def _any_topology(self) -> Topology:
        """Return a topology: with or without state, of several parts, and with topics that do not exist or fit."""
        group = self._pair.group
        store, between = internal_topic(f"{group}-store-changelog"), internal_topic(f"{group}-r", self._number(0, 3))
        stateless = subtopology("0", ["t"])
        choices: list[tuple[Any, ...]] = [
            (stateless,),
            (subtopology("0", ["t", "u"]), subtopology("1", ["orders"])),
            (subtopology("0", ["t"], stores=[store]),),
            (subtopology("0", ["orders"], stores=[store]), subtopology("1", ["u"])),
            (subtopology("a", ["t"], writes=[between.name]), subtopology("b", reads=[between], stores=[store])),
            (subtopology("0", ["t", "u"], together=[((0, 1), ())]),),
            (subtopology("0", ["t", self._later], stores=[store]),),
        ]
        return topology(*self._rng.choice(choices), epoch=self._rng.choice((0, 0, 1)))

    @property
    def _release(self) -> Any:
        return self._side.release

    def _number(self, *choices: int) -> int:
        return self._rng.choice(choices)

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _version(self, api: str, lowest: int = 0) -> int:
        first, last = versions_of(self._release, api)
        return self._rng.randint(max(first, lowest), last) if self._chance(0.25) else last

    # -- steps ---------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Let a client join, or send a heartbeat that acknowledges all, a part, or nothing."""
        client = self._rng.choice(self._clients)
        if not client.is_member:
            return self.join(client)
        chosen = self._rng.choice(("nothing", "nothing", "all", "all", "all", "half", "none"))
        return self._heartbeat(client, client.epoch, **self._owned(client, chosen))

    def join(self, client: Client) -> None:
        """Join with epoch 0; a static member may come with another id, and any one with another topology."""
        if not client.id or self._chance(0.3 if client.instance_id else 0.1):
            self._made += 1
            client.id = f"{client.name}.{self._made}"
        shape = self._topology
        if self._chance(0.04):
            # a negative one is not emulated
            epoch = max(0, shape.epoch + self._number(-1, 1))
            shape = Topology(epoch=epoch, subtopologies=shape.subtopologies)
        elif self._chance(0.03):
            shape = self._any_topology()
        fields = self._details(0.4)
        process_id = client.process_id if self._chance(0.95) else None
        joining = {"topology": shape, "rebalance_timeout_ms": TIMEOUT_MS, "process_id": process_id}
        self._heartbeat(client, 0, **{**self._owned(client, "none"), **joining, **fields})

    def rejoin(self) -> None:
        """Let a member join again, perhaps with another instance id."""
        client = self._member()
        if client is None:
            return self.go_on()
        if self._chance(0.3) and self._release.line >= OFFSETS_SINCE:
            client.instance_id = self._rng.choice((None, "i0", "i1", "i9"))
        return self.join(client)

    def change(self) -> None:
        """Let a member change its process, its rack, its endpoint, its tags, or its offsets."""
        client = self._member()
        if client is None:
            return self.go_on()
        fields = self._details(0.5)
        if self._chance(0.2):
            fields["process_id"] = client.process_id = self._rng.choice(("p0", "p1", "p8"))
        if self._chance(0.1):
            fields["rebalance_timeout_ms"] = TIMEOUT_MS - self._number(0, 1)
        if self._chance(0.05):
            fields["shutdown_application"] = True
        if self._chance(0.2) and self._release.line >= OFFSETS_SINCE:
            rows = [TaskOffset(subtopology_id="0", partition=at, offset=self._number(0, 9)) for at in (0, 1)]
            fields["task_offsets"] = fields["task_end_offsets"] = tuple(rows)
        owned = self._owned(client, self._rng.choice(("nothing", "all")))
        return self._heartbeat(client, client.epoch, **owned, **fields)

    def leave(self) -> None:
        """Let a member leave, or a static one for a while."""
        client = self._member()
        if client is None:
            return self.go_on()
        return self._heartbeat(client, -2 if client.instance_id and self._chance(0.6) else -1)

    def mistake(self) -> None:
        """Let a client err in its epoch, its ids or its tasks."""
        client, other = self._rng.choice(self._clients), self._rng.choice(self._clients)
        epoch = client.epoch + self._number(-1, -1, 0, 0, 1, 7)
        epoch = self._rng.choice((max(epoch, 1), max(epoch, 1), max(epoch, 1), -1, -2, -3))
        instance_id = self._rng.choice((client.instance_id, client.instance_id, other.instance_id, "zz", None))
        owned = self._owned(client, self._rng.choice(("nothing", "all", "half", "none", "other", "odd")))
        who = self._rng.choice((client.id, client.id, client.id, other.id, "ghost"))
        request = self._request(who, epoch, instance_id, -1, **owned)
        if who != client.id or epoch < 0:
            self._ask(request, self._version("StreamsGroupHeartbeat"))
        else:
            self._ask(request, self._version("StreamsGroupHeartbeat"), self._hears(client, epoch))

    def offsets(self) -> None:
        """Let a client commit or fetch."""
        client = self._rng.choice(self._clients)
        epoch, name = client.epoch + self._number(0, 0, 0, -1, -2, 1), self._rng.choice(sorted(TOPICS))
        who = self._rng.choice((client.id, client.id, client.id, "ghost", ""))
        if self._chance(0.7):
            offsets = {(name, at): self._pair.requests for at in range(self._number(1, 2, TOPICS[name]))}
            request = requests.offset_commit(
                self._pair.group, offsets, epoch, who, client.instance_id, ids=self._topic_ids
            )
            return self._ask(request, self._version("OffsetCommit", 7))
        version = versions_of(self._release, "OffsetFetch")[1]
        wanted = [("t", at) for at in range(4)]
        fetch = requests.offset_fetch(
            version, self._pair.group, wanted, member=(who or None, epoch if who else -1), ids=self._topic_ids
        )
        return self._ask(fetch, version)

    def look(self) -> None:
        """Describe the group, now and then as an administrator who takes it for another kind."""
        group = self._pair.group
        self._ask(StreamsGroupDescribeRequest(group_ids=(group,)), self._version("StreamsGroupDescribe"))
        if self._chance(0.1):
            self._ask(ListGroupsRequest(), self._version("ListGroups", 4))
            self._ask(DescribeGroupsRequest(groups=(group,)), self._version("DescribeGroups", 4))
            self._ask(
                ConsumerGroupDescribeRequest(group_ids=(group,)), versions_of(self._release, "ConsumerGroupDescribe")[1]
            )

    def intrude(self) -> None:
        """Join with another protocol; a classic member takes an empty group over, and leaves it."""
        group = self._pair.group
        if self._chance(0.5):
            consumer = requests.consumer_group_heartbeat(
                group, "consumer", 0, topics=["t"], owned={}, rebalance_ms=TIMEOUT_MS
            )
            if any(client.is_member for client in self._clients):
                self._ask(consumer, versions_of(self._release, "ConsumerGroupHeartbeat")[1])
            return
        joining = requests.join_group(group, session_ms=TIMEOUT_MS, rebalance_ms=TIMEOUT_MS)
        answer = self._ask(joining, self._version("JoinGroup", 4))
        if answer is not None and answer.error_code == Error.MEMBER_ID_REQUIRED:
            version = versions_of(self._release, "LeaveGroup")[1]
            self._ask(requests.leave_group(version, group, answer.member_id), version)

    def administer(self) -> None:
        """Create a missing topic, or delete offsets or the group."""
        if self._later not in self._side.core.cluster.topics and self._chance(0.7):
            if any(self._later in each.source_topics for each in self._topology.subtopologies):
                self._side.create_topic(self._later, self._number(2, 4, 6))
            return
        if self._chance(0.4):
            self._ask(DeleteGroupsRequest(groups_names=(self._pair.group,)), 2)
        else:
            self._ask(requests.offset_delete(self._pair.group, [("t", 0), ("u", 0)]), 0)

    # -- heartbeats ----------------------------------------------------------------------------------------------

    def _member(self) -> Client | None:
        members = [client for client in self._clients if client.is_member]
        return self._rng.choice(members) if members else None

    def _details(self, share: float) -> dict[str, Any]:
        """Return some of the fields that a member may change at any time."""
        rng = self._rng
        fields = {
            "rack_id": rng.choice(("r0", "r1")),
            "user_endpoint": Endpoint(host=rng.choice(("a", "b")), port=1),
            "client_tags": rng.choice(((), (KeyValue(key="zone", value="z"),))),
        }
        return {name: value for name, value in fields.items() if self._chance(share)}

    def _owned(self, client: Client, chosen: str) -> dict[str, Any]:
        """Return the three lists of tasks: those of the member, a part, none, or wrong ones."""
        active, standby = client.active, client.standby
        match chosen:
            case "nothing":
                return {}
            case "half":
                active = {name: at[: len(at) // 2] for name, at in active.items()}
            case "none":
                active, standby = {}, {}
            case "other":
                active = self._rng.choice(self._clients).active
            case "odd":
                active = {self._rng.choice(("0", "7")): [self._number(0, 3, 99)]}
        return {"active_tasks": task_rows(active), "standby_tasks": task_rows(standby), "warmup_tasks": ()}

    def _request(
        self, member_id: str, epoch: int, instance_id: str | None, endpoint_epoch: int, **fields: Any
    ) -> StreamsGroupHeartbeatRequest:
        return StreamsGroupHeartbeatRequest(
            group_id=self._pair.group,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance_id,
            endpoint_information_epoch=endpoint_epoch,
            **fields,
        )

    def _heartbeat(self, client: Client, epoch: int, **fields: Any) -> None:
        instance_id = client.instance_id if self._chance(0.95) or epoch == -2 else None
        endpoint_epoch = client.endpoint_epoch if self._chance(0.8) else -1
        request = self._request(client.id, epoch, instance_id, endpoint_epoch, **fields)
        self._ask(request, self._version("StreamsGroupHeartbeat"), self._hears(client, epoch))

    def _hears(self, client: Client, epoch: int) -> Callable[[Any], None]:
        def hears(answer: Any) -> None:
            if answer.error_code:
                if answer.error_code in GONE:
                    client.is_member, client.active, client.standby = False, {}, {}
                return
            client.is_member, client.epoch = epoch >= 0, answer.member_epoch
            client.endpoint_epoch = answer.endpoint_information_epoch
            if answer.active_tasks is not None:
                client.active = StreamsMembers.tasks(answer.active_tasks)
                client.standby = StreamsMembers.tasks(answer.standby_tasks)
            if any(each.status_code == MISSING_INTERNAL for each in answer.status):
                self._side.await_internal(self._pair.group)

        return hears

    def _ask(self, request: Message, version: int, hears: Callable[[Any], None] = lambda _: None) -> Any:
        return self._pair.ask(request, version, hears)


STEPS_OF = (
    StreamsHistory.go_on,
    StreamsHistory.rejoin,
    StreamsHistory.change,
    StreamsHistory.leave,
    StreamsHistory.mistake,
    StreamsHistory.offsets,
    StreamsHistory.intrude,
    StreamsHistory.administer,
)
WEIGHTS = (60, 5, 8, 10, 8, 5, 2, 2)
