"""The emulator and a real Apache Kafka are asked the same, and give the same answers.

A scenario is a function that asks a `Table`; it is played to both, and what they answered is compared: every field,
with random ids named by first appearance.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from same_answers import Table

from koordinator import Emulator
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.leave_group import LeaveGroupRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from real_kafka import RealKafka

    from koordinator import Cluster

SCENARIOS: dict[str, Callable[[Table], None]] = {}


def scenario(play: Callable[[Table], None]) -> Callable[[Table], None]:
    SCENARIOS[play.__name__] = play
    return play


@scenario
def a_member_id_is_required(table: Table) -> None:
    member = table.ask(table.join(), 5)
    assert member.error_code == Error.MEMBER_ID_REQUIRED
    table.until_visible()
    table.ask(table.describe(), 5)
    table.ask(table.describe(), 6)
    # pending
    table.ask(table.beat(0, member.member_id), 4)
    table.ask(table.beat(1, member.member_id), 4)
    table.ask(table.sync(0, member.member_id), 5)
    table.ask(table.commit(0, member.member_id), 9)
    table.ask(table.join(member.member_id), 5)
    table.ask(table.leave((member.member_id, None)), 5)
    table.ask(table.describe(), 6)


@scenario
def a_pending_member_leaves(table: Table) -> None:
    for version in (2, 5):
        member = table.ask(table.join(), 9)
        if version < 3:
            table.ask(LeaveGroupRequest(group_id=table.g, member_id=member.member_id), version)
        else:
            table.ask(table.leave((member.member_id, None)), version)
        table.ask(table.join(member.member_id), 9)
    table.until_visible()
    table.ask(table.describe(), 6)


@scenario
def old_versions_of_joining(table: Table) -> None:
    for version in range(4):
        group = f"{table.g}.{version}"
        member_id = table.ask(table.join(group_id=group), version).member_id
        table.ask(table.sync(1, member_id, None, {member_id: b"x"}, group_id=group), version)
        table.ask(table.beat(1, member_id, group_id=group), version)
        table.ask(table.describe(groups=(group,)), version)
        for each in ("ghost", member_id):
            table.ask(LeaveGroupRequest(group_id=group, member_id=each), min(version, 2))


@scenario
def joining_is_refused(table: Table) -> None:
    for version in (4, 5, 9):
        table.ask(table.join(group_id=""), version)
        table.ask(table.join("ghost"), version)
        table.ask(table.join(session_timeout_ms=5_999), version)
        table.ask(table.join(session_timeout_ms=1_800_001), version)
        table.ask(table.join(protocol_type=""), version)
        table.ask(table.join(protocols=()), version)
    table.ask(table.join("ghost", "a"), 9)
    table.ask(table.describe(), 6)


@scenario
def joining_a_group_that_exists_is_refused(table: Table) -> None:
    _, one = table.formed()
    table.ask(table.join(protocol_type="connect"), 9)
    table.ask(table.join(protocols=(("other", b""),)), 9)
    table.ask(table.join(protocols=()), 9)
    table.ask(table.join("ghost"), 9)
    table.ask(table.join("ghost", protocol_type="connect"), 9)
    table.ask(table.join(one, protocol_type="connect"), 9)
    table.ask(table.join(one, "a"), 9)
    table.ask(table.describe(), 6)


@scenario
def syncing(table: Table) -> None:
    member = table.ask(table.join("", "a"), 9)
    generation, one = member.generation_id, member.member_id
    plan = {one: b"mine", "ghost": b"nobody's"}
    table.until_visible()
    table.ask(table.describe(), 6)
    table.ask(table.beat(generation, one), 4)
    table.ask(table.sync(generation, one, None, plan, group_id=""), 5)
    table.ask(table.sync(generation, one, None, plan, group_id=f"{table.g}.other"), 5)
    table.ask(table.sync(generation - 1, one, None, plan), 5)
    table.ask(table.sync(generation + 1, one, None, plan), 5)
    table.ask(table.sync(generation, "ghost", None, plan), 5)
    table.ask(table.sync(generation, one, None, plan, protocol_name="roundrobin"), 5)
    table.ask(table.sync(generation, one, None, plan, protocol_type="connect"), 5)
    table.ask(table.sync(generation, one, None, plan, protocol_type=None, protocol_name=None), 5)
    table.ask(table.sync(generation, one, None, {"ghost": b"ignored"}), 3)
    table.ask(table.sync(generation, one, "a", plan), 5)
    table.ask(table.describe(), 6)


@scenario
def heartbeats(table: Table) -> None:
    table.ask(table.beat(1, "ghost"), 4)
    table.ask(table.beat(-1, ""), 4)
    generation, one = table.formed()
    for version in (0, 1, 2, 3, 4):
        table.ask(table.beat(generation, one), version)
    table.ask(table.beat(generation, one, group_id=""), 4)
    table.ask(table.beat(generation, one, group_id=f"{table.g}.other"), 4)
    table.ask(table.beat(generation + 1, one), 4)
    table.ask(table.beat(generation - 1, one), 4)
    table.ask(table.beat(generation, "ghost"), 4)
    table.ask(table.beat(generation + 1, "ghost"), 4)
    table.ask(table.beat(generation, one, "a"), 4)


@scenario
def the_only_member_joins_again(table: Table) -> None:
    _, one = table.formed()
    again = table.ask(table.join(one), 9)
    table.ask(table.beat(again.generation_id - 1, one), 4)
    table.ask(table.sync(again.generation_id, one, None, {one: b"2"}), 5)
    other = table.ask(table.join(one, protocols=(("roundrobin", b"x"),)), 6)
    table.ask(table.sync(other.generation_id, one, None, {one: b"3"}, protocol_name="roundrobin"), 5)
    table.ask(table.describe(), 6)


@scenario
def a_static_member_comes_back(table: Table) -> None:
    generation, one = table.formed("a")
    again = table.ask(table.join("", "a"), 9)
    assert again.skip_assignment
    two = again.member_id
    table.ask(table.sync(again.generation_id, two, "a"), 5)
    table.ask(table.describe(), 5)
    # the one before is fenced, whatever it does
    table.ask(table.join(one, "a"), 9)
    table.ask(table.sync(generation, one, "a"), 5)
    table.ask(table.beat(generation, one, "a"), 4)
    table.ask(table.commit(generation, one, "a"), 9)
    table.ask(table.leave((one, "a")), 5)
    # without its instance id nobody knows it
    table.ask(table.join(one), 9)
    table.ask(table.sync(generation, one), 5)
    table.ask(table.beat(generation, one), 4)
    table.ask(table.commit(generation, one), 9)
    table.ask(table.leave((one, None)), 5)
    # an instance id nobody has
    table.ask(table.beat(generation, two, "z"), 4)
    table.ask(table.sync(generation, two, "z"), 5)
    table.ask(table.commit(generation, two, "z"), 9)
    table.ask(table.join(two, "z"), 9)
    table.ask(table.commit(generation, two, "a"), 9)
    table.ask(table.describe(), 6)


@scenario
def a_static_member_comes_back_before_version_9(table: Table) -> None:
    table.formed("a")
    for version in (8, 5):
        again = table.ask(table.join("", "a"), version)
        table.ask(table.sync(again.generation_id, again.member_id, "a", {again.member_id: b"new"}), 5)
        table.ask(table.describe(), 6)


@scenario
def a_static_member_comes_back_with_other_protocols(table: Table) -> None:
    table.formed("a")
    again = table.ask(table.join("", "a", protocols=(("roundrobin", b"x"),)), 9)
    table.ask(table.sync(again.generation_id, again.member_id, "a", {}, protocol_name="roundrobin"), 5)
    table.ask(table.describe(), 6)
    changed = table.ask(table.join("", "a", protocols=(("roundrobin", b"y"),)), 9)
    table.ask(table.describe(), 6)
    table.ask(table.join(changed.member_id, "a", protocols=(("roundrobin", b"y"),)), 9)


@scenario
def leaving(table: Table) -> None:
    table.ask(table.leave(("ghost", None)), 5)
    table.ask(table.leave(), 5)
    table.ask(table.leave(("ghost", None), group_id=""), 5)
    _, one = table.formed("a")
    table.ask(table.leave(), 5)
    table.ask(table.leave(("", "z"), ("m", None), ("", None), (one, "z"), ("m", "a")), 5)
    table.ask(table.leave(("", "z"), ("", "a"), ("", "a"), (one, None)), 3)
    table.ask(table.describe(), 6)
    _, two = table.formed("b")
    table.ask(table.leave((two, None)), 4)
    table.ask(table.describe(), 6)
    _, three = table.formed("c")
    table.ask(LeaveGroupRequest(group_id=table.g, member_id=three), 2)
    table.ask(table.describe(), 6)


@scenario
def two_members(table: Table) -> None:
    generation, one = table.formed()
    two = table.ask(table.join(), 9).member_id
    joining = table.begin(table.join(two), 9, "two")
    table.until(table.beat(generation, one), Error.REBALANCE_IN_PROGRESS)
    table.ask(table.describe(), 6)
    table.ask(table.sync(generation, one), 5)
    table.ask(table.commit(generation, one), 9)
    table.ask(table.beat(generation, two), 4)
    led = table.ask(table.join(one), 9)
    followed = table.end(joining)
    assert (led.leader, followed.members) == (one, ())
    new = led.generation_id
    table.ask(table.commit(new, one), 9)
    table.ask(table.commit(generation, one), 9)
    syncing = table.begin(table.sync(new, two), 5, "two")
    table.ask(table.beat(new, two), 4)
    table.ask(table.sync(new, one, None, {one: b"1", two: b"2"}), 5)
    table.end(syncing)
    table.ask(table.describe(), 6)
    # a follower with nothing new, the leader's plan again, one leaves
    table.ask(table.join(two), 9)
    table.ask(table.sync(new, two), 5)
    table.ask(table.leave((two, None)), 5)
    table.ask(table.beat(new, one), 4)
    table.ask(table.beat(new, two), 4)
    table.ask(table.join(one), 9)


@scenario
def a_parked_join_is_asked_again_and_left(table: Table) -> None:
    generation, one = table.formed()
    two = table.ask(table.join(), 9).member_id
    first = table.begin(table.join(two), 9, "first")
    table.until(table.beat(generation, one), Error.REBALANCE_IN_PROGRESS)
    table.ask(table.leave((two, None)), 5)
    table.end(first)
    table.ask(table.describe(), 6)


@scenario
def two_static_members(table: Table) -> None:
    generation, one = table.formed("a")
    joining = table.begin(table.join("", "b"), 9, "two")
    table.until(table.beat(generation, one, "a"), Error.REBALANCE_IN_PROGRESS)
    led = table.ask(table.join(one, "a"), 9)
    two = table.end(joining).member_id
    new = led.generation_id
    syncing = table.begin(table.sync(new, two, "b"), 5, "two")
    table.ask(table.sync(new, one, "a", {one: b"1", two: b"2"}), 5)
    table.end(syncing)
    # the follower, the leader, and the follower with other metadata come back
    back = table.ask(table.join("", "b"), 9)
    table.ask(table.sync(new, back.member_id, "b"), 5)
    lead = table.ask(table.join("", "a"), 9)
    table.ask(table.sync(new, lead.member_id, "a"), 5)
    table.ask(table.describe(), 6)
    # in PreparingRebalance a parked join of the one before is fenced
    parked = table.begin(table.join(back.member_id, "b", protocols=(("range", b"new"),)), 9, "two")
    table.until(table.beat(new, lead.member_id, "a"), Error.REBALANCE_IN_PROGRESS)
    replacing = table.begin(table.join("", "b"), 9, "three")
    table.end(parked)
    table.ask(table.join(lead.member_id, "a"), 9)
    table.end(replacing)
    table.ask(table.describe(), 6)


@scenario
def offsets_without_members(table: Table) -> None:
    table.ask(table.fetch(0), 9)
    table.ask(table.fetch(), 9)
    table.ask(table.fetch(group_id=""), 9)
    table.ask(table.commit(group_id=""), 9)
    table.ask(table.commit(5, "ghost"), 9)
    table.ask(table.commit(-1, "ghost"), 9)
    table.ask(table.commit(0, ""), 9)
    table.ask(table.commit(offsets={0: 5, 1: 0, 9: 7}, metadata="why"), 9)
    table.ask(table.commit(offsets={2: 1}, metadata=None), 5)
    table.ask(table.commit(offsets={3: 1}, metadata="x" * 4097), 9)
    table.ask(table.commit(topic=f"{table.t}.nowhere"), 9)
    table.ask(table.commit(-1, "", "a", offsets={1: 8}), 9)
    for version in range(1, 8):
        table.ask(table.fetch_old(2, 0, 3, 9), version)
    for version in range(2, 8):
        table.ask(table.fetch_old(), version)
    for version in (8, 9):
        table.ask(table.fetch(0, 2, 3, 9), version)
        table.ask(table.fetch(), version)
        table.ask(table.fetch(0, topic=f"{table.t}.nowhere"), version)
    table.ask(table.describe(), 6)
    for version in range(6):
        # each group of a broker, of which only ours is looked at
        rows = table.unrecorded(ListGroupsRequest(), version).groups
        for row in rows:
            if row.group_id == table.g:
                table.note(repr(row))


@scenario
def offsets_of_members(table: Table) -> None:
    generation, one = table.formed()
    for version in range(2, 10):
        table.ask(table.commit(generation, one, offsets={0: version}), version)
    table.ask(table.commit(generation + 1, one), 9)
    table.ask(table.commit(generation, "ghost"), 9)
    table.ask(table.commit(-1, ""), 9)
    table.ask(table.commit(-1, one), 9)
    table.ask(table.commit(generation, ""), 9)
    table.ask(table.fetch(0, member_id=one, member_epoch=generation), 9)
    table.ask(table.fetch(0, member_id="ghost", member_epoch=5), 9)
    table.ask(table.forget(0), 0)


@scenario
def forgetting_offsets(table: Table) -> None:
    table.ask(table.forget(0), 0)
    table.ask(table.forget(0, group_id=""), 0)
    table.ask(table.commit(offsets={0: 1, 1: 1}), 9)
    table.ask(table.forget(0, 3, 9), 0)
    table.ask(table.forget(0, topic=f"{table.t}.nowhere"), 0)
    table.ask(table.fetch(), 9)
    table.ask(table.forget(1), 0)
    table.ask(table.fetch(), 9)
    table.ask(table.describe(), 6)


@scenario
def describing_and_deleting(table: Table) -> None:
    nobody = f"{table.g}.nobody"
    for version in range(7):
        table.ask(table.describe(groups=(nobody, "", nobody)), version)
    table.ask(table.describe(groups=()), 6)
    generation, one = table.formed()
    for version in range(7):
        table.ask(table.describe(), version)
    table.ask(table.describe(include_authorized_operations=True), 6)
    for version in range(3):
        table.ask(DeleteGroupsRequest(groups_names=(table.g, nobody, "")), version)
    table.ask(table.commit(generation, one), 9)
    table.ask(table.leave((one, None)), 5)
    table.ask(table.describe(), 6)
    table.ask(DeleteGroupsRequest(groups_names=(table.g, table.g)), 2)
    table.ask(DeleteGroupsRequest(groups_names=(table.g,)), 2)
    table.ask(table.describe(), 6)
    table.ask(table.fetch(), 9)
    table.ask(table.beat(generation, one), 4)
    table.ask(table.join(one), 9)


@scenario
def finding_coordinators(table: Table) -> None:
    for version in (0, 1, 2, 3):
        table.ask(FindCoordinatorRequest(key=table.g), version)
    for version in (4, 5, 6):
        table.ask(FindCoordinatorRequest(coordinator_keys=(table.g, "", "other")), version)
    table.ask(FindCoordinatorRequest(coordinator_keys=()), 4)
    table.ask(FindCoordinatorRequest(key=""), 3)


@scenario
def offsets_by_topic_id(table: Table) -> None:
    (topic,) = table.unrecorded(MetadataRequest(topics=(MetadataRequestTopic(name=table.t),)), 12).topics
    for topic_id in (topic.topic_id, uuid.UUID(int=7)):
        rows = (OffsetCommitRequestPartition(partition_index=0, committed_offset=3, committed_metadata=""),)
        topics = (OffsetCommitRequestTopic(topic_id=topic_id, partitions=rows),)
        table.ask(OffsetCommitRequest(group_id=table.g, topics=topics), 10)
        wanted = (OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(0, 1)),)
        table.ask(OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=table.g, topics=wanted),)), 10)
    table.ask(table.fetch(), 10)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Cluster]:
    """With Kafka's own limits, and no initial delay, as the real one."""
    config = {"group.initial.rebalance.delay.ms": 0}
    with Emulator(config=config, profile="kafka-defaults", seed=1) as running:
        yield running


