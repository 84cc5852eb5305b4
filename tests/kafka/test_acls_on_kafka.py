"""Kafka and the emulator allow and refuse alike: each API, for each operation allowed alone, and denied alone."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

import pytest
from brokers.kafka_releases import NEWEST, RELEASES
from brokers.secure_kafka import MECHANISMS, USERS, SecureKafka
from builders.acl_requests import (
    ALL,
    ANY,
    CLUSTER,
    DENY,
    EVERY_ACL,
    GROUP,
    LITERAL,
    MATCH,
    OPERATIONS,
    PREFIXED,
    RESOURCES,
    SHARE,
    SHARE_GROUPS,
    TOPIC,
    acl,
    creation,
    deletion,
    request,
    requests,
)
from builders.sasl_messages import plain
from clients.asking_client import AskingClient

from koordinator import Emulator
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.wire.apis import APIS, REQUEST_KEYS, ApiKey
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest
from koordinator.wire.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from brokers.kafka_releases import Release

    from koordinator.wire.messages.create_acls import AclCreation

LIMIT_S = 30.0

PATTERN_TRIES, PATTERN_S = 15, 0.2
"""How often, and after how many seconds, a member asks for the topics of its pattern."""

AUTHORIZER = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin;User:ANONYMOUS",
    "auto.create.topics.enable": "false",
}

LONG_SESSIONS = {
    "group.share.session.timeout.ms": "3600000",
    "group.share.max.session.timeout.ms": "3600000",
}

EVERYTHING = tuple(acl(resource) for resource in RESOURCES.values())
"""Everything with the named resources of each type."""

IDENTITIES = (
    *("key", "group_id", "transactional_id", "name", "topic", "topic_name", "resource_name", "user"),
    *("partition_index", "partition", "index"),
)
"""The fields that tell rows apart."""

SHOWN = ("error_code", "partition_error_code", "topic_config_error_code", "error_message", "authorized_operations")
SHOWN_TOO = (
    *("topic_authorized_operations", "cluster_authorized_operations", "coordinator", "state"),
    *("acknowledge_error_code", "acknowledge_error_message"),
)


class Side:
    """A cluster: its ACLs, topics and offsets are set on the plain listener, and alice asks on the other."""

    def __init__(self, plain_at: tuple[str, int], sasl_at: tuple[str, int], served: dict[int, range]) -> None:
        self.plain_at = plain_at
        self.admin = AskingClient(plain_at)
        self._sasl_at = sasl_at
        self._served = served
        self._turn = 0
        self.alice = self.logged_in()
        kept = [{"name": "retention.ms", "value": "-1"}]
        rows = [{"name": each, "num_partitions": 2, "replication_factor": 1, "configs": kept} for each in ("t", "u")]
        self.admin.ask(request(ApiKey.CREATE_TOPICS, topics=rows, timeout_ms=10_000), 5)
        self.ids = self._topic_ids()
        self._wait_for_coordinators()
        rows = [{"name": each, "partitions": [{"partition_index": 0, "committed_offset": 7}]} for each in ("t", "u")]
        for group in ("g", "h"):
            committed = self.admin.ask(request(ApiKey.OFFSET_COMMIT, group_id=group, topics=rows), 7)
            assert not any(row.error_code for topic in committed.topics for row in topic.partitions), committed

    def logged_in(self) -> AskingClient:
        client = AskingClient(self._sasl_at)
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=plain("alice", USERS["alice"])), 2)
        assert answer.error_code == 0, answer
        return client

    def set(self, acls: Sequence[AclCreation]) -> None:
        """Replace all ACLs, and wait until they are in effect."""
        self.admin.ask(deletion(), 2)
        if acls:
            answer = self.admin.ask(creation(acls), 2)
            assert not any(row.error_code for row in answer.results), answer
        self.settle()

    def settle(self) -> None:
        """Wait until all ACLs are in effect."""
        # a right of its own shows that the broker has replayed all changes before it
        self._turn += 1
        marker = acl((GROUP, f"marker{self._turn}", LITERAL), OPERATIONS["Describe"])
        self.admin.ask(creation([marker]), 2)
        asked = request(ApiKey.FIND_COORDINATOR, key_type=0, key=marker.resource_name)
        self._until(lambda: self.alice.ask(asked, 3).error_code != 30)

    def ask(self, asked: Any, version: int) -> Any:
        """Return the outline of alice's response; "closed" if the connection closes."""
        if not self.serves(asked, version):
            return None
        answer = self.alice.ask(asked, version)
        if answer is None:
            self.alice = self.logged_in()
            return "closed"
        return outline(answer)

    def serves(self, asked: Any, version: int) -> bool:
        # 3.9 knows keys of share groups, and has no coordinators for them
        if getattr(asked, "key_type", None) == SHARE and ApiKey.SHARE_GROUP_HEARTBEAT not in self._served:
            return False
        return version in self._served.get(REQUEST_KEYS[type(asked)], ())

    def _topic_ids(self) -> dict[str, Any]:
        names = [{"name": "t"}, {"name": "u"}]
        asked = request(ApiKey.METADATA, topics=names, allow_auto_topic_creation=False)
        self._until(lambda: all(not row.error_code for row in self.admin.ask(asked, 10).topics))
        return {row.name: row.topic_id for row in self.admin.ask(asked, 10).topics}

    def _wait_for_coordinators(self) -> None:
        for kind, key in ((0, "g"), (1, "x")):
            asked = request(ApiKey.FIND_COORDINATOR, key_type=kind, key=key)
            self._until(lambda asked=asked: self.admin.ask(asked, 3).error_code == 0)
        asked = request(ApiKey.OFFSET_FETCH, group_id="g", topics=None)
        self._until(lambda: self.admin.ask(asked, 5).error_code == 0)
        asked = request(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=1_000)
        self._until(lambda: self.admin.ask(asked, 4).error_code == 0)
        asked = request(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=["x"])
        self._until(lambda: self.admin.ask(asked, 0).transaction_states[0].error_code not in (14, 15))
        if ApiKey.SHARE_GROUP_HEARTBEAT in self._served:
            for group in SHARE_GROUPS:
                self._fill_share_group(group)

    def _fill_share_group(self, group: str) -> None:
        """Let a member have partitions of both topics; its session does not end in these tests."""
        epoch = 0

        def has_partitions() -> bool:
            nonlocal epoch
            heart = {"group_id": group, "member_id": "member", "member_epoch": epoch}
            asked = request(ApiKey.SHARE_GROUP_HEARTBEAT, **heart, subscribed_topic_names=["t", "u"])
            answer = self.admin.ask(asked, 1)
            assert answer.error_code in (0, 14, 15), answer
            epoch = answer.member_epoch
            return answer.assignment is not None and len(answer.assignment.topic_partitions) == 2

        self._until(has_partitions)

    @staticmethod
    def _until(condition: Any) -> None:
        end = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < end, "the cluster is not ready"
            time.sleep(0.02)


