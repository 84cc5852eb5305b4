"""Kafka and the emulator accept the same signed tokens of OAUTHBEARER, and refuse the others alike (KIP-768)."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from brokers.kafka_releases import NEWEST, RELEASES
from brokers.secure_kafka import MECHANISMS, USERS, SecureKafka
from builders.sasl_messages import bearer, token
from builders.signed_tokens import CURVE, KNOWN, STRANGE, key_file, signed
from clients.asking_client import AskingClient

from koordinator import Emulator
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from brokers.kafka_releases import Release

Addresses = dict[str, tuple[str, int]]
"""The addresses of two listeners: STRICT expects an issuer and audiences, and OPEN nothing."""

HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed"
"""The properties of the JVM that name what a broker may read (4.0 and later)."""

ISSUER, AUDIENCES = "https://tokens.example", "kafka,other"

STRICT = {
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCES,
    "sasl.oauthbearer.sub.claim.name": "name",
    "sasl.oauthbearer.scope.claim.name": "scp",
    "sasl.oauthbearer.clock.skew.seconds": "0",
}

LIFETIME_GRAIN_MS = 60_000


class TokenKafka(SecureKafka):
    """A broker that validates signed tokens: SASL expects issuer and audiences, REAUTH nothing."""

    def __init__(self, folder: Path, release: Release, url: str) -> None:
        keys = {"sasl.server.callback.handler.class": HANDLER, "sasl.oauthbearer.jwks.endpoint.url": url}
        unverified = {f"sasl.oauthbearer.allow.unverified.{claim}": "true" for claim in ("audience", "issuer")}
        free = keys | (unverified if release.line == NEWEST.line else {})
        settings = {
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,REAUTH:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": MECHANISMS,
            **{
                f"listener.name.{listener}.oauthbearer.{name}": given
                for listener, own in (("sasl", keys | STRICT), ("reauth", free))
                for name, given in own.items()
            },
        }
        super().__init__(folder, release, settings)
        allowed = (f"-D{ALLOWED}.urls={url}", f"-D{ALLOWED}.files={url2pathname(urlsplit(url).path)}")
        self._java = (self._java[0], *allowed, *self._java[1:])


@pytest.fixture(scope="module", params=[NEWEST.name, "3.9-new"])
def played_release(request: pytest.FixtureRequest) -> Release:
    return RELEASES[request.param]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_text(key_file())
    return path.as_uri()


@pytest.fixture(scope="module")
def kafka(played_release: Release, url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with TokenKafka(tmp_path_factory.mktemp("kafka-tokens-"), played_release, url) as broker:
        strict, free = broker.ports
        yield {"STRICT": ("127.0.0.1", strict), "OPEN": ("127.0.0.1", free)}


@pytest.fixture(scope="module")
def emulator(played_release: Release, url: str) -> Iterator[Addresses]:
    config: dict[str, object] = {
        "sasl.enabled.mechanisms": MECHANISMS,
        "kafka.version": played_release.line,
        "sasl.oauthbearer.jwks.endpoint.url": url,
    }
    with ExitStack() as stack:
        found: Addresses = {}
        for name, more in (("STRICT", STRICT), ("OPEN", {})):
            cluster = stack.enter_context(Emulator(security="sasl_plaintext", users=USERS, config=config | more))
            host, port = cluster.bootstrap_servers.split(":")
            found[name] = (host, int(port))
        yield found


def now() -> int:
    return int(time.time())


def for_anybody(**changes: object) -> dict[str, object]:
    """Return valid claims at the listener OPEN; None removes one."""
    claims = {"sub": "olga", "iat": now() - 1, "exp": now() + 3600, **changes}
    return {name: given for name, given in claims.items() if given is not None}


def for_us(**changes: object) -> dict[str, object]:
    """Return valid claims at the listener STRICT."""
    return for_anybody(**{"sub": None, "name": "olga", "iss": ISSUER, "aud": "kafka", **changes})


def altered(text: str) -> str:
    """Return a token with other claims than those that were signed."""
    header, _, signature = text.split(".")
    return f"{header}.{token(for_anybody(sub='root')).split('.')[1]}.{signature}"


OPEN: dict[str, Callable[[], str]] = {
    "valid": lambda: signed(for_anybody()),
    "of the curve": lambda: signed(for_anybody(), CURVE),
    "of another algorithm": lambda: signed(for_anybody(), algorithm="PS256"),
    "of another hash": lambda: signed(for_anybody(), algorithm="RS512"),
    "without the name of a key": lambda: signed(for_anybody(), key_id=""),
    "with the name of another key": lambda: signed(for_anybody(), key_id=CURVE),
    "with the name of no key": lambda: signed(for_anybody(), key_id="nobody"),
    "of a strange key": lambda: signed(for_anybody(), STRANGE),
    "of a strange key under a known name": lambda: signed(for_anybody(), STRANGE, key_id=KNOWN),
    "altered": lambda: altered(signed(for_anybody())),
    "unsecured": lambda: token(for_anybody()),
    "without a signature": lambda: signed(for_anybody()).rpartition(".")[0] + ".",
    "of two parts": lambda: signed(for_anybody()).rpartition(".")[0],
    "of four parts": lambda: signed(for_anybody()) + ".e30",
    "no token": lambda: "abc",
    "without exp": lambda: signed(for_anybody(exp=None)),
    "without iat": lambda: signed(for_anybody(iat=None)),
    "without sub": lambda: signed(for_anybody(sub=None)),
    "with a blank sub": lambda: signed(for_anybody(sub="  ")),
    "with blanks around sub": lambda: signed(for_anybody(sub=" olga ")),
    "with a number as sub": lambda: signed(for_anybody(sub=5)),
    "with a text as exp": lambda: signed(for_anybody(exp="tomorrow")),
    "with a fraction as exp": lambda: signed(for_anybody(exp=now() + 100.75)),
    "with a text as iat": lambda: signed(for_anybody(iat="x")),
    "expired within the skew": lambda: signed(for_anybody(iat=now() - 100, exp=now() - 10)),
    "expired": lambda: signed(for_anybody(iat=now() - 100, exp=now() - 40)),
    "issued after its end": lambda: signed(for_anybody(iat=now() + 4000)),
    "issued in the future": lambda: signed(for_anybody(iat=now() + 50)),
    "not yet valid": lambda: signed(for_anybody(nbf=now() + 100)),
    "not yet valid within the skew": lambda: signed(for_anybody(nbf=now() + 10)),
    "ends before it is valid": lambda: signed(for_anybody(nbf=now() + 20, exp=now() + 10)),
    "with a text as nbf": lambda: signed(for_anybody(nbf="x")),
    "with a negative iat": lambda: signed(for_anybody(iat=-5)),
    "of an issuer": lambda: signed(for_anybody(iss="anybody")),
    "with a number as issuer": lambda: signed(for_anybody(iss=5)),
    "with a number as jti": lambda: signed(for_anybody(jti=5)),
    "for an audience": lambda: signed(for_anybody(aud="kafka")),
    "for no audience": lambda: signed(for_anybody(aud=[])),
    "with a number as audience": lambda: signed(for_anybody(aud=5)),
    "with a scope": lambda: signed(for_anybody(scope="read write")),
    "with scopes": lambda: signed(for_anybody(scope=["read", "write"])),
    "with a scope twice": lambda: signed(for_anybody(scope=["read", "read "])),
    "with a blank scope": lambda: signed(for_anybody(scope=["read", " "])),
    "with an empty scope": lambda: signed(for_anybody(scope="")),
    "with a number as scope": lambda: signed(for_anybody(scope=5)),
    "with a number in scopes": lambda: signed(for_anybody(scope=[5])),
}

FOR_US: dict[str, Callable[[], str]] = {
    "valid": lambda: signed(for_us()),
    "for the second audience": lambda: signed(for_us(aud="other")),
    "for several audiences": lambda: signed(for_us(aud=["x", "other"])),
    "for another audience": lambda: signed(for_us(aud="x")),
    "for nobody": lambda: signed(for_us(aud=None)),
    "of another issuer": lambda: signed(for_us(iss=ISSUER + "/")),
    "of no issuer": lambda: signed(for_us(iss=None)),
    "with sub alone": lambda: signed(for_us(name=None, sub="olga")),
    "with a scope twice": lambda: signed(for_us(scp=["a", "a"])),
    "with another claim of scopes": lambda: signed(for_us(scope=["a", "a"])),
    "expired a moment ago": lambda: signed(for_us(iat=now() - 100, exp=now() - 1)),
}


def outcome(address: tuple[str, int], text: str) -> Any:
    """Return what a client with a token gets: from the exchange, from the end of a failed one, and from a request."""
    with AskingClient(address) as client:
        client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=bearer(text, "")), 2)
        if answer is None:
            return "closed"
        found = [answer.error_code, answer.auth_bytes, round(answer.session_lifetime_ms / LIFETIME_GRAIN_MS)]
        if answer.auth_bytes:
            refusal = client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
            return [*found, refusal.error_code, refusal.error_message, client.is_closed()]
        request = client.ask(MetadataRequest(topics=()), 9)
        return [*found, None if request is None else request.controller_id]


@pytest.mark.parametrize("case", OPEN)
def test_a_token_has_the_same_fate(kafka: Addresses, emulator: Addresses, case: str) -> None:
    text = OPEN[case]()
    assert outcome(emulator["OPEN"], text) == outcome(kafka["OPEN"], text)


@pytest.mark.parametrize("case", FOR_US)
def test_a_token_for_a_broker_with_expectations_has_the_same_fate(
    kafka: Addresses, emulator: Addresses, case: str
) -> None:
    text = FOR_US[case]()
    assert outcome(emulator["STRICT"], text) == outcome(kafka["STRICT"], text)
