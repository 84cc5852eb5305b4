"""Classic members beside those of the consumer protocol, in one group that migrates (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    write_assignment,
    write_subscription,
)
from scenarios.consumer_members import ALL, HALF, OTHER_HALF, ConsumerMembers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.modern_members import Given


class MixedMembers(ConsumerMembers):
    """Members of both protocols."""

    def classic(self) -> str:
        """Form a Stable classic group of one member, with all of t at generation 1; return its id."""
        play = self._play
        member_id = play.new_id(version=7, protocols=owning())
        joining = play.join(member_id, version=7, protocols=owning())
        play.pass_initial_delay(joining)
        joining.expect(generation_id=1, leader=member_id, members=[member_id])
        self._play.sync(1, member_id, {member_id: assigned(ALL)}, version=5).expect(assignment=assigned(ALL))
        return member_id

    def classic_id(self, **join: Any) -> str:
        """Return the id that a classic joiner of a consumer group receives with error 79."""
        asked = self._play.join(version=7, **{"protocols": owning(), **join})
        member_id = asked.unrecorded().member_id
        self._play.transcript.name(member_id, "#classic")
        asked.expect(79, member_id=member_id)
        assert len(member_id) == len("AAAAAAAAAAAAAAAAAAAAAA")
        return member_id

    def rejoin(self, member_id: str, *owned: int, **join: Any) -> Any:
        """JoinGroup v7 of a classic member: the generation and the protocol name, or the error."""
        answer = self._play.join(member_id, version=7, **{"protocols": owning(*owned), **join}).answer()
        if answer.error_code:
            return answer.error_code
        assert (answer.protocol_type, answer.leader, answer.members) == ("consumer", "", ())
        assert not answer.skip_assignment
        return self._shown(answer.generation_id), answer.protocol_name

    def sync(self, generation: int, member_id: str, **fields: Any) -> Any:
        """SyncGroup v5 of a classic member: its partitions, or the error."""
        answer = self._play.sync(self.raw(generation), member_id, version=5, **fields).answer()
        if answer.error_code:
            return answer.error_code
        read = read_assignment(answer.assignment)
        assert read.user_data is None
        return {row.topic: sorted(row.partitions) for row in read.assigned_partitions}

    def classic_beat(self, generation: int, member_id: str) -> int:
        """Heartbeat v4 of a classic member: the error."""
        return int(self._play.heartbeat(self.raw(generation), member_id, version=4).answer().error_code)

    def joined_by_classic(self, **join: Any) -> str:
        """C1; a classic member joins in generation 3; return its id. It has not synced."""
        self.one()
        member_id = self.classic_id(**join)
        assert self.rejoin(member_id, **join) == (3, "range")
        return member_id

    def shared_with_classic(self, **join: Any) -> str:
        """C1; a classic member joins and gets t:2,3 in generation 3; return its id."""
        member_id = self.joined_by_classic(**join)
        assert self.sync(3, member_id) == {}
        assert self.beat("A", 2) == (2, HALF)
        assert self.beat("A", 2, owned=HALF) == (3, None)
        assert self.classic_beat(3, member_id) == Error.REBALANCE_IN_PROGRESS
        assert self.rejoin(member_id, **join) == (3, "range")
        assert self.sync(3, member_id) == OTHER_HALF
        return member_id


def assigned(partitions: Given, user_data: bytes | None = None) -> bytes:
    """Return an assignment of a classic member."""
    rows = tuple(TopicPartition(topic=name, partitions=tuple(each)) for name, each in partitions.items())
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows, user_data=user_data), 1)


def assigned_in_rows(*partitions: int) -> bytes:
    """Return an assignment with a row of t for each partition."""
    rows = tuple(TopicPartition(topic="t", partitions=(each,)) for each in partitions)
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows), 1)


def owning(*partitions: int, names: Sequence[str] = ("range",)) -> tuple[tuple[str, bytes], ...]:
    """Return protocols with a version 1 subscription to t that owns partitions of it."""
    rows = (TopicPartition(topic="t", partitions=partitions),) if partitions else ()
    metadata = write_subscription(ConsumerProtocolSubscription(topics=("t",), owned_partitions=rows), 1)
    return tuple((name, metadata) for name in names)
