"""A failed write to `__consumer_offsets` loses nothing: later answers equal those of a twin that never tried.

A test asserts that the rows write every type of record, as a value and as a tombstone, so a new type needs a row.
Share groups and streams groups have rows of their own.
`KEPT` names the changes that Kafka keeps although their write has failed.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, get_args

import pytest
from scenes.group_twins import (
    NEWER_ONLY,
    RELEASES,
    ROWS,
    UNTIL_MS,
    assert_twins,
    completing,
    look,
    rows,
    static_pair,
    twins,
)
from scenes.migrations import ALL, MigrationPlay, assigned

from koordinator.wire.errors import Error
from koordinator.wire.messages import share_group_records, streams_group_records
from koordinator.wire.messages.offsets_topic import Key

if TYPE_CHECKING:
    from collections.abc import Callable

FAILURE = Error.NOT_ENOUGH_REPLICAS

HEARD = {"a consumer changes its topics": "A", "a consumer takes a new pattern": "A"}
"""The requests that restart the session of a member whether or not their write fails: a twin hears from it as well."""

LONGER_SESSION = "a classic member becomes a consumer"
"""The request that restarts a session with another length."""

KEPT: dict[Callable[[MigrationPlay], None], dict[str, Callable[[MigrationPlay], object]]] = {
    # classicGroupSyncToClassicGroup: resetAndPropagateAssignmentWithError, maybePrepareRebalanceOrCompleteJoin
    completing: {
        "the leader assigns": lambda play: play.sync(2, play.m, {play.m: assigned(ALL)}),
    },
    # completeClassicGroupJoin: "Failed to write empty metadata", and the members stay removed
    static_pair: {
        "all members leave": lambda play: play.start_leave(play.p, play.q),
    },
}
"""Requests whose change a classic group keeps: their members are not in the records that Kafka replays."""


def fail(play: MigrationPlay, *attempts: Callable[[MigrationPlay], object]) -> list[Any]:
    """Make requests whose writes are in flight together and fail; return the records."""
    mark, play.writes = len(play.appended), None
    for attempt in attempts:
        attempt(play)
    while play.in_flight:
        play.complete_writes(FAILURE)
        play.settle()
    play.writes = Error.NONE
    return [record for append in play.appended[mark:] for record in append.records]


@pytest.mark.parametrize(("scene", "attempt", "release"), rows(ROWS))
def test_after_a_failed_write_a_group_equals_its_twin(scene: Any, attempt: Any, release: str) -> None:
    tried, twin = twins(scene, release)
    fail(tried, attempt)
    heard = next((HEARD[name] for name, each in ROWS[scene].items() if each is attempt and name in HEARD), None)
    if heard is not None:
        twin.beat(heard, twin.members[heard][0])
    assert_twins(tried, twin, lasting_ms=0 if attempt is ROWS[scene].get(LONGER_SESSION) else UNTIL_MS)


@pytest.mark.parametrize(("scene", "attempt", "release"), rows(ROWS))
def test_a_request_is_repeated_after_a_failed_write_as_if_it_were_the_first(
    scene: Any, attempt: Any, release: str
) -> None:
    tried, twin = twins(scene, release)
    fail(tried, attempt)
    assert_twins(tried, twin, attempt)


@pytest.mark.parametrize(("scene", "attempt", "release"), rows(KEPT, ["4.4"]))
def test_a_classic_group_keeps_what_kafka_does_not_replay(scene: Any, attempt: Any, release: str) -> None:
    tried, twin = twins(scene, release)
    assert fail(tried, attempt)
    assert look(tried) != look(twin)


@pytest.mark.slow
# the members of a classic group are not replayed: each write of them ends on its own
@pytest.mark.parametrize("scene", [scene for scene in ROWS if scene is not static_pair])
def test_two_writes_that_fail_together_leave_a_group_as_its_twin(scene: Any) -> None:
    twin = twins(scene, "4.4")[0]
    expected = look(twin)
    for (one, first), (two, second) in product(ROWS[scene].items(), repeat=2):
        tried = twins(scene, "4.4")[0]
        fail(tried, first, second)
        assert look(tried) == expected, f"{one}, then {two}"


@pytest.mark.slow
def test_every_type_of_record_has_a_row() -> None:
    failed = set()
    for release in RELEASES:
        for table in (ROWS, KEPT):
            for scene, attempts in table.items():
                for name, attempt in attempts.items():
                    if scene in NEWER_ONLY and release == "4.0":
                        continue
                    records = fail(twins(scene, release)[0], attempt)
                    assert records or name == "a classic member gets its id", name
                    failed |= {(type(record.key), record.value is None) for record in records}
    elsewhere = {*get_args(share_group_records.Key), *get_args(streams_group_records.Key)}
    assert failed == set(product(set(get_args(Key)) - elsewhere, (False, True)))
