"""A new kind of group is a value and a row: nothing else in the core has to know it.

The kind of these tests, "tally", has no members. Its records count, its timer counts, and it takes offsets of epoch 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from scenes.play import Play

from koordinator.emulator.core import overrides
from koordinator.emulator.core.groups.commit import GroupWrite
from koordinator.emulator.core.groups.facts import StateChanged
from koordinator.emulator.core.groups.group import BaseGroup
from koordinator.emulator.core.groups.group_store import GroupStore
from koordinator.emulator.core.groups.kind import GroupKind
from koordinator.emulator.core.groups.kinds import KINDS
from koordinator.emulator.core.groups.records import CoordinatorRecord
from koordinator.emulator.core.timers import RebalanceTimeout, SessionExpiry
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupResponse
from koordinator.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from koordinator.emulator.core.dialect import Dialect
    from koordinator.emulator.core.effects import Call
    from koordinator.emulator.core.groups.causes import Reason
    from koordinator.emulator.core.timers import TimerKey
    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

EPOCH = 7


@dataclass(frozen=True)
class TallyKey:
    group: str


class Tally(BaseGroup):
    kind = "tally"
    members: dict[str, Any] = {}  # noqa: RUF012 - there are none
    static_members: dict[str, str] = {}  # noqa: RUF012
    generation = 0
    state_name = "Empty"
    listed_protocol_type = "tally"
    is_empty = True
    unsettled: list[str] = []  # noqa: RUF012

    def __init__(self, store: GroupStore, now: int, group_id: str) -> None:
        super().__init__(group_id, store.partition_of(group_id), store.cluster.clocks.of(group_id, now), now)
        self.count = 0
        self.log: list[str] = []

    @property
    def is_unused(self) -> bool:
        return not self.offsets

    def is_subscribed(self, topic: str) -> bool:
        return topic == "u"

    def subscribed_topics(self, _: str) -> tuple[str, ...]:
        raise AssertionError("there are no members")

    def partitions_of(self, _: str, names: dict[UUID, str]) -> dict[str, list[int]]:
        raise AssertionError(f"there are no members; {names}")

    def is_awaited(self, _: str) -> bool:
        return False

    def has_quiet_heartbeats(self, _: int) -> bool:
        return True

    def unused_since(self, topic: str, committed: OffsetCommitValue, _: Dialect) -> int | None:
        return None if self.is_subscribed(topic) else committed.commit_timestamp

    def tombstones(self, _: Dialect) -> list[CoordinatorRecord]:
        return [record(self.id, None)]


def record(group: str, count: int | None) -> CoordinatorRecord:
    key: Any = TallyKey(group)
    value: Any = count
    return CoordinatorRecord(key, value)


def load(store: GroupStore, now: int, group_id: str, records: Sequence[CoordinatorRecord]) -> Tally:
    group = Tally(store, now, group_id)
    store.add(now, group)
    group.stored = True
    group.count = sum(int(str(each.value)) for each in records)
    return group


def fire(_: GroupStore, group: Tally, key: TimerKey) -> None:
    group.log.append(type(key).__name__)


def end(store: GroupStore, group: Tally, why: Reason) -> None:
    store.emit(StateChanged(group.id, group.now, "Empty", "Dead", 0, why.cause.value, why.text))


def refused(response: Any) -> Any:
    def refuse(store: GroupStore, _: Tally, call: Call, __: Any) -> None:
        store.reply(call, response(error_code=Error.INCONSISTENT_GROUP_PROTOCOL))

    return refuse


TALLY = GroupKind[Tally](
    join=refused(JoinGroupResponse),
    sync=refused(SyncGroupResponse),
    heartbeat=lambda *_: Error.UNKNOWN_MEMBER_ID,
    leave=refused(LeaveGroupResponse),
    commit_error=lambda _, __, ___, request: (
        Error.NONE if request.generation_id_or_member_epoch == EPOCH else Error.STALE_MEMBER_EPOCH
    ),
    transactional_commit_error=lambda *_: Error.UNKNOWN_MEMBER_ID,
    fetch_error=lambda _, query: Error.STALE_MEMBER_EPOCH if query.member_id == "old" else Error.NONE,
    fire=fire,
    end=end,
    restore=lambda _, group, reason: group.log.append(reason),
    unload=lambda _, group: group.log.append("unloaded"),
    keys=(TallyKey,),
    replaces=lambda each: each.value is None,
    load=load,
    force_rebalance=lambda _, group, why: group.log.append(why.text),
    delete=GroupStore.delete_empty_group,
    topics_deleted=lambda _, group: group.log.append("topics deleted"),
    thaw=lambda _, group: group.log.append("thawed"),
)


class TallyPlay(Play):
    """A coordinator that has the kind, and the group g of it."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        store = self.coordinator.store
        self.tally = Tally(store, self.now, "g")
        store.add(self.now, self.tally)
        store.append(GroupWrite(self.tally, [record("g", 1), record("g", 2)]))
        self.settle()

    def found(self) -> Tally:
        group: Any = self.coordinator.group("g")
        assert isinstance(group, Tally)
        return group


