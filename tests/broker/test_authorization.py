"""What clients may do with an authorizer: the decisions, and what becomes of requests and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from brokers.guarded_wire import EVERYONE, THE_CLUSTER, G, GuardedWire, T, right
from builders.acl_requests import (
    ALL,
    DENY,
    GROUP,
    LITERAL,
    OPERATIONS,
    PREFIXED,
    RECORDS,
    TOPIC,
    TRANSACTION,
    creation,
    deletion,
    request,
    requests,
)
from clients.frame_clients import Wire

from koordinator.emulator.broker.authorization.table import GUARDS
from koordinator.emulator.core.data.metadata_changes import AclSet
from koordinator.emulator.storage.metadata_journal import changes_of, line_of
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.emulator.core.data.metadata_changes import Change
    from koordinator.wire.messages.create_acls import AclCreation

READ, WRITE, DESCRIBE = OPERATIONS["Read"], OPERATIONS["Write"], OPERATIONS["Describe"]

REFUSALS = {
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.CLUSTER_AUTHORIZATION_FAILED,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


@pytest.fixture
def wire() -> GuardedWire:
    return GuardedWire()


def errors(message: Any) -> Iterator[Error]:
    for name, spec in fields_of(type(message)).items():
        value = getattr(message, name)
        if name in ("error_code", "partition_error_code"):
            yield Error(value)
        elif spec.is_array and isinstance(spec.type, type):
            for row in value or ():
                yield from errors(row)


def texts(message: Any) -> Iterator[tuple[int, str | None]]:
    """Yield the errors of a message with their texts."""
    for name, spec in fields_of(type(message)).items():
        if name == "error_code" and message.error_code:
            yield message.error_code, message.error_message
        elif spec.is_array and isinstance(spec.type, type):
            for row in getattr(message, name) or ():
                yield from texts(row)


# -- decisions -----------------------------------------------------------------------------------------------


def test_without_an_authorizer_everything_is_allowed_and_acls_are_refused() -> None:
    wire = Wire()
    peer = wire.connect()
    asked = request(ApiKey.HEARTBEAT, group_id="g", generation_id=1, member_id="m")
    assert wire.ask(peer, asked, 4).error_code == Error.UNKNOWN_MEMBER_ID
    assert [row.error_code for row in wire.ask(peer, creation([right(T)]), 3).results] == [Error.SECURITY_DISABLED]


def test_nothing_is_allowed_without_an_acl(wire: GuardedWire) -> None:
    assert wire.heartbeat(wire.connect()) is Error.GROUP_AUTHORIZATION_FAILED


def test_super_users_may_do_everything_even_what_is_denied() -> None:
    wire = GuardedWire(super_users=f"User:admin;{EVERYONE}")
    wire.allow(right(G, READ, DENY))
    assert wire.heartbeat(wire.connect()) is Error.UNKNOWN_MEMBER_ID


def test_the_cluster_itself_and_puppets_may_do_everything(wire: GuardedWire) -> None:
    assert wire.heartbeat(wire.admin) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([right(G, READ)], "g"),
        ([right(G)], "g"),
        ([right((GROUP, "g", PREFIXED), READ)], "g gg"),
        ([right((GROUP, "*", LITERAL), READ)], "g gg h"),
        ([right((GROUP, "*", PREFIXED), READ)], ""),
        ([right(G, READ, principal="User:*")], "g"),
        ([right(G, READ, principal="user:ANONYMOUS")], ""),
        ([right(G, READ, host="127.0.0.1")], "g"),
        ([right(G, READ, host="10.0.0.1")], ""),
        ([right((TOPIC, "g", LITERAL), READ)], ""),
        ([right(G, DESCRIBE)], ""),
        ([right((GROUP, "*", LITERAL), READ), right(G, READ, DENY)], "gg h"),
        ([right((GROUP, "*", LITERAL), READ), right((GROUP, "g", PREFIXED), ALL, DENY)], "h"),
        ([right(G, READ), right((GROUP, "*", LITERAL), READ, DENY)], ""),
        ([right(G, READ), right(G, DESCRIBE, DENY)], "g"),
        ([right(G, READ), right(G, READ, DENY, principal="User:bob")], "g"),
    ],
)
def test_a_right_is_for_a_principal_a_host_an_operation_and_the_resources_of_a_pattern(
    wire: GuardedWire, acls: list[AclCreation], allowed: str
) -> None:
    wire.allow(*acls)
    peer = wire.connect()
    found = [group for group in ("g", "gg", "h") if wire.heartbeat(peer, group) is Error.UNKNOWN_MEMBER_ID]
    assert " ".join(found) == allowed


@pytest.mark.parametrize(
    ("operation", "implies"), [(READ, True), (WRITE, True), (6, True), (7, True), (5, False), (10, False)]
)
def test_some_operations_imply_describe(wire: GuardedWire, operation: int, *, implies: bool) -> None:
    wire.allow(right(G, operation))
    (row,) = wire.ask(wire.connect(), request(ApiKey.DESCRIBE_GROUPS, groups=["g"]), 5).groups
    assert (row.error_code != Error.GROUP_AUTHORIZATION_FAILED) is implies


def test_what_no_acl_names_is_everybodys_if_a_setting_says_so() -> None:
    wire = GuardedWire(allow_everyone_if_no_acl_found=True)
    wire.allow(right(G, READ, principal="User:bob"))
    peer = wire.connect()
    assert wire.heartbeat(peer) is Error.GROUP_AUTHORIZATION_FAILED
    assert wire.heartbeat(peer, "h") is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([right(THE_CLUSTER, 12)], True),
        ([right((TOPIC, "q", PREFIXED), WRITE)], True),
        ([right((TOPIC, "q", LITERAL), WRITE), right((TOPIC, "q", LITERAL), WRITE, DENY)], False),
        ([right((TOPIC, "qq", PREFIXED), WRITE), right((TOPIC, "q", PREFIXED), ALL, DENY)], False),
        ([right((TOPIC, "q", LITERAL), WRITE), right((TOPIC, "*", LITERAL), WRITE, DENY)], False),
        ([right((TOPIC, "q", LITERAL), READ)], False),
    ],
)
def test_an_idempotent_producer_may_write_some_topic(
    wire: GuardedWire, acls: list[AclCreation], *, allowed: bool
) -> None:
    wire.allow(*acls)
    asked = request(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=1_000)
    error = wire.ask(wire.connect(), asked, 4).error_code
    assert error == (Error.NONE if allowed else Error.CLUSTER_AUTHORIZATION_FAILED)


def test_a_right_that_is_taken_away_is_missed_by_the_next_request(wire: GuardedWire) -> None:
    wire.allow(right(G, READ))
    peer = wire.connect()
    assert wire.heartbeat(peer) is Error.UNKNOWN_MEMBER_ID
    assert len(wire.ask(wire.admin, deletion(), 3).filter_results[0].matching_acls) == 1
    assert wire.heartbeat(peer) is Error.GROUP_AUTHORIZATION_FAILED


# -- requests ------------------------------------------------------------------------------------------------


def test_a_prefix_that_is_taken_away_fits_no_more_and_the_others_do(wire: GuardedWire) -> None:
    wire.allow(
        right((GROUP, "gr", PREFIXED), READ), right((GROUP, "gr", PREFIXED), WRITE), right((GROUP, "h", PREFIXED))
    )
    peer = wire.connect()
    clients = wire.node.cluster.clients
    for each in [given for given in clients.acls if given.operation == READ]:
        clients.apply(AclSet(each, exists=False))
        clients.apply(AclSet(each, exists=False))
    assert wire.heartbeat(peer, "group") is Error.GROUP_AUTHORIZATION_FAILED
    assert wire.heartbeat(peer, "h" * 30_000) is Error.UNKNOWN_MEMBER_ID
    asked = request(ApiKey.DESCRIBE_GROUPS, groups=["group"])
    assert wire.ask(peer, asked, 4).groups[0].error_code == Error.NONE, "Write is there, and implies Describe"


def test_whoever_may_do_nothing_learns_nothing(wire: GuardedWire) -> None:
    ids = {name: wire.node.cluster.topics[name].topic_id for name in ("t", "u")}
    for name, asked, version in requests(ids):
        peer = wire.connect()
        answer = wire.ask(peer, asked, version)
        if peer.closed and "not served" in peer.closed:
            continue
        assert answer is not None, name
        found = set(errors(answer)) - {Error.NONE}
        # some requests are refused for their shape, whoever asks
        assert found <= REFUSALS | {Error.INCONSISTENT_GROUP_PROTOCOL, Error.INVALID_REQUEST}, (name, found)
        assert ids["t"].hex not in repr(answer), name


def test_a_request_is_served_without_the_rows_that_are_denied(wire: GuardedWire) -> None:
    wire.allow(right(T, WRITE))
    rows = [{"name": each, "partition_data": [{"index": 0, "records": RECORDS}]} for each in ("u", "t")]
    asked = request(ApiKey.PRODUCE, acks=1, timeout_ms=1_000, topic_data=rows)
    answer = wire.ask(wire.connect(), asked, 9)
    found = {each.name: each.partition_responses[0].error_code for each in answer.responses}
    assert found == {"t": Error.NONE, "u": Error.TOPIC_AUTHORIZATION_FAILED}
    logs = {name: wire.node.cluster.topics[name].logs[0].end for name in ("t", "u")}
    assert logs == {"t": 1, "u": 0}


@pytest.mark.parametrize("allowed", [False, True], ids=["nothing is allowed", "one of two topics is"])
def test_a_producer_without_acks_is_told_by_the_end_of_its_connection(wire: GuardedWire, *, allowed: bool) -> None:
    if allowed:
        wire.allow(right(T, WRITE))
    rows = [{"name": each, "partition_data": [{"index": 0, "records": RECORDS}]} for each in ("t", "u")]
    peer = wire.connect()
    asked = request(ApiKey.PRODUCE, acks=0, timeout_ms=1_000, topic_data=rows)
    wire.send(peer, wire.request(peer, asked, 9))
    assert peer.closed == "a Produce with acks 0 failed: TOPIC_AUTHORIZATION_FAILED on partition 0"
    assert not peer.bytes
    assert wire.node.cluster.topics["t"].logs[0].end == int(allowed)


def test_a_fetch_session_keeps_a_partition_that_is_denied(wire: GuardedWire) -> None:
    wire.allow(right(T, READ))
    peer = wire.connect()
    wanted = [
        {"topic": each, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}]}
        for each in ("t", "u")
    ]
    fetch = {"max_wait_ms": 0, "max_bytes": 1_000, "min_bytes": 0}
    first = wire.ask(peer, request(ApiKey.FETCH, **fetch, session_epoch=0, topics=wanted), 12)
    found = {each.topic: each.partitions[0].error_code for each in first.responses}
    assert found == {"t": Error.NONE, "u": Error.TOPIC_AUTHORIZATION_FAILED}
    wire.allow(right((TOPIC, "u", LITERAL), READ))
    again = request(ApiKey.FETCH, **fetch, session_id=first.session_id, session_epoch=1)
    assert [(each.topic, each.partitions[0].error_code) for each in wire.ask(peer, again, 12).responses] == [
        ("u", Error.NONE)
    ]


def test_all_topics_are_those_that_a_client_may_describe(wire: GuardedWire) -> None:
    wire.allow(right(T, DESCRIBE))
    peer = wire.connect()
    assert [row.name for row in wire.ask(peer, request(ApiKey.METADATA, topics=None), 12).topics] == ["t"]
    asked = request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, response_partition_limit=10)
    assert [row.name for row in wire.ask(peer, asked, 0).topics] == ["t"]


def test_a_topic_is_not_created_for_a_client_that_may_not_create_it(wire: GuardedWire) -> None:
    wire.allow(right((TOPIC, "new", PREFIXED), DESCRIBE))
    peer = wire.connect()
    asked = request(ApiKey.METADATA, topics=[{"name": "new1"}], allow_auto_topic_creation=True)
    assert wire.ask(peer, asked, 9).topics[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert "new1" not in wire.node.cluster.topics
    wire.allow(right((TOPIC, "new", PREFIXED), 5))
    wire.ask(peer, asked, 9)
    assert "new1" in wire.node.cluster.topics


def test_the_operations_are_those_that_are_allowed(wire: GuardedWire) -> None:
    wire.allow(right(G, READ), right(T, WRITE), right(THE_CLUSTER, 5))
    peer = wire.connect()
    asked = request(ApiKey.DESCRIBE_GROUPS, groups=["g"], include_authorized_operations=True)
    assert wire.ask(peer, asked, 5).groups[0].authorized_operations == 1 << READ | 1 << DESCRIBE
    asked = request(
        ApiKey.METADATA,
        topics=[{"name": "t"}],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = wire.ask(peer, asked, 9)
    assert answer.topics[0].topic_authorized_operations == 1 << WRITE | 1 << DESCRIBE
    assert answer.cluster_authorized_operations == 0, "it may not describe the cluster"


def test_a_refusal_is_logged_once_for_each_host_with_what_is_missing(wire: GuardedWire) -> None:
    peer = wire.connect()
    for _ in range(3):
        wire.heartbeat(peer)
    assert wire.logged == ["client 'c' (/127.0.0.1): User:ANONYMOUS may not READ GROUP 'g' (Heartbeat)"]


def test_a_request_with_many_denied_rows_is_one_line_of_the_log(wire: GuardedWire) -> None:
    asked = request(ApiKey.METADATA, topics=[{"name": f"t{each}"} for each in range(500)])
    wire.ask(wire.connect(), asked, 9)
    assert wire.logged == [
        "client 'c' (/127.0.0.1): User:ANONYMOUS may not DESCRIBE TOPIC 't0' and 499 more (Metadata)"
    ]


def test_the_oldest_version_of_list_offsets_needs_the_right_too() -> None:
    wire = GuardedWire(kafka_version="3.9")
    asked = request(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": "t", "partitions": [{"timestamp": -1}]}])
    (topic,) = wire.ask(wire.connect(), asked, 0).topics
    assert [row.error_code for row in topic.partitions] == [Error.TOPIC_AUTHORIZATION_FAILED]


SHARE_REFUSALS: dict[str, tuple[ApiKey, int, dict[str, Any], list[AclCreation], list[tuple[int, str | None]]]] = {
    "a heartbeat reads its group": (
        *(ApiKey.SHARE_GROUP_HEARTBEAT, 1, {"group_id": "g", "member_id": "m", "member_epoch": 5}, []),
        [(30, None)],
    ),
    "and describes the topics that it names": (
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        {"group_id": "g", "member_id": "m", "member_epoch": 5, "subscribed_topic_names": ["t", "u"]},
        [right(G, READ), right(T, DESCRIBE)],
        [(29, None)],
    ),
    "a fetch reads its group": (
        *(ApiKey.SHARE_FETCH, 2, {"group_id": "g", "member_id": "m", "share_session_epoch": 0}, []),
        [(30, None)],
    ),
    "an alteration reads its group": (
        *(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": "g"}, []),
        [(30, "Group authorization failed.")],
    ),
    "and its topics": (
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        {"group_id": "g", "topics": [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}]},
        [right(G, READ)],
        [(29, "Topic authorization failed.")],
    ),
    "a deletion needs the right to delete the group": (
        *(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": "g"}, [right(G, READ)]),
        [(30, "Group authorization failed.")],
    ),
    "an error of the group comes before those of topics": (
        *(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": "g", "topics": [{"topic_name": "t"}]}),
        [right(G, OPERATIONS["Delete"])],
        [(69, "Group g not found.")],
    ),
    "offsets of topics are described": (
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        {"groups": [{"group_id": "g", "topics": [{"topic_name": "t", "partitions": [0]}]}, {"group_id": "h"}]},
        [right(G, DESCRIBE)],
        [(29, "Topic authorization failed."), (30, None)],
    ),
    "a share coordinator is for brokers": (
        *(ApiKey.FIND_COORDINATOR, 6, {"key_type": 2, "coordinator_keys": ["odd"]}, [right(G)]),
        [(31, "Cluster authorization failed.")],
    ),
    "which use version 6": (
        *(ApiKey.FIND_COORDINATOR, 5, {"key_type": 2, "coordinator_keys": ["odd"]}, []),
        [(42, "")],
    ),
}


@pytest.mark.parametrize("which", SHARE_REFUSALS)
def test_a_request_of_share_groups_needs_its_rights(wire: GuardedWire, which: str) -> None:
    key, version, fields, acls, refusals = SHARE_REFUSALS[which]
    wire.allow(*acls)
    assert list(texts(wire.ask(wire.connect(), request(key, **fields), version))) == refusals


@pytest.mark.parametrize("key", [key for key in ApiKey if 83 <= key <= 87])
def test_the_state_of_share_groups_is_for_brokers(wire: GuardedWire, key: ApiKey) -> None:
    rows = [{"topic_id": wire.node.cluster.topics["t"].topic_id, "partitions": [{"partition": 0}]}]
    asked = request(key, group_id="g", topics=rows)
    assert list(texts(wire.ask(wire.connect(), asked, 0))) == [(31, "Cluster authorization failed.")]
    wire.allow(right(THE_CLUSTER, OPERATIONS["ClusterAction"]))
    assert Error.CLUSTER_AUTHORIZATION_FAILED not in set(errors(wire.ask(wire.connect(), asked, 0)))


def test_share_fetches_and_acknowledgements_read_each_topic(wire: GuardedWire) -> None:
    wire.allow(right(G, READ), right(T, READ))
    peer = wire.connect()
    acknowledged = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
    row = {"partition_index": 0}
    topics = [{"topic_id": wire.node.cluster.topics[name].topic_id} for name in ("t", "u")]
    session = {"group_id": "g", "member_id": "m"}
    opening = {**session, "share_session_epoch": 0, "topics": [{**each, "partitions": [row]} for each in topics]}
    rows = wire.ask(peer, request(ApiKey.SHARE_FETCH, **opening), 2).responses
    denied = [each.partitions[0].error_code for each in rows if each.topic_id == topics[1]["topic_id"]]
    assert denied == [Error.TOPIC_AUTHORIZATION_FAILED]
    last = {"topics": [{**each, "partitions": [{**row, "acknowledgement_batches": acknowledged}]} for each in topics]}
    answer = wire.ask(peer, request(ApiKey.SHARE_ACKNOWLEDGE, **session, **last, share_session_epoch=1), 2)
    found = {each.topic_id: each.partitions[0].error_code for each in answer.responses}
    assert found[topics[1]["topic_id"]] == Error.TOPIC_AUTHORIZATION_FAILED
    assert found[topics[0]["topic_id"]] == Error.UNKNOWN_TOPIC_OR_PARTITION, "nothing was fetched"


def test_every_api_that_is_served_has_a_guard_or_a_reason(wire: GuardedWire) -> None:
    free = {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        # its sessions check each topic
        ApiKey.FETCH,
        # owners and renewers alone may change a token
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
    assert wire.node.handlers.keys() - GUARDS.keys() == free - {ApiKey.API_VERSIONS}


def test_acls_outlive_the_cluster_in_its_journal(wire: GuardedWire) -> None:
    wire.allow(right(G, READ), right((TRANSACTION, "x", PREFIXED), WRITE, DENY))
    clients = wire.node.cluster.clients
    changes: list[Change] = [each for each in clients.changes() if isinstance(each, AclSet)]
    assert changes_of(line_of(*changes)) == changes
