"""Each check of transactions (T01 to T03) has its failing trace in each version of the APIs that it reads."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import Nodes
from builders.requests import within
from marks.cases import case
from scenes.checks_in_versions import Code, apis_of, judged
from scenes.lines_on_the_wire import API_KEYS, over_the_wire

from koordinator.emulator.verify.transaction_checks import TITLES
from koordinator.wire.apis import APIS
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.trace.exchanges import Line


def transactions(api: str = "", version: int = 0) -> list[Line]:
    """Return the trace of a commit, an abort, a fetch of both, and two writes of a fenced producer.

    The requests of one API have a version, all others the newest that needs no other flow.
    """
    nodes = Nodes(1, kafka_version="4.4")
    peer = nodes.connect()
    newest = {"AddPartitionsToTxn": 3, "EndTxn": 3, "TxnOffsetCommit": 3}

    def ask(request: Any) -> Any:
        name = next(each.name for each in APIS.values() if each.request is type(request))
        number = version if name == api else newest.get(name, APIS[API_KEYS[name]].versions.max)
        return nodes.ask(peer, within(request, number), number)

    ask(FindCoordinatorRequest(coordinator_keys=("g",)))
    ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("x",)))
    topic = nodes.cluster.topics.find("t")
    assert topic is not None

    def begin() -> dict[str, Any]:
        answer = ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000))
        return {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}

    def write(producer: dict[str, Any], offset: int, sequence: int) -> None:
        row = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        topics = (TxnOffsetCommitRequestTopic(name="t", topic_id=topic.topic_id, partitions=(row,)),)
        ask(TxnOffsetCommitRequest(transactional_id="x", group_id="g", **producer, topics=topics))
        batch = write_batch([Record(0, 0, None, b"v")], **producer, base_sequence=sequence, is_transactional=True)
        rows = (PartitionProduceData(index=1, records=batch),)
        data = TopicProduceData(name="t", topic_id=topic.topic_id, partition_data=rows)
        ask(ProduceRequest(transactional_id="x", acks=-1, topic_data=(data,)))

    producer = begin()
    for number, is_commit in enumerate((True, False)):
        added = AddPartitionsToTxnTopic(name="t", partitions=(1,))
        named = {f"v3_and_below_{name}": value for name, value in {"transactional_id": "x", **producer}.items()}
        ask(AddPartitionsToTxnRequest(**named, v3_and_below_topics=(added,)))
        ask(AddOffsetsToTxnRequest(transactional_id="x", group_id="g", **producer))
        write(producer, number + 1, number)
        ask(EndTxnRequest(transactional_id="x", **producer, committed=is_commit))
    place = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=10_000)
    asked = FetchTopic(topic="t", topic_id=topic.topic_id, partitions=(place,))
    ask(FetchRequest(max_bytes=10_000, session_epoch=-1, isolation_level=1, topics=(asked,)))
    begin()
    write(producer, 3, 2)
    return nodes.trace.events()


def changed(lines: list[Line], pick: Callable[[Line], bool], **columns: Any) -> list[Line]:
    """Return the lines with other columns in the last line that is picked."""
    last = [line for line in lines if pick(line)][-1]
    return [{**line, **columns} if line is last else line for line in lines]


def answers_to(api: str) -> Callable[[Line], bool]:
    return lambda line: (line["kind"], line.get("api")) == ("response", api)


def committed_by_an_abort(lines: list[Line]) -> list[Line]:
    (aborted,) = [line for line in lines if line.get("cause") == "transaction_aborted"]
    body = {"producer_id": aborted["body"]["producer_id"], "committed": aborted["body"]["dropped"]}
    return changed(lines, lambda line: line is aborted, cause="transaction_committed", body=body)


def aborted_not_listed(lines: list[Line]) -> list[Line]:
    (fetched,) = filter(answers_to("Fetch"), lines)
    return changed(lines, answers_to("Fetch"), body={**fetched["body"], "aborted": []})


def fenced_producer_writes(lines: list[Line]) -> list[Line]:
    zombie = [*filter(answers_to("Produce"), lines)][-1]
    assert zombie["error"]
    return changed(lines, answers_to("Produce"), error=None, body={**zombie["body"], "appended": [["t", 1, 9]]})


def fenced_producer_commits(lines: list[Line]) -> list[Line]:
    assert [*filter(answers_to("TxnOffsetCommit"), lines)][-1]["error"]
    return changed(lines, answers_to("TxnOffsetCommit"), error=None, body=None)


CHANGES = {
    "T01": (committed_by_an_abort,),
    "T02": (aborted_not_listed,),
    "T03": (fenced_producer_writes, fenced_producer_commits),
}
"""The failing changes of a trace with transactions, of each check of transactions."""

TRANSACTIONS_FROM = {"Fetch": 4, "Produce": 3}
"""The first version of an API with an isolation level, or with a transactional id."""


@pytest.fixture(scope="module")
def newest() -> list[Line]:
    return transactions()


CASES = [(check, change) for check, changes in CHANGES.items() for change in changes]


@pytest.mark.slow
@pytest.mark.parametrize(("check", "change"), CASES)
def test_a_check_of_transactions_fails_in_each_version(
    newest: list[Line], check: str, change: Callable[[list[Line]], list[Line]]
) -> None:
    assert judged(check, newest)[0] == "pass"
    status, evidence, _ = judged(check, change(newest))
    assert status == "fail"
    for api in apis_of(check, change(newest)):
        for version in range(TRANSACTIONS_FROM.get(api, 0), APIS[API_KEYS[api]].versions.max + 1):
            with case(check, api, version):
                if api in TRANSACTIONS_FROM:
                    lines = transactions(api, version)
                else:
                    lines = deepcopy(newest)
                    over_the_wire(lines, api, version)
                assert judged(check, change(lines))[:2] == (status, evidence)


def test_each_check_has_a_failing_change() -> None:
    assert {*CHANGES} == {*TITLES}


@pytest.mark.slow
def test_the_checks_read_no_api_without_a_failing_change(newest: list[Line]) -> None:
    covered = {api for check, change in CASES for api in apis_of(check, change(newest))}
    assert Code().apis("_TransactionTrace") <= covered
