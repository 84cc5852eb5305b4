"""Streams groups: heartbeats, topologies, internal topics, tasks, settings, other protocols (KIP-1071)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from builders import requests
from scenarios.registry import HEARTBEAT_MS, scenario
from scenarios.streams_members import ALL, StreamsMembers, internal_topic, task_rows, topology

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from koordinator.wire.messages.streams_group_heartbeat import TaskOffset
from koordinator.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)

if TYPE_CHECKING:
    from scenarios.player import Player

streams_scenario = partial(scenario, kip="KIP-1071", streams=True)

INVALID, UNKNOWN, MISSING, FULL, FENCED, STALE, TOPOLOGY, UNSUPPORTED = 42, 25, 69, 81, 110, 113, 130, 35

STALE_TOPOLOGY, MISSING_SOURCES, WRONG_PARTITIONS, MISSING_INTERNAL, SHUTDOWN, DELAYED = range(6)
"""The codes of statuses."""

INITIAL_DELAY = DELAYED, "Assignment delayed due to the configured initial rebalance delay."
INTERVAL = DELAYED, "Assignment delayed due to the configured assignment interval."


@streams_scenario()
def test_h114_the_shape_of_a_join_of_a_streams_group(play: Player) -> None:
    x = StreamsMembers(play)
    nothing = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"))
    assert [
        x.refused_join("A", group=""),
        x.refused_join(""),
        x.refused_join("A", rack_id=" "),
        x.refused_join("A", rebalance_timeout_ms=-1),
        x.refused_join("A", **nothing),
        x.refused_join("A", active_tasks=task_rows({"0": [0]})),
        x.refusal("A", 0, **{**x.joining("A"), "topology": None}),
    ] == [
        (INVALID, "GroupId can't be empty."),
        (INVALID, "MemberId can't be empty."),
        (INVALID, "RackId can't be empty."),
        (INVALID, "RebalanceTimeoutMs must be provided in first request."),
        (INVALID, "ActiveTasks must be empty when (re-)joining."),
        (INVALID, "ActiveTasks must be empty when (re-)joining."),
        (INVALID, "Topology must be non-null when (re-)joining."),
    ]
    if not play.since("4.4.0"):
        static = INVALID, "Static membership is not yet supported."
        assert [x.refused_join("A", instance_id=each) for each in ("i1", " ")] == [static] * 2
    assert x.described().error_code == MISSING


@streams_scenario()
def test_h116_what_a_streams_group_does_not_take(play: Player) -> None:
    x = StreamsMembers(play)
    offsets = (TaskOffset(subtopology_id="0", partition=0, offset=1),)
    unknown = [x.refusal("A", 1), x.refusal("A", -1)]
    assert unknown == [(MISSING, f"Streams group {play.g} not found."), (MISSING, f"Group {play.g} not found.")]
    assert x.refused_join("A", topology(x.part("0", patterns=["a.*"]))) == (
        INVALID,
        "Regular expressions for source topics are not supported yet.",
    )
    assert x.refused_join("A", topology(x.part("0", ["t"], stores=[internal_topic("x", 3)]))) == (
        TOPOLOGY,
        "Changelog topic x must have an undefined partition count, but it is set to 3.",
    )
    if not play.since("4.4.0"):
        unsupported = INVALID, "TaskOffsets are not supported yet."
        assert x.refused_join("A", task_offsets=offsets) == unsupported
    assert x.refused_join("A", topology(x.part("0", ["__consumer_offsets"]))) == (
        TOPOLOGY,
        "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
    )
    assert x.refused_join("A", topology(x.part("0", ["a b"]))) == (
        TOPOLOGY,
        "Topic names a b are not valid topic names.",
    )
    assert x.described().error_code == MISSING


@streams_scenario()
def test_h117_the_only_member_of_a_streams_group_has_all_tasks(play: Player) -> None:
    x = StreamsMembers(play)
    joined = x.heart("A", 0, **x.joining("A"))
    assert (joined.heartbeat_interval_ms, joined.acceptable_recovery_lag_legacy) == (5000, 0)
    assert joined.task_offset_interval_ms == (60_000 if play.since("4.4.0") else 0)
    assert (joined.status, joined.endpoint_information_epoch) == ((), 0)
    assert (joined.member_epoch, x.tasks(joined.active_tasks), joined.standby_tasks) == (2, ALL, ())
    assert x.beat("A", 2) == (2, None)
    assert x.shape() == ("Stable", 2, 2)


@streams_scenario()
def test_h119_the_records_of_a_streams_group(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.settle_in("A", x.stateful) == (3, ALL)
    assert x.written() == [19, 23, 17, 21, 20, 22, 17, 21, 20, 22]
    member, shape, group, target, epoch, current, *ready = x.values()
    assert (member.process_id, member.topology_epoch, member.rebalance_timeout_ms) == ("A", 0, play.ms(30))
    (part,) = shape.subtopologies
    (store,) = part.state_changelog_topics
    assert (part.subtopology_id, part.source_topics, store.name, store.partitions) == ("0", (play.t,), x.store, 0)
    configs = [(each.key, each.value) for each in group.last_assignment_configs]
    assert ("num.standby.replicas", "0") in configs
    assert (group.epoch, group.validated_topology_epoch, bool(group.metadata_hash)) == (2, -1, True)
    assert (target.active_tasks, epoch.assignment_epoch, bool(epoch.assignment_timestamp)) == (
        (),
        2,
        play.since("4.3.0"),
    )
    assert (current.member_epoch, current.previous_member_epoch, current.state, current.active_tasks) == (2, 0, 1, ())
    group, target, epoch, current = ready
    assert (group.epoch, group.validated_topology_epoch, epoch.assignment_epoch) == (3, 0, 3)
    assert x.tasks(target.active_tasks) == x.tasks(current.active_tasks) == ALL
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (3, 2, 1)
    assert current.active_tasks[0].assignment_epochs == (3,) * 4
    x.mark()
    assert x.beat("A", -1) == (-1, None)
    assert x.written()[:4] == [-22, -21, -19, 17]
    assert x.described().group_state == "Empty"


@streams_scenario()
def test_h120_tasks_are_revoked_before_they_are_assigned_to_another_member(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    assert x.join("B") == (3, {})
    assert x.beat("A", 2) == (2, {"0": [0, 1]})
    assert [x.beat("B", 3), x.beat("B", 3)] == [(3, None)] * 2
    assert x.shape() == ("Reconciling", 3, 3)
    assert x.beat("A", 2, owned={"0": [0, 1]}) == (3, None)
    assert x.beat("B", 3) == (3, {"0": [2, 3]})
    end = "The member must abandon all its partitions and rejoin."
    for epoch, word in ((2, "smaller"), (99, "greater")):
        error, message = x.refusal("A", epoch)
        assert error == FENCED
        assert f"The streams group member has a {word} member epoch ({epoch})" in (message or "")
        assert (message or "").endswith(end)


@streams_scenario()
def test_h121_the_previous_epoch_is_taken_with_the_tasks_that_the_member_has(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    assert x.beat("A", 2, rack_id="r") == (3, None)
    assert x.refusal("A", 2)[0] == FENCED
    assert x.beat("A", 2, owned={"0": [1, 2]}) == (3, None)
    stranger = UNKNOWN, f"Member X is not a member of group {play.g}."
    assert [x.refusal("X", 1), x.refusal("X", -1)] == [stranger] * 2


@streams_scenario()
def test_h122_the_topology_of_a_streams_group_does_not_change(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    refusal = INVALID, "Topology updates are not supported yet."
    assert x.refused_join("C", topology(x.part("0", ["u"]))) == refusal
    assert x.refused_join("C", topology(x.part("0", ["t"]), epoch=1)) == refusal
    assert x.beat("A", -1) == (-1, None)
    assert x.refused_join("C", topology(x.part("0", ["u"]))) == refusal
    assert x.join("C") == (4, ALL)


@streams_scenario()
def test_h123_a_missing_source_topic_is_a_status(play: Player) -> None:
    x = StreamsMembers(play)
    missing = [(MISSING_SOURCES, "Source topics nosuch are missing.")]
    assert x.join_report("A", topology(x.part("0", ["t", "nosuch"]))) == (2, {}, {}, missing)
    assert x.shape() == ("NotReady", 2, 2)
    assert x.report("A", 2) == (2, None, None, missing)


@streams_scenario()
def test_h124_copartitioned_topics_have_equal_numbers_of_partitions(play: Player) -> None:
    x = StreamsMembers(play)
    both = topology(x.part("0", ["t", "u"], together=[((0, 1), ())]))
    wrong = f"Following topics do not have the same number of partitions: [{{{play.t}=4, {play.u}=2}}]"
    assert x.join_report("A", both) == (2, {}, {}, [(WRONG_PARTITIONS, wrong)])
    assert x.shape() == ("NotReady", 2, 2)


@streams_scenario()
def test_h125_the_broker_creates_repartition_topics_and_changelogs(play: Player) -> None:
    x = StreamsMembers(play)
    between = f"{play.g}-r"
    store = internal_topic(x.store, cleanup_policy="compact")
    reader = x.part("1", reads=[internal_topic(between)])
    whole = topology(x.part("0", ["t"], writes=[between], stores=[store]), reader)
    epoch, active, standby, statuses = x.join_report("A", whole, recorded=False)
    assert (epoch, active, standby) == (2, {}, {})
    ((code, detail),) = statuses
    assert (code, detail.split(": ")[0]) == (MISSING_INTERNAL, "Internal topics are missing")
    assert sorted(detail.split(": ")[1].split(", ")) == [between, x.store]
    assert x.ready("A", 2) == (3, {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]})
    assert [play.partitions(name) for name in (between, x.store)] == [[0, 1, 2, 3]] * 2
    row = x.described()
    assert row.topology is not None
    decided = [
        [(each.name, each.partitions) for each in part.repartition_source_topics] for part in row.topology.subtopologies
    ]
    assert decided == [[], [(between, 4)]]


@streams_scenario()
def test_h126_a_standby_task_is_in_another_process_than_its_active_task(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.configure(streams_num_standby_replicas=1) == 0
    assert x.settle_in("A", x.stateful) == (3, ALL)
    assert x.join_report("B", x.stateful) == (4, {}, {"0": [0, 1]}, [])
    first, second = {"0": [0, 1]}, {"0": [2, 3]}
    assert x.converge("A", "B") == {"A": (4, first, second), "B": (4, second, first)}
    assert x.shape() == ("Stable", 4, 4)
    assert x.beat("A", -1) == (-1, None)
    assert x.converge("B") == {"B": (5, ALL, {})}


@streams_scenario()
def test_h127_two_members_of_a_process_never_have_the_same_task(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.configure(streams_num_standby_replicas=1) == 0
    assert x.settle_in("A", x.stateful) == (3, ALL)
    assert x.join_report("B", x.stateful, process_id="A") == (4, {}, {}, [])
    assert x.converge("A", "B") == {"A": (4, {"0": [0, 1]}, {}), "B": (4, {"0": [2, 3]}, {})}


@streams_scenario()
def test_h128_the_first_members_wait_for_others(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.configure(streams_initial_rebalance_delay_ms=play.ms(1.5)) == 0
    assert x.join_report("A") == (1, {}, {}, [INITIAL_DELAY])
    assert x.shape()[0] == "Assigning"
    assert x.join_report("B") == (1, {}, {}, [INITIAL_DELAY])
    play.wait_until("the target is computed", lambda: x.shape(recorded=False) == ("Reconciling", 3, 3))
    even, odd = {"0": [0, 2]}, {"0": [1, 3]}
    first, second = (odd, even) if play.since("4.4.0") else (even, odd)
    assert [x.beat("A", 1), x.beat("B", 1)] == [(3, first), (3, second)]
    assert x.shape() == ("Stable", 3, 3)


@streams_scenario()
def test_h129_targets_are_computed_at_an_interval(play: Player) -> None:
    x = StreamsMembers(play)
    x.needs_newer_configs()
    assert x.configure(streams_assignment_interval_ms=play.ms(2)) == 0
    assert x.join("A") == (2, ALL)
    assert x.join_report("B") == (2, {}, {}, [INTERVAL])
    assert x.report("A", 2) == (2, None, None, [INTERVAL])
    play.wait(2.2)
    assert x.beat("A", 2) == (2, {"0": [0, 1]})


@streams_scenario()
def test_h131_every_change_of_a_member_raises_the_epoch(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    assert x.beat("A", 2, rack_id="r") == (3, None)
    assert x.beat("A", 3, tags={"a": "b"}) == (4, None)
    assert x.beat("A", 4, tags={"a": "b"}) == (4, None)
    assert x.beat("A", 4, process_id="other") == (5, None)
    (row,) = x.described().members
    assert (row.rack_id, row.process_id, [(each.key, each.value) for each in row.client_tags]) == (
        "r",
        "other",
        [("a", "b")],
    )


@streams_scenario()
def test_h132_a_member_may_shut_the_application_down(play: Player) -> None:
    x = StreamsMembers(play)
    assert [x.join("A")[0], x.join("B")[0]] == [2, 3]
    shutdown = "Streams group member B encountered a fatal error and requested a shutdown for the entire application."
    assert x.report("B", 3, shutdown_application=True) == (3, None, None, [(SHUTDOWN, shutdown)])
    assert x.report("A", 2) == (2, {"0": [0, 1]}, {}, [(SHUTDOWN, shutdown)])
    assert x.beat("B", -1) == (-1, None)
    assert x.report("A", 2, owned={"0": [0, 1]})[-1] == [(SHUTDOWN, shutdown)]
    assert x.beat("A", -1) == (-1, None)
    assert x.shape()[0] == "Empty"
    assert x.join("A")[1] == ALL


@streams_scenario()
def test_h134_a_silent_member_of_a_streams_group_is_removed(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.configure(streams_heartbeat_interval_ms=HEARTBEAT_MS, streams_session_timeout_ms=play.ms(6)) == 0
    assert x.heart("A", 0, **x.joining("A")).heartbeat_interval_ms == HEARTBEAT_MS
    # with configs of its own the group waits for others in 4.2, and has no target yet
    target = x.emptied_target(2) if play.since("4.3.0") else 0
    play.wait_until("the member is removed", lambda: x.shape(recorded=False) == ("Empty", 3, target))
    assert x.refusal("A", 2)[0] == UNKNOWN


@streams_scenario(streams_max_size=1)
def test_h135_a_full_streams_group_refuses_even_a_rejoin_up_to_4_3(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    full = FULL, "The streams group has reached its maximum capacity of 1 members."
    assert x.refused_join("B") == full
    if play.since("4.4.0"):
        assert x.join("A") == (2, ALL)
    else:
        assert x.refused_join("A") == full
    assert x.beat("A", 2) == (2, None)


@streams_scenario()
def test_h137_streams_groups_and_groups_of_other_protocols(play: Player) -> None:
    x = StreamsMembers(play)
    share = f"{play.g}.share"
    joining = ShareGroupHeartbeatRequest(
        group_id=share, member_id="S", member_epoch=0, subscribed_topic_names=(play.t,)
    )
    assert play.slowly(joining, 1).error_code == 0
    assert x.refused_join("A", group=share) == (MISSING, f"Group {share} is not a streams group.")
    play.stable_one()
    no_streams = MISSING, f"Group {play.g} is not a streams group."
    assert x.refused_join("A") == no_streams
    row = x.described()
    assert (row.error_code, row.error_message) == no_streams
    (classic,) = (each.member_id for each in play.describe().unrecorded().groups[0].members)
    play.commit(1, classic, {(play.t, 0): 7}).expect(0)
    play.leave(classic).expect(0)
    x.mark()
    assert x.join("A") == (2, ALL)
    assert x.written()[0] == -2
    play.fetch((play.t, 0), version=8).expect({(play.t, 0): 7})
    assert play.join("", version=7).answer().error_code == 23
    consumer = requests.consumer_group_heartbeat(play.g, "C", 0, topics=["t"], owned={}, rebalance_ms=play.ms(30))
    joined = play.ask(consumer, 1).answer()
    no_consumers = MISSING, f"Group {play.g} is not a consumer group."
    assert (joined.error_code, joined.error_message) == no_consumers
    (described,) = play.ask(ConsumerGroupDescribeRequest(group_ids=(play.g,)), 1).answer().groups
    assert (described.error_code, described.error_message) == no_consumers
    (listed,) = play.listed(version=5, types=["streams"])
    assert (listed.protocol_type, listed.group_type, listed.group_state) == ("streams", "streams", "Stable")
    (other,) = play.describe(version=6).answer().groups
    assert (other.error_code, other.error_message) == (MISSING, f"Group {play.g} is not a classic group.")
    assert x.beat("A", -1) == (-1, None)
    x.mark()
    assert play.join("", version=7).answer().error_code == 79
    assert x.written() == [-20, -17, -23, 2]
    play.fetch((play.t, 0), version=8).expect({(play.t, 0): 7})


@streams_scenario()
def test_h138_offsets_of_a_streams_group_are_committed_with_the_epoch_of_the_task(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    play.commit(2, "A", version=8).expect(35)
    play.commit(-1, "", version=9).expect(UNKNOWN)
    play.commit(2, "X", version=9).expect(UNKNOWN)
    play.commit(9, "A", version=9).expect(STALE)
    play.commit(2, "A", {(play.t, 0): 3}, version=9).expect(0)
    assert x.beat("A", 2, rack_id="r") == (3, None)
    assert x.beat("A", 3, rack_id="s") == (4, None)
    play.commit(3, "A", {(play.t, 0): 4, (play.t, 1): 5}, version=9).expect(0)
    play.commit(1, "A", version=9).expect(STALE)
    play.fetch((play.t, 0), (play.t, 1), version=9).expect({(play.t, 0): 4, (play.t, 1): 5})
    play.delete_offsets((play.t, 0)).expect({(play.t, 0): 86})
    play.delete().expect({play.g: 68})


@streams_scenario()
def test_h139_a_deleted_streams_group_leaves_nothing(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    play.commit(2, "A", version=9).expect(0)
    assert x.beat("A", -1) == (-1, None)
    x.mark()
    play.delete().expect({play.g: 0})
    assert sorted(x.written()) == sorted([-1, -20, -17, -23])
    assert x.described().error_code == MISSING
    # another topology may begin
    assert x.join("A", topology(x.part("0", ["u"]))) == (2, {"0": [0, 1]})


@streams_scenario()
def test_h140_a_member_with_an_older_topology_is_told_so(play: Player) -> None:
    x = StreamsMembers(play)
    newer = topology(x.part("0", ["t"]), epoch=1)
    assert x.join("A", newer) == (2, ALL)
    stale = [(STALE_TOPOLOGY, "The member's topology epoch 0 is behind the group's topology epoch 1.")]
    assert x.join_report("B", topology(x.part("0", ["u"]))) == (3, {}, {}, stale)
    assert x.report("B", 3) == (3, None, None, stale)
    assert {row.member_id: row.topology_epoch for row in x.described().members} == {"A": 1, "B": 0}


@streams_scenario()
def test_h141_tasks_that_do_not_exist_are_refused(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    assert x.refusal("A", 2, owned={"7": [0]}) == (INVALID, "Subtopology 7 does not exist in the topology.")
    too_high = "Task 9 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"
    assert x.refusal("A", 2, owned={"0": [9]}) == (INVALID, too_high)
    one_list = INVALID, "If one task-type is non-null, all must be non-null."
    assert x.refusal("A", 2, active_tasks=()) == one_list
    again = INVALID, "Topology can only be provided when (re-)joining."
    assert x.refusal("A", 2, topology=x.stateless) == again
    assert x.beat("A", 2) == (2, None)


@streams_scenario()
def test_h142_a_member_that_does_not_revoke_its_tasks_is_removed(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.join("A", rebalance_timeout_ms=play.ms(4)) == (2, ALL)
    assert x.join("B") == (3, {})
    assert x.beat("A", 2) == (2, {"0": [0, 1]})
    play.wait_until("A is removed", lambda: [*x.members(recorded=False)] == ["B"])
    assert x.refusal("A", 2)[0] == UNKNOWN
    assert x.beat("B", 3) == (4, ALL)


@streams_scenario()
def test_h143_members_with_endpoints_know_each_others_partitions(play: Player) -> None:
    x = StreamsMembers(play)

    def seen(member_id: str, epoch: int, known: int, **fields: object) -> tuple[int, object]:
        """Return the endpoint epoch, and the partitions of each port, None if they are left out."""
        answer = x.heart(member_id, epoch, endpoint_information_epoch=known, recorded=False, **fields)
        rows = answer.partitions_by_user_endpoint
        return answer.endpoint_information_epoch, rows and {
            row.user_endpoint.port: [(each.topic, sorted(each.partitions)) for each in row.active_partitions]
            for row in rows
        }

    every = {1: [(play.t, [0, 1, 2, 3])]}
    assert seen("A", 0, 0, **x.joining("A"), endpoint=("a", 1)) == (0, every)
    # the first join has no group yet that could count it
    assert seen("A", 2, 0) == (0, None)
    assert seen("A", 2, -1) == (0, every)
    assert seen("B", 0, -1, **x.joining("B")) == (0, every)
    assert seen("A", 2, 0) == (1, {1: [(play.t, [0, 1])]})
    assert seen("A", 2, 1, owned={"0": [0, 1]}) == (1, None)
    assert seen("B", 3, 0, endpoint=("b", 2)) == (2, {1: [(play.t, [0, 1])], 2: [(play.t, [2, 3])]})


@streams_scenario()
def test_h144_a_topology_follows_its_topics(play: Player) -> None:
    x = StreamsMembers(play)
    x.planned_topic("later", ".later")
    reads = topology(x.part("0", ["later"]))
    missing = [(MISSING_SOURCES, f"Source topics {play.g}.later are missing.")]
    assert x.join_report("A", reads) == (2, {}, {}, missing)
    play.new_topic(2, suffix=".later")
    assert x.ready("A", 2) == (3, {"0": [0, 1]})
    x.grow_topic("later", 3)
    assert x.ready("A", 3) == (4, {"0": [0, 1, 2]})


@streams_scenario()
def test_h145_a_topology_that_nothing_could_make_valid(play: Player) -> None:
    x = StreamsMembers(play)
    between = internal_topic(f"{play.g}-r")
    start = "Failed to compute number of partitions for all repartition topics"
    assert x.refused_join("A", topology(x.part("0", ["t"], reads=[between]))) == (
        TOPOLOGY,
        f"{start}, because a repartition source topic is never used as a sink topic.",
    )
    assert x.refused_join("A", topology(x.part("0", reads=[between], writes=[between.name]))) == (
        TOPOLOGY,
        f"{start}. There may be loops in the topology that cannot be resolved.",
    )
    assert x.refused_join("A", topology(x.part("0", ["t"], together=[((1,), ())])))[0] == -1
    assert x.described().error_code == MISSING


@streams_scenario()
def test_h146_a_standby_task_is_given_up_before_it_becomes_active_up_to_4_3(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.configure(streams_num_standby_replicas=1) == 0
    assert x.settle_in("A", x.stateful) == (3, ALL)
    assert x.join_report("B", x.stateful) == (4, {}, {"0": [0, 1]}, [])
    assert x.converge("A", "B")["B"] == (4, {"0": [2, 3]}, {"0": [0, 1]})
    assert x.beat("A", -1) == (-1, None)
    if play.since("4.4.0"):
        assert x.beat("B", 4) == (5, ALL)
        return
    half = {"0": [2, 3]}
    assert [x.beat("B", 4), x.beat("B", 4)] == [(4, half), (4, None)]
    assert [x.beat("B", 4, owned=half), x.beat("B", 5)] == [(5, None), (5, ALL)]


@streams_scenario()
def test_h147_an_active_task_becomes_a_standby_task_of_its_member(play: Player) -> None:
    x = StreamsMembers(play)
    assert x.configure(streams_num_standby_replicas=1) == 0
    assert x.settle_in("A", x.stateful) == (3, ALL)
    first, second = {"0": [0, 1]}, {"0": [2, 3]}
    assert x.join_report("B", x.stateful) == (4, {}, first, [])
    converts = play.since("4.4.0")
    assert x.report("A", 3) == (3, first, second if converts else {}, [])
    assert x.report("A", 3, owned=first, standby={}) == (4, None, None, [])
    assert x.report("A", 4) == (4, *((None, None) if converts else (first, second)), [])
    assert x.report("B", 4, owned={}, standby=first) == (4, second, first, [])
    assert x.shape() == ("Stable", 4, 4)


@streams_scenario(kip="KIP-1331")
def test_h148_a_broker_without_a_plugin_takes_no_description_of_a_topology(play: Player) -> None:
    play.needs(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0)
    x = StreamsMembers(play)
    assert x.join("A") == (2, ALL)
    refusal = UNSUPPORTED, "The broker has no streams group topology description plugin configured."
    for group, member_id, epoch in ((play.g, "A", 0), (play.g, "X", 0), (f"{play.g}.none", "", -1), ("", "", 9)):
        request = StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=group, member_id=member_id, topology_epoch=epoch
        )
        answer = play.ask(request, 0).answer()
        assert (answer.error_code, answer.error_message) == refusal
