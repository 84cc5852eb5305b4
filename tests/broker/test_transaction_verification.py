"""What a leader asks the transaction coordinator before it appends, and which epochs it compares itself (KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import Nodes

from koordinator.emulator.core.transactions.markers import DELAYED
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from koordinator.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from clients.frame_clients import Peer

TRANSACTION = 1


class Client:
    """A client of a broker, with the initialized transactional id x in epoch 0."""

    def __init__(self, release: str) -> None:
        self.nodes = Nodes(1, kafka_version=release)
        self.peer: Peer = self.nodes.connect()
        self.ask(FindCoordinatorRequest(key="g"), 2)
        self.ask(FindCoordinatorRequest(key="x", key_type=TRANSACTION), 2)
        answer = self.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
        assert (answer.error_code, answer.producer_epoch) == (Error.NONE, 0)
        self.producer_id = answer.producer_id

    def ask(self, request: Any, version: int) -> Any:
        return self.nodes.ask(self.peer, request, version)

    def commit_offset(self, epoch: int) -> int:
        row = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=self.producer_id,
            producer_epoch=epoch,
            topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(row,)),),
        )
        return int(self.ask(request, 3).topics[0].partitions[0].error_code)

    def produce(self, transactional_id: str, epoch: int, version: int = 9) -> int | None:
        """Produce a batch; return its error, None while the request is parked."""
        batch = write_batch(
            [Record(timestamp=0, value=b"v")],
            producer_id=self.producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch),))
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, topic_data=(data,))
        answer = self.ask(request, version)
        return None if answer is None else int(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize(("after_ms", "error"), [(50, Error.NONE), (0, Error.CONCURRENT_TRANSACTIONS)])
def test_a_leader_asks_again_for_100_ms_while_the_last_transaction_is_completed(after_ms: int, error: Error) -> None:
    client = Client("4.4")
    faults = client.nodes.cluster.marker_faults
    faults["t", 0] = DELAYED
    assert client.produce("x", 0, 12) == Error.NONE
    ending = EndTxnRequest(transactional_id="x", producer_id=client.producer_id, producer_epoch=0, committed=True)
    assert client.ask(ending, 5).error_code == Error.NONE
    client.nodes.wait(after_ms)
    assert client.produce("x", 1, 12) is None
    if after_ms:
        # the marker is sent again 100 ms after the decision
        faults.clear()
    client.nodes.wait(99 - after_ms)
    assert len(client.peer.sent) > len(client.peer.answers())
    client.nodes.wait(30)
    assert client.peer.answers()[-1][1].responses[0].partition_responses[0].error_code == error


@pytest.mark.parametrize(("release", "error"), [("3.9", Error.NONE), ("4.4", Error.INVALID_PRODUCER_EPOCH)])
def test_3_9_compares_no_epoch_of_a_group_with_open_offsets(release: str, error: Error) -> None:
    client = Client(release)
    adding = AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=client.producer_id, producer_epoch=0, group_id="g"
    )
    assert client.ask(adding, 3).error_code == Error.NONE
    assert client.commit_offset(0) == Error.NONE
    assert client.commit_offset(1) == error


@pytest.mark.parametrize(
    ("release", "error"), [("3.9", Error.INVALID_PRODUCER_ID_MAPPING), ("4.4", Error.INVALID_PRODUCER_EPOCH)]
)
def test_3_9_asks_the_coordinator_of_a_fenced_producer_too(release: str, error: Error) -> None:
    client = Client(release)
    marker = WritableTxnMarker(
        producer_id=client.producer_id,
        producer_epoch=1,
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),),
        coordinator_epoch=0,
    )
    client.ask(WriteTxnMarkersRequest(markers=(marker,)), 1)
    assert client.produce("another", 0) == error


def test_a_marker_without_a_producer_fails_the_request_and_is_not_written() -> None:
    client = Client("4.4")

    def marker(producer_id: int, *partitions: int) -> WritableTxnMarker:
        topics = (WritableTxnMarkerTopic(name="t", partition_indexes=partitions),) if partitions else ()
        return WritableTxnMarker(producer_id=producer_id, producer_epoch=0, topics=topics)

    answer = client.ask(WriteTxnMarkersRequest(markers=(marker(client.producer_id), marker(-1, 0, 9))), 1)
    found = {
        row.producer_id: [each.error_code for topic in row.topics for each in topic.partitions]
        for row in answer.markers
    }
    assert found == {client.producer_id: [], -1: [Error.UNKNOWN_SERVER_ERROR] * 2}


@pytest.mark.parametrize(("absent", "error"), [(b"", Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), (None, None)])
def test_a_refused_request_with_a_partition_without_records_is_never_answered(
    absent: bytes | None, error: Error | None
) -> None:
    client = Client("4.4")
    batch = write_batch([Record(timestamp=0, value=b"v")], producer_id=7, producer_epoch=0, is_transactional=True)
    known = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch),))
    unknown = TopicProduceData(name="nosuch", partition_data=(PartitionProduceData(index=0, records=absent),))
    answer = client.ask(ProduceRequest(transactional_id=None, acks=-1, topic_data=(known, unknown)), 8)
    found = None if answer is None else answer.responses[0].partition_responses[0].error_code
    assert found == error
