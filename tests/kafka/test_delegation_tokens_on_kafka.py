"""Kafka and the emulator create, renew, expire and describe delegation tokens alike, and log clients in (KIP-48)."""

from __future__ import annotations

import base64
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from brokers.kafka_releases import NEWEST, RELEASES
from brokers.secure_kafka import MECHANISMS, USERS, SecureKafka
from builders.acl_requests import LITERAL, OPERATIONS, acl, creation, deletion, request
from builders.sasl_messages import Scram, plain
from clients.asking_client import AskingClient

from koordinator import Emulator
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokers.kafka_releases import Release

SECRET = "a-secret-of-the-brokers"

DAY_MS = 86_400_000

LIMIT_S = 20.0

CREATE_TOKENS, DESCRIBE_TOKENS, DESCRIBE = 13, 14, OPERATIONS["Describe"]

USER_RESOURCE, TOKEN_RESOURCE = 7, 6

SETTINGS = {
    "delegation.token.secret.key": SECRET,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
}


class Side:
    """A cluster: an admin at the listener without SASL, and users at the other."""

    def __init__(self, plain_at: tuple[str, int], sasl_at: tuple[str, int]) -> None:
        self.admin = AskingClient(plain_at)
        self.sasl_at = sasl_at
        self.alice, self.bob = self.user("alice"), self.user("bob")
        self.started_ms = time.time() * 1000

    def user(self, name: str) -> AskingClient:
        client = AskingClient(self.sasl_at)
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=plain(name, USERS[name])), 2)
        assert answer.error_code == 0, answer
        return client

    def log_in(self, token: Any, algorithm: str = "sha256", password: str | None = None) -> tuple[Any, AskingClient]:
        """Log in with a token; return the outcome and the client."""
        client = AskingClient(self.sasl_at)
        client.ask(SaslHandshakeRequest(mechanism=f"SCRAM-{algorithm.upper().replace('SHA', 'SHA-')}"), 1)
        word = base64.b64encode(token.hmac).decode() if password is None else password
        scram = Scram(algorithm, token.token_id, word, extensions=",tokenauth=true")
        challenge = client.ask(SaslAuthenticateRequest(auth_bytes=scram.first), 2)
        if challenge.error_code:
            return (challenge.error_code, challenge.error_message), client
        final, proof = scram.final(challenge.auth_bytes)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=final), 2)
        lifetime = round(answer.session_lifetime_ms / DAY_MS)
        return (answer.error_code, answer.error_message, answer.auth_bytes == proof, lifetime), client

    def token(self, client: AskingClient | None = None, version: int = 3, **fields: Any) -> Any:
        fields = {"max_lifetime_ms": -1, "renewers": (), **fields}
        client = client or self.alice
        answer = client.ask(request(ApiKey.CREATE_DELEGATION_TOKEN, **fields), version)
        ends = time.monotonic() + LIMIT_S
        # a broker knows it when it has replayed its record
        while not answer.error_code and not self._knows(client, answer.token_id):
            assert time.monotonic() < ends, answer
            time.sleep(0.05)
        return answer

    def _knows(self, client: AskingClient, token_id: str) -> bool:
        rows = client.ask(request(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), 3).tokens
        return token_id in {row.token_id for row in rows}

    def days(self, timestamp: int) -> int:
        """Return a time as days from now; the times 0 and -1 as they are."""
        return timestamp if timestamp <= 0 else round((timestamp - self.started_ms) / DAY_MS)

    def created(self, answer: Any) -> Any:
        times = (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms)
        return (
            answer.error_code,
            (answer.principal_type, answer.principal_name),
            (answer.token_requester_principal_type, answer.token_requester_principal_name),
            *map(self.days, times),
            len(answer.token_id),
            len(answer.hmac),
        )

    def changed(self, key: ApiKey, client: AskingClient, token: bytes, period_ms: int, version: int = 2) -> Any:
        name = "renew_period_ms" if key == ApiKey.RENEW_DELEGATION_TOKEN else "expiry_time_period_ms"
        answer = client.ask(request(key, hmac=token, **{name: period_ms}), version)
        time.sleep(0.3)
        return answer.error_code, self.days(answer.expiry_timestamp_ms)

    def described(self, client: AskingClient, owners: list[str] | None = None, version: int = 3) -> Any:
        rows = None if owners is None else [{"principal_type": "User", "principal_name": each} for each in owners]
        answer = client.ask(request(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=rows), version)
        return answer.error_code, sorted(
            (
                row.principal_name,
                row.token_requester_principal_name,
                *map(self.days, (row.issue_timestamp, row.expiry_timestamp, row.max_timestamp)),
                tuple((each.principal_type, each.principal_name) for each in row.renewers),
                len(row.hmac),
            )
            for row in answer.tokens
        )

    def allow(self, resource: tuple[int, str, int], operation: int, principal: str) -> None:
        self.admin.ask(creation([acl(resource, operation, principal=principal)]), 2)
        time.sleep(0.3)

    def forget(self) -> None:
        """Remove all tokens and ACLs."""
        self.admin.ask(deletion(), 2)
        for client in (self.alice, self.bob):
            for row in client.ask(request(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), 3).tokens:
                client.ask(request(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=row.hmac, expiry_time_period_ms=-1), 2)
        time.sleep(0.3)


@pytest.fixture(scope="module", params=[NEWEST.name, "3.9-new"])
def played_release(request: pytest.FixtureRequest) -> Release:
    return RELEASES[request.param]


