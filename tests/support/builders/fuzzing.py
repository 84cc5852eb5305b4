"""Random hostile and hasty clients against the protocol layer; the same seed repeats the same run.

A *run* is one broker and its inputs. `Noise` sends random bytes and corrupted valid frames. `Crowd` sends valid
requests in any order with any gaps. A run fails with any exception of the broker, `Hang` if an input takes too long, or
AssertionError if a response is unreadable or state remains after all clients disconnect and all timers fire.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clients.frame_clients import Peer, Wire

from builders.mutations import Mutations
from builders.valid_frames import SUBSCRIPTION, Valid, served
from koordinator.emulator.core.groups.classic.group import ClassicGroup
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from koordinator.emulator.broker.connections import Output

SLOW_S = 5.0
"""The longest processing of bytes from one connection, in seconds of this process."""

TRACE_CAPACITY = 2_000
PEERS_MAX = 12
LONG_MS = 40_000_000
WAITS = (0, 0, 0, 0, 1, 50, 500, 999, 3_000, 6_000, 30_000, 300_000)


class Hang(Exception):
    """One input took longer than SLOW_S, or did not end."""


@dataclass
class Tally:
    """Counts of one or more runs."""

    frames: int = 0
    closed: int = 0
    answers: int = 0
    slowest_s: float = 0.0
    slowest: str = ""
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.frames += other.frames
        self.closed += other.closed
        self.answers += other.answers
        self.slowest_s, self.slowest = max((self.slowest_s, self.slowest), (other.slowest_s, other.slowest))
        self.reasons += other.reasons


class Ring(Wire):
    """A broker whose peers forget their responses unless a client reads them."""

    def __init__(self, **settings: object) -> None:
        super().__init__(TRACE_CAPACITY, **settings)
        self.cluster = self.node.cluster
        self.tally = Tally()
        self.alive: list[Peer] = []
        self.last: deque[str] = deque(maxlen=12)

    def another(self) -> Peer:
        peer = self.connect()
        self.alive.append(peer)
        return peer

    def feed(self, peer: Peer, data: bytes) -> None:
        """Send bytes and limit the processing time."""
        self.last.append(f"{peer.number} sends {data.hex()}")
        self.tally.frames += 1
        before = time.thread_time()
        self.send(peer, data)
        took = time.thread_time() - before
        if took > self.tally.slowest_s:
            self.tally.slowest_s, self.tally.slowest = took, self.last[-1]
        if took > SLOW_S:
            raise Hang(f"one input took {took:.1f} s")

    def pass_time(self, ms: int) -> None:
        """Let time pass; the limit of the processing time depends on the number of events."""
        self.last.append(f"{ms} ms pass")
        self.wait(ms)

    def drop(self, peer: Peer) -> None:
        """Disconnect a client."""
        self.last.append(f"{peer.number} is gone")
        self.alive.remove(peer)
        del self.peers[peer.number]
        self.broker.disconnected(self.now, peer.number)

    def _perform(self, outputs: Iterable[Output]) -> None:
        super()._perform(outputs)
        for peer in [each for each in self.alive if each.closed is not None]:
            self.tally.closed += 1
            self.tally.reasons[_kind(peer.closed or "")] += 1
            self.alive.remove(peer)
            del self.peers[peer.number]
        self.logged.clear()

    def end(self) -> None:
        """Disconnect all clients, let all time pass, and check the remains."""
        assert sum(1 for _ in self.trace.events()) <= TRACE_CAPACITY + 1
        for peer in list(self.alive):
            self.drop(peer)
        for _ in range(10):
            self.pass_time(LONG_MS // 10)
        broker, node = self.broker, self.node
        assert not broker._connections, "connections are left over"
        assert not broker._ready, "somebody is still to be served"
        assert not broker._with_output, "something is still to be sent"
        assert not node.data.fetches.parked
        assert not node.data.fetches._watchers
        assert not node.data.fetches._by_connection
        shares = node.data.shares
        assert not shares.waiting
        assert not shares.partitions._loading
        assert not shares._writing
        # as in Kafka a connection that has closed a session of its own leaves the one that it has opened last
        assert shares.sessions._opened.keys() <= broker._closed.keys()
        assert len(shares.sessions) <= node.cluster.settings.group_share_max_share_sessions, "share sessions pile up"
        store = node.coordinator.store
        assert not store.writes
        for group in store.groups.values():
            assert group.state.name == "EMPTY", group
            assert not group.members, group
            assert not isinstance(group, ClassicGroup) or not group.pending_members, group
            assert len(group.timers._heap) < 100, "timers pile up"
        assert len(store.deadlines._heap) < 100 + 2 * len(store.groups), "deadlines pile up"


def _kind(reason: str) -> str:
    """Return a reason without its numbers and quotations."""
    words = "".join("#" if letter.isdigit() else letter for letter in reason).split("'")[0]
    while "##" in words:
        words = words.replace("##", "#")
    return words[:100]


class Noise:
    """Random bytes, and corrupted valid frames."""

    FRAMES = 5_000

    def __init__(self, chance: random.Random, corpus: Sequence[bytes], ring: Ring | None = None) -> None:
        self.ring = ring or Ring()
        self._chance = chance
        self._mutations = Mutations(chance, corpus)
        self._corpus = corpus

    def step(self) -> None:
        """Send one frame, whole or in pieces, on an existing or a new connection."""
        chance, ring = self._chance, self.ring
        if len(ring.alive) < PEERS_MAX and (not ring.alive or chance.random() < 0.1):
            ring.another()
        peer = chance.choice(ring.alive)
        what = chance.random()
        if what < 0.1:
            data = self._mutations.random_bytes()
        elif what < 0.95:
            data = self._mutations.mutated()
        else:
            data = chance.choice(self._corpus)
        if chance.random() < 0.1:
            at = chance.randrange(len(data) + 1)
            ring.feed(peer, data[:at])
            ring.tally.frames -= 1
            data = data[at:]
        if peer.closed is None:
            ring.feed(peer, data)
        for each in ring.peers.values():
            _whole_frames(ring, each)
        if chance.random() < 0.05:
            ring.pass_time(chance.choice(WAITS))
        if ring.alive and chance.random() < 0.02:
            ring.drop(chance.choice(ring.alive))
        for topic in list(ring.cluster.topics.values())[20:]:
            ring.cluster.delete_topic(topic)


def _whole_frames(ring: Ring, peer: Peer) -> None:
    """Check that the output consists of whole frames."""
    for piece in peer.pieces:
        at = 0
        while at < len(piece):
            at += 4 + int.from_bytes(piece[at : at + 4], "big")
            ring.tally.answers += 1
        assert at == len(piece), "an answer is not a whole frame"
    peer.pieces.clear()


GROUP_APIS = {
    ApiKey.JOIN_GROUP: 5,
    ApiKey.SYNC_GROUP: 3,
    ApiKey.HEARTBEAT: 3,
    ApiKey.LEAVE_GROUP: 3,
    ApiKey.OFFSET_COMMIT: 7,
}
"""The APIs a crowd mostly sends, and their first version with static membership (KIP-345)."""


def _in_version(request: Any, version: int, statics_since: int) -> Any:
    """Return the request without fields that the version lacks."""
    since = version >= statics_since
    if isinstance(request, LeaveGroupRequest):
        return replace(request, member_id="") if since else replace(request, members=())
    return request if since else replace(request, group_instance_id=None)


class Crowd:
    """Clients that know the protocol, remember and confuse their ids, and act in any order."""

    FRAMES = 50_000

    def __init__(self, chance: random.Random, ring: Ring | None = None) -> None:
        self.ring = ring or Ring(
            group_initial_rebalance_delay_ms=chance.choice((0, 3_000)),
            group_max_size=chance.choice((2, 5, 1_000)),
            offsets_retention_minutes=chance.choice((1, 60)),
            error_codes=chance.choice(("kafka", "kip")),
        )
        self._chance = chance
        (topic,) = self.ring.cluster.topics.values()
        self._valid = Valid(chance, topic.topic_id)
        self._served = list(served())
        self._ids: deque[str] = deque(["", "ghost"], maxlen=8)
        self._ways = [self._join] * 6 + [self._sync] * 6 + [self._heartbeat] * 8 + [self._commit, self._leave] * 2

    def step(self) -> None:
        """Send one valid request, or several in one piece, from a random client."""
        chance, ring = self._chance, self.ring
        if len(ring.alive) < PEERS_MAX and (not ring.alive or chance.random() < 0.05):
            ring.another()
        peer = chance.choice(ring.alive)
        frames = [self._frame(peer) for _ in range(chance.choice((1, 1, 1, 1, 2, 8)))]
        ring.tally.frames += len(frames) - 1
        ring.feed(peer, b"".join(frames))
        for each in ring.peers.values():
            self._listen(each)
        if chance.random() < 0.3:
            ring.pass_time(chance.choice(WAITS))
        if ring.alive and chance.random() < 0.02:
            ring.drop(chance.choice(ring.alive))
        if chance.random() < 0.001:
            self._tidy()

    def _frame(self, peer: Peer) -> bytes:
        if self._chance.random() < 0.2:
            key, version = self._chance.choice(self._served)
            request: Any = self._valid.request(key, version)
        else:
            request = self._chance.choice(self._ways)()
            key = next(key for key in GROUP_APIS if APIS[key].request is type(request))
            version = self._chance.randint(APIS[key].versions.min, APIS[key].versions.max)
            request = _in_version(request, version, GROUP_APIS[key])
        frame = self.ring.request(peer, request, version)
        if key == ApiKey.PRODUCE and request.acks == 0:
            # acks=0 expects no response
            peer.sent.popitem()
        return frame

    def _listen(self, peer: Peer) -> None:
        """Read every response; remember the ids."""
        if not peer.pieces:
            return
        for correlation_id, answer in peer.answers():
            self.ring.tally.answers += 1
            del peer.sent[correlation_id]
            if isinstance(answer, JoinGroupResponse) and answer.member_id and answer.member_id not in self._ids:
                self._ids.append(answer.member_id)
        peer.pieces.clear()

    def _tidy(self) -> None:
        """Delete topics and records, which would pile up otherwise."""
        for topic in list(self.ring.cluster.topics.values()):
            for log in topic.logs:
                log.truncate_front(log.end)

    def _group(self) -> str:
        return self._chance.choice("ggggh")

    def _who(self, group: str) -> tuple[str, int]:
        """Choose a member, often the right one, and a generation, mostly the right one."""
        known = self.ring.node.coordinator.groups.get(group)
        who = self._chance.choice(self._ids)
        if known is None:
            return who, -1
        if known.members and self._chance.random() < 0.7:
            who = self._chance.choice(list(known.members))
        return who, known.generation if self._chance.random() < 0.9 else self._chance.choice((-1, 0, 1))

    def _instance(self, group: str, member_id: str) -> str | None:
        known = self.ring.node.coordinator.groups.get(group)
        member = known.members.get(member_id) if known is not None else None
        if member is not None and self._chance.random() < 0.9:
            return member.instance_id
        return self._chance.choice((None, None, "i1", "i2"))

    def _join(self) -> JoinGroupRequest:
        group = self._group()
        who = self._who(group)[0] if self._chance.random() < 0.7 else ""
        names = self._chance.choice((("range",), ("range",), ("range", "rr"), ("rr", "range"), ("rr",), ()))
        return JoinGroupRequest(
            group_id=group,
            session_timeout_ms=self._chance.choice((1, 6_000, 10_000, 45_000, 1_800_000, 0, -1, 2**31 - 1)),
            rebalance_timeout_ms=self._chance.choice((1, 0, -1, -(2**31), 2**31 - 1, 5_000, 30_000, 60_000)),
            member_id=who,
            group_instance_id=self._instance(group, who),
            protocol_type=self._chance.choice(("consumer", "consumer", "consumer", "connect", "")),
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=self._chance.choice((SUBSCRIPTION, b"", b"\0\0")))
                for name in names
            ),
            reason=self._chance.choice((None, "", "why\nnot")),
        )

    def _sync(self) -> SyncGroupRequest:
        group = self._group()
        who, generation = self._who(group)
        return SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=who,
            group_instance_id=self._instance(group, who),
            protocol_type="consumer",
            protocol_name=self._chance.choice(("range", "range", "rr", None)),
            assignments=(SyncGroupRequestAssignment(member_id=who, assignment=SUBSCRIPTION),),
        )

    def _heartbeat(self) -> HeartbeatRequest:
        group = self._group()
        who, generation = self._who(group)
        return HeartbeatRequest(
            group_id=group,
            generation_id=generation,
            member_id=who,
            group_instance_id=self._instance(group, who),
        )

    def _leave(self) -> LeaveGroupRequest:
        group = self._group()
        some = [self._who(group)[0] for _ in range(self._chance.choice((1, 1, 2, 0)))]
        return LeaveGroupRequest(
            group_id=group,
            member_id=some[0] if some else "",
            members=tuple(MemberIdentity(member_id=who, group_instance_id=self._instance(group, who)) for who in some),
        )

    def _commit(self) -> OffsetCommitRequest:
        group = self._group()
        who, generation = self._who(group)
        rows = tuple(
            OffsetCommitRequestPartition(
                partition_index=self._chance.choice((0, 1, 2, 3, 4, -1, 2**31 - 1)),
                committed_offset=self._chance.choice((0, 1, -1, 2**63 - 1)),
                committed_metadata=self._chance.choice(("", None, "m")),
            )
            for _ in range(self._chance.choice((1, 2)))
        )
        return OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=who,
            topics=(OffsetCommitRequestTopic(name="t", partitions=rows),),
        )
