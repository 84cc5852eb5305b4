"""Heartbeats of streams groups: shape, joins, epochs, topology, status, leaving (KIP-1071).

A test named after a scenario, such as h117, plays it as it was seen on a broker of release 4.3.1.
"""

from __future__ import annotations

from typing import Any

import pytest
from scenes.streams_play import (
    ALL,
    STATEFUL,
    STATELESS,
    StreamsPlay,
    given,
    internal,
    seen,
    statuses,
    subtopology,
    topology,
)

from koordinator.emulator.core.groups.facts import MemberChanged, MemberReconciled, StateChanged, TargetComputed
from koordinator.wire.errors import Error
from koordinator.wire.messages import streams_group_heartbeat as wire
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.streams_group_describe import StreamsGroupDescribeRequest

INVALID, TOPOLOGY = Error.INVALID_REQUEST, Error.STREAMS_INVALID_TOPOLOGY
FENCED = "The member must abandon all its partitions and rejoin."


class TestShapeOfStreamsHeartbeats:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"group": ""}, "GroupId can't be empty."),
            ({"rack_id": " "}, "RackId can't be empty."),
            ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
            ({"owned": None}, "ActiveTasks must be empty when (re-)joining."),
            ({"owned": {"0": [0]}}, "ActiveTasks must be empty when (re-)joining."),
            ({"standby": {"0": [0]}}, "StandbyTasks must be empty when (re-)joining."),
            ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ],
    )
    def test_h114_an_invalid_join_creates_nothing(self, play: StreamsPlay, fields: Any, message: str) -> None:
        response = play.enter("A", **fields)
        assert (response.error_code, response.error_message) == (INVALID, message)
        assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("", 0, 0)
        assert (response.status, response.active_tasks) == ((), None)
        assert not play.coordinator.store.groups

    def test_h114_a_member_makes_its_own_id(self, play: StreamsPlay) -> None:
        assert play.come("") == play.come(" ") == (INVALID, "MemberId can't be empty.")
        assert play.come("m" * 300)[0] == 2

    @pytest.mark.parametrize("release", ["4.3"])
    def test_h114_there_are_no_static_members_before_4_4(self, release: str) -> None:
        play = StreamsPlay(kafka_version=release)
        for instance_id in ("i1", " "):
            refusal = INVALID, "Static membership is not yet supported."
            assert play.come("A", instance_id=instance_id) == refusal

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"task_offsets": ()}, "TaskOffsets are not supported yet."),
            ({"task_end_offsets": ()}, "TaskEndOffsets are not supported yet."),
            ({"warmup_tasks": (wire.TaskIds(subtopology_id="0"),)}, "WarmupTasks are not supported yet."),
        ],
    )
    def test_what_only_warm_up_tasks_need_is_refused_before_4_4(self, fields: Any, message: str) -> None:
        assert StreamsPlay(kafka_version="4.3").come("A", **fields) == (INVALID, message)

    @pytest.mark.parametrize(
        ("subtopologies", "refusal"),
        [
            (
                [subtopology(source_topic_regex=("a.*",))],
                (INVALID, "Regular expressions for source topics are not supported yet."),
            ),
            (
                [subtopology(state_changelog_topics=(internal("x", 3),))],
                (TOPOLOGY, "Changelog topic x must have an undefined partition count, but it is set to 3."),
            ),
            (
                [subtopology(sources=["__consumer_offsets"])],
                (
                    TOPOLOGY,
                    "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
                ),
            ),
            ([subtopology(sources=["a b"])], (TOPOLOGY, "Topic names a b are not valid topic names.")),
        ],
    )
    def test_h116_a_topology_that_no_topics_make_valid(
        self, play: StreamsPlay, subtopologies: Any, refusal: Any
    ) -> None:
        assert play.come("A", topology(*subtopologies)) == refusal

    def test_a_member_that_stays_repeats_no_topology(self, play: StreamsPlay) -> None:
        play.come("A")
        assert play.beat("A", 2, topology=STATELESS) == (INVALID, "Topology can only be provided when (re-)joining.")
        text = "If one task-type is non-null, all must be non-null."
        assert play.beat("A", 2, active_tasks=()) == (INVALID, text)
        assert play.beat("A", -2) == (INVALID, "InstanceId can't be null.")
        assert play.beat("A", -3) == (INVALID, "MemberEpoch is -3, but must be greater than or equal to -2.")

    def test_h116_a_group_that_does_not_exist_is_named_by_its_requests(self, play: StreamsPlay) -> None:
        assert play.beat("A", 1) == (Error.GROUP_ID_NOT_FOUND, "Streams group g not found.")
        assert play.beat("A", -1) == (Error.GROUP_ID_NOT_FOUND, "Group g not found.")

    def test_the_protocol_is_off_where_the_settings_do_not_name_it(self) -> None:
        play = StreamsPlay(group_coordinator_rebalance_protocols="classic,consumer,share")
        assert play.come("A") == (Error.UNSUPPORTED_VERSION, None)
        play = StreamsPlay(group_coordinator_rebalance_protocols="classic,consumer,streams")
        assert play.come("A") == (2, ALL)

    def test_the_protocol_is_off_without_its_feature(self, play: StreamsPlay) -> None:
        play.cluster.features.set_level("streams.version", 0)
        assert play.come("A") == (Error.UNSUPPORTED_VERSION, None)
        assert play.described().error_code == Error.UNSUPPORTED_VERSION


