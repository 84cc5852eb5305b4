"""Kafka and the emulator answer each step of an authentication alike: right, wrong, out of order, and too late."""

from __future__ import annotations

import hashlib
import struct
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from brokers.kafka_releases import NEWEST, RELEASES
from brokers.secure_kafka import MECHANISMS, USERS, SecureKafka
from builders.sasl_messages import Scram, bearer, plain, token
from clients.asking_client import AskingClient

from koordinator import Emulator
from koordinator.wire.apis import ApiKey
from koordinator.wire.frames import frame, request_header
from koordinator.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokers.kafka_releases import Release

REAUTH_MS = 3_000

LIFETIME_GRAIN_MS = 1_000
"""Lifetimes of sessions are compared in these steps: the clocks of the two are not one."""

Listeners = dict[str, tuple[str, int]]
"""The addresses by name: PLAIN without SASL, SASL with it, and REAUTH with short sessions."""


@pytest.fixture(scope="module", params=[NEWEST.name, "3.9-new"])
def played_release(request: pytest.FixtureRequest) -> Release:
    return RELEASES[request.param]


@pytest.fixture(scope="module")
def kafka(played_release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    settings = {
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,REAUTH:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": MECHANISMS,
        "listener.name.reauth.connections.max.reauth.ms": str(REAUTH_MS),
    }
    with SecureKafka(tmp_path_factory.mktemp("kafka-sasl-"), played_release, settings) as broker:
        sasl, reauth = broker.ports
        yield prepared(
            {
                "PLAIN": (broker.address.host, broker.address.port),
                "SASL": ("127.0.0.1", sasl),
                "REAUTH": ("127.0.0.1", reauth),
            }
        )


@pytest.fixture(scope="module")
def emulator(played_release: Release) -> Iterator[Listeners]:
    config: dict[str, object] = {"sasl.enabled.mechanisms": MECHANISMS, "kafka.version": played_release.line}
    with ExitStack() as stack:
        found: Listeners = {}
        for name, more in (("SASL", {}), ("REAUTH", {"connections.max.reauth.ms": REAUTH_MS})):
            cluster = stack.enter_context(
                Emulator(security="sasl_plaintext", users=USERS, config=config | more, profile="kafka-defaults")
            )
            for listener, address in ((name, "SASL_PLAINTEXT"), ("PLAIN", "PLAINTEXT")):
                host, port = cluster.nodes[1].address(address).split(":")
                found[listener] = (host, int(port))
            prepared({"PLAIN": found["PLAIN"]})
        yield found


def prepared(listeners: Listeners) -> Listeners:
    """Store credentials of SCRAM with salts of the test."""
    upsertions = tuple(
        ScramCredentialUpsertion(
            name=user,
            mechanism=number,
            iterations=4_096 * number,
            salt=b"salt",
            salted_password=hashlib.pbkdf2_hmac(algorithm, word.encode(), b"salt", 4_096 * number),
        )
        for number, algorithm in ((1, "sha256"), (2, "sha512"))
        for user, word in USERS.items()
    )
    for number in (1, 2):
        chosen = tuple(each for each in upsertions if each.mechanism == number)
        with AskingClient(listeners["PLAIN"]) as client:
            rows = client.ask(AlterUserScramCredentialsRequest(upsertions=chosen), 0).results
            assert [row.error_code for row in rows] == [0, 0]
    return listeners


Step: TypeAlias = "Callable[[AskingClient, list[Any]], Any]"
"""A step of a scenario; it gets the outcomes so far, and returns its own."""


def asked(request: Any, version: int) -> Step:
    return lambda client, _: seen(client.ask(request, version))


def of_another_release(client: AskingClient, _: list[Any]) -> bytes | None:
    """Send ApiVersions in a version that nobody knows, in the format of version 3."""
    header = request_header(ApiKey.API_VERSIONS, 3, 1, "test")
    return client.exchange(frame(header[:2] + struct.pack(">h", 99) + header[4:]))


def handshake(mechanism: str, version: int = 1) -> Step:
    return asked(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(data: bytes, version: int = 2) -> Step:
    return asked(SaslAuthenticateRequest(auth_bytes=data), version)


def raw(data: bytes) -> Step:
    return lambda client, _: client.exchange(data)


def closed(client: AskingClient, _: list[Any]) -> bool:
    return client.is_closed()


def wait(seconds: float) -> Step:
    return lambda *_: time.sleep(seconds)


def seen(response: Any) -> Any:
    """Return what two brokers have to answer alike."""
    if response is None:
        return "closed"
    found = {"error": getattr(response, "error_code", None)}
    for name in ("error_message", "mechanisms", "auth_bytes"):
        if hasattr(response, name):
            found[name] = getattr(response, name)
    if hasattr(response, "session_lifetime_ms"):
        found["lifetime"] = round(response.session_lifetime_ms / LIFETIME_GRAIN_MS)
    if hasattr(response, "api_keys"):
        found["apis"] = len(response.api_keys) > 1
    if hasattr(response, "brokers"):
        found["brokers"] = len(response.brokers)
    return found


def scram(algorithm: str, user: str, password: str, header: str = "n,,", nonce: str | None = None) -> tuple[Step, Step]:
    """Return the two steps of SCRAM; only what does not depend on the broker's nonce is an outcome."""
    messages, challenge = Scram(algorithm, user, password, header), bytearray()

    def first(client: AskingClient, _: list[Any]) -> Any:
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=messages.first), 2)
        if answer is None or answer.error_code:
            return seen(answer)
        challenge[:] = answer.auth_bytes
        its_nonce, *others = answer.auth_bytes.decode().split(",")
        return seen(answer) | {"auth_bytes": (its_nonce.startswith("r=abc"), others)}

    def final(client: AskingClient, _: list[Any]) -> Any:
        message, proof = messages.final(bytes(challenge), nonce)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
        outcome = seen(answer)
        if answer is not None and not answer.error_code:
            outcome["auth_bytes"] = answer.auth_bytes == proof
        return outcome

    return first, final


