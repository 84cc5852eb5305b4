"""Members of the consumer protocol, by the shorthand of the reference: `x.join("A")`, `x.beat("A", 2, owned=HALF)`.

Epochs are those of 4.3, where a new group begins with epoch 1; releases before begin with 0, and are shifted. Topics
are t (4 partitions), u (2), and those that the scenario creates.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from builders import requests

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages import consumer_group_describe
from koordinator.wire.messages.list_groups import ListGroupsRequest
from scenarios.modern_members import LIMIT_S, Given, ModernMembers
from scenarios.requests import Absent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scenarios.player import Player

HEARTBEAT, DESCRIBE = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE

TYPES_SINCE = 5
"""The first version of ListGroups with the types of groups."""

PARTITION_METADATA = 4
"""The key type of the record of a group's topics, up to 4.0."""

ALL: Given = {"t": [0, 1, 2, 3]}
HALF: Given = {"t": [0, 1]}
OTHER_HALF: Given = {"t": [2, 3]}


class ConsumerMembers(ModernMembers):
    """Heartbeats of members of the play's group, and requests about it. Raises Absent where the protocol is absent.

    `same_epochs`: the group begins as a classic one, or with a pattern, so that its epochs are equal in all releases.
    """

    def __init__(self, play: Player, *, same_epochs: bool = False) -> None:
        play.needs(HEARTBEAT, 0)
        if play.old:
            raise Absent(HEARTBEAT.name, 0, play.target.release)
        self.version = 1 if play.serves(HEARTBEAT, 1) else 0
        self._shift = 0 if same_epochs or play.since("4.3.0") else 1
        super().__init__(play)

    def is_assigned(self, topic: str, group: str) -> bool:
        return bool(self.join("probe", [topic], group=group, recorded=False)[1])

    # -- heartbeats --------------------------------------------------------------------------------------------

    def heart(
        self,
        member_id: str,
        epoch: int,
        *,
        topics: Iterable[str] | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        inst: str | None = None,
        rack: str | None = None,
        timeout: float | None = None,
        assignor: str | None = None,
        regex: str | None = None,
        group: str | None = None,
        version: int | None = None,
        recorded: bool = True,
    ) -> Any:
        """Send ConsumerGroupHeartbeat and return the response; `timeout` is in seconds."""
        play = self._play
        if regex is not None:
            play.needs(HEARTBEAT, 1)
            pytest.importorskip("re2", reason="google-re2 has no wheel here")
        request = requests.consumer_group_heartbeat(
            play.g if group is None else group,
            member_id,
            self.raw(epoch),
            inst,
            topics=None if topics is None else [self._real.get(each, each) for each in topics],
            regex=regex,
            owned=None if owned is None else {self._ids[name]: rows for name, rows in owned.items()},
            rebalance_ms=-1 if timeout is None else play.ms(timeout),
            rack_id=rack,
            assignor=assignor,
        )
        asked = play.ask(request, self.version if version is None else version)
        return asked.answer() if recorded else asked.unrecorded()

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Send a heartbeat and return (epoch, assignment): None for no assignment; the error alone if it fails."""
        response = self.heart(member_id, epoch, **fields)
        if response.error_code:
            self._expect_nothing_else(response)
            return response.error_code
        assert (response.error_message, response.member_id) == (None, member_id or response.member_id)
        given = None if response.assignment is None else self.named(response.assignment.topic_partitions)
        return self._shown(response.member_epoch), given

    def join(self, member_id: str, topics: Iterable[str] | None = ("t",), **fields: Any) -> Any:
        """Join with a rebalance timeout of 30 s, as `beat`."""
        return self.beat(member_id, 0, **{"topics": topics, "owned": {}, "timeout": 30, **fields})

    def refusal(self, member_id: str, epoch: int, **fields: Any) -> tuple[int, str | None]:
        """Send a heartbeat and return its error with the message."""
        response = self.heart(member_id, epoch, **fields)
        self._expect_nothing_else(response)
        return response.error_code, response.error_message

    def refused_join(self, member_id: str, **fields: Any) -> tuple[int, str | None]:
        """Join, as `refusal`."""
        return self.refusal(member_id, 0, **{"topics": ["t"], "owned": {}, "timeout": 30, **fields})

    @staticmethod
    def _expect_nothing_else(response: Any) -> None:
        fields = (response.member_id, response.member_epoch, response.heartbeat_interval_ms, response.assignment)
        assert fields == (None, 0, 0, None), response

    def beats_until(
        self,
        wanted: object,
        member_id: str,
        epoch: int,
        within: tuple[float, float] = (0, LIMIT_S),
        every: float = 0.3,
        **fields: Any,
    ) -> None:
        """Send heartbeats until one is answered with `wanted`, between (earliest, latest) seconds of the play."""
        earliest, latest = within
        while (said := self.beat(member_id, epoch, recorded=False, **fields)) != wanted:
            assert self._play.seconds <= latest, f"{member_id} still gets {said}, expected {wanted}"
            self._play.wait(every)
        assert self._play.seconds >= earliest, f"{member_id} gets {wanted} at {self._play.seconds:.3f} s"

    def converge(self, members: dict[str, tuple[int, Given]]) -> dict[str, tuple[int, Given]]:
        """Let members heartbeat in turn with their partitions, until a round changes nothing."""
        changed = True
        while changed:
            changed = False
            for member_id, (epoch, owned) in members.items():
                new_epoch, given = self.beat(member_id, epoch, owned=owned)
                now = new_epoch, owned if given is None else given
                changed |= now != members[member_id]
                members[member_id] = now
        return members

    # -- situations --------------------------------------------------------------------------------------------

    def one(self) -> None:
        """C1: A has all of t."""
        assert self.join("A") == (2, ALL)

    def pair(self) -> None:
        """C2: A and B share t at epoch 3."""
        self.one()
        assert self.join("B") == (3, {})
        assert self.beat("A", 2) == (2, HALF)
        assert self.beat("A", 2, owned=HALF) == (3, None)
        assert self.beat("B", 3) == (3, OTHER_HALF)
        assert self.shape() == ("Stable", 3, 3)

    def revoking(self) -> None:
        """C1; B joins; A is told to give t:2,3 up."""
        self.one()
        assert self.join("B") == (3, {})
        assert self.beat("A", 2) == (2, HALF)

    def static_one(self) -> None:
        """CS1: P, with the instance id i1, has all of t."""
        assert self.join("P", inst="i1") == (2, ALL)

    def static_away(self) -> None:
        """CS1; P leaves for a while."""
        self.static_one()
        assert self.beat("P", -2, inst="i1") == (-2, None)

    # -- about the group ---------------------------------------------------------------------------------------

    def described(self, group: str | None = None, **options: Any) -> Any:
        """Return the row of ConsumerGroupDescribe."""
        (row,) = self.described_all(self._play.g if group is None else group, **options)
        return row

    def described_all(
        self, *groups: str, version: int | None = None, operations: bool = False, recorded: bool = True
    ) -> Any:
        """Return the rows of ConsumerGroupDescribe."""
        request = consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=groups, include_authorized_operations=operations
        )
        asked = self._play.ask(request, self.version if version is None else version)
        return (asked.answer() if recorded else asked.unrecorded()).groups

    def shape(self, *, recorded: bool = True) -> tuple[str, int, int]:
        """Return the state of the group, its epoch, and that of its target."""
        row = self.described(recorded=recorded)
        return row.group_state, self._shown(row.group_epoch), self._shown(row.assignment_epoch)

    def states(self) -> tuple[str, str]:
        """Return the state of the group in ListGroups and in ConsumerGroupDescribe."""
        (row,) = self._play.listed(version=5)
        return row.group_state, self.described().group_state

    def listed(self) -> tuple[str, str]:
        """Return the type and the state of the group."""
        (row,) = self._play.listed(version=5)
        return row.group_type, row.group_state

    def await_type(self, wanted: str) -> None:
        """Wait until ListGroups, which shows what is in the log, has the group with this type."""
        request = ListGroupsRequest()
        self._play.wait_until(
            f"ListGroups has the {wanted} group",
            lambda: (
                (self._play.g, wanted)
                in {(row.group_id, row.group_type) for row in self._play.ask(request, TYPES_SINCE).unrecorded().groups}
            ),
        )

    def await_no_group(self) -> None:
        """Wait until ConsumerGroupDescribe does not find a group that the broker has forgotten without a record.

        It shows that after the next write to the same partition of `__consumer_offsets`; some other group is there.
        """
        others = (f"{self._play.g}.{number}" for number in count())

        def is_missing() -> bool:
            self._play.commit(-1, "", group=next(others)).unrecorded()
            return bool(self.described(recorded=False).error_code == Error.GROUP_ID_NOT_FOUND)

        self._play.wait_until("the group is forgotten", is_missing)

    def members(self, *, recorded: bool = True) -> dict[str, tuple[int, Given, Given]]:
        """Return the epoch, the assignment and the target of each member."""
        return {
            row.member_id: (
                self._shown(row.member_epoch),
                self.named(row.assignment.topic_partitions),
                self.named(row.target_assignment.topic_partitions),
            )
            for row in self.described(recorded=recorded).members
        }

    def targets(self) -> dict[str, Given]:
        """Return the target of each member."""
        return {member_id: target for member_id, (_, _, target) in self.members().items()}

    # -- offsets -----------------------------------------------------------------------------------------------

    def commit(
        self, member_id: str, epoch: int, *partitions: tuple[str, int], offset: int = 5, version: int = 9
    ) -> list[int]:
        """OffsetCommit of an offset for partitions, t-0 by default: the errors. Topics go by id from version 10 on."""
        wanted = partitions or (("t", 0),)
        offsets = {(self._real.get(name, name), at): offset for name, at in wanted}
        ids = self._known_ids(name for name, _ in wanted)
        request = requests.offset_commit(self._play.g, offsets, self.raw(epoch), member_id, ids=ids)
        answer = self._play.ask(request, version).answer()
        return [row.error_code for topic in answer.topics for row in topic.partitions]

    def fetch(self, member_id: str | None, epoch: int, at: tuple[str, int] = ("t", 0), version: int = 9) -> Any:
        """OffsetFetch: (error, offset) of a partition; the error of the group alone if it has one."""
        name, partition = at
        member, ids = (member_id, self.raw(epoch)), self._known_ids([name])
        where = [(self._real.get(name, name), partition)]
        request = requests.offset_fetch(version, self._play.g, where, member=member, ids=ids)
        (row,) = self._play.ask(request, version).answer().groups
        if row.error_code:
            assert row.topics == ()
            return row.error_code
        found = row.topics[0].partitions[0]
        return found.error_code, found.committed_offset

    # -- records -----------------------------------------------------------------------------------------------

    def written(self) -> list[int]:
        return [each for each in super().written() if abs(each) != PARTITION_METADATA or self._play.since("4.1.0")]