class TestMembersOfStreamsGroups:
    def test_h117_the_first_member_gets_all_tasks(self, play: StreamsPlay) -> None:
        response = play.enter("A")
        assert (seen(response), response.standby_tasks, response.warmup_tasks) == ((2, ALL), (), ())
        assert (response.heartbeat_interval_ms, response.status) == (500, ())
        assert play.written() == [[19, 23, 17, 21, 20, 22]]
        assert play.beat("A", 2) == (2, None)
        assert play.shape() == ("Stable", 2, 2)
        assert play.written() == []

    def test_h120_a_task_is_revoked_before_another_member_gets_it(self, play: StreamsPlay) -> None:
        assert play.come("A") == (2, ALL)
        assert play.come("B") == (3, {})
        assert play.beat("A", 2) == (2, {"0": [0, 1]})
        assert play.shape() == ("Reconciling", 3, 3)
        assert play.beat("B", 3) == (3, None)
        assert play.beat("A", 2, owned={"0": [0, 1]}) == (3, None)
        assert play.beat("B", 3) == (3, {"0": [2, 3]})
        assert play.shape() == ("Stable", 3, 3)

    def test_h120_a_member_may_repeat_its_previous_epoch_with_what_it_has(self, play: StreamsPlay) -> None:
        play.come("A")
        play.come("B")
        play.beat("A", 2)
        play.beat("A", 2, owned={"0": [0, 1]})
        fenced = Error.FENCED_MEMBER_EPOCH
        text = f"member epoch (2) than the one known by the group coordinator (3). {FENCED}"
        assert play.beat("A", 2) == (fenced, f"The streams group member has a smaller {text}")
        assert play.beat("A", 2, owned={"0": [0, 2]})[0] == fenced
        assert play.beat("A", 2, owned={"0": [0]}) == (3, None)
        text = f"member epoch (99) than the one known by the group coordinator (3). {FENCED}"
        assert play.beat("A", 99) == (fenced, f"The streams group member has a greater {text}")
        assert play.beat("C", 3) == (Error.UNKNOWN_MEMBER_ID, "Member C is not a member of group g.")

    def test_h131_every_change_of_a_member_raises_the_epoch(self) -> None:
        play = StreamsPlay(kafka_version="4.3")
        tags = (wire.KeyValue(key="a", value="b"),)
        play.come("A")
        assert play.beat("A", 2, rack_id="r") == (3, None)
        assert play.beat("A", 3, client_tags=tags) == (4, None)
        assert play.beat("A", 4, client_tags=tags) == (4, None)
        assert play.beat("A", 4, process_id="other") == (5, None)
        assert play.beat("A", 5, rebalance_timeout_ms=7) == (6, None)
        assert play.beat("A", 6, user_endpoint=wire.Endpoint(host="h", port=1)) == (7, None)

    def test_of_a_static_member_only_what_tasks_depend_on_raises_the_epoch(self, play: StreamsPlay) -> None:
        play.come("A", instance_id="i")
        play.written()
        assert play.beat("A", 2, instance_id="i", rebalance_timeout_ms=7) == (2, None)
        assert play.beat("A", 2, instance_id="i", user_endpoint=wire.Endpoint(host="h", port=1)) == (2, None)
        assert play.written() == [[19], [19]]
        assert play.beat("A", 2, instance_id="i", rack_id="r") == (3, None)

    def test_h135_a_full_group_refuses_even_its_members_before_4_4(self) -> None:
        play = StreamsPlay(kafka_version="4.3", group_streams_max_size=1)
        play.come("A")
        full = Error.GROUP_MAX_SIZE_REACHED, "The streams group has reached its maximum capacity of 1 members."
        assert play.come("B") == play.come("A") == full
        assert play.beat("A", 2) == (2, None)

    def test_since_4_4_a_member_of_a_full_group_may_rejoin(self) -> None:
        play = StreamsPlay(kafka_version="4.4", group_streams_max_size=1)
        play.come("A")
        assert play.come("B")[0] == Error.GROUP_MAX_SIZE_REACHED
        assert play.come("A") == (2, ALL)

    def test_a_rejoin_gets_the_tasks_that_the_member_has(self, play: StreamsPlay) -> None:
        play.come("A")
        play.written()
        assert play.come("A") == (2, ALL)
        assert play.written() == []

    def test_a_task_that_the_topology_does_not_have_is_refused(self, play: StreamsPlay) -> None:
        play.come("A")
        text = "Subtopology 7 does not exist in the topology."
        assert play.beat("A", 2, owned={"7": [0]}) == (INVALID, text)
        text = "Task 9 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"
        assert play.beat("A", 2, owned={"0": [9]}) == (INVALID, text)
        assert play.beat("A", 2, owned={"0": [-1]})[0] == INVALID

    def test_members_of_one_process_never_have_the_same_task(self, play: StreamsPlay) -> None:
        play.cluster.resource_configs[32]["g"] = {"streams.num.standby.replicas": "1"}
        play.come("A", STATEFUL, process_id="p")
        assert play.beat("A", 2)[0] == 3
        response = play.enter("B", STATEFUL, process_id="p")
        assert (seen(response), response.standby_tasks) == ((4, {}), ())
        play.beat("A", 3, owned=ALL)
        assert given(play.heart("B", 4).standby_tasks) is None


