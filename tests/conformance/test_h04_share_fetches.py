"""Records of share groups at the leader of a partition: sessions, acquisition, acknowledgements, locks (KIP-932)."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

from scenarios.registry import scenario
from scenarios.share_fetches import WAIT_MS, ShareFetches, X
from scenarios.transactional import TransactionalProducer

if TYPE_CHECKING:
    from scenarios.player import Player

share_scenario = partial(scenario, kip="KIP-932", share=True)

FAILED, INVALID, NO_SESSION, WRONG_EPOCH = -1, 42, 122, 123
PAST = "Batch record not found. The {} offset in request is past acquired records."
NOT_ACQUIRED = 121, "The offset cannot be acknowledged. The offset is not acquired."
NO_BATCH = 121, "Batch record not found. The request batch offsets are not found in the cache."

SHORT_MS = 300
"""The wait of a fetch that gets no record."""

LOCK_MS = 1_500
"""A lock that a scenario waits for."""


def reads(play: Player, *counts: int, **configs: object) -> ShareFetches:
    """Let A join a group for a topic with batches of so many records."""
    x = ShareFetches(play)
    x.begin(*counts, **configs)
    return x


def holds(play: Player, *counts: int, **configs: object) -> ShareFetches:
    """S2: let A acquire all these records, ten of two batches by default."""
    x = reads(play, *(counts or (5, 5)), **configs)
    assert x.take("A", 0) == f"0-{sum(counts or (5, 5)) - 1}/1"
    return x


# -- sessions ----------------------------------------------------------------------------------------------------


@share_scenario()
def test_h032_a_new_share_session_has_nothing_to_acknowledge(play: Player) -> None:
    x = reads(play, 5, 5)
    assert x.acknowledge("A", 0, "0-4=1") == (WRONG_EPOCH,)
    assert x.fetch("A", 0, X, acks="0-4=1") == INVALID
    assert [x.fetch("A", 1), x.acknowledge("A", 1, "0-4=1")] == [NO_SESSION, (NO_SESSION,)]
    assert [x.fetch("A", -1), x.acknowledge("A", -1, "0-4=1")] == [NO_SESSION, (NO_SESSION,)]


@share_scenario()
def test_h033_epochs_of_a_share_session_follow_each_other(play: Player) -> None:
    x = holds(play)
    assert [x.fetch("A", epoch) for epoch in (5, 1, 1, 2, -2)] == [WRONG_EPOCH, {}, WRONG_EPOCH, {}, WRONG_EPOCH]
    assert [x.acknowledge("A", epoch, "0-0=1") for epoch in (2, 3)] == [(WRONG_EPOCH,), 0]
    assert x.fetch("A", 4) == {}


@share_scenario()
def test_h035_a_share_fetch_has_a_group_and_a_member(play: Player) -> None:
    x = reads(play, 5)
    assert x.fetch("A", 0, X, group_id=None) == (INVALID if play.since("4.3.0") else -1)
    assert [x.fetch(each, 0, X, on="A") for each in ("", "m" * 37)] == [INVALID] * 2


@share_scenario()
def test_h036_whoever_fetches_need_not_be_a_member(play: Player) -> None:
    x = reads(play, 5, 5)
    assert x.take("STRANGER", 0, max_records=1) == "0-4/1"
    assert x.take("A", 0) == "5-9/1"
    assert x.acknowledge("A", 1, "0-4=1") == (121, "Member is not the owner of batch record")


@share_scenario()
def test_h038_a_closed_share_session_releases_its_records(play: Player) -> None:
    x = holds(play)
    assert x.fetch("A", -1) == {}
    x.await_state(X, (x.raw(2), 0, "0-9/0/1"))
    assert x.take("B", 0) == "0-9/2"
    play.close("B")
    x.await_state(X, (x.raw(2), 0, "0-9/0/2"))


@share_scenario()
def test_h039_the_last_acknowledgements_of_a_share_session(play: Player) -> None:
    x = holds(play)
    assert x.fetch("A", -1, acks="0-3=1") == {X: ""}
    x.await_state(X, (x.raw(2), 4, "4-9/0/1"))
    assert x.fetch("A", -1) == NO_SESSION


@share_scenario()
def test_h041_records_of_a_forgotten_partition_are_not_released(play: Player) -> None:
    x = holds(play)
    assert x.fetch("A", 1, forgotten=[X]) == {}
    assert x.acknowledge("A", 2, "0-4=1") == 0
    assert x.fetch("A", -1) == {}
    play.wait(1)
    assert x.read(X) == (x.raw(2), 0, "0-4/2/1")
    assert x.fetch("B", 0, X, wait=SHORT_MS) == {X: ""}


@share_scenario()
def test_h042_an_error_of_a_share_session_repeats(play: Player) -> None:
    x = reads(play, 5, 5)
    assert [x.fetch("A", 0, ("x", 7)), x.fetch("A", 1)] == [{("x", 7): 3}] * 2
    assert x.fetch("A", 2, X, wait=WAIT_MS) == {("x", 7): 3, X: "0-9/1"}
    assert x.fetch("A", 3, forgotten=[("x", 7)]) == {}


@share_scenario()
def test_h310_a_share_fetch_of_an_unknown_topic(play: Player) -> None:
    x = reads(play, 5, 5)
    fails = play.since("4.3.0") and not play.since("4.4.0")
    unknown = ("?", 0)
    assert x.fetch("A", 0, ("nowhere", 0)) == (FAILED if fails else {unknown: 100})
    assert x.fetch("A", 1, X, wait=WAIT_MS) == (FAILED if fails else {unknown: 100, X: "0-9/1"})
    assert x.fetch("A", 2, acks="0-9=1") == (FAILED if fails else {unknown: 100, X: ""})


@share_scenario()
def test_h044_acknowledgements_for_unknown_partitions(play: Player) -> None:
    x = holds(play)
    others = (("nowhere", 0), "0-0=1"), (("x", 9), "0-0=1")
    assert x.acknowledge("A", 1, "5-9=1", *others) == {X: 0, ("?", 0): 100, ("x", 9): 3}


@share_scenario()
def test_h047_another_request_takes_the_epoch_of_a_waiting_one(play: Player) -> None:
    x = reads(play)
    assert x.fetch("A", 0, X, wait=SHORT_MS) == {X: ""}
    asked = x.fetching("A", 1, wait=WAIT_MS, on="A.2")
    assert x.acknowledge("A", 2) is None
    x.produce("x", 1)
    assert x.fetched(asked) == WRONG_EPOCH
    assert [x.fetch("A", 3), x.acknowledge("A", 4, "0-0=1")] == [{}, 0]


@share_scenario(share_max_size=1)
def test_h048_a_share_session_too_many(play: Player) -> None:
    x = reads(play, 5, 5)
    assert x.take("A", 0) == "0-9/1"
    assert x.fetch("B", 0, X, wait=SHORT_MS) == 133
    assert x.fetch("A", 0, X, wait=SHORT_MS) == {X: ""}


@share_scenario(restarted=True)
def test_h029_members_outlive_a_restart_and_share_sessions_do_not(play: Player) -> None:
    x = holds(play)
    play.close("A")
    x.await_state(X, (x.raw(2), 0, "0-9/0/1"))
    play.restart()
    x.await_share_coordinator()
    assert [x.beat("A", 3), x.fetch("A", 2)] == [(3, None), NO_SESSION]
    assert x.take("A", 0) == "0-9/2"


# -- acquisition -------------------------------------------------------------------------------------------------


@share_scenario()
def test_h050_records_are_acquired_once(play: Player) -> None:
    x = holds(play, 5, 5, 5)
    assert x.fetch("A", 1) == {}
    assert x.fetch("B", 0, X, wait=SHORT_MS) == {X: ""}
    x.produce("x", 3, 4)
    assert x.take("B", 1, max_records=1) == "15-17/1"
    assert x.take("A", 2) == "18-21/1"


@share_scenario()
def test_h051_a_limit_of_records_is_filled_with_whole_batches(play: Player) -> None:
    x = reads(play, 10, 10, 10, 10)
    taken = [x.take("A", epoch, max_records=records) for epoch, records in enumerate((1, 5, 12))]
    assert taken == ["0-9/1", "10-19/1", "20-39/1"]


def taken_in_batches(play: Player, size: int) -> str:
    return reads(play, 10, 10, 10).take("A", 0, batch_size=size)


@share_scenario()
def test_h053_acquired_batches_have_a_size(play: Player) -> None:
    assert taken_in_batches(play, 4) == "0-9/1 10-19/1 20-29/1"


@share_scenario()
def test_h301_acquired_batches_end_where_batches_of_the_log_do(play: Player) -> None:
    assert taken_in_batches(play, 15) == "0-19/1 20-29/1"


@share_scenario()
def test_h311_a_batch_size_below_1_is_filled_by_nothing(play: Player) -> None:
    x = reads(play, 10, 10, 10)
    assert x.take("A", 0, batch_size=0) == "0--1/1 0-9/1 10-19/1 20-29/1"
    assert x.acknowledge("A", 1, "0-9=2") == 0
    x.produce("x", 5)
    assert x.take("A", 2, batch_size=-1) == "0-9/2 30-29/1 30-34/1"
    assert x.acknowledge("A", 3, "0-9=2 10-14=1") == 0
    x.produce("x", 5)
    again = "0-9/3 35--1/1 0-9/1 10-19/1 20-29/1 30-34/1 35-39/1"
    assert x.take("A", 4, batch_size=-(1 << 31)) == again
    assert x.acknowledge("A", 5, "0-9=2 12-38=1 39-39=2") == 0
    assert x.take("A", 6, batch_size=-1) == "0-9/2 39-39/2"
    assert x.acknowledge("A", 7, "0-9=1") == 0
    x.read(X)


@share_scenario()
def test_h054_released_batches_keep_their_bounds(play: Player) -> None:
    x = holds(play, 10, 10, 10)
    assert x.acknowledge("A", 1, "0-29=2") == 0
    assert x.take("A", 2, batch_size=4) == "0-29/2"


@share_scenario(kip="KIP-1206")
def test_h302_an_exact_limit_of_records_cuts_batches(play: Player) -> None:
    x = reads(play, 10, 10, 10)
    limits = 3, 9, 9, 100
    taken = [x.take("A", epoch, max_records=records, share_acquire_mode=1) for epoch, records in enumerate(limits)]
    assert taken == ["0-2/1", "3-9/1 10-11/1", "12-19/1 20-20/1", "21-29/1"]


@share_scenario()
def test_h308_records_come_first_from_partitions_whose_place_is_known(play: Player) -> None:
    x, y = ShareFetches(play), ("x", 1)
    x.begin(5, partitions=2)
    x.produce("x", 5, partition=1)
    assert [x.take("A", 0), x.fetch("A", 1, y, wait=WAIT_MS)] == ["0-4/1", {y: "0-4/1"}]
    x.produce("x", 5, partition=1)
    assert x.fetch("A", 2, wait=WAIT_MS) == {y: "5-9/1"}
    for partition in (0, 1):
        x.produce("x", 5, partition=partition)
    assert x.fetch("A", 3, wait=WAIT_MS, max_records=1) == {X: "5-9/1"}
    x.produce("x", 5)
    assert x.fetch("A", 4, wait=WAIT_MS, max_records=1) == {y: "10-14/1"}


@share_scenario(kip="KIP-1206")
def test_h056_an_unknown_mode_of_acquisition_uses_an_epoch(play: Player) -> None:
    x = reads(play, 5, 5)
    assert x.fetch("A", 0, X, share_acquire_mode=7) == -1
    assert x.take("A", 1) == "0-9/1"


@share_scenario()
def test_h057_limits_of_zero_acquire_nothing(play: Player) -> None:
    x = holds(play)
    x.produce("x", 5)
    assert [x.fetch("A", 1, max_records=0), x.fetch("A", 2, max_bytes=0), x.fetch("A", 3, max_records=-1)] == [{}] * 3
    assert x.take("A", 4) == "10-14/1"


@share_scenario()
def test_h059_a_partition_has_a_limit_of_records_in_flight(play: Player) -> None:
    x = reads(play, 60, 60, 60, share_partition_max_record_locks=100)
    assert [x.take("A", 0), x.fetch("A", 1)] == ["0-119/1", {}]
    assert [x.acknowledge("A", 2, "30-59=1"), x.fetch("A", 3, wait=SHORT_MS)] == [0, {}]
    assert [x.acknowledge("A", 4, "0-29=1"), x.take("A", 5)] == [0, "120-179/1"]


@share_scenario()
def test_h060_a_record_that_fails_is_delivered_five_times_at_last_alone(play: Player) -> None:
    x = reads(play, 8)
    taken = []
    for turn in range(12):
        acquired = x.take("A", 2 * turn)
        taken.append(acquired)
        assert x.acknowledge("A", 2 * turn + 1, f"{acquired.partition('/')[0]}=2") == 0
    assert taken == [
        *("0-7/1", "0-7/2", "0-7/3", "0-3/4", "0-0/5", "1-1/5", "2-2/5", "3-3/5", "4-7/4", "4-4/5", "5-5/5", "6-6/5"),
    ]
    x.read(X)
    x.transcribe_state(*X)


@share_scenario()
def test_h303_two_deliveries_at_most(play: Player) -> None:
    x = holds(play, 8, share_delivery_count_limit=2)
    assert [x.acknowledge("A", 1, "0-7=2"), x.take("A", 2), x.acknowledge("A", 3, "0-3=2 4-7=1")] == [0, "0-7/2", 0]
    assert x.fetch("A", 4, wait=SHORT_MS) == {}
    assert x.offsets() == {X: (0, 0)}
    x.read(X)


@share_scenario()
def test_h065_a_share_group_begins_at_the_end(play: Player) -> None:
    x = reads(play, 5, share_auto_offset_reset="latest")
    assert x.fetch("A", 0, X, wait=SHORT_MS) == {X: ""}
    x.produce("x", 2)
    assert [x.take("A", 1), x.read(X)] == ["5-6/1", (x.raw(2), -1, "")]
    assert [x.acknowledge("A", 2, "5-5=1"), x.read(X)] == [0, (x.raw(2), 5, "5-5/2/1")]


@share_scenario()
def test_h066_a_share_group_begins_a_while_ago(play: Player) -> None:
    x = reads(play, 3, share_auto_offset_reset="by_duration:P10000D")
    x.produce("x", 3, timestamp=1_700_000_000_000)
    assert x.take("A", 0) == "3-5/1"


def with_transactions(play: Player, **configs: object) -> ShareFetches:
    """Write transactions to x: three records committed, two aborted, two committed; then one without."""
    x, writer = ShareFetches(play), TransactionalProducer(play)
    producer = writer.begun()
    sequence = 0
    for records, commit in ((3, True), (2, False), (2, True)):
        if sequence:
            writer.settle()
            assert writer.add(producer, 0, 0) == {0: 0}
        assert writer.produce(0, producer, 0, sequence, records=records)[0] == 0
        assert writer.end(producer, 0, commit=commit) == 0
        sequence += records
        writer.settle()
        writer.wait_decided(0)
    assert writer.ordinary() == (0, 10)
    assert x.configure(share_auto_offset_reset="earliest", **configs) == 0
    x.adopt("x", writer.topic)
    assert x.settle_in("A", ["x"]) == (3, {"x": [0, 1]})
    return x


@share_scenario()
def test_h068_records_of_aborted_transactions_are_acquired(play: Player) -> None:
    x = with_transactions(play)
    assert x.take("A", 0) == "0-10/1"
    assert x.acknowledge("A", 1, "0-10=1") == 0
    assert x.offsets({"x": [0]}) == {X: (0, 0)}


@share_scenario()
def test_h069_a_group_that_reads_committed_leaves_them_out(play: Player) -> None:
    x = with_transactions(play, share_isolation_level="read_committed")
    assert [x.take("A", 0), x.read(X)] == ["0-3/1 6-10/1", (x.raw(2), -1, "")]
    acks = "0-3=1", "4-5=1", "6-10=0,1,1,0,1"
    assert [x.acknowledge("A", epoch, each) for epoch, each in enumerate(acks, 1)] == [0] * 3
    x.read(X)
    assert x.offsets({"x": [0]})[X][1] == 0


@share_scenario()
def test_h071_records_deleted_before_their_first_delivery(play: Player) -> None:
    x = reads(play, 5, 5, 5)
    assert x.take("A", 0, max_records=5) == "0-4/1"
    x.delete_records(8)
    assert x.fetch("A", 1, wait=SHORT_MS) == {}
    assert x.take("A", 2) == "5-14/1"
    assert x.acknowledge("A", 3, "0-4=1") == 0


# -- acknowledgements --------------------------------------------------------------------------------------------


@share_scenario()
def test_h074_records_are_accepted_released_and_rejected(play: Player) -> None:
    x = holds(play, 5, 5, 5)
    assert [x.acknowledge("A", 1, "0-4=1"), x.offsets()] == [0, {X: (0, 10)}]
    assert [x.acknowledge("A", 2, "5-9=2"), x.take("A", 3)] == [0, "5-9/2"]
    assert x.acknowledge("A", 4, "10-14=0,1,2,3,1") == 0
    assert x.read(X) == (x.raw(2), 5, "5-9/0/1 10-10/4/1 11-11/2/1 12-12/0/1 13-13/4/1 14-14/2/1")
    assert [x.take("A", 5), x.offsets()] == ["12-12/2", {X: (5, 6)}]
    x.transcribe_state(*X)


@share_scenario()
def test_h077_acknowledgements_past_the_records(play: Player) -> None:
    x = holds(play)
    assert x.acknowledge("A", 1, "5-20=1") == (INVALID, PAST.format("last"))
    assert x.acknowledge("A", 2, "30-31=1") == (INVALID, PAST.format("first"))
    assert x.fetch("A", 3, acks="30-31=1") == {X: ("", INVALID, PAST.format("first"))}
    assert x.acknowledge("A", 4, "0-1=1 7-30=1") == (INVALID, PAST.format("last"))
    assert x.read(X) == (x.raw(2), -1, "")


@share_scenario()
def test_h078_malformed_acknowledgements_use_an_epoch(play: Player) -> None:
    x = holds(play)
    malformed = "0-0=5", "0-0=-1", "0-4=1,1", "9-5=1", "5-6=1 4-4=1", "0-0="
    assert [x.acknowledge("A", epoch, each) for epoch, each in enumerate(malformed, 1)] == [INVALID] * 6
    assert [x.acknowledge("A", 7), x.acknowledge("A", 8, "0-9=1")] == [None, 0]


@share_scenario()
def test_h083_a_record_is_acknowledged_once(play: Player) -> None:
    x = holds(play)
    assert [x.acknowledge("A", 1, "6-6=1"), x.acknowledge("A", 2, "6-6=1")] == [0, NOT_ACQUIRED]
    assert x.acknowledge("A", 3, "0-9=1") == NOT_ACQUIRED
    assert [x.acknowledge("A", 4, "0-3=1"), x.acknowledge("A", 5, "0-3=1")] == [0, 0]
    assert x.acknowledge("B", 1, "4-4=1") == (NO_SESSION,)


@share_scenario()
def test_h307_acknowledgements_across_the_start_of_nothing_in_flight(play: Player) -> None:
    x = holds(play)
    acks = "0-9=1", "5-14=1", "10-14=1", "5-9=1"
    assert [x.acknowledge("A", epoch, each) for epoch, each in enumerate(acks, 1)] == [0, (FAILED,), NO_BATCH, 0]
    x.produce("x", 5)
    assert x.fetch("A", 5, acks="9-10=1") == FAILED
    assert x.take("A", 6) == "10-14/1"
    assert x.acknowledge("A", 7, "5-14=1") == 0
    assert x.fetch("A", -1, acks="5-20=1") == FAILED
    assert x.acknowledge("A", -1, "5-20=1") == (FAILED,)
    assert x.fetch("A", 8) == {}


@share_scenario(kip="KIP-1222")
def test_h084_a_renewal_is_announced(play: Player) -> None:
    x = holds(play)
    assert [x.acknowledge("A", 1, "5-9=4"), x.acknowledge("A", 2, "5-9=4", version=1)] == [INVALID] * 2
    assert x.fetch("A", 3, acks="5-9=4", is_renew_ack=True) == INVALID
    assert x.fetch("A", 3, acks="5-9=4", is_renew_ack=True, max_bytes=0, max_records=0) == {X: ""}


@share_scenario(kip="KIP-1222")
def test_h086_renewals_stand_beside_other_acknowledgements(play: Player) -> None:
    x = holds(play)
    assert [x.acknowledge("A", 1, "0-0=1"), x.acknowledge("A", 2, "1-4=4,1,2,4", renews=True)] == [0, 0]
    assert x.read(X) == (x.raw(2), 1, "2-2/2/1 3-3/0/1")


@share_scenario(kip="KIP-1222")
def test_h087_a_group_may_have_no_renewals(play: Player) -> None:
    x = holds(play, share_renew_acknowledge_enable="false")
    off = "Renewing acquisition locks is not enabled for the group."
    assert x.acknowledge("A", 1, "0-9=4", renews=True) == (121, off)


# -- locks -------------------------------------------------------------------------------------------------------


@share_scenario()
def test_h090_the_end_of_a_lock_wakes_a_fetch(play: Player) -> None:
    x = holds(play, 8, share_record_lock_duration_ms=LOCK_MS)
    assert x.take("A", 1, wait=20 * LOCK_MS) == "0-7/2"
    x.await_state(X, (x.raw(2), 0, "0-7/0/1"))
    assert x.take("A", 2, wait=20 * LOCK_MS) == "0-7/3"
    assert x.acknowledge("A", 3, "0-7=1") == 0


@share_scenario()
def test_h092_whoever_is_late_does_not_hold_a_record(play: Player) -> None:
    x = holds(play, 8, share_record_lock_duration_ms=LOCK_MS)
    x.await_state(X, (x.raw(2), 0, "0-7/0/1"))
    assert x.acknowledge("A", 1, "0-0=1")[0] == 121
    assert x.acknowledge("A", 2, "0-7=1")[0] == 121


@share_scenario()
def test_h093_who_leaves_the_group_keeps_its_records(play: Player) -> None:
    x = holds(play)
    assert x.beat("A", -1) == (-1, None)
    assert x.fetch("B", 0, X, wait=SHORT_MS) == {X: ""}
    assert x.acknowledge("A", 1, "0-9=2") == 0


@share_scenario()
def test_h098_new_offsets_count_after_the_last_session(play: Player) -> None:
    x = holds(play)
    assert x.acknowledge("A", 1, "0-4=1") == 0
    play.close("A")
    x.await_state(X, (x.raw(2), 5, "5-9/0/1"))
    assert x.beat("A", -1) == (-1, None)
    assert x.alter({X: 3}) == {X: 0}
    assert [x.read(X), x.offsets()] == [(x.raw(4), 3, ""), {X: (3, 7)}]
    assert x.settle_in("A", ["x"]) == (5, {"x": [0]})
    assert x.take("A", 0) == "3-9/1"


@share_scenario()
def test_h099_a_share_partition_in_memory_notices_new_offsets_late(play: Player) -> None:
    x = holds(play)
    assert [x.acknowledge("A", 1, "0-4=1"), x.fetch("A", -1)] == [0, {}]
    x.await_state(X, (x.raw(2), 5, "5-9/0/1"))
    assert x.beat("A", -1) == (-1, None)
    assert x.alter({X: 2}) == {X: 0}
    assert x.settle_in("A", ["x"]) == (5, {"x": [0]})
    assert x.take("A", 0) == "5-9/2"
    which = "the state epoch" if play.since("4.4.0") else "the share-group state epoch"
    who = "coordinator" if play.since("4.4.0") else "share coordinator"
    fenced = f"Error in write state RPC. The {who} rejected the request because {which} did not match."
    assert x.acknowledge("A", 1, "5-9=1") == (6, fenced)
    assert x.take("A", 2) == "2-9/1"


# -- at random ---------------------------------------------------------------------------------------------------


class AtRandom:
    """Two members that fetch and acknowledge at random."""

    def __init__(self, play: Player, seed: int, *, deletes: bool = False, **configs: object) -> None:
        self._play, self._chance, self._deletes = play, random.Random(seed), deletes
        self._x = reads(play, 7, 1, 5, **configs)
        self._end = 13
        self._epochs = {"A": 0, "B": 0}
        self._held: dict[str, set[int]] = {"A": set(), "B": set()}

    def run(self, steps: int) -> None:
        """Take some steps, and show the state of the share partition after those that may change it."""
        chance, x = self._chance, self._x
        for _ in range(steps):
            member, doing = chance.choice("AB"), chance.random()
            idle = 0.75 if not self._held[member] else 0.25
            if not self._epochs[member] or doing < idle:
                self._fetch(member)
            elif doing < 0.86:
                self._acknowledge(member)
                x.read(X)
            elif doing < 0.95:
                count = chance.randrange(1, 12)
                x.produce("x", count)
                self._end += count
            elif doing < 0.97 and self._deletes:
                x.delete_records(chance.randrange(self._end))
            else:
                self._close(member, with_connection=doing > 0.98)
                x.read(X)
        x.offsets()
        x.transcribe_state(*X)

    def _fetch(self, member: str) -> None:
        chance, epoch = self._chance, self._epochs[member]
        given = self._x.fetch(
            member,
            epoch,
            *([] if epoch else [X]),
            wait=SHORT_MS if epoch else WAIT_MS,
            max_records=chance.choice((1, 3, 8, 500)),
            batch_size=chance.choice((1, 4, 500)),
            share_acquire_mode=chance.choice((0, 0, 1)),
        )
        self._epochs[member] += 1
        for batch in given.get(X, "").split():
            first, last = map(int, batch.partition("/")[0].split("-"))
            self._held[member].update(range(first, last + 1))

    def _acknowledge(self, member: str) -> None:
        chance, held = self._chance, self._held[member]
        is_wrong = not held or chance.random() < 0.1
        first = last = chance.randrange(self._end) if is_wrong else chance.choice(sorted(held))
        wanted = chance.choice((1, 1, 2, 4, 8, 30))
        while last + 1 - first < wanted and (is_wrong or last + 1 in held):
            last += 1
        renews = chance.random() < 0.1
        types = (1, 2, 4) if renews else (0, 1, 2, 2, 2, 3)
        several = ",".join(str(chance.choice(types)) for _ in range(first, last + 1))
        acks = f"{first}-{last}={chance.choice((several, '1', '2', '2'))}"
        if self._x.acknowledge(member, self._epochs[member], acks, renews=renews) == 0 and not renews:
            held.difference_update(range(first, last + 1))
        self._epochs[member] += 1

    def _close(self, member: str, *, with_connection: bool) -> None:
        if with_connection:
            self._play.close(member)
        else:
            self._x.fetch(member, -1)
        self._epochs[member] = 0
        self._held[member].clear()
        # the release is written after the answer
        self._play.wait(1)


@share_scenario()
def test_h304_two_members_at_random(play: Player) -> None:
    AtRandom(play, 304).run(70)


@share_scenario()
def test_h305_two_members_at_random_with_few_deliveries(play: Player) -> None:
    AtRandom(play, 305, share_delivery_count_limit=3).run(70)


@share_scenario()
def test_h306_two_members_at_random_while_records_are_deleted(play: Player) -> None:
    AtRandom(play, 306, deletes=True).run(70)


@share_scenario()
def test_h309_a_new_share_session_with_a_repeated_partition_fails_and_ends_the_earlier_one(play: Player) -> None:
    x = holds(play)
    assert x.fetch("A", 0, X, X) == FAILED
    assert x.fetch("A", 1) == NO_SESSION
