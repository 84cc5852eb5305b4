"""S13 to S16: the records of a share group in hand-written lines, and in traces of the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.share_groups import two_workers
from scenes.trace_tales import Tale

from koordinator.emulator.verify.conformance import SERVER_CHECKS
from koordinator.emulator.verify.group_trace import GroupTrace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.emulator.verify.observations import Observations

CHECKS = ("S13", "S14", "S15", "S16")


def judged(tale: Tale) -> dict[str, Observations]:
    return {check: SERVER_CHECKS[check][1](tale.trace) for check in CHECKS}


def statuses(tale: Tale) -> Mapping[str, str]:
    return {check: found.status for check, found in judged(tale).items() if found.status != "not_applicable"}


def delivered_to_two(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.takes("b", (4, 5, 2))


def delivered_twice_to_its_holder(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.takes("a", (0, 4, 2))


def count_stays(tale: Tale) -> None:
    tale.takes("a", (3, 3, 1))
    tale.ends_locks("a", 3, 3, 1)
    tale.takes("b", (3, 3, 1))


def count_is_beyond_every_limit(tale: Tale) -> None:
    tale.takes("a", (3, 3, 26))


def accepted_and_delivered(tale: Tale) -> None:
    tale.takes("a", (0, 1, 1))
    tale.acknowledges("a", (1, 1, "accept"))
    tale.takes("b", (1, 1, 2))


def archived_and_delivered(tale: Tale) -> None:
    tale.takes("a", (0, 0, 1))
    tale.ends_locks("a", 0, 0, 1, "archived")
    tale.takes("b", (0, 0, 2))


def passed_over(tale: Tale) -> None:
    tale.takes("a", (0, 2, 1))
    tale.ends_locks("a", 0, 2, 1)
    tale.takes("b", (0, 0, 2), (3, 5, 1))


def accepted_from_another(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.acknowledges("b", (2, 2, "accept"))


WRONG: tuple[tuple[Callable[[Tale], None], str, str], ...] = (
    (delivered_to_two, "S13", "t-0: 4 was delivered to b while a held it: #3 ShareFetch v9 from b"),
    (delivered_twice_to_its_holder, "S13", "t-0: 0 was delivered to a while a held it"),
    (count_stays, "S14", "t-0: 3 has delivery count 1 after 1"),
    (count_is_beyond_every_limit, "S14", "t-0: 3 has delivery count 26 after 0"),
    (accepted_and_delivered, "S15", "t-0: 1 was delivered to b, although it was finished in #3"),
    (archived_and_delivered, "S15", "t-0: 0 was delivered to b, although it was finished in #3"),
    (passed_over, "S15", "t-0: 1 is available since #3, and was passed over: #4 ShareFetch v9 from b"),
    (accepted_from_another, "S16", "b acknowledged t-0: 2, which a held: #3 ShareAcknowledge v9 from b"),
)


@pytest.mark.parametrize(("scene", "check", "text"), WRONG, ids=[each.__name__ for each, *_ in WRONG])
def test_a_wrong_coordinator_fails_one_check(scene: Callable[[Tale], None], check: str, text: str) -> None:
    tale = Tale()
    scene(tale)
    assert {each for each, status in statuses(tale).items() if status == "fail"} == {check}
    assert text in judged(tale)[check].message


def taken_in_turn(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.acknowledges("a", (0, 1, "accept"), (2, 2, "release"), (3, 3, "reject"), (4, 4, "renew"))
    tale.takes("b", (2, 2, 2), (5, 9, 1))
    tale.ends_locks("a", 4, 4, 1)
    tale.takes("b", (4, 4, 2))


def refused(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.acknowledges("b", (0, 4, "accept"), error=121)
    tale.acknowledges("a", (0, 4, "accept"))


def session_of_another_partition(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.takes("b", (0, 4, 1), partition=1)


def released_after_its_last_delivery(tale: Tale) -> None:
    for count in (1, 2):
        tale.takes("a", (0, 1, count))
        tale.acknowledges("a", (0, 1, "release"))
    tale.takes("a", (2, 2, 1))


@pytest.mark.parametrize(
    "scene", [taken_in_turn, refused, session_of_another_partition, released_after_its_last_delivery]
)
def test_a_correct_coordinator_passes(scene: Callable[[Tale], None]) -> None:
    tale = Tale()
    scene(tale)
    assert {*statuses(tale).values()} == {"pass"}


def test_a_group_without_records_is_not_judged() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    assert statuses(tale) == {}


@pytest.mark.parametrize("kind", ["node", "leader", "verb"])
def test_nothing_is_known_of_records_before_a_change_of_the_cluster(kind: str) -> None:
    tale = Tale()
    tale.takes("a", (0, 4, 1))
    tale.line(kind, of_group=False, **({"verb": "restore"} if kind == "verb" else {"change": "started"}))
    tale.takes("b", (0, 4, 1))
    assert "fail" not in statuses(tale).values()


def test_a_lever_that_ends_locks_is_no_change_of_the_cluster() -> None:
    tale = Tale()
    tale.takes("a", (0, 4, 1))
    tale.line("verb", verb="expire_locks")
    tale.takes("b", (0, 4, 2))
    assert statuses(tale)["S13"] == "fail"


def test_records_of_a_closed_connection_have_no_known_holder() -> None:
    tale = Tale()
    asked = tale.takes("a", (0, 4, 1))
    tale.line("conn", of_group=False, change="closed", conn_id=asked["conn_id"])
    tale.takes("b", (0, 4, 2))
    assert "fail" not in statuses(tale).values()


def test_responses_of_rules_and_holds_show_no_holder() -> None:
    tale = Tale()
    tale.takes("a", (0, 4, 1), rule_id="r1")
    held = tale.takes("b", (0, 4, 1))
    tale.line("hold", change="entered", **{name: held[name] for name in ("conn_id", "correlation_id")})
    tale.takes("c", (0, 4, 1))
    assert "fail" not in statuses(tale).values()


def test_an_acknowledgement_whose_result_is_unknown_is_not_judged() -> None:
    tale = Tale()
    tale.takes("a", (0, 4, 1))
    tale.acknowledges("b", (0, 1, "accept"), error=6)
    tale.takes("c", (0, 4, 1))
    assert "fail" not in statuses(tale).values()


def test_records_that_may_be_deleted_are_unclear() -> None:
    tale = Tale()
    tale.takes("a", (0, 2, 1))
    tale.ends_locks("a", 0, 2, 1)
    tale.takes("b", (3, 5, 1))
    assert statuses(tale)["S15"] == "inconclusive"
    assert "t-0: 0 is available since #3, and was passed over" in judged(tale)["S15"].message


def test_members_of_the_emulator_pass() -> None:
    trace = GroupTrace(two_workers(), "g")
    found = {check: SERVER_CHECKS[check][1](trace) for check in CHECKS}
    assert {check: (each.status, each.message) for check, each in found.items()} == dict.fromkeys(CHECKS, ("pass", ""))