class TestTaskOffsets:
    ROW = wire.TaskOffset(subtopology_id="0", partition=1, offset=7)

    def test_a_member_reports_the_offsets_of_its_tasks(self, play: StreamsPlay) -> None:
        play.come("A")
        play.heart("A", 2, task_offsets=(self.ROW,), task_end_offsets=(self.ROW,))
        play.heart("A", 2, task_offsets=())
        (member,) = play.described().members
        assert (member.task_offsets, member.task_end_offsets) == ((), (self.ROW,))
        play.beat("A", -1)
        play.come("A")
        assert play.described().members[0].task_end_offsets == ()

    def test_a_task_has_one_offset(self, play: StreamsPlay) -> None:
        play.come("A")
        text = "Task offsets contain a duplicate entry for subtopology 0 and partition 1."
        assert play.beat("A", 2, task_offsets=(self.ROW, self.ROW)) == (INVALID, text)

    @pytest.mark.parametrize("which", [0, 1])
    def test_the_owner_of_most_of_a_changelog_gets_its_task(self, play: StreamsPlay, which: int) -> None:
        play.cluster.resource_configs[32]["g"] = {"streams.num.standby.replicas": "2"}
        for member_id in "ABC":
            play.enter(member_id, STATEFUL)
        for _ in range(4):
            for member_id in "ABC":
                play.repeat(member_id)
        members = play.streams_group().members
        # both others have room for one of its two tasks
        leaver = max(members, key=lambda member_id: len(members[member_id].assigned.active))
        heirs = sorted(members.keys() - {leaver})
        orphan = min(members[leaver].assigned.active)
        assert all(orphan in members[each].assigned.standby for each in heirs)
        for at, member_id in enumerate(heirs):
            row = wire.TaskOffset(subtopology_id="0", partition=orphan.partition, offset=9 if at == which else 1)
            play.repeat(member_id, task_offsets=(row,))
        play.beat(leaver, -1)
        play.repeat(heirs[0])
        assert orphan in play.streams_group().targets[heirs[which]].active

    def test_offsets_count_for_the_target_of_their_own_heartbeat(self, play: StreamsPlay) -> None:
        reads = topology(subtopology(sources=["later"]))
        assert [play.come("A", reads)[0], play.come("B", reads)[0]] == [2, 3]
        play.cluster.create_topic("later", 2)
        assert play.beat("B", 3, task_offsets=(wire.TaskOffset(subtopology_id="0", partition=0, offset=9),)) == (
            4,
            {"0": [0]},
        )


class TestStaticMembersOfStreamsGroups:
    def test_a_static_member_returns_to_its_tasks(self, play: StreamsPlay) -> None:
        play.come("A", instance_id="i", process_id="p")
        assert play.beat("A", -2, instance_id="i") == (-2, None)
        assert play.shape() == ("Reconciling", 2, 2)
        play.written()
        assert play.come("B", instance_id="i", process_id="p") == (2, ALL)
        assert play.written() == [[-22, -21, -19, 19, 21, 22, 22]]
        assert play.shape() == ("Stable", 2, 2)
        changes = [(fact.member_id, fact.change) for fact in play.facts_of(MemberChanged)]
        assert changes == [("A", "added"), ("A", "replaced"), ("B", "added")]

    def test_a_static_member_in_another_process_raises_the_epoch(self, play: StreamsPlay) -> None:
        play.come("A", instance_id="i")
        play.beat("A", -2, instance_id="i")
        assert play.come("B", instance_id="i") == (3, ALL)

    def test_an_instance_id_has_one_member(self, play: StreamsPlay) -> None:
        play.come("A", instance_id="i")
        text = "cannot join the group because the instance id is owned by A member."
        unreleased = Error.UNRELEASED_INSTANCE_ID, f"Static member B with instance id i {text}"
        assert play.come("B", instance_id="i") == unreleased
        fenced = Error.FENCED_INSTANCE_ID, "Static member B with instance id i was fenced by member A."
        assert play.beat("B", 2, instance_id="i") == play.beat("B", -1, instance_id="i") == fenced
        unknown = Error.UNKNOWN_MEMBER_ID, "Instance id j is unknown."
        assert play.beat("A", 2, instance_id="j") == unknown
        assert play.come("A", instance_id=" ") == (INVALID, "InstanceId can't be empty.")

    def test_a_dynamic_member_that_rejoins_with_an_instance_id_becomes_static(self, play: StreamsPlay) -> None:
        play.come("A")
        assert play.come("A", instance_id="i") == (2, ALL)
        assert play.described().members[0].instance_id == "i"
        assert play.beat("A", 2, instance_id="i") == (2, None)
        assert play.beat("A", -2, instance_id="i") == (-2, None)
        assert play.come("B", instance_id="i", process_id="process-A") == (2, ALL)

    def test_a_static_member_that_rejoins_with_another_instance_id_gives_the_first_one_up(
        self, play: StreamsPlay
    ) -> None:
        play.come("A", instance_id="i")
        assert play.come("A", instance_id="j") == (2, ALL)
        assert play.streams_group().static_members == {"j": "A"}
        assert play.beat("A", 2, instance_id="i") == (Error.UNKNOWN_MEMBER_ID, "Instance id i is unknown.")
        assert play.come("B", instance_id="i")[0] == 3
        assert play.streams_group().static_members == {"j": "A", "i": "B"}

    def test_a_change_of_a_static_member_without_its_instance_id_raises_the_epoch(self, play: StreamsPlay) -> None:
        play.come("A", instance_id="i")
        assert play.beat("A", 2, rebalance_timeout_ms=7) == (3, None)
        assert play.beat("A", 3, instance_id="i", rebalance_timeout_ms=8) == (3, None)

    def test_the_session_of_a_static_member_that_was_replaced_ends_without_effect(self, play: StreamsPlay) -> None:
        play.come("A", instance_id="i", process_id="p")
        play.beat("A", -2, instance_id="i")
        play.wait(30_000)
        play.come("B", instance_id="i", process_id="p")
        play.wait(30_000)
        assert list(play.streams_group().members) == ["B"]
        assert play.beat("B", 2, instance_id="i") == (2, None)

    def test_a_static_member_that_does_not_return_is_removed(self, play: StreamsPlay) -> None:
        play.come("A", instance_id="i")
        play.beat("A", -2, instance_id="i")
        play.wait(45_000)
        assert not play.streams_group().members
        assert not play.streams_group().static_members
        assert play.come("B", instance_id="i")[0] == 4

    def test_a_static_member_leaves_for_good(self, play: StreamsPlay) -> None:
        play.come("A", instance_id="i")
        assert play.beat("A", -1, instance_id="i") == (-1, None)
        assert not play.streams_group().static_members


