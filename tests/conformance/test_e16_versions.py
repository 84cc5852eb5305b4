"""E.16: every version of every group request, and the precedence of errors.

The error codes are here; the golden answers hold all other differences between versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from builders.requests import protocols
from scenarios.registry import scenario

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

if TYPE_CHECKING:
    from scenarios.player import Player

SESSION_MAX_S = 1_800
"""Kafka's default of group.max.session.timeout.ms, which is not scaled."""


def versions(play: Player, api: ApiKey, first: int = 0, last: int = 99) -> list[int]:
    """Return the versions that the broker serves."""
    return [each for each in APIS[api].versions if first <= each <= last and play.serves(api, each)]


@scenario(kip="base")
def test_e401_the_broker_serves_the_versions_of_its_release(play: Player) -> None:
    rows = play.ask(ApiVersionsRequest(), 0).unrecorded().api_keys
    ours = {row.api_key: (row.min_version, row.max_version) for row in rows if row.api_key in APIS}
    # the emulator does not serve the broker's other versions
    assert ours
    play.transcript.add("ApiVersions", 0, str(sorted(ours.items())))


@scenario(kip="base")
def test_e402_a_member_lives_in_every_version(play: Player) -> None:
    for version in versions(play, ApiKey.JOIN_GROUP):
        group = f"{play.g}.{version}"
        member = play.new_id(version=version, group=group) if version >= 4 else ""
        joining = play.join(member, version=version, group=group)
        play.pass_initial_delay(joining)
        member = play.expect_generation(1, joining)
        sync = versions(play, ApiKey.SYNC_GROUP, last=version)[-1]
        play.sync(1, member, {member: b"x"}, version=sync, group=group).expect(assignment=b"x")
        beat = versions(play, ApiKey.HEARTBEAT, last=version)[-1]
        play.heartbeat(1, member, version=beat, group=group).expect(0)
        leave = versions(play, ApiKey.LEAVE_GROUP, last=version)[-1]
        play.leave("ghost", version=leave, group=group).expect(25)
        play.leave(member, version=leave, group=group, reason="enough" if leave >= 5 else None).expect(0)
        play.describe(group, version=versions(play, ApiKey.DESCRIBE_GROUPS, last=version)[-1]).expect("Empty", [])


@scenario(kip="base", min_session=6)
def test_e403_joining_is_refused_in_every_version(play: Player) -> None:
    for version in versions(play, ApiKey.JOIN_GROUP):
        play.join(group="", version=version).expect(24)
        play.join("ghost", version=version).expect(25, member_id="ghost")
        play.join(session=5.9, version=version).expect(26)
        play.join(session=(SESSION_MAX_S + 0.001) / play.target.scale, version=version).expect(26)
        play.join(protocol_type="", version=version).expect(23)
        play.join(protocols=(), version=version).expect(23)
    play.join("ghost", "i1").expect(25, member_id="ghost")
    # a valid JoinGroup creates the group even if it is then rejected
    play.wait_visible()
    play.describe().expect("Empty", [])


@scenario(kip="base")
def test_e404_the_protocols_are_looked_at_before_the_member(play: Player) -> None:
    a = play.stable_one()
    play.join(protocols=()).expect(23)
    play.join("ghost", protocol_type="connect").expect(23, member_id="ghost")
    play.join("ghost").expect(25, member_id="ghost")
    play.join(a, protocol_type="connect").expect(23, member_id=a)
    play.join(a, "i1").expect(25, member_id=a)
    play.describe().expect("Stable", [a])


@scenario(kip="base")
def test_e405_syncing_is_refused_for_one_reason_before_another(play: Player) -> None:
    static = play.join("", "i1")
    p = play.expect_generation(1, static)
    for version in versions(play, ApiKey.SYNC_GROUP, first=3):
        play.sync(1, p, group="", version=version).expect(24)
        play.sync(1, p, group=f"{play.g}.other", version=version).expect(25)
        play.sync(0, p, version=version).expect(22)
        play.sync(2, "ghost", version=version).expect(25)
        play.sync(2, "ghost", instance_id="i1", version=version).expect(82)
        play.sync(2, p, instance_id="zz", version=version).expect(25 if play.since("3.0.0") else 22)
    if play.serves(ApiKey.SYNC_GROUP, 5):
        for name, kind in (("range", None), (None, "consumer"), ("other", "consumer"), ("range", "connect")):
            play.sync(1, p, version=5, protocol_name=name, protocol_type=kind).expect(23)
    play.wait_visible()
    play.describe().expect("CompletingRebalance", [p])
    play.sync(1, p, {"ghost": b"ignored"}).expect(assignment=b"")
    # stable: a repeated SyncGroup of the leader changes nothing
    play.sync(1, p, {p: b"late"}).expect(assignment=b"")
    play.describe().expect("Stable", [p])