@pytest.fixture
def tallies(monkeypatch: pytest.MonkeyPatch) -> TallyPlay:
    monkeypatch.setitem(KINDS, "tally", TALLY)
    return TallyPlay()


def test_every_request_of_the_classic_protocol_is_answered_by_the_kind(tallies: TallyPlay) -> None:
    assert tallies.join().error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert tallies.sync(1, "m").error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert tallies.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4).error == 25


def test_offsets_are_committed_and_fetched_as_the_kind_allows(tallies: TallyPlay) -> None:
    assert tallies.commit_errors(generation=EPOCH - 1) == [Error.STALE_MEMBER_EPOCH]
    assert tallies.commit_errors(generation=EPOCH) == [Error.NONE]
    assert [at for at, _ in tallies.tally.offsets.items()] == [("t", 0)]


def test_it_is_listed_with_its_type_and_described_by_no_other_kind(tallies: TallyPlay) -> None:
    (row,) = tallies.list_groups().groups
    assert (row.group_id, row.group_type, row.protocol_type) == ("g", "tally", "tally")
    assert tallies.describe("g", version=6).error_code == Error.GROUP_ID_NOT_FOUND


def test_its_timers_are_its_own(tallies: TallyPlay) -> None:
    tallies.tally.timers.set(RebalanceTimeout(), tallies.tally.now + 10)
    tallies.coordinator.store.touch(tallies.now, tallies.tally)
    tallies.settle()
    tallies.wait(10)
    assert tallies.tally.log == ["RebalanceTimeout"]


def test_it_is_loaded_from_its_records_and_unloaded(tallies: TallyPlay) -> None:
    tallies.reload("g")
    assert tallies.tally.log == ["unloaded"]
    assert tallies.found().count == 3


def test_its_deletion_is_written_and_taken_back_if_it_fails(tallies: TallyPlay) -> None:
    tallies.writes = Error.UNKNOWN_SERVER_ERROR
    assert tallies.delete("g") == {"g": Error.UNKNOWN_SERVER_ERROR}
    assert tallies.found().log == ["The removal of group g could not be written"]
    tallies.writes = Error.NONE
    assert tallies.delete("g") == {"g": Error.NONE}
    assert tallies.appended[-1].records == (record("g", None),)
    assert tallies.coordinator.group("g") is None
    tallies.reload("g")
    assert tallies.coordinator.group("g") is None


def test_the_levers_of_tests_reach_it(tallies: TallyPlay) -> None:
    for lever in (
        lambda store, group: overrides.force_rebalance(store, group, "a test asked"),
        overrides.freeze,
        overrides.thaw,
        lambda store, group: store.kind_of(group).fire(store, group, SessionExpiry("m")),
    ):
        tallies._perform(tallies.coordinator.override(tallies.now, "g", lever))
    assert tallies.tally.log == ["a test asked", "thawed", "SessionExpiry"]
