"""DescribeAcls, CreateAcls and DeleteAcls: which ACLs are created, and which a filter finds."""

from __future__ import annotations

from typing import Any

import pytest
from brokers.guarded_wire import THE_CLUSTER, G, GuardedWire, T, right
from builders.acl_requests import (
    ALL,
    ALLOW,
    ANY,
    CLUSTER,
    DENY,
    EVERY_ACL,
    GROUP,
    LITERAL,
    MATCH,
    OPERATIONS,
    PREFIXED,
    TOPIC,
    acl,
    creation,
)

from koordinator.emulator.core.acls.acl import Acl
from koordinator.emulator.core.data.metadata_changes import AclSet
from koordinator.emulator.core.refusal import Refusal, RefusedError
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

READ, WRITE = OPERATIONS["Read"], OPERATIONS["Write"]

Pattern = tuple[int, str, int]


@pytest.fixture
def wire() -> GuardedWire:
    return GuardedWire()


def created(wire: GuardedWire, *acls: Any) -> list[tuple[int, str | None]]:
    """Create ACLs; return errors and texts."""
    return [(row.error_code, row.error_message) for row in wire.ask(wire.admin, creation(acls), 3).results]


def described(wire: GuardedWire, **fields: Any) -> dict[Pattern, set[tuple[str, str, int, int]]]:
    """Return the ACLs that a filter finds by pattern: principal, host, operation, permission."""
    answer = wire.set_up(3, ApiKey.DESCRIBE_ACLS, **(EVERY_ACL | fields))
    assert (answer.error_code, answer.error_message) == (Error.NONE, "")
    return {
        (row.resource_type, row.resource_name, row.pattern_type): {
            (each.principal, each.host, each.operation, each.permission_type) for each in row.acls
        }
        for row in answer.resources
    }


def deleted(wire: GuardedWire, *filters: dict[str, Any]) -> list[list[Pattern]]:
    """Delete ACLs; return the patterns of those that each filter names."""
    answer = wire.set_up(3, ApiKey.DELETE_ACLS, filters=[EVERY_ACL | each for each in filters])
    assert [(row.error_code, row.error_message) for row in answer.filter_results] == [(Error.NONE, None)] * len(filters)
    return [
        [(each.resource_type, each.resource_name, each.pattern_type) for each in row.matching_acls]
        for row in answer.filter_results
    ]


# -- creation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (acl((CLUSTER, "foo", LITERAL)), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (acl((TOPIC, "", LITERAL)), "Invalid empty resource name"),
        (acl(T, operation=99), "Invalid operation UNKNOWN"),
        (acl((99, "t", LITERAL)), "Invalid resourceType UNKNOWN"),
        (acl((TOPIC, "t", 99)), "Invalid patternType UNKNOWN"),
        (acl(T, permission=99), "Invalid permissionType UNKNOWN"),
        (
            acl(T, principal="alice"),
            (
                "Could not parse principal from `alice` (no colon is present separating the principal type from the"
                " principal name)"
            ),
        ),
    ],
)
def test_an_invalid_acl_is_refused_and_does_not_hinder_the_others(wire: GuardedWire, given: Any, text: str) -> None:
    assert created(wire, acl(T), given, acl(G)) == [(Error.NONE, ""), (Error.INVALID_REQUEST, text), (Error.NONE, "")]
    assert set(described(wire)) == {T, G}


@pytest.mark.parametrize(
    "given",
    [
        acl((ANY, "t", LITERAL)),
        acl((TOPIC, "t", ANY)),
        acl((TOPIC, "t", MATCH)),
        acl(T, operation=ANY),
        acl(T, permission=ANY),
    ],
)
def test_what_only_a_filter_may_say_fails_the_whole_creation(wire: GuardedWire, given: Any) -> None:
    assert created(wire, acl(T), given) == [(Error.UNKNOWN_SERVER_ERROR, None)] * 2
    assert described(wire) == {}


@pytest.mark.parametrize(
    "given",
    [
        acl(THE_CLUSTER),
        acl((TOPIC, "a b!", LITERAL)),
        acl(T, host="not a host"),
        acl(T, OPERATIONS["ClusterAction"]),
        acl(T, principal="Robot:x"),
        acl(T, principal=":x"),
    ],
)
def test_names_hosts_and_operations_are_not_validated(wire: GuardedWire, given: Any) -> None:
    assert created(wire, given) == [(Error.NONE, "")]
    assert len(described(wire)) == 1


def test_an_acl_is_stored_once(wire: GuardedWire) -> None:
    assert created(wire, acl(T), acl(T)) == created(wire, acl(T), acl(T)) == [(Error.NONE, "")] * 2
    assert deleted(wire, {}) == [[T]]


@pytest.mark.parametrize("key", [ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS])
def test_a_change_that_the_disk_refuses_is_refused_in_each_row(
    wire: GuardedWire, monkeypatch: pytest.MonkeyPatch, key: ApiKey
) -> None:
    created(wire, acl(T))

    def refuse(*_: object) -> None:
        raise RefusedError(Refusal(Error.KAFKA_STORAGE_ERROR, "the disk is full"))

    monkeypatch.setattr(wire.node.cluster.storage, "propose", refuse)
    if key is ApiKey.CREATE_ACLS:
        rows = wire.ask(wire.admin, creation([acl(G), acl((TOPIC, "", LITERAL))]), 3).results
        refused, invalid = [(row.error_code, row.error_message) for row in rows]
        assert invalid == (Error.INVALID_REQUEST, "Invalid empty resource name")
    else:
        (row,) = wire.set_up(3, key, filters=[EVERY_ACL]).filter_results
        refused = (row.error_code, row.error_message)
    assert refused == (Error.KAFKA_STORAGE_ERROR, "the disk is full")
    assert set(described(wire)) == {T}