@scenario(kip="base")
def test_e406_heartbeats_are_refused_for_one_reason_before_another(play: Player) -> None:
    play.heartbeat(1, "ghost").expect(25)
    play.heartbeat(-1, "").expect(25)
    a = play.stable_one()
    for version in versions(play, ApiKey.HEARTBEAT):
        play.heartbeat(1, a, version=version).expect(0)
        play.heartbeat(1, a, group="", version=version).expect(24)
        play.heartbeat(1, a, group=f"{play.g}.other", version=version).expect(25)
        play.heartbeat(2, a, version=version).expect(22)
        play.heartbeat(0, a, version=version).expect(22)
        play.heartbeat(-1, a, version=version).expect(22)
        play.heartbeat(2, "ghost", version=version).expect(25)


@scenario(kip="KIP-345")
def test_e407_a_replaced_member_is_fenced_in_every_api(play: Player) -> None:
    p = play.static_one()
    again = play.join("", "i1")
    new = again.expect(generation_id=1, leader=p, member_id=again.answer().member_id).member_id
    play.join(p, "i1").expect(82, member_id=p)
    play.sync(1, p, instance_id="i1").expect(82)
    play.heartbeat(1, p, "i1").expect(82)
    play.commit(1, p, instance_id="i1").expect(82)
    play.leave((p, "i1")).expect(82)
    # unknown without its instance id
    play.join(p).expect(25, member_id=p)
    play.sync(1, p).expect(25)
    play.heartbeat(1, p).expect(25)
    play.commit(1, p).expect(25)
    play.leave(p).expect(25)
    play.commit(1, new, instance_id="i1").expect(0)
    play.describe().expect("Stable", [new])


@scenario(kip="KIP-345")
def test_e408_a_returning_static_member_keeps_its_assignment(play: Player) -> None:
    play.static_one()
    for version in versions(play, ApiKey.JOIN_GROUP, first=5):
        again = play.join("", "i1", version=version)
        member = again.answer().member_id
        assert again.answer().error_code == 0
        play.sync(1, member, {member: b"new"}, instance_id="i1").expect(assignment=b"p1")
    play.describe().expect("Stable", [member])


@scenario(kip="KIP-345")
def test_e409_a_static_member_keeps_its_latest_metadata(play: Player) -> None:
    play.static_one(protocols=protocols("range", "roundrobin"))
    # metadata alone does not rebalance
    again = play.join("", "i1", protocols=protocols("range", "roundrobin", topics=("u",)))
    member = again.answer().member_id
    play.sync(1, member, instance_id="i1").expect(assignment=b"p1")
    play.describe().expect("Stable", [member])
    # the leader's own JoinGroup does
    play.expect_generation(
        2, play.join(member, "i1", protocols=protocols("roundrobin")), leader=member, protocol="roundrobin"
    )


@scenario(kip="KIP-345")
def test_e410_each_of_a_batch_leaves_or_does_not(play: Player) -> None:
    play.leave("a", group="").expect(top=24)
    p, q = play.static_two()
    play.leave(("", "zz"), ("m", None), ("", None), ("m", "i1")).expect(25, 25, 25, 82)
    play.leave(("", "i2"), ("", "i2"), q).expect(0, 25, 25)
    play.heartbeat(2, p, "i1").expect(27)
    play.expect_generation(3, play.join(p, "i1"), leader=p)
    # the member id is enough
    play.leave(p).expect(0)
    play.describe().expect("Empty", [])


@scenario(kip="base")
def test_e411_the_assignment_is_that_of_the_first_sync_of_the_leader(play: Player) -> None:
    a, b = play.stable_two()
    play.join(b).expect(generation_id=2, protocol_name="range", leader=a, member_id=b)
    play.sync(2, b).expect(assignment=b"b2")
    play.sync(2, a, {a: b"late", b: b"late"}).expect(assignment=b"a2")
    play.commit(2, b).expect(0)
    play.leave(b).expect(0)
    play.heartbeat(2, b).expect(25)
    play.commit(2, a).expect(0)


