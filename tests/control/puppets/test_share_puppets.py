"""Puppets of share groups (KIP-932): members that come and go, and leave the records to others."""

from __future__ import annotations

from typing import Any

import pytest
from scenes.puppet_scene import PuppetScene

from koordinator import Emulator

INTERVAL_MS = 5_000


class ShareScene(PuppetScene):
    """Puppets of the share protocol, with the heartbeat interval of the coordinator."""

    def __init__(self, nodes: int = 1, **settings: object) -> None:
        super().__init__(nodes, **{"group_share_heartbeat_interval_ms": INTERVAL_MS, **settings})

    def member(self, name: str, **options: Any) -> Any:
        return self.puppet(name, group_protocol="share", heartbeat_interval_ms=INTERVAL_MS, **options)


def test_members_get_partitions_at_once_and_share_them() -> None:
    scene = ShareScene()
    scene.member("one")
    assert scene.holds("one") == {"one": [0, 1, 2, 3]}
    scene.member("two")
    scene.wait(2 * INTERVAL_MS)
    held = scene.holds("one", "two")
    assert sorted(held["one"] + held["two"]) == [0, 1, 2, 3]
    assert {len(each) for each in held.values()} == {2}


def test_more_members_than_partitions_have_the_same_ones() -> None:
    scene = ShareScene()
    for name in "abcdef":
        scene.member(name)
    scene.wait(3 * INTERVAL_MS)
    assert all(scene.holds(*"abcdef").values())


def test_a_member_that_leaves_gives_its_partitions_to_the_others() -> None:
    scene = ShareScene()
    scene.member("one")
    scene.member("two")
    scene.perform("two", "leave")
    scene.wait(2 * INTERVAL_MS)
    assert scene.holds("one") == {"one": [0, 1, 2, 3]}
    assert scene.describe("two").state == "out"


def test_a_silent_member_is_removed_at_its_session_timeout() -> None:
    scene = ShareScene()
    scene.member("one", behaviour="silent")
    group: Any = scene.group()
    assert len(group.members) == 1
    scene.wait(scene.cluster.settings.group_share_session_timeout_ms)
    assert not group.members


def test_a_removed_member_joins_again() -> None:
    with Emulator() as cluster:
        cluster.create_topic("t", 2)
        group = cluster.group("g")
        puppet = group.create_puppet("one", group_protocol="share").join().wait_state("stable")
        before = puppet.generation
        group.evict(puppet.member_id)
        group.advance(10)
        assert puppet.wait_state("stable").assignment == {"t": [0, 1]}
        assert puppet.generation > before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"instance_id": "i"}, "instance_id='i': members with group_protocol 'share' do not have it"),
        ({"pattern": "t.*"}, r"pattern='t\.\*': members with group_protocol 'share'"),
        ({"protocols": ["range"]}, r"protocols=\['range'\]: members with group_protocol 'share'"),
        ({"behaviour": "straggler"}, "behaviour='straggler': members with group_protocol 'share'"),
    ],
)
def test_settings_of_other_protocols_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShareScene().member("one", **options)


def test_a_release_without_share_groups_says_so() -> None:
    with pytest.raises(ValueError, match=r"use kafka_version 4\.2 or newer"):
        ShareScene(kafka_version="4.0").member("one")


@pytest.mark.parametrize(
    ("action", "arguments", "message"),
    [
        ("sync", {}, "takes its partitions at once"),
        ("commit", {"offsets": [("t", 0, 1)]}, "a share group acknowledges records and commits no offsets"),
        ("leave", {"reason": "r"}, "the share protocol has no reasons"),
        ("leave", {"temporarily": True}, "puppets of share groups are not static"),
    ],
)
def test_steps_of_other_protocols_are_refused(action: str, arguments: dict[str, Any], message: str) -> None:
    scene = ShareScene()
    scene.member("one")
    with pytest.raises(ValueError, match=message):
        scene.perform("one", action, **arguments)