@pytest.mark.parametrize("title", SCENARIOS)
def test_same_answers(kafka: RealKafka, emulator: Cluster, title: str) -> None:
    kafka.create_topic(title, 4)
    emulator.create_topic(title, 4)
    answers = []
    for bootstrap in (kafka.bootstrap_servers, emulator.bootstrap_servers):
        with Table(bootstrap, title) as table:
            SCENARIOS[title](table)
        answers.append(table.answers)
    theirs, ours = answers
    differing = [f"kafka  {one}\nours   {other}" for one, other in zip(theirs, ours, strict=True) if one != other]
    assert not differing, "\n\n".join(differing)


def test_the_emulator_serves_what_kafka_serves_of_each_api(kafka: RealKafka, emulator: Cluster) -> None:
    served = []
    for bootstrap in (kafka.bootstrap_servers, emulator.bootstrap_servers):
        with Table(bootstrap, "versions") as table:
            request = ApiVersionsRequest(client_software_name="n", client_software_version="1")
            served.append({row.api_key: row for row in table.unrecorded(request, 3).api_keys})
    theirs, ours = served
    assert set(ours) <= set(theirs)
    newest = {ApiKey(key).name: (row.max_version, theirs[key].max_version) for key, row in ours.items()}
    assert {name: each for name, each in newest.items() if each[0] != each[1]} == {}
    # and for old clients some that release 4.0 has dropped (KIP-896)
    assert all(row.min_version <= theirs[key].min_version for key, row in ours.items())