@scenario(kip="base")
def test_e412_offsets_are_committed_and_fetched_in_every_version(play: Player) -> None:
    t, u = (play.t, 0), (play.u, 0)
    # v0 reads offsets from ZooKeeper
    for version in versions(play, ApiKey.OFFSET_FETCH, first=1, last=9):
        play.fetch(t, version=version).expect({t: -1})
    for version in versions(play, ApiKey.OFFSET_COMMIT, first=1, last=9):
        play.commit(-1, "", {t: version}, metadata="why", version=version).expect(0)
    last = versions(play, ApiKey.OFFSET_COMMIT, last=9)[-1]
    for version in versions(play, ApiKey.OFFSET_FETCH, first=1, last=9):
        play.fetch(t, u, version=version).expect({t: (last, -1, "why", 0), u: -1})
        if version >= 2:
            play.fetch(everything=True, version=version).expect({t: (last, -1, "why", 0)})
        play.fetch((f"{play.g}.nowhere", 0), version=version).expect({(f"{play.g}.nowhere", 0): -1})
        play.fetch(t, version=version, group="").answer()


@scenario(kip="base")
def test_e413_commits_are_refused_in_every_version(play: Player) -> None:
    t = (play.t, 0)
    for version in versions(play, ApiKey.OFFSET_COMMIT, first=1, last=9):
        # an unknown group: OLD answers with the generation error, NEW since v9 with a group error (KIP-848)
        play.commit(5, "ghost", group=f"{play.g}.new", version=version).expect(69 if play.new and version >= 9 else 22)
    a = play.stable_one()
    for version in versions(play, ApiKey.OFFSET_COMMIT, first=1, last=9):
        play.commit(2, a, version=version).expect(22)
        play.commit(1, "ghost", version=version).expect(25)
        play.commit(-1, "", version=version).expect(25)
        play.commit(-1, a, version=version).expect(22)
        play.commit(1, "", version=version).expect(25)
        play.commit(1, a, {t: version, (play.t, 9): 1, (f"{play.g}.nowhere", 0): 1}, version=version).expect(
            {t: 0, (play.t, 9): 3, (f"{play.g}.nowhere", 0): 3}
        )
        play.fetch(t, version=5).expect({t: version})


@scenario(kip="KIP-848")
def test_e414_offsets_are_fetched_with_a_member_since_version_9(play: Player) -> None:
    a = play.stable_one()
    play.commit(1, a).expect(0)
    wanted = (OffsetFetchRequestTopics(name=play.t, partition_indexes=(0,)),)
    for member, epoch in ((a, 1), ("ghost", 5), (None, -1)):
        row = OffsetFetchRequestGroup(group_id=play.g, member_id=member, member_epoch=epoch, topics=wanted)
        (group,) = play.ask(OffsetFetchRequest(groups=(row,)), 9).answer().groups
        assert group.error_code == 0
        assert group.topics[0].partitions[0].committed_offset == 1


@scenario(kip="KIP-496")
def test_e415_offsets_are_deleted_whether_they_are_there_or_not(play: Player) -> None:
    play.delete_offsets(("t", 0), group="").expect({}, error=24)
    play.delete_offsets(("t", 0)).expect({}, error=69)
    play.commit(-1, "", {("t", 0): 1, ("t", 1): 1}).expect(0)
    play.delete_offsets(("t", 0), ("t", 3), ("t", 9), ("nowhere", 0)).expect(
        {("t", 0): 0, ("t", 3): 0, ("t", 9): 3, ("nowhere", 0): 3}
    )
    play.fetch(everything=True).expect({("t", 1): 1})
    play.delete_offsets(("t", 1)).expect({("t", 1): 0})
    play.fetch(everything=True).expect({})
    # OLD has no group without offsets
    play.describe().expect("Dead" if play.old else "Empty", [])


