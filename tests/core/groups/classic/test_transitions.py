"""The table of state transitions: every row occurs, every other pair raises, and the states are those of Kafka."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest
from builders.requests import CHANGED, RANGE
from scenes.play import Play

from koordinator.emulator.core import overrides
from koordinator.emulator.core.groups.causes import Cause, Reason
from koordinator.emulator.core.groups.classic.changes import transition
from koordinator.emulator.core.groups.classic.group import ClassicGroupState
from koordinator.emulator.core.groups.classic.transitions import TRANSITIONS, TransitionError, next_state
from koordinator.emulator.core.groups.facts import StateChanged
from koordinator.emulator.trace.vocabulary import OTHER_CAUSES, REBALANCE_CAUSES
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Callable

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState
ROUND_ROBIN = (("roundrobin", RANGE[0][1]),)

VALID_PREVIOUS_STATES = {
    EMPTY: {PREPARING},
    PREPARING: {STABLE, COMPLETING, EMPTY},
    COMPLETING: {PREPARING},
    STABLE: {COMPLETING},
    DEAD: {STABLE, PREPARING, COMPLETING, EMPTY, DEAD},
}
"""`ClassicGroupState.validPreviousStates` of Kafka."""


def unload(play: Play) -> None:
    partition = play.coordinator.store.partition_of("g")
    play._perform(play.coordinator.unload(play.now, partition))


def reload(play: Play) -> None:
    partition = play.coordinator.store.partition_of("g")
    unload(play)
    play._perform(play.coordinator.begin_load(play.now, partition))
    records = [record for append in play.appended for record in append.records]
    play._perform(play.coordinator.loaded(play.now, partition, records))


def reload_over_capacity(play: Play) -> None:
    play.stable_pair()
    store = play.coordinator.store
    store.settings = replace(store.settings, group_max_size=1)
    reload(play)


def force(play: Play) -> None:
    play._perform(
        play.coordinator.override(play.now, "g", lambda store, group: overrides.force_rebalance(store, group, "forced"))
    )


def fail_first_write(play: Play, *, joined: bool) -> None:
    play.writes = None
    play.join(version=3)
    if joined:
        play.settle()
    play.complete_writes(Error.NOT_LEADER_OR_FOLLOWER)


def fail_assignment(play: Play) -> None:
    a, _ = play.unsynced_pair()
    play.writes = None
    play.sync(2, a, {})
    play.complete_writes(Error.NOT_ENOUGH_REPLICAS)


def fail_deletion(play: Play) -> None:
    play.emptied()
    play.writes = None
    play.start_delete("g")
    play.complete_writes(Error.NOT_LEADER_OR_FOLLOWER)


def stay_silent_after_sync(play: Play, *, leader_synced: bool) -> None:
    a, b = play.unsynced_pair()
    if leader_synced:
        play.sync(2, a, {})
    play.keep_alive(31_000, (2, a), (2, b))


def change_protocol(play: Play) -> None:
    play.static_pair(protocols=RANGE + ROUND_ROBIN)
    play.join("", "i2", protocols=ROUND_ROBIN)


def downgrade(play: Play) -> None:
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="A", rebalance_timeout_ms=1_000, subscribed_topic_names=("t",), topic_partitions=()
    )
    play.send(joining, 1)
    play.join("", "i1")
    play.send(ConsumerGroupHeartbeatRequest(group_id="g", member_id="A", member_epoch=-1), 1)


SCENES: dict[tuple[ClassicGroupState, Cause], Callable[[Play], object]] = {
    (EMPTY, Cause.MEMBER_JOIN): Play.stable_member,
    (EMPTY, Cause.GROUP_DOWNGRADE): downgrade,
    (EMPTY, Cause.LOADED): lambda play: (play.stable_member(), reload(play)),
    (EMPTY, Cause.REMOVED): lambda play: (play.emptied(), play.delete("g")),
    (EMPTY, Cause.UNLOADED): lambda play: (play.emptied(), unload(play)),
    (PREPARING, Cause.JOINED): Play.stable_member,
    (PREPARING, Cause.EMPTIED): Play.emptied,
    (PREPARING, Cause.REMOVED): lambda play: fail_first_write(play, joined=False),
    (PREPARING, Cause.UNLOADED): lambda play: (play.stable_member(), play.join(play.new_id()), unload(play)),
    (COMPLETING, Cause.ASSIGNED): Play.stable_member,
    (COMPLETING, Cause.STORE_ERROR): fail_assignment,
    (COMPLETING, Cause.MEMBER_JOIN): lambda play: (play.unsynced_pair(), play.join(play.new_id())),
    (COMPLETING, Cause.METADATA_CHANGE): lambda play: play.join(play.unsynced_pair()[0], protocols=CHANGED),
    (COMPLETING, Cause.MEMBER_LEAVE): lambda play: play.leave(play.unsynced_pair()[1]),
    (COMPLETING, Cause.SESSION_EXPIRED): lambda play: (play.unsynced_pair(), play.wait(10_001)),
    (COMPLETING, Cause.SYNC_TIMEOUT): lambda play: stay_silent_after_sync(play, leader_synced=False),
    (COMPLETING, Cause.FORCED): lambda play: (play.unsynced_pair(), force(play)),
    (COMPLETING, Cause.REMOVED): lambda play: fail_first_write(play, joined=True),
    (COMPLETING, Cause.UNLOADED): lambda play: (play.unsynced_pair(), unload(play)),
    (STABLE, Cause.MEMBER_JOIN): lambda play: (play.stable_member(), play.join(play.new_id())),
    (STABLE, Cause.LEADER_REJOIN): lambda play: play.join(play.stable_pair()[0]),
    (STABLE, Cause.METADATA_CHANGE): lambda play: play.join(play.stable_pair()[1], protocols=CHANGED),
    (STABLE, Cause.PROTOCOL_CHANGE): change_protocol,
    (STABLE, Cause.MEMBER_LEAVE): lambda play: play.leave(play.stable_pair()[1]),
    (STABLE, Cause.SESSION_EXPIRED): lambda play: (play.stable_pair(), play.wait(10_001)),
    (STABLE, Cause.SYNC_TIMEOUT): lambda play: stay_silent_after_sync(play, leader_synced=True),
    (STABLE, Cause.OVER_CAPACITY): reload_over_capacity,
    (STABLE, Cause.FORCED): lambda play: (play.stable_member(), force(play)),
    (STABLE, Cause.GROUP_DOWNGRADE): downgrade,
    (STABLE, Cause.UNLOADED): lambda play: (play.stable_member(), unload(play)),
    (DEAD, Cause.STORE_ERROR): fail_deletion,
}
"""For each row of the table a scene in which it occurs."""


@pytest.mark.parametrize(
    ("state", "cause"), TRANSITIONS, ids=[f"{state.value} {cause.value}" for state, cause in TRANSITIONS]
)
def test_every_row_of_the_table_occurs(play: Play, state: ClassicGroupState, cause: Cause) -> None:
    SCENES[state, cause](play)
    seen = {(fact.before, fact.cause, fact.after) for fact in play.facts_of(StateChanged)}
    assert (state.value, cause.value, TRANSITIONS[state, cause].value) in seen


def test_every_other_pair_of_state_and_cause_raises() -> None:
    others = set(product(ClassicGroupState, Cause)) - TRANSITIONS.keys()
    assert len(others) + len(TRANSITIONS) == len(ClassicGroupState) * len(Cause)
    for state, cause in others:
        with pytest.raises(TransitionError, match=f"no transition from {state.value} for {cause.value}"):
            next_state(state, cause)


def test_a_transition_that_raises_changes_nothing(play: Play) -> None:
    play.stable_member()
    group, facts = play.group(), len(play.facts)
    with pytest.raises(TransitionError):
        transition(play.coordinator.store, group, Reason(Cause.ASSIGNED, "a second assignment"))
    assert (group.state, group.previous_state) == (STABLE, COMPLETING)
    assert play.facts[facts:] == play.coordinator.store.drain() == []


def test_the_states_follow_each_other_as_in_kafka() -> None:
    ours = {(before, after) for (before, _), after in TRANSITIONS.items()}
    kafka = {(before, after) for after, befores in VALID_PREVIOUS_STATES.items() for before in befores}
    assert ours - kafka == {(EMPTY, STABLE), (DEAD, EMPTY)}
    assert kafka - ours == {(DEAD, DEAD)}


def test_the_trace_knows_every_cause() -> None:
    assert {cause.value for cause in Cause} <= REBALANCE_CAUSES.keys() | OTHER_CAUSES.keys()