R = asked(MetadataRequest(topics=()), 9)
HEARTBEAT = asked(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
API_VERSIONS = asked(ApiVersionsRequest(), 0)
ALICE = authenticate(plain("alice", "alice-secret"))
LOGIN = (handshake("PLAIN"), ALICE)

S256, S512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
SOON_S = 3_600


def now() -> float:
    return time.time()


def with_token(make: Callable[[], bytes]) -> Step:
    """Return a step with a token that is made when it is sent."""
    return lambda client, _: seen(client.ask(SaslAuthenticateRequest(auth_bytes=make()), 2))


def refused_token(make: Callable[[], str]) -> tuple[Step, ...]:
    return (handshake("OAUTHBEARER"), with_token(lambda: bearer(make())), authenticate(b"\x01"), closed)


SCENARIOS: dict[str, tuple[Step, ...]] = {
    "login": (*LOGIN, R),
    "api versions first": (API_VERSIONS, *LOGIN, R, API_VERSIONS),
    "api versions twice": (API_VERSIONS, API_VERSIONS),
    "unsupported api versions": (of_another_release, API_VERSIONS, handshake("PLAIN")),
    "api versions without a name": (asked(ApiVersionsRequest(), 3), API_VERSIONS, handshake("PLAIN")),
    "metadata first": (R,),
    "heartbeat first": (HEARTBEAT,),
    "metadata second": (API_VERSIONS, R),
    "authenticate first": (ALICE,),
    "unknown mechanism": (handshake("NOPE"), closed),
    "unknown mechanism, v0": (handshake("NOPE", 0), closed),
    "gssapi": (handshake("GSSAPI"), closed),
    "metadata within": (handshake("PLAIN"), R, closed),
    "heartbeat within": (handshake("PLAIN"), HEARTBEAT, closed),
    "api versions within": (handshake("PLAIN"), API_VERSIONS, closed),
    "handshake within": (handshake("PLAIN"), handshake("PLAIN"), closed),
    "v0 tokens": (handshake("PLAIN", 0), raw(frame(plain("alice", "alice-secret"))), R),
    "v0 wrong": (handshake("PLAIN", 0), raw(frame(plain("alice", "x")))),
    "authenticate v0": (handshake("PLAIN"), authenticate(plain("alice", "alice-secret"), 0), R),
    "authenticate v1": (handshake("PLAIN"), authenticate(plain("alice", "alice-secret"), 1), R),
    "http": (raw(b"GET / HTTP/1.1\r\n\r\n"),),
    "large": (raw(struct.pack(">i", 600_000) + b"\0" * 600_000),),
    "tls": (raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 300),),
    "authenticated twice": (*LOGIN, ALICE, handshake("PLAIN"), R),
    "wrong password": (handshake("PLAIN"), authenticate(plain("alice", "x")), closed),
    "unknown user": (handshake("PLAIN"), authenticate(plain("zed", "x")), closed),
    "no user": (handshake("PLAIN"), authenticate(plain("", "x")), closed),
    "no password": (handshake("PLAIN"), authenticate(plain("alice", "")), closed),
    "other id": (handshake("PLAIN"), authenticate(plain("alice", "alice-secret", "bob")), closed),
    "own id": (handshake("PLAIN"), authenticate(plain("alice", "alice-secret", "alice")), R),
    "two parts": (handshake("PLAIN"), authenticate(b"alice\0alice-secret"), closed),
    "five parts": (handshake("PLAIN"), authenticate(b"\0alice\0alice-secret\0x\0y"), closed),
    "empty": (handshake("PLAIN"), authenticate(b""), closed),
    "scram 256": (handshake(S256), *scram("sha256", "alice", "alice-secret"), R),
    "scram 512": (handshake(S512), *scram("sha512", "bob", "bob-secret"), R),
    "scram wrong": (handshake(S256), *scram("sha256", "alice", "x"), closed),
    "scram unknown": (handshake(S256), scram("sha256", "zed", "x")[0], closed),
    "scram own id": (handshake(S256), *scram("sha256", "alice", "alice-secret", "n,a=alice,"), R),
    "scram other id": (handshake(S256), scram("sha256", "alice", "alice-secret", "n,a=bob,")[0], closed),
    "scram other nonce": (handshake(S256), *scram("sha256", "alice", "alice-secret", nonce="abcother"), closed),
    "scram with binding": (handshake(S256), authenticate(b"y,,n=alice,r=abc"), closed),
    "scram hello": (handshake(S256), authenticate(b"hello"), closed),
    "scram not utf-8": (handshake(S256), authenticate(b"n,,n=\xff\xfe,r=abc"), closed),
    "scram reserved": (handshake(S256), authenticate(b"n,,m=x,n=zed,r=abc"), closed),
    "scram reserved and known": (handshake(S256), scram("sha256", "alice", "x", "n,,m=x,")[0]),
    "scram token": (handshake(S256), authenticate(b"n,,n=alice,r=abc,tokenauth=true"), closed),
    "scram empty final": (handshake(S256), scram("sha256", "alice", "x")[0], authenticate(b""), closed),
    "token": (handshake("OAUTHBEARER"), with_token(lambda: bearer(token({"sub": "o", "exp": now() + SOON_S}))), R),
    "token with extensions": (
        handshake("OAUTHBEARER"),
        with_token(lambda: bearer(token({"sub": "o", "exp": now() + SOON_S}), extensions="traceId=1\x01")),
        R,
    ),
    "token of another": (
        handshake("OAUTHBEARER"),
        with_token(lambda: bearer(token({"sub": "olga", "exp": now() + SOON_S}), "bob")),
        closed,
    ),
    "token without exp": refused_token(lambda: token({"sub": "olga"})),
    "token expired": refused_token(lambda: token({"sub": "olga", "exp": now() - 5})),
    "token without sub": refused_token(lambda: token({"exp": now() + SOON_S})),
    "token of the future": refused_token(lambda: token({"sub": "o", "iat": now() + 50, "exp": now() + SOON_S})),
    "token signed": refused_token(lambda: token({"sub": "olga", "exp": now() + SOON_S}, "RS256")),
    "token of one part": refused_token(lambda: "abc"),
    "token with a text": refused_token(lambda: token({"sub": "olga", "exp": "x"})),
    "token ends": (
        handshake("OAUTHBEARER"),
        with_token(lambda: bearer(token({"sub": "olga", "exp": now() + 2}))),
        R,
        wait(2.5),
        R,
    ),
    "oauth hello": (handshake("OAUTHBEARER"), authenticate(b"hello"), closed),
    "oauth without auth": (handshake("OAUTHBEARER"), authenticate(b"n,,\x01a=b\x01\x01"), closed),
    "oauth of no token": (handshake("OAUTHBEARER"), authenticate(b"n,,\x01auth=Bearer ?!\x01\x01"), closed),
    "oauth basic of no token": (handshake("OAUTHBEARER"), authenticate(b"n,,\x01auth=Basic ?!\x01\x01"), closed),
    "oauth basic": (handshake("OAUTHBEARER"), authenticate(b"n,,\x01auth=Basic abc\x01\x01"), closed),
}

