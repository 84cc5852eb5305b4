"""Members of share groups, by the shorthand of the reference: `x.join("A")`, `x.beat("A", 3)`, `x.settle_in("A")`.

Topics are t (4 partitions), u (2), and those that the scenario creates.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from koordinator.emulator.core.data.topic import SHARE_STATE_TOPIC, share_state_key
from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.read_share_group_state_summary import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from koordinator.wire.messages.share_state_records import ShareSnapshotKey, ShareSnapshotValue, read_key, read_value
from koordinator.wire.records import read_records
from scenarios.modern_members import LIMIT_S, Given, ModernMembers
from scenarios.registry import STATE_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.messages.share_state_records import Key, Value
    from scenarios.player import Player

VERSION = 1
"""The version of the heartbeats and descriptions of share groups."""

SHARE = 2
"""The type of a key whose coordinator is a share coordinator."""

SETTLE_S = 0.05
"""The interval of heartbeats while the share coordinator initializes partitions."""

ALL: Given = {"t": [0, 1, 2, 3]}


class ShareMembers(ModernMembers):
    """Heartbeats of members of the play's group, and requests about it. Raises Absent where the protocol is absent."""

    def __init__(self, play: Player) -> None:
        play.needs(ApiKey.SHARE_GROUP_HEARTBEAT, VERSION)
        self._shift = 0 if play.since("4.3.0") else 1
        super().__init__(play)
        self.await_share_coordinator()

    def await_share_coordinator(self) -> None:
        """Wait until the broker has made `__share_group_state`, which it does when somebody asks for a coordinator."""
        key = f"{self._play.g}:AAAAAAAAAAAAAAAAAAAAAA:0"
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=(key,))

        def is_there() -> bool:
            (row,) = self._play.ask(request, 6).unrecorded().coordinators
            return bool(row.error_code == Error.NONE)

        self._play.wait_until("there is a share coordinator", is_there)
        self._play.wait_until("it has loaded its log", self._has_loaded)

    def _has_loaded(self) -> bool:
        """Return whether the share coordinator has all partitions of its log."""
        groups: dict[int, str] = {}
        for number in count():
            group = f"{self._play.g}.{number}"
            groups.setdefault(offsets_partition(share_state_key(group, self._ids["t"], 0), STATE_PARTITIONS), group)
            if len(groups) == STATE_PARTITIONS:
                break
        topic = ReadStateSummaryData(topic_id=self._ids["t"], partitions=(PartitionData(partition=0, leader_epoch=0),))
        requests = (ReadShareGroupStateSummaryRequest(group_id=each, topics=(topic,)) for each in groups.values())
        answers = [self._play.slowly(request, 1) for request in requests]
        return not any(answer.results[0].partitions[0].error_code for answer in answers)

    # -- topics ------------------------------------------------------------------------------------------------

    def is_assigned(self, topic: str, group: str) -> bool:
        epoch, _ = self.join("probe", [topic], group=group, recorded=False)
        return bool(self.settled("probe", epoch, group)[1])

    # -- heartbeats --------------------------------------------------------------------------------------------

    def heart(
        self,
        member_id: str,
        epoch: int,
        *,
        topics: Iterable[str] | None = None,
        rack: str | None = None,
        group: str | None = None,
        recorded: bool = True,
    ) -> Any:
        """Send ShareGroupHeartbeat and return the response."""
        request = ShareGroupHeartbeatRequest(
            group_id=self._play.g if group is None else group,
            member_id=member_id,
            member_epoch=self.raw(epoch),
            rack_id=rack,
            subscribed_topic_names=None if topics is None else tuple(self._real.get(each, each) for each in topics),
        )
        return self._play.slowly(request, VERSION, recorded=recorded)

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Send a heartbeat and return (epoch, assignment): None for no assignment; the error alone if it fails."""
        response = self.heart(member_id, epoch, **fields)
        if response.error_code:
            self._expect_nothing_else(response)
            return response.error_code
        assert (response.error_message, response.member_id) == (None, member_id)
        given = None if response.assignment is None else self.named(response.assignment.topic_partitions)
        return self._shown(response.member_epoch), given

    def join(self, member_id: str, topics: Iterable[str] | None = ("t",), **fields: Any) -> Any:
        """Join, as `beat`."""
        return self.beat(member_id, 0, topics=topics, **fields)

    def refusal(self, member_id: str, epoch: int, **fields: Any) -> tuple[int, str | None]:
        """Send a heartbeat and return its error with the message."""
        response = self.heart(member_id, epoch, **fields)
        self._expect_nothing_else(response)
        return response.error_code, response.error_message

    @staticmethod
    def _expect_nothing_else(response: Any) -> None:
        fields = (response.member_id, response.member_epoch, response.heartbeat_interval_ms, response.assignment)
        assert fields == (None, 0, 0, None), response

    def settle_in(self, member_id: str, topics: Iterable[str] = ("t",)) -> Any:
        """J: join, and send heartbeats until there are partitions; return (epoch, assignment)."""
        epoch, given = self.join(member_id, topics)
        return (epoch, given) if given else self.settled(member_id, epoch)

    def settled(self, member_id: str, epoch: int, group: str | None = None) -> Any:
        """Send heartbeats until there are partitions. How many are needed depends on the broker's speed."""
        limit = self._play.target.seconds + LIMIT_S
        given: Given | None = None
        while not given:
            assert self._play.target.seconds < limit, f"{member_id} gets no partitions at epoch {epoch}"
            self._play.wait(SETTLE_S)
            epoch, given = self.beat(member_id, epoch, group=group, recorded=False)
        return epoch, given

    def beats_until(self, wanted: object, member_id: str, epoch: int) -> None:
        """Send heartbeats until one is answered with `wanted`."""
        self._play.wait_until(
            f"the heartbeat of {member_id} gets {wanted}",
            lambda: self.beat(member_id, epoch, recorded=False) == wanted,
        )

    def spread(self, epoch: int, *members: str) -> dict[str, int]:
        """Send a heartbeat of each member until all are at an epoch; return how many partitions of t each has.

        Which ones depends on the topic's id. Together the members have all.
        """
        for member_id in members:
            self._play.wait_until(
                f"{member_id} is at epoch {epoch}",
                lambda member_id=member_id: (  # type: ignore[misc]
                    self.beat(member_id, self.members(recorded=False)[member_id][0], recorded=False)[0] == epoch
                ),
            )
        held = {member_id: given for member_id, (_, given) in self.members(recorded=False).items()}
        assert {each for given in held.values() for each in given.get("t", [])} == {*ALL["t"]}
        return {member_id: len(given.get("t", [])) for member_id, given in held.items()}

    # -- about the group ---------------------------------------------------------------------------------------

    def described(self, group: str | None = None, *, recorded: bool = True) -> Any:
        """Return the row of ShareGroupDescribe."""
        request = ShareGroupDescribeRequest(group_ids=(self._play.g if group is None else group,))
        asked = self._play.ask(request, VERSION)
        (row,) = (asked.answer() if recorded else asked.unrecorded()).groups
        return row

    def shape(self, *, recorded: bool = True) -> tuple[str, int, int]:
        """Return the state of the group, its epoch, and that of its target."""
        row = self.described(recorded=recorded)
        return row.group_state, self._shown(row.group_epoch), self._shown(row.assignment_epoch)

    def members(self, *, recorded: bool = True) -> dict[str, tuple[int, Given]]:
        """Return the epoch and the assignment of each member."""
        return {
            row.member_id: (self._shown(row.member_epoch), self.named(row.assignment.topic_partitions))
            for row in self.described(recorded=recorded).members
        }

    # -- records -----------------------------------------------------------------------------------------------

    def state_written(self, topic: str, partition: int) -> list[str]:
        """Return the records of a share partition of the group in `__share_group_state`.

        S is a snapshot with its epoch and the state epoch, U an update with the snapshot's epoch; -S is a tombstone.
        """
        place = self._play.g, self.id_of(topic), partition
        return [
            _shown(key, None if record.value is None else read_value(key, record.value))
            for _, batch in self._play.batches(SHARE_STATE_TOPIC)
            for record in read_records(batch)
            if (key := read_key(record.key or b"")) is not None and (key.group_id, key.topic_id, key.partition) == place
        ]

    def transcribe_state(self, topic: str, partition: int) -> None:
        """Add the records of a share partition to the transcript."""
        for shown in self.state_written(topic, partition):
            self._play.transcript.add("record", 0, shown)


def _shown(key: Key, value: Value | None) -> str:
    kind = "S" if isinstance(key, ShareSnapshotKey) else "U"
    if value is None:
        return f"-{kind}"
    state = f"/{value.state_epoch}" if isinstance(value, ShareSnapshotValue) else ""
    return (
        f"{kind}({value.snapshot_epoch}{state}, leader {value.leader_epoch}, start {value.start_offset}, "
        f"done {value.delivery_complete_count}, [{batches(value.state_batches)}])"
    )


def batches(rows: Iterable[Any]) -> str:
    """Return state batches as first-last/state/deliveries."""
    return " ".join(f"{row.first_offset}-{row.last_offset}/{row.delivery_state}/{row.delivery_count}" for row in rows)