# -- filters -------------------------------------------------------------------------------------------------

PATTERNS: list[Pattern] = [
    (TOPIC, "orders", LITERAL),
    (TOPIC, "ord", PREFIXED),
    (TOPIC, "orders", PREFIXED),
    (TOPIC, "ordinary", PREFIXED),
    (TOPIC, "other", LITERAL),
    (TOPIC, "*", LITERAL),
    (GROUP, "orders", LITERAL),
]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (LITERAL, [(TOPIC, "orders", LITERAL)]),
        (PREFIXED, [(TOPIC, "orders", PREFIXED)]),
        (ANY, [(TOPIC, "orders", LITERAL), (TOPIC, "orders", PREFIXED)]),
        (MATCH, [(TOPIC, "orders", LITERAL), (TOPIC, "ord", PREFIXED), (TOPIC, "orders", PREFIXED), PATTERNS[5]]),
    ],
)
def test_a_filter_finds_the_name_itself_and_match_all_that_applies_to_it(
    wire: GuardedWire, pattern: int, found: list[Pattern]
) -> None:
    created(wire, *map(acl, PATTERNS))
    sought = {"resource_type_filter": TOPIC, "resource_name_filter": "orders", "pattern_type_filter": pattern}
    assert set(described(wire, **sought)) == set(found)


def test_a_filter_of_any_name_finds_all_of_its_type(wire: GuardedWire) -> None:
    created(wire, *map(acl, PATTERNS))
    assert set(described(wire, resource_type_filter=GROUP)) == {PATTERNS[-1]}
    assert set(described(wire, pattern_type_filter=PREFIXED)) == set(PATTERNS[1:4])


@pytest.mark.parametrize(
    ("field", "value"), [("principal_filter", "User:bob"), ("host_filter", "10.0.0.1"), ("operation", WRITE)]
)
def test_an_entry_is_found_by_principal_host_and_operation(wire: GuardedWire, field: str, value: Any) -> None:
    common, sought = acl(T, READ), acl(T, WRITE, DENY, "User:bob", "10.0.0.1")
    created(wire, common, sought)
    assert described(wire, **{field: value}) == {T: {("User:bob", "10.0.0.1", WRITE, DENY)}}
    assert described(wire, permission_type=ALLOW) == {T: {("User:alice", "*", READ, ALLOW)}}


def test_the_acls_of_a_pattern_are_described_together(wire: GuardedWire) -> None:
    created(wire, acl(T, READ), acl(G), acl(T, WRITE))
    assert {pattern: len(rows) for pattern, rows in described(wire).items()} == {T: 2, G: 1}


def test_a_deletion_names_the_acls_of_each_filter_and_an_acl_of_two_in_both(wire: GuardedWire) -> None:
    created(wire, acl(T), acl(G))
    topics, nothing = {"resource_type_filter": TOPIC}, {"resource_name_filter": "nosuch"}
    assert deleted(wire, topics, {}, nothing) == [[T], [T, G], []]
    assert described(wire) == {}


def test_to_remove_an_acl_that_is_not_there_changes_nothing(wire: GuardedWire) -> None:
    created(wire, acl(T, READ), acl((TOPIC, "o", PREFIXED), READ))
    before = described(wire)
    for pattern in ((TOPIC, "u", LITERAL), (TOPIC, "x", PREFIXED), T):
        absent = Acl(*pattern, "User:bob", "*", ALL, ALLOW)
        wire.node.cluster.clients.apply(AclSet(absent, exists=False))
    assert described(wire) == before


# -- rights --------------------------------------------------------------------------------------------------


def test_acls_are_described_with_describe_and_changed_with_alter_of_the_cluster(wire: GuardedWire) -> None:
    text = "Request DescribeAcls needs DESCRIBE permission."
    answer = wire.asked(3, ApiKey.DESCRIBE_ACLS, **EVERY_ACL)
    assert (answer.error_code, answer.error_message) == (Error.CLUSTER_AUTHORIZATION_FAILED, text)
    wire.allow(right(THE_CLUSTER, OPERATIONS["Describe"]))
    assert len(wire.asked(3, ApiKey.DESCRIBE_ACLS, **EVERY_ACL).resources) == 1
    (row,) = wire.asked(3, ApiKey.DELETE_ACLS, filters=[EVERY_ACL]).filter_results
    assert (row.error_code, row.matching_acls) == (Error.CLUSTER_AUTHORIZATION_FAILED, ())
    wire.allow(right(THE_CLUSTER, OPERATIONS["Alter"]))
    (row,) = wire.asked(3, ApiKey.DELETE_ACLS, filters=[EVERY_ACL]).filter_results
    assert len(row.matching_acls) == 2


def test_without_an_authorizer_acls_are_neither_described_nor_deleted() -> None:
    disabled = (Error.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    bare = GuardedWire(authorizer_class_name="")
    answer = bare.asked(3, ApiKey.DESCRIBE_ACLS, **EVERY_ACL)
    assert (answer.error_code, answer.error_message, answer.resources) == (*disabled, ())
    (row,) = bare.asked(3, ApiKey.DELETE_ACLS, filters=[EVERY_ACL]).filter_results
    assert (row.error_code, row.error_message) == (Error.SECURITY_DISABLED, "No Authorizer is configured.")
    (row,) = bare.ask(bare.connect(), creation([acl(T)]), 3).results
    assert (row.error_code, row.error_message) == (Error.SECURITY_DISABLED, "No Authorizer is configured.")
