"""Delegation tokens: their life, who may see and change them, and clients that log in with one (KIP-48, KIP-373).

`tests/kafka/test_delegation_tokens_on_kafka.py` compares more steps with brokers.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from builders.acl_requests import request
from builders.sasl_messages import Scram, plain
from clients.asking_client import AskingClient

from koordinator import Emulator
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from koordinator import Cluster

DAY_MS = 86_400_000

USERS = {"alice": "alice-secret", "bob": "bob-secret"}

CONFIG: dict[str, object] = {"delegation.token.secret.key": "secret"}

BOB = {"principal_type": "User", "principal_name": "bob"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    config = CONFIG | {"authorizer.class.name": STANDARD_AUTHORIZER}
    with Emulator(security="sasl_plaintext", users=USERS, config=config) as cluster:
        yield cluster


def connect(cluster: Cluster, user: str, token: Any = None) -> AskingClient:
    host, port = cluster.bootstrap_servers.split(":")
    client = AskingClient((host, int(port)))
    client.ask(SaslHandshakeRequest(mechanism="PLAIN" if token is None else "SCRAM-SHA-512"), 1)
    if token is None:
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=plain(user, USERS[user])), 2)
    else:
        password = base64.b64encode(token.hmac).decode()
        scram = Scram("sha512", token.token_id, password, extensions=",tokenauth=true")
        challenge = client.ask(SaslAuthenticateRequest(auth_bytes=scram.first), 2)
        if challenge.error_code:
            with client:
                raise PermissionError(challenge.error_message)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=scram.final(challenge.auth_bytes)[0]), 2)
    assert answer.error_code == 0, answer
    return client


def create(client: AskingClient, **fields: Any) -> Any:
    fields = {"max_lifetime_ms": -1, "renewers": (), **fields}
    return client.ask(request(ApiKey.CREATE_DELEGATION_TOKEN, **fields), 3)


def renew(client: AskingClient, token: Any, period_ms: int = -1) -> Any:
    return client.ask(request(ApiKey.RENEW_DELEGATION_TOKEN, hmac=token.hmac, renew_period_ms=period_ms), 2)


def expire(client: AskingClient, token: Any, period_ms: int = -1) -> Any:
    return client.ask(request(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=token.hmac, expiry_time_period_ms=period_ms), 2)


def describe(client: AskingClient) -> list[str]:
    answer = client.ask(request(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), 3)
    assert answer.error_code == Error.NONE
    return [row.token_id for row in answer.tokens]


def test_a_token_is_renewed_up_to_its_end_and_removed_when_it_expires(cluster: Cluster) -> None:
    with connect(cluster, "alice") as alice, connect(cluster, "bob") as bob:
        token = create(alice, max_lifetime_ms=3 * DAY_MS, renewers=[BOB])
        issued = token.issue_timestamp_ms
        assert (token.expiry_timestamp_ms, token.max_timestamp_ms) == (issued + DAY_MS, issued + 3 * DAY_MS)
        assert renew(bob, token, 9 * DAY_MS).expiry_timestamp_ms < issued + 2 * DAY_MS, "a day from now"
        assert expire(bob, token, 9 * DAY_MS).expiry_timestamp_ms == issued + 3 * DAY_MS
        assert describe(alice) == describe(bob) == [token.token_id]
        assert expire(bob, token).error_code == Error.NONE
        assert describe(alice) == []
        assert renew(alice, token).error_code == Error.DELEGATION_TOKEN_NOT_FOUND


def test_only_owners_and_renewers_change_a_token_and_rights_show_it(cluster: Cluster) -> None:
    with connect(cluster, "alice") as alice, connect(cluster, "bob") as bob:
        token = create(alice)
        mismatch = Error.DELEGATION_TOKEN_OWNER_MISMATCH
        assert (renew(bob, token).error_code, expire(bob, token).error_code) == (mismatch, mismatch)
        assert describe(bob) == []
        refused = create(bob, owner_principal_type="User", owner_principal_name="alice")
        assert refused.error_code == Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused.principal_name, refused.token_requester_principal_name, refused.hmac) == ("alice", "bob", b"")


def test_a_client_with_a_token_is_its_owner_and_gets_no_other_token(cluster: Cluster) -> None:
    cluster.allow("alice", "describe", topic="t")
    cluster.create_topic("t")
    with connect(cluster, "alice") as alice:
        token = create(alice)
        with connect(cluster, "", token) as client:
            (topic,) = client.ask(MetadataRequest(topics=None), 9).topics
            assert topic.name == "t"
            for answer in (create(client), renew(client, token), expire(client, token)):
                assert answer.error_code == Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        expire(alice, token)
        with pytest.raises(PermissionError, match="invalid credentials"):
            connect(cluster, "", token)


def test_a_session_with_a_token_ends_with_the_token(cluster: Cluster) -> None:
    with connect(cluster, "alice") as alice:
        token = create(alice, max_lifetime_ms=1)
        while renew(alice, token).error_code == Error.NONE:
            pass
        with connect(cluster, "", token) as client:
            assert client.ask(MetadataRequest(topics=()), 9) is None


def test_without_a_secret_there_are_no_tokens() -> None:
    with (
        Emulator(security="sasl_plaintext", users=USERS) as cluster,
        connect(cluster, "alice") as alice,
    ):
        answer = create(alice)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (Error.DELEGATION_TOKEN_AUTH_DISABLED, 0)
        assert renew(alice, answer).error_code == Error.DELEGATION_TOKEN_AUTH_DISABLED


def test_a_token_outlives_the_cluster_in_its_journal(tmp_path: Path) -> None:
    options: dict[str, Any] = {"security": "sasl_plaintext", "users": USERS, "config": CONFIG, "data_dir": tmp_path}
    with Emulator(**options) as cluster, connect(cluster, "alice") as alice:
        token, other = create(alice), create(alice)
        expire(alice, other)
    with Emulator(**options) as cluster, connect(cluster, "alice", token) as client:
        assert client.ask(MetadataRequest(topics=()), 9) is not None
        with pytest.raises(PermissionError):
            connect(cluster, "alice", other)
