"""Each coordinator check (S01 to S16) has its failing scene in each version of the APIs that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.checks_in_versions import (
    assert_fails_in_each_version,
    assert_reads_no_other_api,
    cases_of,
    of_each,
)
from scenes.lines_on_the_wire import GROUP_APIS
from scenes.trace_tales import COMPLETING, PREPARING, SESSION_MS, STABLE

from koordinator.emulator.verify.conformance import SERVER_CHECKS

if TYPE_CHECKING:
    from scenes.checks_in_versions import Scene
    from scenes.trace_tales import Tale

WITH_INSTANCE = ("Heartbeat", "JoinGroup", "LeaveGroup", "OffsetCommit", "SyncGroup", "TxnOffsetCommit")
"""The APIs whose requests name an instance."""

SHARE_APIS = ("ShareFetch", "ShareAcknowledge")
"""The APIs whose requests acknowledge records."""

CHANGES = (
    *("AlterShareGroupOffsets", "DeleteShareGroupOffsets", "DeleteGroups", "DeleteRecords", "DeleteTopics"),
    "WriteShareGroupState",
)
"""The APIs after which nothing is known of records."""

GENERATION_APIS = ("Heartbeat", "OffsetCommit", "SyncGroup", "TxnOffsetCommit")


def skipped_generation(tale: Tale) -> None:
    tale.state(PREPARING, PREPARING, 1, "metadata_change")
    tale.state(PREPARING, COMPLETING, 5, "joined")


def two_leaders(tale: Tale) -> None:
    for name, asked in {"a": tale.joins("a"), "b": tale.joins("b")}.items():
        body = {"protocol": "range", "leader": name, "members": ["a", "b"] if name == "a" else []}
        tale.answers(asked, generation=1, body=body)


def member_list_for_a_follower(tale: Tale) -> None:
    body = {"protocol": "range", "leader": "b", "members": ["a", "b"]}
    tale.answers(tale.joins("a"), generation=1, body=body)


def old_generation_accepted(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    tale.forms({"a": [0]}, before=STABLE)
    tale.call(api, "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})


def id_required_twice(tale: Tale) -> None:
    tale.call("JoinGroup", "a", "MEMBER_ID_REQUIRED", member_id="a-1")


def removed_too_soon(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    tale.passes(SESSION_MS)
    # a SyncGroup that completes the rebalance restarts the session, too
    tale.state(STABLE, COMPLETING, 2, "joined")
    tale.call(api, "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})
    tale.passes(SESSION_MS - 1)
    tale.member("removed", "a", "session_expired")


def one_member_too_many(tale: Tale, api: str) -> None:
    for name in ("a", "b"):
        tale.member("added", name, "member_join")
    tale.call(api, "c", "GROUP_MAX_SIZE_REACHED", member_id="c", generation=0)
    tale.member("added", "d", "member_join")
    tale.state(PREPARING, COMPLETING, 2, "joined")


def static_rejoin_with_a_rebalance(tale: Tale) -> None:
    tale.state(COMPLETING, STABLE, 1, "assigned")
    asked = tale.asks("JoinGroup", "one", instance_id="one", body={"protocols": ["range"]})
    tale.member("replaced", "one-1", "fenced", "one")
    tale.state(STABLE, PREPARING, 1, "metadata_change", member_id="one-2")
    tale.answers(asked, member_id="one-2", generation=1, body={"protocol": "range", "leader": "one-1"})


def old_member_not_fenced(tale: Tale, api: str) -> None:
    tale.member("replaced", "one-1", "fenced", "one")
    tale.call(api, "old", member_id="one-1", instance_id="one", generation=1)


def protocol_without_support(tale: Tale) -> None:
    tale.answers(tale.joins("a"), generation=1, body={"protocol": "sticky", "leader": "a"})


def request_skipped(tale: Tale, api: str) -> None:
    tale.asks(api, "a", member_id="a", generation=1)
    tale.call(api, "a", member_id="a", generation=1)


def given_to_two(tale: Tale) -> None:
    tale.step("a", 2, [0, 1])
    tale.step("b", 3, [1])


def member_epoch_back(tale: Tale) -> None:
    tale.step("a", 3, [0])
    tale.step("a", 2, [0])


def delivered_to_two(tale: Tale) -> None:
    tale.takes("a", (0, 4, 1))
    tale.takes("b", (4, 5, 2))


def delivered_without_counting(tale: Tale) -> None:
    tale.takes("a", (0, 0, 1))
    tale.acknowledges("a", (0, 0, "release"))
    tale.takes("a", (0, 0, 1))


def finished_and_delivered(tale: Tale, api: str) -> None:
    tale.takes("a", (0, 0, 1))
    tale.acknowledges("a", (0, 0, "accept"), api=api)
    tale.takes("a", (0, 0, 2))


def passed_over(tale: Tale, api: str) -> None:
    tale.takes("a", (0, 1, 1))
    tale.acknowledges("a", (0, 1, "release"), api=api)
    tale.takes("a", (0, 0, 2), (2, 3, 1))


def acknowledged_by_another(tale: Tale, api: str) -> None:
    tale.takes("a", (0, 4, 1))
    tale.acknowledges("b", (2, 3, "accept"), api=api)


def after_a_change(tale: Tale, api: str) -> None:
    """Judge nothing that was before a request of this API."""
    tale.takes("c", (7, 7, 1))
    tale.answers(tale.asks(api, "admin"), rule_id="r1")
    tale.takes("a", (7, 7, 1))
    tale.takes("b", (7, 7, 2))


SCENES: dict[str, tuple[Scene, ...]] = {
    "S01": (skipped_generation,),
    "S02": (two_leaders,),
    "S03": (member_list_for_a_follower,),
    "S04": of_each(old_generation_accepted, GENERATION_APIS),
    "S05": (id_required_twice,),
    "S06": of_each(removed_too_soon, ("Heartbeat", "JoinGroup", "OffsetCommit", "SyncGroup")),
    "S07": of_each(one_member_too_many, ("ConsumerGroupHeartbeat", "JoinGroup")),
    "S08": (static_rejoin_with_a_rebalance, *of_each(old_member_not_fenced, WITH_INSTANCE)),
    "S09": (protocol_without_support,),
    "S10": of_each(request_skipped, GROUP_APIS),
    "S11": (given_to_two,),
    "S12": (member_epoch_back,),
    "S13": (delivered_to_two, *of_each(after_a_change, CHANGES)),
    "S14": (delivered_without_counting,),
    "S15": (*of_each(finished_and_delivered, SHARE_APIS), *of_each(passed_over, SHARE_APIS)),
    "S16": of_each(acknowledged_by_another, SHARE_APIS),
}
"""The failing scenes of each check."""

WITHOUT_EFFECT = {
    **{(check, api): "nothing is judged of what was before it" for check in ("S14", "S15", "S16") for api in CHANGES},
    **{(check, "ShareAcknowledge"): "only S15 and S16 need it for a failure" for check in ("S13", "S14")},
    ("S10", "Produce"): "it is left out: with acks=0 it has no response",
}
"""The APIs that a check's code names, although no verdict depends on them, each with the reason."""


@pytest.mark.slow
@pytest.mark.parametrize(("check", "scene"), cases_of(SCENES))
def test_a_check_fails_in_each_version(check: str, scene: Scene) -> None:
    assert_fails_in_each_version(check, scene)


def test_each_check_has_a_failing_scene() -> None:
    assert {*SCENES} == {*SERVER_CHECKS}


@pytest.mark.slow
def test_a_check_reads_no_api_without_a_failing_scene() -> None:
    assert_reads_no_other_api(SCENES, WITHOUT_EFFECT)