class TestTopologiesOfStreamsGroups:
    def test_h119_internal_topics_are_created_and_then_there_are_tasks(self, play: StreamsPlay) -> None:
        changelog = internal("app-changelog", cleanup_policy="compact")
        response = play.enter("A", topology(subtopology(state_changelog_topics=(changelog,))))
        assert seen(response) == (2, {})
        assert statuses(response) == [(3, "Internal topics are missing: app-changelog")]
        created = play.cluster.topics["app-changelog"]
        assert (len(created.logs), created.configs["cleanup.policy"]) == (4, "compact")
        assert play.beat("A", 2) == (3, ALL)
        assert play.written() == [[19, 23, 17, 21, 20, 22], [17, 21, 20, 22]]

    def test_h119_the_records_of_a_group_whose_topics_are_missing(self, play: StreamsPlay) -> None:
        play.enter("A", STATEFUL)
        values = {type(record.value).__name__: record.value for record in play.appended[0].records}
        group: Any = values["StreamsGroupMetadataValue"]
        assert (group.epoch, group.validated_topology_epoch) == (2, -1)
        assert [(each.key, each.value) for each in group.last_assignment_configs] == [("num.standby.replicas", "0")]
        current: Any = values["StreamsGroupCurrentMemberAssignmentValue"]
        assert (current.member_epoch, current.previous_member_epoch, current.state) == (2, 0, 1)
        play.heart("A", 2)
        active: Any = play.appended[1].records[-1].value
        (row,) = active.active_tasks
        assert (row.partitions, row.assignment_epochs) == ((0, 1, 2, 3), (3, 3, 3, 3))

    def test_h122_a_topology_does_not_change(self, play: StreamsPlay) -> None:
        play.come("A")
        refusal = INVALID, "Topology updates are not supported yet."
        assert play.come("C", topology(subtopology(sources=["u"]))) == refusal
        assert play.come("C", topology(epoch=1)) == refusal
        play.beat("A", -1)
        assert play.come("C", topology(epoch=1)) == refusal

    def test_a_member_with_an_older_topology_is_told_with_each_heartbeat(self, play: StreamsPlay) -> None:
        play.come("A", topology(epoch=1))
        stale = [(0, "The member's topology epoch 0 is behind the group's topology epoch 1.")]
        response = play.enter("B")
        assert (response.member_epoch, statuses(response)) == (3, stale)
        assert statuses(play.heart("B", 3)) == stale

    def test_h123_a_missing_source_leaves_a_group_not_ready(self, play: StreamsPlay) -> None:
        response = play.enter("A", topology(subtopology(sources=["nosuch"])))
        missing = [(1, "Source topics nosuch are missing.")]
        assert (seen(response), statuses(response)) == ((2, {}), missing)
        assert play.shape() == ("NotReady", 2, 2)
        response = play.heart("A", 2)
        assert (seen(response), statuses(response)) == ((2, None), missing)
        play.cluster.create_topic("nosuch", 2)
        assert play.beat("A", 2) == (3, {"0": [0, 1]})
        assert play.shape() == ("Stable", 3, 3)

    def test_h125_a_repartition_topic_gets_the_partitions_of_its_writers(self, play: StreamsPlay) -> None:
        store = internal("app-changelog")
        parts = (
            subtopology("0", repartition_sink_topics=("r",), state_changelog_topics=(store,)),
            subtopology("1", sources=(), repartition_source_topics=(internal("r"),)),
        )
        response = play.enter("A", topology(*parts))
        (status,) = statuses(response)
        assert status[0] == 3
        assert set(status[1].removeprefix("Internal topics are missing: ").split(", ")) == {"r", "app-changelog"}
        assert play.beat("A", 2) == (3, {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]})
        assert play.cluster.topics.partition_count("r") == 4

    def test_an_internal_topic_with_other_partitions_is_a_problem(self, play: StreamsPlay) -> None:
        play.cluster.create_topic("app-store-changelog", 2)
        detail = "Existing topic app-store-changelog has different number of partitions: expected 4, found 2"
        assert statuses(play.enter("A", STATEFUL)) == [(2, detail)]
        assert play.asked == []

    def test_a_deleted_source_takes_the_tasks_away(self, play: StreamsPlay) -> None:
        play.come("A")
        play.cluster.delete_topic(play.cluster.topics["t"])
        response = play.heart("A", 2)
        assert (seen(response), statuses(response)) == ((2, {}), [(1, "Source topics t are missing.")])
        assert play.shape() == ("NotReady", 3, 3)
        assert play.beat("A", 2, owned={}) == (3, None)

    def test_more_partitions_of_a_source_are_more_tasks(self, play: StreamsPlay) -> None:
        play.come("A")
        play.cluster.grow_topic(play.cluster.topics["t"], 5)
        assert play.beat("A", 2) == (3, {"0": [0, 1, 2, 3, 4]})

    def test_another_topic_changes_nothing(self, play: StreamsPlay) -> None:
        play.come("A")
        play.heart("A", 2)
        play.written()
        play.cluster.create_topic("other", 1)
        assert play.beat("A", 2) == (2, None)
        assert play.written() == []

    def test_h126_standby_tasks_are_at_other_processes(self, play: StreamsPlay) -> None:
        play.cluster.resource_configs[32]["g"] = {"streams.num.standby.replicas": "1"}
        play.come("A", STATEFUL)
        assert play.beat("A", 2) == (3, ALL)
        response = play.enter("B", STATEFUL)
        assert (seen(response), given(response.standby_tasks)) == ((4, {}), {"0": [0, 1]})
        response = play.heart("A", 3, owned=ALL)
        assert (seen(response), given(response.standby_tasks)) == ((3, {"0": [0, 1]}), {"0": [2, 3]})
        assert play.beat("A", 3, owned={"0": [0, 1]}) == (4, None)
        assert play.beat("B", 4, owned={}, standby={"0": [0, 1]}) == (4, {"0": [2, 3]})
        assert play.shape() == ("Stable", 4, 4)

    def test_since_4_4_a_client_without_the_tags_of_its_group_is_told(self, play: StreamsPlay) -> None:
        play.cluster.resource_configs[32]["g"] = {"streams.rack.aware.assignment.tags": "zone, cluster"}
        text = (
            "Missing required client tags for rack-aware standby assignment: [cluster]. Configure them via "
            "'client.tag.<tagKey>' in your Streams config."
        )
        request = play.request(
            *("A", 0),
            topology=STATELESS,
            rebalance_timeout_ms=1_000,
            owned={},
            client_tags=(wire.KeyValue(key="zone", value="z"),),
        )
        assert statuses(play.send(request, 1).response) == [(6, text)]
        configs = play.streams_group().assignment_configs
        assert configs == {"num.standby.replicas": "0", "rack.aware.assignment.tags": "zone,cluster"}
        assert statuses(play.heart("A", 2)) == []

    def test_other_settings_of_the_assignor_raise_the_epoch_once(self, play: StreamsPlay) -> None:
        play.come("A")
        play.cluster.resource_configs[32]["g"] = {"streams.num.standby.replicas": "1"}
        assert play.beat("A", 2) == (3, None)
        assert play.beat("A", 3) == (3, None)


