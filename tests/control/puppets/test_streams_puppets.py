"""Puppets of streams groups (KIP-1071): members that come and go, and process no records."""

from __future__ import annotations

from typing import Any

import pytest
from scenes.puppet_scene import PuppetScene

from koordinator import Emulator
from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology

INTERVAL_MS = 5_000


class StreamsScene(PuppetScene):
    """Puppets of the streams protocol, in groups without delays."""

    def __init__(self, **settings: object) -> None:
        quick = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
        super().__init__(1, **{**quick, **settings})

    def member(self, name: str, **options: Any) -> Any:
        return self.puppet(name, group_protocol="streams", **options)

    def tasks(self, name: str) -> list[int]:
        """Return the partitions of the tasks that a puppet has."""
        assignment = self.describe(name).assignment
        assert assignment.keys() <= {"0"}
        return list(assignment.get("0", []))


def test_a_puppet_that_founds_a_group_has_the_tasks_that_read_its_topics() -> None:
    scene = StreamsScene()
    scene.member("one")
    assert scene.tasks("one") == [0, 1, 2, 3]
    group: Any = scene.group()
    assert (group.kind, group.state.name) == ("streams", "STABLE")


def test_a_task_moves_when_its_owner_has_reported_that_it_gave_it_up() -> None:
    scene = StreamsScene()
    scene.member("one")
    scene.member("two")
    assert scene.tasks("two") == []
    scene.wait(2 * INTERVAL_MS)
    held = scene.tasks("one"), scene.tasks("two")
    assert sorted(held[0] + held[1]) == [0, 1, 2, 3]
    assert {len(each) for each in held} == {2}
    assert scene.group().state.name == "STABLE"


def test_the_tasks_of_a_puppet_that_leaves_go_to_the_others() -> None:
    scene = StreamsScene()
    scene.member("one")
    scene.member("two")
    scene.wait(2 * INTERVAL_MS)
    scene.perform("two", "leave")
    scene.wait(2 * INTERVAL_MS)
    assert scene.tasks("one") == [0, 1, 2, 3]
    assert scene.describe("two").state == "out"


def test_a_silent_puppet_is_removed_at_its_session_timeout() -> None:
    scene = StreamsScene()
    scene.member("one", behaviour="silent")
    group: Any = scene.group()
    assert len(group.members) == 1
    scene.wait(scene.cluster.settings.group_streams_session_timeout_ms)
    assert not group.members


def test_an_evicted_puppet_joins_again() -> None:
    with Emulator() as cluster:
        cluster.create_topic("t", 2)
        group = cluster.group("g")
        puppet = group.create_puppet("one", group_protocol="streams", topics=["t"]).join().wait_state("stable")
        before = puppet.generation
        group.evict(puppet.member_id)
        group.advance(10)
        assert puppet.wait_state("stable").assignment == {"0": [0, 1]}
        assert puppet.generation > before


def test_in_the_group_of_an_application_a_puppet_has_tasks_of_its_topology() -> None:
    scene = StreamsScene()
    application = StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="app",
        rebalance_timeout_ms=60_000,
        topology=Topology(epoch=0, subtopologies=(Subtopology(subtopology_id="words", source_topics=("t",)),)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="process",
        client_tags=(),
    )
    assert scene.request_at(1, application, 0).error_code == 0
    scene.member("one")
    group: Any = scene.group()
    assert {member_id: len(tasks.active) for member_id, tasks in group.targets.items()} == {
        "app": 2,
        scene.describe("one").member_id: 2,
    }


def test_without_its_topic_a_group_gives_no_tasks() -> None:
    scene = StreamsScene()
    scene.member("one", topics=["missing"])
    assert scene.tasks("one") == []
    assert (scene.describe("one").state, scene.group().state.name) == ("stable", "NOT_READY")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"instance_id": "i"}, "instance_id='i': members with group_protocol 'streams' do not have it"),
        ({"behaviour": "straggler"}, "behaviour='straggler': members with group_protocol 'streams'"),
        ({"topics": {"t": 1}}, "must be a list"),
    ],
)
def test_settings_of_other_protocols_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StreamsScene().member("one", **options)


def test_a_release_without_streams_groups_says_so() -> None:
    with pytest.raises(ValueError, match=r"serves no StreamsGroupHeartbeat; use kafka_version 4\.2 or newer"):
        StreamsScene(kafka_version="4.0").member("one")


@pytest.mark.parametrize(
    ("action", "arguments", "message"),
    [
        ("sync", {}, "takes its partitions at once"),
        ("commit", {"offsets": [("t", 0, 1)]}, "a puppet of a streams group processes no records"),
        ("leave", {"reason": "r"}, "the streams protocol has no reasons"),
        ("leave", {"temporarily": True}, "puppets of streams groups are not static"),
    ],
)
def test_steps_of_other_protocols_are_refused(action: str, arguments: dict[str, Any], message: str) -> None:
    scene = StreamsScene()
    scene.member("one")
    with pytest.raises(ValueError, match=message):
        scene.perform("one", action, **arguments)