@scenario(kip="base")
def test_e416_groups_are_described_and_deleted_in_every_version(play: Player) -> None:
    nobody = f"{play.g}.nobody"
    for version in versions(play, ApiKey.DESCRIBE_GROUPS):
        answer = play.ask(DescribeGroupsRequest(groups=(nobody, nobody)), version).answer()
        # KIP-1043
        assert [row.error_code for row in answer.groups] == [69 if version >= 6 else 0] * 2
        assert play.ask(DescribeGroupsRequest(groups=()), version).answer().groups == ()
    a = play.stable_one()
    for version in versions(play, ApiKey.DESCRIBE_GROUPS):
        play.describe(version=version, operations=version >= 3).expect("Stable", [a])
    for version in versions(play, ApiKey.DELETE_GROUPS):
        play.delete(play.g, nobody, version=version).expect({play.g: 68, nobody: 69})
    play.leave(a).expect(0)
    for version in versions(play, ApiKey.LIST_GROUPS):
        (row,) = play.listed(version=version)
        assert (row.group_id, row.protocol_type) == (play.g, "consumer")
    play.delete(play.g).expect({play.g: 0})
    play.delete(play.g).expect({play.g: 69})
    play.heartbeat(1, a).expect(25)
    play.join(a).expect(25, member_id=a)


@scenario(kip="base")
def test_e417_coordinators_are_found_in_every_version(play: Player) -> None:
    for version in versions(play, ApiKey.FIND_COORDINATOR, last=3):
        for key in (play.g, ""):
            play.ask(FindCoordinatorRequest(key=key), version).expect(0, node_id=1)
    for version in versions(play, ApiKey.FIND_COORDINATOR, first=4):
        for keys in ((play.g, "", "other"), ()):
            answer = play.ask(FindCoordinatorRequest(coordinator_keys=keys), version).answer()
            assert [(row.key, row.error_code) for row in answer.coordinators] == [(key, 0) for key in keys]


@scenario(kip="KIP-848")
def test_e418_topics_have_ids_in_version_10_of_offset_commit_and_fetch(play: Player) -> None:
    play.needs(ApiKey.OFFSET_COMMIT, 10)
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=play.t),))
    (topic,) = play.ask(asked, 12).unrecorded().topics
    for topic_id, error in ((topic.topic_id, 0), (UUID(int=7), 100)):
        rows = (OffsetCommitRequestPartition(partition_index=0, committed_offset=3, committed_metadata=""),)
        topics = (OffsetCommitRequestTopic(topic_id=topic_id, partitions=rows),)
        committed = play.ask(OffsetCommitRequest(group_id=play.g, topics=topics), 10).answer()
        assert [row.error_code for each in committed.topics for row in each.partitions] == [error]
        wanted = (OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(0, 1)),)
        row = OffsetFetchRequestGroup(group_id=play.g, topics=wanted)
        (group,) = play.ask(OffsetFetchRequest(groups=(row,)), 10).answer().groups
        assert [row.error_code for each in group.topics for row in each.partitions] == [error] * 2


@scenario(kip="KIP-394")
def test_e419_an_id_that_was_given_is_given_up_in_every_version(play: Player) -> None:
    for version in versions(play, ApiKey.LEAVE_GROUP):
        x = play.new_id()
        play.leave(x, version=version).expect(0)
        play.join(x).expect(25, member_id=x)
    play.wait_visible()
    play.describe().expect("Empty", [])


@scenario(kip="base")
def test_e420_a_leaving_members_parked_join_is_answered(play: Player) -> None:
    a = play.stable_one()
    b = play.new_id()
    joining = play.join(b)
    play.expect_parked(joining)
    play.heartbeat(1, a).expect(27)
    play.describe().expect("PreparingRebalance", [a, b])
    play.leave(b).expect(0)
    joining.expect(25)
    play.heartbeat(1, a).expect(27)
    play.expect_generation(2, play.join(a), leader=a)


@scenario(kip="KAFKA-14201")
def test_e421_a_commit_without_a_generation_to_an_empty_group_skips_the_member_check(play: Player) -> None:
    play.commit(-1, "ghost", {("t", 0): 1}).expect(0)
    play.commit(-1, "", {("t", 1): 2}, "i1").expect(0)
    play.commit(-1, "ghost", {("t", 2): 3}, "i1").expect(0)
    play.fetch(everything=True).expect({("t", 0): 1, ("t", 1): 2, ("t", 2): 3})
    play.commit(0, "").expect(25)
    play.describe().expect("Empty", [], protocol_type="")