class TestCreationOfInternalTopics:
    def test_a_topic_is_asked_for_once_at_a_time(self, play: StreamsPlay) -> None:
        play.creates = False
        play.enter("A", STATEFUL)
        play.heart("A", 2)
        assert len(play.asked) == 1
        play.create()
        assert play.beat("A", 2) == (3, ALL)

    def test_why_a_topic_was_not_created_is_told_until_it_is_tried_again(self, play: StreamsPlay) -> None:
        changelog = internal("app-changelog", no_such="config")
        response = play.enter("A", topology(subtopology(state_changelog_topics=(changelog,))))
        missing = "Internal topics are missing: app-changelog"
        assert statuses(response) == [(3, missing)]
        why = "Unknown topic config name: no.such"
        assert statuses(play.heart("A", 2)) == [(3, f"{missing}; Creation failed: app-changelog ({why}).")]
        assert len(play.asked) == 1
        play.wait(2 * 500)
        assert statuses(play.heart("A", 2)) == [(3, missing)]
        assert len(play.asked) == 2

    def test_a_controller_that_cannot_be_reached_is_a_reason(self, play: StreamsPlay) -> None:
        play.creates = False
        play.enter("A", STATEFUL)
        play.lose()
        (status,) = statuses(play.heart("A", 2))
        assert "Creation failed: app-store-changelog (" in status[1]

    def test_topics_of_a_heartbeat_that_could_not_be_written_are_not_created(self, play: StreamsPlay) -> None:
        play.writes = Error.NOT_LEADER_OR_FOLLOWER
        assert play.enter("A", STATEFUL).error_code == Error.NOT_COORDINATOR
        assert play.asked == []
        assert not play.coordinator.store.groups

    def test_an_answer_for_a_group_that_is_gone_changes_nothing(self, play: StreamsPlay) -> None:
        play.creates = False
        play.enter("A", STATEFUL)
        play.heart("A", -1)
        play.coordinator.store.remove_group(play.streams_group())
        play.create()
        assert not play.coordinator.store.groups


