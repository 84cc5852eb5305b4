"""The feature transaction.version, first lookups, exhausted epochs, and markers that are not written yet."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from scenarios.registry import scenario
from scenarios.targets import raw_header
from scenarios.transaction_requests import GROUP, TRANSACTION
from scenarios.transactional import TransactionalProducer

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

if TYPE_CHECKING:
    from scenarios.player import Player

FEATURE, GROUPS = "transaction.version", "group.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
NO_NODE = -1
EPOCH_LAST = 32_766
"""The last epoch that a producer gets."""


def versions(play: Player, version: int) -> Any:
    """Return an ApiVersions response."""
    return play.ask(ApiVersionsRequest(client_software_name="c", client_software_version="1"), version).unrecorded()


def coordinator(play: Player, key: str, kind: int) -> int:
    """FindCoordinator: the node; NO_NODE with error 15 while the topic is being created."""
    answer = play.ask(FindCoordinatorRequest(key=key, key_type=kind), 2).unrecorded()
    assert (answer.error_code, answer.node_id == NO_NODE) in {(0, False), (15, True)}
    return int(answer.node_id)


def finalized(play: Player) -> int:
    """Return the finalized level of transaction.version; 0: it is not listed."""
    rows = {row.name: (row.min_version_level, row.max_version_level) for row in versions(play, 3).finalized_features}
    low, high = rows.get(FEATURE, (0, 0))
    assert low == high
    return high


def update(
    play: Player, level: int, kind: int = UPGRADE, *, feature: str = FEATURE, version: int = 1, validate: bool = False
) -> tuple[int, str | None, list[tuple[str, int, str | None]]]:
    """UpdateFeatures of one feature: error, message and rows, as `kafka-features.sh` gets them."""
    is_first = version == 0
    row = FeatureUpdateKey(
        feature=feature,
        max_version_level=level,
        allow_downgrade=is_first and kind != UPGRADE,
        upgrade_type=UPGRADE if is_first else kind,
    )
    request = UpdateFeaturesRequest(feature_updates=(row,), validate_only=validate)
    answer = play.slowly(request, version, recorded=True)
    rows = [(each.feature, each.error_code, each.error_message) for each in answer.results]
    return answer.error_code, answer.error_message, rows


def set_level(play: Player, level: int, kind: int) -> None:
    """Change the level, and wait until ApiVersions shows it."""
    assert update(play, level, kind)[0] == 0
    play.zero()
    while finalized(play) != level:
        assert play.seconds < 60, f"the level is still {finalized(play)}"
        play.wait(0.1)


@scenario(kip="KIP-584")
def test_t002_supported_features_are_listed_from_version_4_on(play: Player) -> None:
    is_modern = play.since("4.0.0")
    supported = {row.name: (row.min_version, row.max_version) for row in versions(play, 4).supported_features}
    assert (FEATURE in supported) == is_modern
    assert finalized(play) == (2 if is_modern else 0)
    if is_modern:
        assert supported[FEATURE] == (0, 2)
        assert FEATURE not in {row.name for row in versions(play, 3).supported_features}
    ranges = {row.api_key: (row.min_version, row.max_version) for row in versions(play, 4).api_keys}
    last = 6 if play.since("4.4.0") else 5
    wanted = {ApiKey.END_TXN: 5, ApiKey.TXN_OFFSET_COMMIT: last} if is_modern else {ApiKey.END_TXN: 4}
    assert {key: ranges[key] for key in wanted} == {key: (0, last) for key, last in wanted.items()}
    assert (ranges[ApiKey.PRODUCE][1] >= 12) == is_modern


@scenario(kip="KIP-98", transactions_partitions=7)
def test_t003_the_first_lookup_creates_the_topic(play: Player) -> None:
    # a broker of its own: no other scenario has asked for a transactional id
    x = TransactionalProducer(play)

    while (node_id := coordinator(play, x.id, TRANSACTION)) == NO_NODE:
        play.wait(0.1)
    assert node_id == 1
    with x.waiting():
        while (answer := x.init())[0]:
            assert answer[0] in {14, 16}
            play.wait(0.1)
    assert answer[2] == 0


@scenario(kip="KIP-360", restarted=True)
def test_t020_an_exhausted_epoch_continues_with_another_producer_id(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.with_epoch(EPOCH_LAST)
    error, q, epoch = x.init_until_served(p, EPOCH_LAST)
    assert (error, epoch, q != p) == (0, 0, True)
    assert x.init(p, EPOCH_LAST) == (0, q, 0)


@scenario(kip="KIP-939")
def test_t021_version_6_of_init_producer_id_closes_the_connection(play: Player) -> None:
    play.needs(ApiKey.INIT_PRODUCER_ID, 4)
    header = raw_header(ApiKey.INIT_PRODUCER_ID, 6, 1, "c", has_tags=True)
    fields = b"\0" + b"\0\0\xea\x60" + b"\xff" * 8 + b"\xff" * 2 + b"\0\0" + b"\0"
    frame = header + fields
    play.expect_closed(play.send(len(frame).to_bytes(4, "big") + frame))


@scenario(kip="KIP-890")
def test_t041_a_repeat_waits_for_the_markers(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    # a marker that its leader refuses for good
    assert x.write_markers(p, 0, 0, coordinator_epoch=50) == [0]
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    assert [x.end5(p, 0, commit=True), x.end5(p, 1, commit=True)] == [(51, -1, -1)] * 2
    x.expect("PrepareCommit", 1)


@scenario(kip="KIP-890", restarted=True)
def test_t047_version_5_continues_with_another_producer_id_after_the_last_epoch(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.with_epoch(EPOCH_LAST, 0)
    assert x.produce(0, p, EPOCH_LAST, 0, version=12)[0] == 0
    error, q, epoch = x.end5_until_served(p, EPOCH_LAST)
    assert (error, epoch, q != p) == (0, 0, True)
    x.settle()
    row = x.describe()
    assert (row.transaction_state, row.producer_id, row.producer_epoch) == ("CompleteCommit", q, 0)
    assert x.end5(p, EPOCH_LAST, commit=True) == (0, q, 0)
    assert x.end5(p, EPOCH_LAST, commit=False)[0] == 48
    assert x.add(p, EPOCH_LAST, 0) == {0: 49}
    (marker,) = (header for header, _ in play.batches(x.topic) if header.is_control)
    assert (marker.producer_id, marker.producer_epoch) == (p, 32_767)


@scenario(kip="KIP-890", restarted=True)
def test_t048_the_level_of_the_feature_changes_at_run_time(play: Player) -> None:
    play.needs(ApiKey.END_TXN, 5)
    x = TransactionalProducer(play)
    p = x.written()
    before = {row.api_key: (row.min_version, row.max_version) for row in versions(play, 4).api_keys}
    set_level(play, 1, SAFE_DOWNGRADE)
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    x.settle()
    assert [version for version, _ in x.records()] == [1, 1, 1, 1]
    # the producer that a lower level fences cannot resume
    y = TransactionalProducer(play, "y")
    q = y.begun()
    assert y.init(q, 0)[0] == 51
    assert y.init_until_served(q, 0)[0] == 90
    set_level(play, 0, SAFE_DOWNGRADE)
    z = TransactionalProducer(play, "z")
    r = z.begun()
    assert z.end5(r, 0, commit=True) == (35, -1, -1)
    z.expect("Ongoing", 0)
    # the change that could not be written stays pending
    assert [z.end(r, 0, commit=True), z.add(r, 0, 1)[1], z.init()[0], z.end5(r, 0, commit=True)[0]] == [51] * 4
    w = TransactionalProducer(play, "w")
    s = w.initialized()
    assert w.produce(0, s, 0, 0, version=12)[0] == 35
    w.expect("Empty", 0)
    assert w.add(s, 0, 0) == {0: 51}
    assert {row.api_key: (row.min_version, row.max_version) for row in versions(play, 4).api_keys} == before
    v = TransactionalProducer(play, "v")
    o = v.written()
    assert [version for version, _ in v.records()] == [0, 0]
    set_level(play, 2, UPGRADE)
    assert v.end5(o, 0, commit=True) == (0, o, 1)
    v.settle()
    assert [version for version, _ in v.records()] == [0, 0, 1, 1]


@scenario(kip="KIP-584")
def test_t133_updates_of_features_are_refused_with_the_reason(play: Player) -> None:
    with_kraft = play.since("3.3.0")
    for version in (0, 1, 2) if play.since("4.0.0") else (0, 1) if with_kraft else (0,):
        update(play, 3, version=version)
        update(play, 1, feature="nosuch", version=version)
        update(play, 0, SAFE_DOWNGRADE, feature="nosuch", version=version)
        update(play, 99, feature="metadata.version", version=version)
    if with_kraft:
        update(play, -1, SAFE_DOWNGRADE)
        update(play, 1, 7)
        update(play, 1)
        update(play, 1, SAFE_DOWNGRADE, validate=True)
        update(play, 16, SAFE_DOWNGRADE, feature="metadata.version", validate=True)
        update(play, 16, UNSAFE_DOWNGRADE, feature="metadata.version", validate=True)
        for level in (0, 3, 4):
            update(play, level, SAFE_DOWNGRADE, feature="metadata.version", validate=True)
        for level, kind in (
            (2, UPGRADE),
            (1, SAFE_DOWNGRADE),
            (0, UPGRADE),
            (0, SAFE_DOWNGRADE),
            (0, UNSAFE_DOWNGRADE),
        ):
            update(play, level, kind, feature=GROUPS, validate=True)
    assert finalized(play) == (2 if play.since("4.0.0") else 0)


@scenario(kip="KIP-848", restarted=True)
def test_t140_group_version_0_turns_consumer_groups_off(play: Player) -> None:
    play.needs(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1)
    beat = ConsumerGroupHeartbeatRequest(
        group_id=play.g,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    describe = ConsumerGroupDescribeRequest(group_ids=(play.g,))

    def errors() -> tuple[int, int]:
        beaten, described = play.ask(beat, 1).unrecorded(), play.ask(describe, 1).unrecorded()
        return beaten.error_code, described.groups[0].error_code

    assert update(play, 0, SAFE_DOWNGRADE, feature=GROUPS)[0] == 0
    play.zero()
    while errors() != (35, 35):
        assert play.seconds < 60, f"consumer groups are still answered with {errors()}"
        play.wait(0.1)
    assert GROUPS not in {row.name for row in versions(play, 3).finalized_features}
    assert update(play, 1, feature=GROUPS)[0] == 0
    while errors() != (0, 0):
        assert play.seconds < 60, f"consumer groups are answered with {errors()}"
        play.wait(0.1)


@scenario(kip="KIP-890")
def test_t136_old_and_new_protocol_take_turns_on_one_transactional_id(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    assert x.end(p, 0, commit=True) == 0
    x.settle()
    assert x.produce(0, p, 0, 1, version=12)[0] == 0
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    x.settle()
    assert x.add(p, 1, 0) == {0: 0}
    assert [x.produce(0, p, 1, 2)[0], x.produce(0, p, 1, 0)[0]] == [45, 0]
    assert x.end(p, 1, commit=False) == 0
    x.settle()
    assert x.end5(p, 1, commit=False) == (0, p, 2)
    x.settle()
    x.expect("CompleteAbort", 2)
    markers = [header.producer_epoch for header, _ in play.batches(x.topic) if header.is_control]
    assert markers == [0, 1, 1]


@scenario(kip="KIP-98")
def test_t081_a_marker_wakes_a_waiting_fetch(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=x.topic, partitions=(place,))
    request = FetchRequest(max_wait_ms=play.ms(120), min_bytes=1, max_bytes=1 << 20, isolation_level=1, topics=(topic,))
    waiting = play.ask(request, 11)
    play.expect_parked(waiting)
    assert x.end(p, 0, commit=True) == 0
    x.settle()
    (row,) = waiting.answer().responses[0].partitions
    assert (row.high_watermark, row.last_stable_offset, row.aborted_transactions) == (2, 2, ())


@pytest.mark.slow
@scenario(kip="base")
def test_t108_offsets_of_a_transaction_are_transactional_batches(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add_offsets(p, 0) == 0
    assert [x.commit_offsets(p, 0, 9), x.commit_offsets(p, 0, 10)] == [0, 0]
    assert x.end(p, 0, commit=True) == 0
    x.settle()
    own = [header for header, _ in play.batches("__consumer_offsets") if header.producer_id == p]
    found = [(each.attributes, each.producer_epoch, each.base_sequence) for each in own]
    assert found == [(0x10, 0, 0), (0x10, 0, 0), (0x30, 0, -1)]


@scenario(kip="base")
def test_t122_the_records_of_a_transactional_id(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add_offsets(p, 0) == 0
    assert x.commit_offsets(p, 0, 9) == 0
    assert x.end(p, 0, commit=False) == 0
    x.settle()
    written, level = x.records(), int(play.since("4.0.0"))
    empty, ongoing, _, complete = [value for _, value in written]
    assert [(version, value and value.transaction_status) for version, value in written] == [
        (level, status) for status in (0, 1, 3, 5)
    ]
    assert empty
    assert ongoing
    assert complete
    assert (empty.transaction_partitions, empty.transaction_start_timestamp_ms) == (None, -1)
    assert ongoing.transaction_partitions
    assert [each.topic for each in ongoing.transaction_partitions] == ["__consumer_offsets"]
    assert complete.transaction_partitions == ()
    assert complete.transaction_start_timestamp_ms == ongoing.transaction_start_timestamp_ms
    assert {value.previous_producer_id for _, value in written if value} == {p if play.since("4.3.0") else -1}


@scenario(kip="KIP-98", nodes=2, restarted=True)
def test_t126_a_transaction_waits_for_the_leader_that_is_down(play: Player) -> None:
    home = coordinator(play, play.g, GROUP)
    producers = (TransactionalProducer(play, f"x{number}") for number in count())
    x = next(each for each in producers if coordinator(play, each.id, TRANSACTION) == home)
    there = TransactionalProducer(play.other_node())
    there.id, there.topic = x.id, x.topic
    play.transcript.name(x.topic, "#topic")
    play.transcript.name(x.id, "#x")
    # with ZooKeeper only node 1, the controller, creates topics
    (x if home == 1 else there).create_topic(1, 2)
    error, p, _ = x.init_until_served(version=1)
    assert (error, x.add(p, 0, 0, 1, version=1)) == (0, {0: 0, 1: 0})
    near, far = home - 1, 2 - home
    x.wait_led(near)
    there.wait_led(far)
    with x.waiting(), there.waiting():
        assert [x.produce(near, p, 0, 0, version=7)[0], there.produce(far, p, 0, 0, version=7)[0]] == [0, 0]
    skips = play.since("4.3.0")
    with play.without_other_node():
        assert x.end(p, 0, commit=True, version=1) == 0
        if not skips:
            play.wait(1)
            # it has the number of the partition, which differs
            with x.waiting():
                x.expect("PrepareCommit", 0)
        x.wait_decided(near)
        with x.waiting():
            assert x.latest(1, partition=near) == (0, 2)
    x.settle()
    x.expect("CompleteCommit", 0)
    # a broker that ended without a shutdown may be elected twice
    there.wait_led(far)
    with there.waiting():
        assert there.latest(1, partition=far) == (0, 0 if skips else 2)


@scenario(kip="base")
def test_t128_a_prepared_transaction_is_not_verified(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    assert x.write_markers(p, 0, 0, coordinator_epoch=50) == [0]
    assert x.end(p, 0, commit=True) == 0
    play.wait(1)
    assert x.add(p + 1_000, 0, 0)[0] == (51 if play.since("4.0.0") else 49)
    rows = (x.wanted(p, 0, 0, verify=True),)
    answer = play.ask(AddPartitionsToTxnRequest(transactions=rows), 5).answer()
    (row,) = answer.results_by_transaction[0].topic_results[0].results_by_partition
    assert row.partition_error_code == 51
