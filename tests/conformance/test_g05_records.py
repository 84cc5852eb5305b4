"""The records of consumer groups, and what is left of the groups after a restart (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scenarios.consumer_members import ALL, ConsumerMembers
from scenarios.registry import scenario

from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.groups.modern.topics import metadata_hash
from koordinator.wire.messages.consumer_group_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
)
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from scenarios.player import Player

consumer_scenario = partial(scenario, kip="KIP-848", consumer=True)


@consumer_scenario()
def test_g141_the_records_of_a_join(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.written() == [5, 3, 7, 6, 8]
    member, *others = x.values()
    group, target, epoch, current = others[-4:]
    assert (member.subscribed_topic_names, member.subscribed_topic_regex or "") == (("t",), "")
    assert (member.rebalance_timeout_ms, member.server_assignor) == (play.ms(30), None)
    assert member.classic_member_metadata is None
    assert group.epoch == epoch.assignment_epoch == current.member_epoch == x.raw(2)
    assert (current.previous_member_epoch, current.state) == (0, 0)
    assert x.named(target.topic_partitions) == ALL == x.named(current.assigned_partitions)
    assert bool(group.metadata_hash) == play.since("4.1.0")
    assert bool(epoch.assignment_timestamp) == play.since("4.3.0")
    epochs = current.assigned_partitions[0].assignment_epochs
    assert tuple(epochs or ()) == ((2, 2, 2, 2) if play.since("4.3.0") else ())
    x.mark()
    assert x.beat("A", 2) == (2, None)
    assert x.written() == []


@consumer_scenario()
def test_g143_the_records_of_leaving(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    x.mark()
    assert x.beat("A", -1) == (-1, None)
    assert x.written() == [-8, -7, -5, 3, *([6] if play.since("4.4.0") else [])]
    group = x.values()[-2 if play.since("4.4.0") else -1]
    assert (group.epoch, group.metadata_hash) == (x.raw(3), 0)
    assert x.join("P", inst="i1") == (4, ALL)
    x.mark()
    assert x.beat("P", -2, inst="i1") == (-2, None)
    assert x.written() == [8]
    (away,) = x.values()
    assert away.member_epoch == -2
    assert tuple(away.assigned_partitions[0].assignment_epochs or ()) == ((0,) * 4 if play.since("4.3.0") else ())


@consumer_scenario()
def test_g183_since_4_4_a_successor_keeps_the_record_of_its_target(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_away()
    x.mark()
    assert x.join("Q", ["t", "nosuch"], inst="i1") == (3, ALL)
    repeated = [] if play.since("4.4.0") else [7]
    assert x.written() == [-8, -7, -5, 5, 7, 8, 5, 3, *repeated, 6, 8]


@consumer_scenario()
def test_g144_the_records_of_a_deletion(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.commit("A", 2) == [0]
    assert x.beat("A", -1) == (-1, None)
    x.mark()
    play.delete().expect({play.g: 0})
    assert x.written() == ([-1, -6, -4, -3] if play.since("4.1.0") else [-1, -6, -3])


@consumer_scenario(consumer_max_size=2)
def test_g146_a_static_member_that_is_away_counts(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_one()
    assert x.join("B") == (3, {})
    assert x.beat("P", -2, inst="i1") == (-2, None)
    text = "The consumer group has reached its maximum capacity of 2 members."
    assert x.refused_join("C") == (81, text)
    if play.since("4.4.0"):
        assert x.join("Q", inst="i1")[0] == 3
        return
    assert x.refused_join("Q", inst="i1") == (81, text)
    assert x.join("P", inst="i1")[0] == 3


@consumer_scenario(assignors="range,uniform")
def test_g150_the_first_assignor_is_the_default(play: Player) -> None:
    x = ConsumerMembers(play)
    both = ["t", "u"]
    settled = x.converge({member_id: x.join(member_id, both) for member_id in "AB"})
    assert x.described().assignor_name == "range"
    assert [owned for _, owned in settled.values()] == [{"t": [0, 1], "u": [0]}, {"t": [2, 3], "u": [1]}]


@consumer_scenario(check_interval=1)
def test_g152_an_empty_group_keeps_its_offsets(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.commit("A", 2) == [0]
    assert x.beat("A", -1) == (-1, None)
    play.wait(2.5)
    assert x.shape() == ("Empty", 3, 3 if play.since("4.4.0") else 2)


@consumer_scenario(restarted=True)
def test_g153_nobody_has_to_rejoin_after_a_restart(play: Player) -> None:
    x = ConsumerMembers(play)
    x.pair()
    before = x.members()
    play.reload()
    assert x.shape() == ("Stable", 3, 3)
    assert x.members() == before
    assert [x.beat("A", 3), x.beat("B", 3)] == [(3, None)] * 2


@consumer_scenario(restarted=True)
def test_g155_a_group_without_a_record_of_its_epoch_comes_back(play: Player) -> None:
    x = ConsumerMembers(play)
    if not play.since("4.3.0"):
        # an epoch of 0 cannot be told from a join
        assert x.join("A") == (2, ALL)
        play.reload()
        assert x.beat("A", 2) == (2, None)
        return
    assert x.join("A", []) == (1, {})
    play.reload()
    assert x.shape() == ("Stable", 1, 1)
    assert x.beat("A", 1) == (1, None)


@consumer_scenario(restarted=True, consumer_session=2)
def test_g156_a_loaded_member_has_a_full_session(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    play.wait(1)
    play.reload()
    play.zero()
    assert x.shape() == ("Stable", 2, 2)
    while x.shape(recorded=False)[0] != "Empty":
        assert play.seconds < 4, "the member is still there"
        play.wait(0.2)
    assert play.seconds > 0.9


@consumer_scenario(nodes=2, racks="a,b", offsets_partitions=1)
def test_g187_the_racks_of_replicas_are_part_of_what_a_group_has_seen(play: Player) -> None:
    x = ConsumerMembers(play)
    topic = MetadataRequestTopic(name="t")
    shown = play.ask(MetadataRequest(topics=(topic,)), 10).unrecorded()
    assert {each.node_id: each.rack for each in shown.brokers} == {1: "a", 2: "b"}
    cluster = ClusterState("model", Settings(), lambda: shown.topics[0].topic_id)
    for broker in shown.brokers:
        cluster.register(broker.node_id, broker.host, broker.port, broker.rack)
    model = cluster.create_topic("t", 4)
    for row in shown.topics[0].partitions:
        model.replicas[row.partition_index] = tuple(row.replica_nodes)
    x.one()
    if play.since("4.1.0"):
        (group,) = (each for each in x.values() if isinstance(each, ConsumerGroupMetadataValue))
        assert group.metadata_hash == metadata_hash(cluster, ["t"])
        return
    (seen,) = (each for each in x.values() if isinstance(each, ConsumerGroupPartitionMetadataValue))
    racks = {each.partition: {*each.racks} for each in seen.topics[0].partition_metadata}
    expected = {at: {cluster.brokers[node].rack for node in nodes} for at, nodes in enumerate(model.replicas)}
    assert racks == ({} if play.since("4.0.0") else expected)