@pytest.fixture(scope="module")
def sides(played_release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    settings = SETTINGS | {
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,REAUTH:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": MECHANISMS,
    }
    with ExitStack() as stack:
        broker = stack.enter_context(SecureKafka(tmp_path_factory.mktemp("kafka-tokens-"), played_release, settings))
        config = {**SETTINGS, "kafka.version": played_release.line, "sasl.enabled.mechanisms": MECHANISMS}
        cluster = stack.enter_context(Emulator(security="sasl_plaintext", users=USERS, config=config))
        addresses = [cluster.nodes[1].address(name).split(":") for name in ("PLAINTEXT", "SASL_PLAINTEXT")]
        (host, port), (sasl_host, sasl_port) = addresses
        kafka = Side((broker.address.host, broker.address.port), ("127.0.0.1", broker.ports[0]))
        yield kafka, Side((host, int(port)), (sasl_host, int(sasl_port)))


CREATE, RENEW = ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN
EXPIRE, DESCRIBED = ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN

BOB = {"principal_type": "User", "principal_name": "bob"}


def life(side: Side) -> list[Any]:
    found = [side.created(token := side.token(renewers=[BOB]))]
    found += [side.described(side.alice), side.described(side.bob), side.described(side.bob, ["alice"])]
    found += [
        side.described(side.alice, []),
        side.described(side.alice, ["carol"]),
        side.described(side.alice, None, 1),
    ]
    found += [side.changed(RENEW, side.bob, token.hmac, 3 * DAY_MS), side.changed(RENEW, side.alice, token.hmac, -1)]
    found += [side.changed(EXPIRE, side.alice, token.hmac, 9 * DAY_MS), side.described(side.alice)]
    found += [side.changed(EXPIRE, side.bob, token.hmac, -1), side.described(side.alice)]
    found += [side.changed(EXPIRE, side.alice, token.hmac, -1), side.changed(RENEW, side.alice, token.hmac, -1)]
    return found


def creations(side: Side) -> list[Any]:
    group = {"principal_type": "Group", "principal_name": "bob"}
    answers = [
        side.token(max_lifetime_ms=2 * DAY_MS),
        side.token(max_lifetime_ms=DAY_MS // 2),
        side.token(max_lifetime_ms=99 * DAY_MS),
        side.token(max_lifetime_ms=0, version=1),
        side.token(version=2),
        side.token(renewers=[group]),
        side.token(owner_principal_type="User", owner_principal_name="alice"),
        side.token(owner_principal_type="User", owner_principal_name="bob"),
        side.token(owner_principal_type="User", owner_principal_name=""),
        side.token(side.admin),
    ]
    return [side.created(each) for each in answers]


def of_others(side: Side) -> list[Any]:
    side.allow((USER_RESOURCE, "User:bob", LITERAL), CREATE_TOKENS, "User:alice")
    token = side.token(owner_principal_type="User", owner_principal_name="bob")
    found = [side.created(token), side.described(side.alice), side.described(side.bob)]
    found += [side.changed(RENEW, side.alice, token.hmac, -1), side.changed(EXPIRE, side.bob, token.hmac, 0)]
    own = side.token()
    found += [side.described(side.bob, ["alice"])]
    side.allow((TOKEN_RESOURCE, own.token_id, LITERAL), DESCRIBE, "User:bob")
    found += [side.described(side.bob, ["alice"]), side.changed(RENEW, side.bob, own.hmac, -1)]
    return found


def seen_by_right(side: Side) -> list[Any]:
    side.token()
    found = [side.described(side.bob)]
    side.allow((USER_RESOURCE, "User:alice", LITERAL), DESCRIBE_TOKENS, "User:bob")
    return [*found, side.described(side.bob)]


def refusals(side: Side) -> list[Any]:
    found = [side.changed(key, side.alice, b"nothing", 5) for key in (RENEW, EXPIRE)]
    found += [side.changed(key, side.admin, b"nothing", 5) for key in (RENEW, EXPIRE)]
    found += [side.described(side.admin)]
    token = side.token(max_lifetime_ms=500)
    time.sleep(0.6)
    for client in (side.alice, side.bob):
        found += [side.changed(RENEW, client, token.hmac, 5), side.changed(EXPIRE, client, token.hmac, 5)]
    found += [side.log_in(token)[0], side.changed(EXPIRE, side.alice, token.hmac, -1), side.log_in(token)[0]]
    return found


def logins(side: Side) -> list[Any]:
    token, found = side.token(max_lifetime_ms=3 * DAY_MS), []
    for algorithm in ("sha256", "sha512"):
        outcome, client = side.log_in(token, algorithm)
        metadata = client.ask(MetadataRequest(topics=()), 9)
        assert metadata is not None, (side.sasl_at, outcome, found)
        found += [outcome, metadata.controller_id]
        found += [side.created(side.token(client)), side.described(client)]
        found += [side.changed(RENEW, client, token.hmac, -1), side.changed(EXPIRE, client, token.hmac, -1)]
    found += [side.log_in(token, password="wrong")[0]]
    side.changed(EXPIRE, side.alice, token.hmac, -1)
    return [*found, side.log_in(token)[0]]


SCENES: dict[str, Callable[[Side], list[Any]]] = {
    each.__name__: each for each in (life, creations, of_others, seen_by_right, refusals, logins)
}


@pytest.mark.parametrize("scene", SCENES)
def test_tokens_are_alike(sides: tuple[Side, Side], scene: str) -> None:
    found = []
    for side in sides:
        side.forget()
        found.append(SCENES[scene](side))
    assert found[1] == found[0]
