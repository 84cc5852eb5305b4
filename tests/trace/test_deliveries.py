"""The deliveries of records to members of share groups, in hand-written lines and in a trace of the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scenes.share_groups import two_workers
from scenes.trace_tales import Tale

from koordinator.trace import ShareDelivery, TraceReader, read

if TYPE_CHECKING:
    from collections.abc import Callable


def rows(tale: Tale) -> list[tuple[Any, ...]]:
    """Return first and last offset, count, member and outcome of each delivery."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count, each.member_id, each.outcome)
        for each in read(tale.lines).deliveries
    ]


def acknowledged_in_parts(tale: Tale) -> None:
    tale.takes("a", (0, 9, 1))
    tale.acknowledges("a", (0, 1, "accept"), (2, 2, "release"), (3, 3, "reject"), (4, 5, "gap"))


def lock_ends_in_part(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.ends_locks("a", 1, 2, 1)
    tale.takes("b", (1, 2, 2))


def refused(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.acknowledges("a", (0, 4, "accept"), error=121)
    tale.acknowledges("b", (0, 4, "accept"))


def delivered_without_an_end(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.takes("b", (3, 6, 2))


def acknowledgement_without_a_response(tale: Tale) -> None:
    tale.takes("a", (0, 1, 1))
    asked = tale.acknowledges("a", (0, 1, "accept"))
    tale.lines.pop()
    tale.line("conn", of_group=False, change="closed", **{name: asked[name] for name in ("node", "conn_id")})


def delivered_again_before_the_refusal(tale: Tale) -> None:
    tale.takes("a", (0, 1, 1))
    tale.acknowledges("a", (0, 1, "accept"), error=121)
    refusal = tale.lines.pop()
    tale.takes("b", (1, 1, 2))
    tale.lines.append(refusal | {"seq": tale.lines[-1]["seq"] + 1})


def delivered_again_before_the_response(tale: Tale) -> None:
    tale.takes("a", (0, 3, 1))
    tale.acknowledges("a", (1, 2, "release"))
    response = tale.lines.pop()
    tale.takes("b", (1, 1, 2))
    tale.lines.append(response | {"seq": tale.lines[-1]["seq"] + 1})


def lock_ends_before_the_refusal(tale: Tale) -> None:
    tale.takes("a", (0, 1, 1))
    tale.acknowledges("a", (0, 1, "accept"), error=56)
    refusal = tale.lines.pop()
    tale.ends_locks("a", 0, 1, 1)
    tale.lines.append(refusal | {"seq": tale.lines[-1]["seq"] + 1})


def range_that_ends_before_it_begins(tale: Tale) -> None:
    tale.takes("a", (0, 9, 1))
    tale.acknowledges("a", (5, 3, "accept"))


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        (
            acknowledged_in_parts,
            [
                (0, 1, 1, "a", "accepted"),
                (2, 2, 1, "a", "released"),
                (3, 3, 1, "a", "rejected"),
                (4, 5, 1, "a", "gap"),
                (6, 9, 1, "a", "open"),
            ],
        ),
        (
            lock_ends_in_part,
            [(0, 0, 1, "a", "open"), (1, 2, 1, "a", "expired"), (3, 4, 1, "a", "open"), (1, 2, 2, "b", "open")],
        ),
        (refused, [(0, 4, 1, "a", "open")]),
        (delivered_without_an_end, [(0, 2, 1, "a", "open"), (3, 4, 1, "a", "unknown"), (3, 6, 2, "b", "open")]),
        (acknowledgement_without_a_response, [(0, 1, 1, "a", "open")]),
        (
            delivered_again_before_the_refusal,
            [(0, 0, 1, "a", "open"), (1, 1, 1, "a", "unknown"), (1, 1, 2, "b", "open")],
        ),
        (
            delivered_again_before_the_response,
            [
                *((0, 0, 1, "a", "open"), (1, 1, 1, "a", "released"), (2, 2, 1, "a", "released")),
                *((3, 3, 1, "a", "open"), (1, 1, 2, "b", "open")),
            ],
        ),
        (lock_ends_before_the_refusal, [(0, 1, 1, "a", "expired")]),
        (range_that_ends_before_it_begins, [(0, 9, 1, "a", "open")]),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_a_delivery_ends_as_the_trace_says(scene: Callable[[Tale], None], expected: list[tuple[Any, ...]]) -> None:
    tale = Tale()
    scene(tale)
    assert rows(tale) == expected


def test_one_word_for_each_record_divides_a_delivery() -> None:
    tale = Tale()
    tale.takes("a", (0, 3, 1))
    asked = tale.acknowledges("a", (0, 3, "accept"))
    asked["body"]["acknowledged"][0][4] = ["accept", "accept", "reject", "accept"]
    assert rows(tale) == [(0, 1, 1, "a", "accepted"), (2, 2, 1, "a", "rejected"), (3, 3, 1, "a", "accepted")]


def test_a_renewed_delivery_goes_on() -> None:
    tale = Tale()
    tale.takes("a", (0, 3, 1))
    tale.acknowledges("a", (0, 3, "renew"))
    tale.acknowledges("a", (0, 3, "accept"))
    (delivery,) = read(tale.lines).deliveries
    assert (delivery.renewals, delivery.outcome) == (1, "accepted")


@pytest.mark.parametrize(("state", "is_archived"), [("available", False), ("archived", True)])
def test_records_whose_last_lock_ends_are_archived(state: str, *, is_archived: bool) -> None:
    tale = Tale()
    tale.takes("a", (0, 0, 5))
    tale.ends_locks("a", 0, 0, 5, state)
    (delivery,) = read(tale.lines).deliveries
    assert (delivery.outcome, delivery.is_archived) == ("expired", is_archived)


def test_an_acknowledgement_ends_a_delivery_when_it_is_requested() -> None:
    tale = Tale()
    tale.takes("a", (0, 3, 2))
    asked = tale.acknowledges("a", (0, 3, "accept"))
    reader = TraceReader()
    *_, last = (reader.feed(line) for line in tale.lines)
    (delivery,) = (each for each in last if isinstance(each, ShareDelivery))
    assert (delivery.acquired_seq, delivery.ended_seq) == (2, asked["seq"])
    assert delivery.held_ms == (asked["group_ts_us"] - delivery.acquired_us) / 1000
    assert str(delivery) == "#2 t-0: 0-3 (delivery 2) to a, accepted"
    assert not reader.open()


def test_deliveries_of_the_emulator_have_every_record_once_for_each_delivery() -> None:
    found = {
        (offset, each.delivery_count): (each.member_id, each.outcome, each.is_archived)
        for each in read(two_workers()).deliveries
        for offset in range(each.first_offset, each.last_offset + 1)
    }
    assert found == {
        **dict.fromkeys([(0, 1), (1, 1)], ("A", "accepted", False)),
        (2, 1): ("A", "forced", False),
        **dict.fromkeys([(3, 1), (4, 1), (5, 1)], ("A", "session_closed", False)),
        (2, 2): ("B", "rejected", True),
    }