REAUTHENTICATION: dict[str, tuple[Step, ...]] = {
    "no reauthentication": (*LOGIN, wait(3.5), R),
    "reauthentication after the end": (*LOGIN, wait(3.5), *LOGIN, R),
    "reauthentication at once": (*LOGIN, handshake("PLAIN"), R),
    "reauthentication twice at once": (*LOGIN, *LOGIN, handshake("PLAIN"), R),
    "reauthentication": (*LOGIN, wait(1.2), *LOGIN, R),
    "reauthentication after api versions": (*LOGIN, wait(1.2), API_VERSIONS, *LOGIN, R),
    "other principal": (*LOGIN, wait(1.2), handshake("PLAIN"), authenticate(plain("bob", "bob-secret")), closed),
    "wrong password again": (*LOGIN, wait(1.2), handshake("PLAIN"), authenticate(plain("alice", "x")), closed),
    "other mechanism": (*LOGIN, wait(1.2), handshake(S256), authenticate(b"n,,n=alice,r=abc"), closed),
    "unknown mechanism again": (*LOGIN, wait(1.2), handshake("NOPE"), closed),
    "metadata within reauthentication": (*LOGIN, wait(1.2), handshake("PLAIN"), R, closed),
    "scram again": (
        handshake(S256),
        *scram("sha256", "alice", "alice-secret"),
        wait(1.2),
        handshake(S256),
        *scram("sha256", "alice", "x"),
        closed,
    ),
    "short token": (
        handshake("OAUTHBEARER"),
        with_token(lambda: bearer(token({"sub": "olga", "exp": now() + 2}))),
        R,
    ),
}


def played(address: tuple[str, int], steps: tuple[Step, ...]) -> list[Any]:
    outcomes: list[Any] = []
    with AskingClient(address) as client:
        for step in steps:
            outcomes.append(step(client, outcomes))
    return outcomes


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_step_is_answered_alike(kafka: Listeners, emulator: Listeners, scenario: str) -> None:
    steps = SCENARIOS[scenario]
    assert played(emulator["SASL"], steps) == played(kafka["SASL"], steps)


@pytest.mark.parametrize("scenario", REAUTHENTICATION)
def test_each_step_of_a_reauthentication_is_answered_alike(
    kafka: Listeners, emulator: Listeners, scenario: str
) -> None:
    steps = REAUTHENTICATION[scenario]
    assert played(emulator["REAUTH"], steps) == played(kafka["REAUTH"], steps)
