"""Messages of topics, records and administration equal bytes written by hand from the tables of the protocol."""

from typing import Any

import pytest
from builders.worked_bytes import TOPIC_ID, UUID_HEX, case

from koordinator.wire.codec import decode, encode
from koordinator.wire.frames import read_request_header
from koordinator.wire.messages import (
    api_versions,
    create_topics,
    delete_topics,
    describe_topic_partitions,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)

CASES = [
    # ApiVersions: the response has tagged fields, sent only with a value
    case(
        "api_versions_request_v3",
        3,
        api_versions.ApiVersionsRequest(client_software_name="t", client_software_version="1"),
        "0274 0231 00",
    ),
    case("api_versions_request_v0", 0, api_versions.ApiVersionsRequest(), ""),
    case(
        "api_versions_response_v0_to_an_unknown_version",
        0,
        api_versions.ApiVersionsResponse(error_code=35, api_keys=(api_versions.ApiVersion(api_key=18, max_version=4),)),
        "0023 00000001 0012 0000 0004",
    ),
    case(
        "api_versions_response_v3_with_tags",
        3,
        api_versions.ApiVersionsResponse(
            api_keys=(api_versions.ApiVersion(api_key=18, max_version=4),),
            supported_features=(api_versions.SupportedFeatureKey(name="f", min_version=1, max_version=2),),
            finalized_features_epoch=5,
        ),
        "0000 02 0012 0000 0004 00 00000000"
        "02 00 08 02 0266 0001 0002 00"  # two tags; tag 0 of 8 bytes: one feature
        "01 08 0000000000000005",  # tag 1 of 8 bytes
    ),
    # null topics, and an empty list
    case("metadata_request_v0_no_topics", 0, metadata.MetadataRequest(), "00000000"),
    case("metadata_request_v1_all", 1, metadata.MetadataRequest(topics=None), "ffffffff"),
    case("metadata_request_v9_all", 9, metadata.MetadataRequest(topics=None), "00 01 00 00 00"),
    case(
        "metadata_request_v12_by_id",
        12,
        metadata.MetadataRequest(
            topics=(metadata.MetadataRequestTopic(topic_id=TOPIC_ID, name=None),),
            allow_auto_topic_creation=False,
        ),
        f"02 {UUID_HEX} 00 00 00 00 00",
    ),
    case(
        "metadata_response_v13",
        13,
        metadata.MetadataResponse(
            brokers=(metadata.MetadataResponseBroker(node_id=1, host="h", port=9092),),
            cluster_id="c",
            controller_id=1,
            topics=(
                metadata.MetadataResponseTopic(
                    name="t",
                    topic_id=TOPIC_ID,
                    partitions=(metadata.MetadataResponsePartition(leader_id=1, replica_nodes=(1,), isr_nodes=(1,)),),
                ),
            ),
            error_code=3,
        ),
        "00000000 02 00000001 0268 00002384 00 00 0263 00000001"
        f"02 0000 0274 {UUID_HEX} 00"
        "02 0000 00000000 00000001 ffffffff 02 00000001 02 00000001 01 00"
        "80000000 00"
        "0003 00",
    ),
    # The data plane
    case(
        "produce_request_v9",
        9,
        produce.ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=(
                produce.TopicProduceData(
                    name="t", partition_data=(produce.PartitionProduceData(index=1, records=b"\1\2\3"),)
                ),
            ),
        ),
        "00 ffff 000003e8 02 0274 02 00000001 04 010203 00 00 00",
    ),
    case(
        "produce_response_v10_with_the_leader",
        10,
        produce.ProduceResponse(
            responses=(
                produce.TopicProduceResponse(
                    name="t",
                    partition_responses=(
                        produce.PartitionProduceResponse(
                            error_code=6,
                            base_offset=-1,
                            current_leader=produce.LeaderIdAndEpoch(leader_id=2, leader_epoch=7),
                        ),
                    ),
                ),
            ),
            node_endpoints=(produce.NodeEndpoint(node_id=2, host="h", port=9092),),
        ),
        "02 0274 02 00000000 0006 ffffffffffffffff ffffffffffffffff ffffffffffffffff 01 00"
        "01 00 09 00000002 00000007 00"  # tag 0 of 9 bytes: a leader, which ends in tags of its own
        "00 00000000"
        "01 00 0d 02 00000002 0268 00002384 00 00",
    ),
    case(
        "fetch_request_v17",
        17,
        fetch.FetchRequest(
            cluster_id="c",
            replica_state=fetch.ReplicaState(replica_id=3, replica_epoch=4),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=0x100000,
            topics=(
                fetch.FetchTopic(
                    topic_id=TOPIC_ID,
                    partitions=(
                        fetch.FetchPartition(
                            fetch_offset=10, partition_max_bytes=0x1000, replica_directory_id=TOPIC_ID
                        ),
                    ),
                ),
            ),
        ),
        "000001f4 00000001 00100000 00 00000000 ffffffff"
        f"02 {UUID_HEX} 02 00000000 ffffffff 000000000000000a ffffffff ffffffffffffffff 00001000"
        f"01 00 10 {UUID_HEX} 00"
        "01 01"
        "02 00 02 0263 01 0d 00000003 0000000000000004 00",
    ),
    case(
        "fetch_response_v4_with_null_records",
        4,
        fetch.FetchResponse(
            responses=(
                fetch.FetchableTopicResponse(
                    topic="t",
                    partitions=(fetch.PartitionData(high_watermark=5, aborted_transactions=None),),
                ),
            )
        ),
        "00000000 00000001 000174 00000001 00000000 0000 0000000000000005 ffffffffffffffff ffffffff ffffffff",
    ),
    case(
        "list_offsets_response_v0",
        0,
        list_offsets.ListOffsetsResponse(
            topics=(
                list_offsets.ListOffsetsTopicResponse(
                    name="t",
                    partitions=(list_offsets.ListOffsetsPartitionResponse(old_style_offsets=(7, 0)),),
                ),
            )
        ),
        "00000001 000174 00000001 00000000 0000 00000002 0000000000000007 0000000000000000",
    ),
    case(
        "list_offsets_response_v1",
        1,
        list_offsets.ListOffsetsResponse(
            topics=(
                list_offsets.ListOffsetsTopicResponse(
                    name="t", partitions=(list_offsets.ListOffsetsPartitionResponse(offset=7),)
                ),
            )
        ),
        "00000001 000174 00000001 00000000 0000 ffffffffffffffff 0000000000000007",
    ),
    case(
        "init_producer_id_request_v0",
        0,
        init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
        "ffff 0000ea60",
    ),
    # Administration
    case(
        "create_topics_response_v5_with_null_configs",
        5,
        create_topics.CreateTopicsResponse(
            topics=(
                create_topics.CreatableTopicResult(
                    name="t", error_message=None, topic_config_error_code=29, configs=None
                ),
            )
        ),
        "00000000 02 0274 0000 00 ffffffff ffff 00 01 00 02 001d 00",
    ),
    case(
        "delete_topics_request_v5",
        5,
        delete_topics.DeleteTopicsRequest(topic_names=("t",), timeout_ms=1000),
        "02 0274 000003e8 00",
    ),
    case(
        "delete_topics_request_v6_by_id",
        6,
        delete_topics.DeleteTopicsRequest(topics=(delete_topics.DeleteTopicState(topic_id=TOPIC_ID),), timeout_ms=1000),
        f"02 00 {UUID_HEX} 00 000003e8 00",
    ),
    case(
        "describe_topic_partitions_request_v0_without_a_cursor",
        0,
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=(describe_topic_partitions.TopicRequest(name="t"),)
        ),
        "02 0274 00 000007d0 ff 00",
    ),
    case(
        "describe_topic_partitions_response_v0_with_a_cursor",
        0,
        describe_topic_partitions.DescribeTopicPartitionsResponse(
            next_cursor=describe_topic_partitions.Cursor(topic_name="t", partition_index=3)
        ),
        "00000000 01 01 0274 00000003 00 00",
    ),
]


@pytest.mark.parametrize(("message", "version", "data"), CASES)
def test_a_message_is_written_as_counted_out_by_hand(message: Any, version: int, data: bytes) -> None:
    assert encode(message, version).hex(" ") == data.hex(" ")


@pytest.mark.parametrize(("message", "version", "data"), CASES)
def test_a_message_counted_out_by_hand_is_read(message: Any, version: int, data: bytes) -> None:
    assert decode(type(message), version, data, exact=True) == message


def test_a_whole_api_versions_request_of_version_3() -> None:
    data = bytes.fromhex("00000011  0012 0003 00000001 0001 74 00   02 74 02 31 00")
    assert len(data) == 4 + 0x11
    header, body = read_request_header(data[4:])
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (18, 3, 1, "t")
    request = decode(api_versions.ApiVersionsRequest, 3, data[4 + body :], exact=True)
    assert (request.client_software_name, request.client_software_version) == ("t", "1")
