"""Waits of share fetches, what the share coordinator stores, refused acknowledgements, and configs of share groups."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scenarios.registry import scenario
from scenarios.share_fetches import WAIT_MS, ShareFetches, X

if TYPE_CHECKING:
    from scenarios.player import Player

share_scenario = partial(scenario, kip="KIP-932", share=True)

INVALID, INVALID_CONFIG = 42, 40
PAST = "Batch record not found. The {} offset in request is past acquired records."

SHORT_MS, LONG_MS = 300, 6_000
"""The waits of a fetch that gets no record, and of one that a test answers earlier."""


def holds(play: Player, *counts: int, **configs: object) -> ShareFetches:
    """Let A acquire all these records."""
    x = ShareFetches(play)
    x.begin(*counts, **configs)
    assert x.take("A", 0) == f"0-{sum(counts) - 1}/1"
    return x


@share_scenario()
def test_h045_a_fetch_without_news_ends_with_its_wait_or_at_once(play: Player) -> None:
    x = holds(play, 5, 5)
    assert x.fetch("A", 1, wait=SHORT_MS) == {}
    assert x.fetch("A", 2, wait=LONG_MS, min_bytes=0) == {}


@share_scenario()
def test_h062_a_new_record_ends_the_wait_of_a_fetch(play: Player) -> None:
    x = ShareFetches(play)
    x.begin()
    waiting = x.fetching("A", 0, X, wait=LONG_MS)
    play.expect_parked(waiting)
    x.produce("x", 2)
    assert x.fetched(waiting) == {X: "0-1/1"}


@share_scenario()
def test_h063_a_release_by_acknowledgement_ends_no_wait(play: Player) -> None:
    x = holds(play, 2)
    waiting = x.fetching("B", 0, X, wait=WAIT_MS)
    play.expect_parked(waiting)
    assert x.acknowledge("A", 1, "0-1=2") == 0
    play.expect_parked(waiting)
    assert x.fetched(waiting) == {X: "0-1/2"}


@share_scenario()
def test_h072_deleted_records_that_were_released_are_passed_over(play: Player) -> None:
    x = holds(play, 5, 5, 5)
    assert x.acknowledge("A", 1, "0-14=2") == 0
    x.delete_records(8)
    assert x.fetch("A", 2, wait=SHORT_MS) == {}
    assert x.fetch("A", 3, wait=WAIT_MS) == {X: "8-14/2"}
    assert x.fetch("A", 4, wait=SHORT_MS) == {}


@share_scenario()
def test_h075_each_acknowledgement_is_an_update_of_the_state(play: Player) -> None:
    x = holds(play, 5, 5, 5)
    assert x.acknowledge("A", 1, "0-4=1") == 0
    assert x.acknowledge("A", 2, "5-9=2") == 0
    assert x.take("A", 3) == "5-9/2"
    assert x.acknowledge("A", 4, "10-14=0,1,2,3,1") == 0
    x.transcribe_state(*X)


@share_scenario()
def test_h080_acknowledgements_without_a_batch_have_no_row(play: Player) -> None:
    x = holds(play, 5, 5)
    assert x.acknowledge("A", 1, "") is None
    assert x.acknowledge("A", 2, "0-9=1") == 0


@share_scenario()
def test_h081_one_wrong_batch_takes_the_others_back(play: Player) -> None:
    x = holds(play, 5, 5)
    assert x.acknowledge("A", 1, "0-1=1 7-30=1") == (INVALID, PAST.format("last"))
    assert x.read(X) == (x.raw(2), -1, "")
    assert x.acknowledge("A", 2, "0-9=1") == 0


@share_scenario()
def test_h089_a_fetch_has_the_error_of_its_acknowledgements_in_its_row(play: Player) -> None:
    x = holds(play, 5, 5)
    assert x.fetch("A", 1, acks="30-31=1") == {X: ("", INVALID, PAST.format("first"))}


@share_scenario(restarted=True)
def test_h095_a_restarted_leader_reads_what_was_stored(play: Player) -> None:
    x = holds(play, 5, 5, 5)
    assert x.acknowledge("A", 1, "2-3=1 7-8=1 10-10=2") == 0
    play.close("A")
    stored = x.raw(2), 0, "0-1/0/1 2-3/2/1 4-6/0/1 7-8/2/1 9-14/0/1"
    x.await_state(X, stored)
    play.restart()
    x.await_share_coordinator()
    assert x.read(X) == stored
    assert x.take("A", 0, wait=LONG_MS) == "0-1/2 4-6/2 9-14/2"


@share_scenario(share_updates=2)
def test_h096_two_updates_are_followed_by_a_snapshot(play: Player) -> None:
    x = holds(play, 3, 3, 3, 3)
    for epoch, first in enumerate((0, 3, 5, 7, 9, 11), start=1):
        assert x.acknowledge("A", epoch, f"{first}-{first}=1") == 0
    x.transcribe_state(*X)


@share_scenario()
def test_h111_configs_of_a_share_group_have_bounds(play: Player) -> None:
    x = ShareFetches(play)
    refused = {
        "share_session_timeout_ms": (70_000,),
        "share_heartbeat_interval_ms": (20_000,),
        "share_record_lock_duration_ms": (500, 100_000),
        "share_delivery_count_limit": (1, 11),
        "share_partition_max_record_locks": (99, 4_001),
        "share_auto_offset_reset": ("never", "by_duration:PT-1S", "by_duration:1"),
        "share_isolation_level": ("x",),
        "share_renew_acknowledge_enable": ("perhaps",),
        "share_nonsense": (1,),
    }
    for name, values in refused.items():
        for value in values:
            assert x.configure(**{name: value}) == INVALID_CONFIG


@share_scenario()
def test_h113_configs_of_a_group_that_does_not_exist(play: Player) -> None:
    x = ShareFetches(play)
    x.needs_newer_configs()
    assert x.configure(share_auto_offset_reset="by_duration:PT1H", share_delivery_count_limit=7) == 0
    found = x.configs()
    assert [found[f"share.{name}"] for name in ("auto.offset.reset", "delivery.count.limit", "isolation.level")] == [
        ("by_duration:PT1H", 8),
        ("7", 8),
        ("read_uncommitted", 5),
    ]