def outline(message: Any) -> Any:
    """Return what rights decide: errors, texts, operations, and which rows there are."""
    found: dict[str, Any] = {}
    for name, spec in fields_of(type(message)).items():
        value = getattr(message, name)
        if spec.is_array and isinstance(spec.type, type):
            rows = [outline(row) for row in value or ()]
            if rows and name not in ("brokers", "api_keys", "node_endpoints", "features", "supported_features"):
                found[name] = sorted(rows, key=repr)
        elif name in SHOWN or name in SHOWN_TOO or name in IDENTITIES:
            found[name] = _text(value) if name == "error_message" else value
    return found


def _text(value: str | None) -> str | None:
    """Return a text without the request that Kafka shows in it."""
    return "Request …" if value and value.startswith("Request ") else value


@pytest.fixture(scope="module", params=[NEWEST.name, "3.9-new"])
def compared_release(request: pytest.FixtureRequest) -> Release:
    return RELEASES[request.param]


@pytest.fixture(scope="module")
def sides(compared_release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    settings = AUTHORIZER | {
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,REAUTH:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": MECHANISMS,
    }
    sessions = LONG_SESSIONS if compared_release is NEWEST else {}
    with ExitStack() as stack:
        settings |= sessions
        broker = stack.enter_context(SecureKafka(tmp_path_factory.mktemp("kafka-acls-"), compared_release, settings))
        config = {**AUTHORIZER, "kafka.version": compared_release.line, "sasl.enabled.mechanisms": MECHANISMS}
        config |= {name: value for name, value in compared_release.settings.items() if name.startswith("group.")}
        config |= sessions
        ours = stack.enter_context(
            Emulator(security="sasl_plaintext", users=USERS, config=config, profile="kafka-defaults")
        )
        at = broker.address
        served = versions(at.host, at.port)
        plain_at, sasl_at = (address(ours.nodes[1].address(each)) for each in ("PLAINTEXT", "SASL_PLAINTEXT"))
        yield Side((at.host, at.port), ("127.0.0.1", broker.ports[0]), served), Side(plain_at, sasl_at, served)


def address(text: str) -> tuple[str, int]:
    host, port = text.split(":")
    return host, int(port)


def versions(host: str, port: int) -> dict[int, range]:
    with AskingClient((host, port)) as client:
        rows = client.ask(request(ApiKey.API_VERSIONS), 0).api_keys
    return {row.api_key: range(row.min_version, row.max_version + 1) for row in rows if row.api_key in APIS}


def differing(sides: tuple[Side, Side], acls: Sequence[AclCreation]) -> list[str]:
    """Return the requests that the two answer differently, with both outlines."""
    found = []
    for side in sides:
        side.set(acls)
    kafka, ours = sides
    for (name, asked, version), (_, same, _) in zip(requests(kafka.ids), requests(ours.ids), strict=True):
        theirs, own = kafka.ask(asked, version), ours.ask(same, version)
        if theirs != own:
            found.append(f"{name} v{version}\n  kafka: {theirs}\n  ours:  {own}")
    return found


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_is_allowed_alone(sides: tuple[Side, Side], resource: str, operation: str) -> None:
    found = differing(sides, [acl(RESOURCES[resource], OPERATIONS[operation])])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_is_denied_alone(sides: tuple[Side, Side], resource: str, operation: str) -> None:
    found = differing(sides, [*EVERYTHING, acl(RESOURCES[resource], OPERATIONS[operation], DENY)])
    assert not found, "\n".join(found)


def test_nothing_is_allowed(sides: tuple[Side, Side]) -> None:
    found = differing(sides, [])
    assert not found, "\n".join(found)


def test_everything_is_allowed(sides: tuple[Side, Side]) -> None:
    found = differing(sides, EVERYTHING)
    assert not found, "\n".join(found)


READ, GROUP_G = OPERATIONS["Read"], RESOURCES["Group"]

DECISIONS: dict[str, tuple[AclCreation, ...]] = {
    "of the principal": (acl((GROUP, "g", LITERAL), READ),),
    "of a prefix": (acl((GROUP, "g", PREFIXED), READ),),
    "a prefixed star is a character": (acl((GROUP, "*", PREFIXED), READ),),
    "of all groups": (acl((GROUP, "*", LITERAL), READ),),
    "denied everywhere": (acl((GROUP, "g", LITERAL), READ), acl((GROUP, "*", LITERAL), READ, DENY)),
    "denied by name": (acl((GROUP, "*", LITERAL), READ), acl((GROUP, "g", LITERAL), READ, DENY)),
    "denied by prefix": (acl((GROUP, "gg", LITERAL), READ), acl((GROUP, "g", PREFIXED), READ, DENY)),
    "of everybody": (acl((GROUP, "g", LITERAL), READ, principal="User:*"),),
    "denied to another": (acl((GROUP, "g", LITERAL), READ), acl((GROUP, "g", LITERAL), READ, DENY, "User:bob")),
    "of another type": (acl((GROUP, "g", LITERAL), READ, principal="Group:alice"),),
    "of other letters": (acl((GROUP, "g", LITERAL), READ, principal="user:alice"),),
    "from this host": (acl((GROUP, "g", LITERAL), READ, host="127.0.0.1"),),
    "from another host": (acl((GROUP, "g", LITERAL), READ, host="10.0.0.1"),),
    "from a name": (acl((GROUP, "g", LITERAL), READ, host="localhost"),),
    "all operations": (acl((GROUP, "g", LITERAL)),),
    "all are denied": (acl((GROUP, "g", LITERAL)), acl((GROUP, "g", LITERAL), ALL, DENY)),
    "describing is denied": (acl((GROUP, "g", LITERAL), READ), acl((GROUP, "g", LITERAL), 8, DENY)),
    "reading is denied, describing implied": (acl((GROUP, "g", LITERAL), 6), acl((GROUP, "g", LITERAL), READ, DENY)),
    "written somewhere": (acl((TOPIC, "qq", PREFIXED), 4),),
    "written nowhere": (acl((TOPIC, "qq", LITERAL), 4), acl((TOPIC, "*", LITERAL), 4, DENY)),
    "written but for a prefix": (acl((TOPIC, "qq", PREFIXED), 4), acl((TOPIC, "q", PREFIXED), ALL, DENY)),
    "written but for a name": (acl((TOPIC, "qq", PREFIXED), 4), acl((TOPIC, "qq", LITERAL), 4, DENY)),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision(sides: tuple[Side, Side], decision: str) -> None:
    asked = [
        *(request(ApiKey.HEARTBEAT, group_id=group, generation_id=1, member_id="m") for group in ("g", "gg", "h", "*")),
        request(ApiKey.FIND_COORDINATOR, key_type=0, key="g"),
        request(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=1_000),
    ]
    found = []
    for side in sides:
        side.set(DECISIONS[decision])
        found.append([side.ask(each, 3) for each in asked])
    assert found[0] == found[1]


ODD: dict[str, dict[str, Any]] = {
    "fine": {},
    "no name": {"resource_name": ""},
    "any type": {"resource_type": 1},
    "any pattern": {"resource_pattern_type": 1},
    "a matching pattern": {"resource_pattern_type": 2},
    "any operation": {"operation": 1},
    "any permission": {"permission_type": 1},
    "an unknown operation": {"operation": 99},
    "an unknown type": {"resource_type": 99},
    "an unknown pattern": {"resource_pattern_type": 99},
    "an unknown permission": {"permission_type": 99},
    "operation 0": {"operation": 0},
    "no type of principal": {"principal": "alice"},
    "an odd principal": {"principal": "Robot:x"},
    "no principal": {"principal": ":x"},
    "another cluster": {"resource_type": CLUSTER, "resource_name": "foo"},
    "an illegal topic": {"resource_name": "a b!"},
    "an odd host": {"host": "not a host"},
    "an operation of others": {"operation": 9},
}


@pytest.mark.parametrize("which", ODD)
def test_an_acl_is_created_or_refused(sides: tuple[Side, Side], which: str) -> None:
    odd = replace(acl(RESOURCES["Topic"], READ), **ODD[which])
    found = []
    for side in sides:
        side.set([])
        with AskingClient(side.plain_at) as admin:
            answer = admin.ask(creation([odd, acl(RESOURCES["Topic"], READ), odd]), 2)
            found.append("closed" if answer is None else outline(answer))
        side.settle()
        found.append(described(side))
    assert found[:2] == found[2:]


def described(side: Side) -> Any:
    """Return all ACLs but the marker's, and what deleting them answers."""
    answer = side.admin.ask(request(ApiKey.DESCRIBE_ACLS, **EVERY_ACL), 2)
    rows = sorted(
        (each.resource_type, each.resource_name, each.pattern_type, *astuple(row))
        for each in answer.resources
        for row in each.acls
        if not each.resource_name.startswith("marker")
    )
    deleted = side.admin.ask(request(ApiKey.DELETE_ACLS, filters=[{**EVERY_ACL, "resource_type_filter": TOPIC}] * 2), 2)
    matches = [sorted(map(astuple, each.matching_acls)) for each in deleted.filter_results]
    return rows, matches, answer.error_message


FILTERS: dict[str, dict[str, Any]] = {
    "a name": {"resource_name_filter": "t1", "pattern_type_filter": ANY},
    "a literal": {"resource_name_filter": "t1", "pattern_type_filter": LITERAL},
    "what fits a name": {"resource_name_filter": "t1", "pattern_type_filter": MATCH},
    "what fits a star": {"resource_name_filter": "*", "pattern_type_filter": MATCH},
    "a principal": {"principal_filter": "User:bob"},
    "a host": {"host_filter": "*"},
    "an operation": {"operation": 4},
    "all operations": {"operation": ALL},
    "a permission": {"permission_type": DENY},
    "a type": {"resource_type_filter": GROUP},
}


@pytest.mark.parametrize("which", FILTERS)
def test_a_filter_finds_the_same_acls(sides: tuple[Side, Side], which: str) -> None:
    found = []
    for side in sides:
        side.set(
            [
                acl((TOPIC, "t1", LITERAL), READ),
                acl((TOPIC, "t", PREFIXED), READ, DENY),
                acl((TOPIC, "*", LITERAL), 4, principal="User:bob"),
                acl((TOPIC, "*", PREFIXED), ALL, host="10.0.0.1"),
                acl((GROUP, "t1", LITERAL), READ),
            ]
        )
        answer = side.admin.ask(request(ApiKey.DESCRIBE_ACLS, **(EVERY_ACL | FILTERS[which])), 2)
        found.append(
            sorted(
                (each.resource_type, each.resource_name, each.pattern_type, *sorted(map(astuple, each.acls)))
                for each in answer.resources
                if not each.resource_name.startswith("marker")
            )
        )
    assert found[0] == found[1]


def test_a_topic_is_created_by_those_who_may_create_it(sides: tuple[Side, Side]) -> None:
    found = []
    rights: list[list[AclCreation]] = [
        [acl((TOPIC, "auto", PREFIXED), 8)],
        [acl((TOPIC, "auto", PREFIXED), 8), acl((TOPIC, "auto", PREFIXED), 5)],
        [acl(RESOURCES["Cluster"], 5)],
    ]
    for side in sides:
        outcomes: list[Any] = []
        for turn, acls in enumerate(rights):
            side.set(acls)
            row = {"name": f"auto-{turn}", "num_partitions": 2, "replication_factor": 1}
            made = side.alice.ask(request(ApiKey.CREATE_TOPICS, topics=[row], timeout_ms=5_000), 7).topics[0]
            outcomes.append((made.error_code, made.error_message, made.topic_config_error_code, made.num_partitions))
            gone = side.alice.ask(request(ApiKey.DELETE_TOPICS, topic_names=[f"auto-{turn}"], timeout_ms=5_000), 5)
            outcomes.append(outline(gone))
        found.append(outcomes)
    assert found[0] == found[1]


PATTERN_RIGHTS: dict[str, tuple[AclCreation, ...]] = {
    "one": (acl((TOPIC, "regex-a", LITERAL), OPERATIONS["Describe"]),),
    "none": (),
    "all": (acl((TOPIC, "regex-", PREFIXED), OPERATIONS["Read"]),),
    "all but one": (
        acl((TOPIC, "regex-", PREFIXED), OPERATIONS["Describe"]),
        acl((TOPIC, "regex-b", LITERAL), OPERATIONS["Describe"], permission=DENY),
    ),
}
"""The rights of alice on the topics regex-a, regex-b and regex-c."""


def assigned_by_pattern(side: Side, group: str, acls: Sequence[AclCreation]) -> list[str]:
    """Return the topics that a new member with the pattern `regex-.*` gets; the group is empty again afterwards."""
    rows = [{"name": f"regex-{each}", "num_partitions": 1, "replication_factor": 1} for each in "abc"]
    side.admin.ask(request(ApiKey.CREATE_TOPICS, topics=rows, timeout_ms=10_000), 5)
    metadata = side.admin.ask(request(ApiKey.METADATA, topics=None), 12)
    names = {topic.topic_id: topic.name for topic in metadata.topics}
    side.set([acl((GROUP, "regex-", PREFIXED), OPERATIONS["Read"]), *acls])
    member = {"group_id": group, "member_id": "m"}
    joining = {**member, "rebalance_timeout_ms": 60_000, "subscribed_topic_regex": "regex-.*", "topic_partitions": ()}
    answer = side.alice.ask(request(ApiKey.CONSUMER_GROUP_HEARTBEAT, member_epoch=0, **joining), 1)
    found: list[str] = []
    for _ in range(PATTERN_TRIES):
        assert answer.error_code == 0, answer
        if answer.assignment is not None:
            found = sorted(names[row.topic_id] for row in answer.assignment.topic_partitions)
        if found:
            break
        time.sleep(PATTERN_S)
        epoch = answer.member_epoch
        answer = side.alice.ask(request(ApiKey.CONSUMER_GROUP_HEARTBEAT, member_epoch=epoch, **member), 1)
    side.alice.ask(request(ApiKey.CONSUMER_GROUP_HEARTBEAT, member_epoch=-1, **member), 1)
    return found


@pytest.mark.parametrize("which", PATTERN_RIGHTS)
def test_a_pattern_finds_the_topics_that_its_member_may_describe(sides: tuple[Side, Side], which: str) -> None:
    if ApiKey.CONSUMER_GROUP_HEARTBEAT not in sides[0]._served or 1 not in sides[0]._served[68]:
        pytest.skip("patterns are resolved by brokers since 4.0")
    group = f"regex-{which.replace(' ', '-')}"
    kafka, ours = (assigned_by_pattern(side, group, PATTERN_RIGHTS[which]) for side in sides)
    assert ours == kafka
    assert (kafka == []) == (which == "none")