class TestDelaysOfStreamsGroups:
    def test_h128_the_first_target_waits_for_more_members(self) -> None:
        play = StreamsPlay(group_streams_initial_rebalance_delay_ms=1_500)
        delayed = [(5, "Assignment delayed due to the configured initial rebalance delay.")]
        response = play.enter("A")
        assert (seen(response), statuses(response)) == ((1, {}), delayed)
        assert play.shape() == ("Assigning", 2, 1)
        response = play.enter("B")
        assert (seen(response), statuses(response)) == ((1, {}), delayed)
        play.wait(1_600)
        assert play.shape() == ("Reconciling", 3, 3)
        assert play.written()[-1] == [21, 21, 20]
        assert play.beat("A", 1) == (3, {"0": [0, 2]})
        assert play.beat("B", 1) == (3, {"0": [1, 3]})

    def test_a_new_group_knows_no_topics_at_the_end_of_the_delay(self) -> None:
        play = StreamsPlay(group_streams_initial_rebalance_delay_ms=1_500)
        play.enter("A")
        play.wait(1_600)
        assert play.shape() == ("Assigning", 2, 1)
        assert play.beat("A", 1) == (2, ALL)

    def test_a_group_that_is_empty_again_gets_no_target_at_the_end_of_the_delay(self) -> None:
        play = StreamsPlay(group_streams_initial_rebalance_delay_ms=1_500)
        play.enter("A")
        play.heart("A", -1)
        play.written()
        play.wait(1_600)
        assert play.written() == []

    def test_h129_targets_have_a_distance(self) -> None:
        play = StreamsPlay(group_streams_assignment_interval_ms=1_000)
        delayed = [(5, "Assignment delayed due to the configured assignment interval.")]
        assert play.come("A") == (2, ALL)
        response = play.enter("B")
        assert (seen(response), statuses(response)) == ((2, {}), delayed)
        response = play.heart("A", 2)
        assert (seen(response), statuses(response)) == ((2, None), delayed)
        play.wait(1_000)
        response = play.heart("A", 2)
        assert (seen(response), statuses(response)) == ((2, {"0": [0, 1]}), [])


