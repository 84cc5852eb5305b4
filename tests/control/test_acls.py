"""Levers of rights: allow, deny and revoke take effect with the next request."""

from __future__ import annotations

import pytest
from builders.acl_requests import request
from clients.asking_client import AskingClient

from koordinator import Cluster, Emulator
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

GUARDED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:admin"}

ANONYMOUS = "ANONYMOUS"


def heartbeat(cluster: Cluster, group: str = "svc") -> Error:
    host, port = cluster.bootstrap_servers.split(":")
    with AskingClient((host, int(port))) as client:
        asked = request(ApiKey.HEARTBEAT, group_id=group, generation_id=1, member_id="m")
        return Error(client.ask(asked, 4).error_code)


@pytest.fixture
def guarded() -> object:
    with Emulator(config=GUARDED) as cluster:
        yield cluster


def test_a_right_is_there_with_the_next_request_and_gone_with_the_next(guarded: Cluster) -> None:
    assert heartbeat(guarded) is Error.GROUP_AUTHORIZATION_FAILED
    guarded.allow(ANONYMOUS, "read", group="svc")
    assert heartbeat(guarded) is Error.UNKNOWN_MEMBER_ID
    guarded.deny("*", "read", group="s*")
    assert heartbeat(guarded) is Error.GROUP_AUTHORIZATION_FAILED
    assert guarded.revoke("*") == 1
    assert heartbeat(guarded) is Error.UNKNOWN_MEMBER_ID
    assert guarded.revoke(ANONYMOUS, "write") == 0
    assert guarded.revoke(ANONYMOUS, "read", group="svc") == 1
    assert heartbeat(guarded) is Error.GROUP_AUTHORIZATION_FAILED


def test_the_rights_are_listed_as_they_were_given(guarded: Cluster) -> None:
    guarded.allow("alice", "describe")
    guarded.allow("alice", "write", transactional_id="pay-*", host="10.0.0.1")
    guarded.deny("Group:staff", "all", topic=guarded.topic("orders"))
    found = [
        (each.principal, each.permission, each.operation, each.resource, each.name, each.host)
        for each in guarded.acls()
    ]
    assert found == [
        ("User:alice", "allow", "describe", "cluster", "kafka-cluster", "*"),
        ("User:alice", "allow", "write", "transactional_id", "pay-*", "10.0.0.1"),
        ("Group:staff", "deny", "all", "topic", "orders", "*"),
    ]


def test_a_lever_is_in_the_timeline_of_its_group(guarded: Cluster) -> None:
    guarded.allow(ANONYMOUS, "read", group="svc")
    guarded.revoke(ANONYMOUS)
    assert [line["verb"] for line in guarded.group("svc").events() if line["kind"] == "verb"] == ["allow", "revoke"]


def test_a_reset_takes_all_rights_away(guarded: Cluster) -> None:
    guarded.allow(ANONYMOUS, "read", group="svc")
    guarded.reset("acls")
    assert guarded.acls() == []


@pytest.mark.parametrize(
    ("arguments", "resource", "error"),
    [
        (("alice", "raed"), {"group": "svc"}, "operation 'raed': must be one of all, read, .*did you mean 'read'"),
        (("", "read"), {"group": "svc"}, "user='': must be a name"),
        (("alice", "read"), {"group": "svc", "topic": "t"}, "an ACL is for one resource"),
        (("alice", "read"), {"group": ""}, "the name of a resource is not empty"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(
    guarded: Cluster, arguments: tuple[str, str], resource: dict[str, str], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        guarded.allow(*arguments, **resource)  # type: ignore[arg-type]
    assert guarded.acls() == []


def test_without_an_authorizer_a_lever_names_the_config_that_is_missing() -> None:
    with Emulator() as cluster, pytest.raises(ValueError, match=r"authorizer\.class\.name=org"):
        cluster.allow("alice", "read", group="svc")