class TestEndsOfMembersOfStreamsGroups:
    def test_a_member_leaves(self, play: StreamsPlay) -> None:
        play.come("A")
        play.come("B")
        play.written()
        response = play.heart("A", -1)
        assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("A", -1, 0)
        assert (response.status, response.active_tasks) == ((), None)
        assert play.written() == [[-22, -21, -19, 17]]
        assert play.shape() == ("Assigning", 4, 3)
        assert play.beat("B", 3) == (4, ALL)
        assert play.beat("A", -1)[0] == Error.UNKNOWN_MEMBER_ID

    def test_an_empty_group_keeps_its_epochs_and_its_topology(self, play: StreamsPlay) -> None:
        play.come("A")
        play.heart("A", -1)
        assert play.shape()[:2] == ("Empty", 3)
        assert play.described().topology.subtopologies[0].source_topics == ("t",)
        assert play.come("A") == (4, ALL)

    def test_since_4_4_the_last_member_leaves_a_target(self) -> None:
        for release, target in (("4.3", 2), ("4.4", 3)):
            play = StreamsPlay(kafka_version=release)
            play.come("A")
            play.heart("A", -1)
            assert play.shape() == ("Empty", 3, target)

    def test_h132_a_shutdown_is_told_to_everybody_until_the_group_is_empty(self, play: StreamsPlay) -> None:
        play.come("A")
        play.come("B")
        text = "Streams group member B encountered a fatal error and requested a shutdown for the entire application."
        assert statuses(play.heart("B", 3, shutdown_application=True)) == [(4, text)]
        assert statuses(play.heart("A", 2)) == [(4, text)]
        play.heart("B", -1)
        assert statuses(play.heart("A", 2, owned={"0": [0, 1]})) == [(4, text)]
        play.heart("A", -1)
        assert statuses(play.enter("A")) == []

    def test_a_shutdown_of_a_group_that_is_just_born_is_forgotten(self, play: StreamsPlay) -> None:
        assert [code for code, _ in statuses(play.enter("A", shutdown_application=True))] == [4]
        assert statuses(play.heart("A", 2)) == []

    def test_a_member_asks_for_a_shutdown_as_it_leaves(self, play: StreamsPlay) -> None:
        play.come("A")
        play.come("B")
        play.heart("B", -1, shutdown_application=True)
        assert [code for code, _ in statuses(play.heart("A", 2))] == [4]

    def test_h134_a_silent_member_is_removed(self, play: StreamsPlay) -> None:
        play.cluster.resource_configs[32]["g"] = {
            "streams.session.timeout.ms": "800",
            "streams.heartbeat.interval.ms": "100",
        }
        assert play.enter("A").heartbeat_interval_ms == 100
        play.wait(799)
        play.heart("A", 2)
        play.wait(799)
        assert play.shape() == ("Stable", 2, 2)
        play.wait(1)
        assert play.shape()[:2] == ("Empty", 3)
        assert play.beat("A", 2)[0] == Error.UNKNOWN_MEMBER_ID
        (removed,) = (fact for fact in play.facts_of(MemberChanged) if fact.change == "removed")
        assert removed.cause == "session_expired"

    def test_a_member_that_does_not_revoke_is_removed(self, play: StreamsPlay) -> None:
        play.come("A", rebalance_timeout_ms=1_000)
        play.come("B")
        play.beat("A", 2)
        play.wait(999)
        assert set(play.streams_group().members) == {"A", "B"}
        play.wait(1)
        assert set(play.streams_group().members) == {"B"}
        (removed,) = (fact for fact in play.facts_of(MemberChanged) if fact.change == "removed")
        assert removed.cause == "revocation_timeout"

    def test_a_removal_that_could_not_be_written_is_tried_again(self, play: StreamsPlay) -> None:
        play.come("A")
        play.writes = Error.NOT_ENOUGH_REPLICAS
        play.wait(45_000)
        assert set(play.streams_group().members) == {"A"}
        play.writes = Error.NONE
        play.wait(500)
        assert not play.streams_group().members


class TestEndpointsOfStreamsGroups:
    ENDPOINT = wire.Endpoint(host="a", port=8080)

    def test_members_are_told_of_the_partitions_at_each_endpoint(self, play: StreamsPlay) -> None:
        response = play.enter("A", user_endpoint=self.ENDPOINT)
        assert response.endpoint_information_epoch == 0
        (row,) = response.partitions_by_user_endpoint
        assert (row.user_endpoint, row.standby_partitions) == (self.ENDPOINT, ())
        assert [(each.topic, each.partitions) for each in row.active_partitions] == [("t", (0, 1, 2, 3))]
        response = play.enter("B", endpoint_information_epoch=-1)
        assert [each.user_endpoint for each in response.partitions_by_user_endpoint] == [self.ENDPOINT]
        response = play.heart("A", 2)
        assert response.endpoint_information_epoch == 1
        (row,) = response.partitions_by_user_endpoint
        assert [each.partitions for each in row.active_partitions] == [(0, 1)]
        response = play.heart("B", 3, endpoint_information_epoch=1)
        assert response.partitions_by_user_endpoint is None

    def test_only_changed_tasks_raise_the_epoch_since_4_4(self) -> None:
        for release, epoch in (("4.3", 1), ("4.4", 0)):
            play = StreamsPlay(kafka_version=release)
            play.enter("A", user_endpoint=self.ENDPOINT)
            assert play.enter("A", user_endpoint=self.ENDPOINT).endpoint_information_epoch == epoch

    def test_the_response_to_a_changed_endpoint_has_the_old_one_before_4_4(self) -> None:
        other = wire.Endpoint(host="other", port=1)
        for release, first in (("4.3", self.ENDPOINT), ("4.4", other)):
            play = StreamsPlay(kafka_version=release)
            play.enter("A", user_endpoint=self.ENDPOINT)
            told = [
                play.heart("A", epoch, endpoint_information_epoch=-1, **fields).partitions_by_user_endpoint
                for epoch, fields in ((2, {}), (2, {"user_endpoint": other}), (3, {}))
            ]
            assert [rows[0].user_endpoint for rows in told] == [self.ENDPOINT, first, other]

    def test_since_4_4_a_member_that_gives_its_endpoint_up_raises_the_epoch(self, play: StreamsPlay) -> None:
        play.enter("A", user_endpoint=self.ENDPOINT)
        # the epoch of a group's first join is lost
        assert play.heart("A", 2, user_endpoint=wire.Endpoint(host="h", port=2)).endpoint_information_epoch == 1
        response = play.enter("A", endpoint_information_epoch=1)
        assert (response.endpoint_information_epoch, response.partitions_by_user_endpoint) == (2, ())

    def test_a_static_member_that_was_replaced_has_no_endpoint(self, play: StreamsPlay) -> None:
        play.enter("A", instance_id="i", user_endpoint=self.ENDPOINT)
        play.beat("A", -2, instance_id="i")
        other = wire.Endpoint(host="other", port=1)
        response = play.enter("B", instance_id="i", user_endpoint=other)
        assert [each.user_endpoint for each in response.partitions_by_user_endpoint] == [other]

    def test_an_endpoint_without_known_tasks_fails_the_heartbeat_as_in_kafka(self, play: StreamsPlay) -> None:
        response = play.enter("A", topology(subtopology(sources=["nosuch"])), user_endpoint=self.ENDPOINT)
        assert (response.error_code, response.error_message) == (Error.UNKNOWN_SERVER_ERROR, None)
        assert not play.coordinator.store.groups


class TestStreamsGroupsAndOtherKinds:
    def test_h137_a_group_of_another_kind_is_no_streams_group(self, play: StreamsPlay) -> None:
        play.stable_member(group="classic")
        for epoch in (0, 1, -1):
            fields = {"topology": STATELESS, "rebalance_timeout_ms": 1, "owned": {}} if epoch == 0 else {}
            refusal = Error.GROUP_ID_NOT_FOUND, "Group classic is not a streams group."
            assert play.beat("A", epoch, group="classic", **fields) == refusal

    def test_h137_an_empty_classic_group_becomes_a_streams_group(self, play: StreamsPlay) -> None:
        play.emptied()
        play.commit(offsets={("t", 0): 5})
        play.written()
        assert play.beat("A", 1) == (Error.GROUP_ID_NOT_FOUND, "Group g is not a streams group.")
        assert play.come("A") == (2, ALL)
        assert play.written() == [[-2, 19, 23, 17, 21, 20, 22]]
        assert play.streams_group().offsets["t", 0].offset == 5

    def test_a_conversion_that_could_not_be_written_is_taken_back(self, play: StreamsPlay) -> None:
        play.emptied()
        play.commit(offsets={("t", 0): 5})
        play.writes = Error.NOT_LEADER_OR_FOLLOWER
        assert play.come("A")[0] == Error.NOT_COORDINATOR
        assert play.coordinator.store.groups["g"].kind == "classic"
        assert play.coordinator.store.groups["g"].offsets["t", 0].offset == 5

    def test_the_first_endpoint_has_an_epoch_in_the_place_of_an_empty_classic_group_alone(
        self, play: StreamsPlay
    ) -> None:
        endpoint = wire.Endpoint(host="h", port=1)
        play.emptied()
        assert play.enter("A", user_endpoint=endpoint).endpoint_information_epoch == 1
        assert play.enter("A", group="new", user_endpoint=endpoint).endpoint_information_epoch == 0

    def test_a_refused_join_leaves_an_empty_classic_group(self, play: StreamsPlay) -> None:
        play.emptied()
        assert play.come("A", topology(subtopology(copartition_groups=(wire.CopartitionGroup(source_topics=(9,)),))))[
            0
        ] == (Error.UNKNOWN_SERVER_ERROR)
        assert play.coordinator.store.groups["g"].kind == "classic"

    def test_h137_a_join_is_refused_unless_the_group_is_empty(self, play: StreamsPlay) -> None:
        play.come("A")
        assert play.join("", version=7).response.error_code == Error.INCONSISTENT_GROUP_PROTOCOL
        play.heart("A", -1)
        play.written()
        assert play.join("", version=7).response.error_code == Error.MEMBER_ID_REQUIRED
        assert play.written() == [[-20, -17, -23, 2]] or play.written() == []
        assert play.coordinator.store.groups["g"].kind == "classic"

    def test_other_requests_of_the_classic_protocol_know_no_member(self, play: StreamsPlay) -> None:
        play.come("A")
        beat = HeartbeatRequest(group_id="g", generation_id=2, member_id="A")
        assert play.send(beat, 3).response.error_code == Error.UNKNOWN_MEMBER_ID
        assert play.sync(2, "A").response.error_code == Error.UNKNOWN_MEMBER_ID

    def test_h137_the_group_is_listed_and_described_as_what_it_is(self, play: StreamsPlay) -> None:
        play.come("A")
        request = StreamsGroupDescribeRequest(group_ids=("", "nosuch", "g"))
        rows = play.send(request, 0).response.groups
        assert [row.error_code for row in rows] == [Error.INVALID_GROUP_ID, Error.GROUP_ID_NOT_FOUND, Error.NONE]
        assert rows[1].error_message == "Group nosuch not found."
        play.stable_member(group="classic")
        assert play.described("classic").error_message == "Group classic is not a streams group."


class TestTraceOfStreamsGroups:
    def test_states_members_targets_and_steps_are_noted(self, play: StreamsPlay) -> None:
        play.come("A")
        states = [(fact.before, fact.after, fact.cause) for fact in play.facts_of(StateChanged)]
        assert states == [
            ("Empty", "Assigning", "member_join"),
            ("Assigning", "Reconciling", "assigned"),
            ("Reconciling", "Stable", "reconciled"),
        ]
        assert [fact.member_id for fact in play.facts_of(MemberChanged)] == ["A"]
        (target,) = play.facts_of(TargetComputed)
        assert (target.assignor, target.target) == ("sticky", {"A": {"t": (0, 1, 2, 3)}})
        (step,) = play.facts_of(MemberReconciled)
        assert (step.state, step.epoch, step.assigned) == ("stable", 2, {"t": (0, 1, 2, 3)})
