"""A connection to a listener with SASL: the states of its authentication, and each mechanism (KIP-43, KIP-84)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from brokers.fault_broker import FaultyNodes
from builders.sasl_messages import Scram, bearer, plain, token
from clients.frame_clients import Peer, Wire
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator import faults
from koordinator.emulator.broker.authentication.authenticator import Authenticator
from koordinator.emulator.core.data.scram import credential_of
from koordinator.wire.errors import Error
from koordinator.wire.frames import frame
from koordinator.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest

ALL = ("PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER")
"""The mechanisms in the order of a Java hash set, which is that of Kafka's responses."""

ANY = MetadataRequest(topics=())


class SecureWire(Wire):
    """A broker whose listener has SASL, with the users alice and bob."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        clients = self.node.cluster.clients
        clients.passwords |= {"alice": "alice-secret", "bob": "bob-secret"}
        for number in (1, 2):
            clients.apply(credential_of("alice", number, "alice-secret", b"salt"))

    def connect(self) -> Peer:
        peer = Peer(next(self._numbers))
        self.peers[peer.number] = peer
        self.broker.connected(self.now, peer.number, "/127.0.0.1", "SASL_PLAINTEXT")
        return peer

    def handshake(self, peer: Peer, mechanism: str, version: int = 1) -> Any:
        return self.ask(peer, SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, peer: Peer, data: bytes, version: int = 2) -> Any:
        return self.ask(peer, SaslAuthenticateRequest(auth_bytes=data), version)

    def log_in(self, user: str = "alice") -> Peer:
        peer = self.connect()
        assert self.handshake(peer, "PLAIN").error_code == 0
        assert self.authenticate(peer, plain(user, f"{user}-secret")).error_code == 0
        return peer


@pytest.fixture
def wire() -> SecureWire:
    return SecureWire()


def refused(response: SaslAuthenticateResponse) -> str:
    assert response.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert (response.auth_bytes, response.session_lifetime_ms) == (b"", 0)
    return response.error_message or ""


# -- states --------------------------------------------------------------------------------------------------


def test_requests_are_served_after_the_authentication(wire: SecureWire) -> None:
    peer = wire.connect()
    assert wire.ask(peer, ApiVersionsRequest(), 0).error_code == 0
    assert wire.handshake(peer, "PLAIN").mechanisms == ALL
    answer = wire.authenticate(peer, plain("alice", "alice-secret"))
    assert answer == SaslAuthenticateResponse(error_message="")
    assert wire.ask(peer, ANY, 9).cluster_id == "wire"


@pytest.mark.parametrize("first", [ANY, SaslAuthenticateRequest(auth_bytes=b"x")])
@pytest.mark.parametrize("earlier", [[], [ApiVersionsRequest()]], ids=["at once", "after ApiVersions"])
def test_another_first_request_closes_the_connection(wire: SecureWire, first: Any, earlier: list[Any]) -> None:
    peer = wire.connect()
    for request in earlier:
        wire.ask(peer, request, 0)
    before = peer.bytes
    wire.send(peer, wire.request(peer, first, 1))
    assert peer.closed
    assert peer.bytes == before


def test_api_versions_is_answered_once(wire: SecureWire) -> None:
    peer = wire.connect()
    assert wire.ask(peer, ApiVersionsRequest(), 3).error_code == Error.INVALID_REQUEST, "the software has no name"
    # that one does not count
    assert wire.ask(peer, ApiVersionsRequest(), 0).error_code == 0
    wire.send(peer, wire.request(peer, ApiVersionsRequest(), 0))
    assert peer.closed


@pytest.mark.parametrize("version", [0, 1])
def test_a_mechanism_that_is_not_enabled_is_refused_with_the_list(wire: SecureWire, version: int) -> None:
    peer = wire.connect()
    answer = wire.handshake(peer, "NOPE", version)
    assert (answer.error_code, answer.mechanisms) == (Error.UNSUPPORTED_SASL_MECHANISM, ALL)
    assert peer.closed


def test_only_enabled_mechanisms_are_offered() -> None:
    wire = SecureWire(sasl_enabled_mechanisms="SCRAM-SHA-256, PLAIN,GSSAPI")
    assert wire.handshake(wire.connect(), "PLAIN").mechanisms == ("PLAIN", "SCRAM-SHA-256")


def test_within_an_exchange_other_requests_get_34_in_their_own_response(wire: SecureWire) -> None:
    for request, version in ((ApiVersionsRequest(), 0), (SaslHandshakeRequest(mechanism="PLAIN"), 1)):
        peer = wire.connect()
        wire.handshake(peer, "PLAIN")
        answer = wire.ask(peer, request, version)
        assert answer.error_code == Error.ILLEGAL_SASL_STATE
        assert not getattr(answer, "api_keys", ())
        assert not getattr(answer, "mechanisms", ())
        assert peer.closed
    peer = wire.connect()
    wire.handshake(peer, "PLAIN")
    answer = wire.ask(peer, ANY, 9)
    assert (answer.brokers, answer.cluster_id) == ((), None)
    assert peer.closed


def test_after_handshake_v0_messages_have_no_headers(wire: SecureWire) -> None:
    peer = wire.connect()
    wire.handshake(peer, "PLAIN", 0)
    before = len(peer.bytes)
    wire.send(peer, frame(plain("alice", "alice-secret")))
    assert peer.bytes[before:] == b"\0\0\0\0"
    peer.pieces.clear()
    assert wire.ask(peer, ANY, 9).cluster_id == "wire"


def test_after_handshake_v0_a_failure_closes_without_a_byte(wire: SecureWire) -> None:
    peer = wire.connect()
    wire.handshake(peer, "PLAIN", 0)
    before = len(peer.bytes)
    wire.send(peer, frame(plain("alice", "x")) + frame(plain("alice", "alice-secret")))
    assert peer.closed
    assert len(peer.bytes) == before


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_of_sasl_authenticate_is_served(wire: SecureWire, version: int) -> None:
    peer = wire.connect()
    wire.handshake(peer, "PLAIN")
    assert wire.authenticate(peer, plain("alice", "alice-secret"), version).error_code == 0


def test_after_the_authentication_another_one_gets_34_and_the_connection_stays(wire: SecureWire) -> None:
    peer = wire.log_in()
    assert wire.handshake(peer, "PLAIN").error_code == Error.ILLEGAL_SASL_STATE
    answer = wire.authenticate(peer, plain("alice", "alice-secret"))
    assert answer.error_code == Error.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"
    assert wire.ask(peer, ANY, 9).cluster_id == "wire"


def test_a_large_frame_before_the_authentication_closes_the_connection(wire: SecureWire) -> None:
    peer = wire.connect()
    wire.send(peer, (600_000).to_bytes(4, "big"))
    assert peer.closed
    peer = wire.log_in()
    wire.send(peer, (600_000).to_bytes(4, "big"))
    assert not peer.closed


def test_a_failure_is_answered_late_and_nothing_is_served_meanwhile() -> None:
    wire = SecureWire(connection_failed_authentication_delay_ms=100)
    peer, other = wire.connect(), wire.connect()
    wire.handshake(peer, "PLAIN")
    before = len(peer.answers())
    frames = [wire.request(peer, SaslAuthenticateRequest(auth_bytes=plain("alice", each)), 2) for each in ("x", "y")]
    wire.send(peer, b"".join(frames))
    wire.wait(99)
    assert wire.handshake(other, "PLAIN").error_code == 0
    assert (len(peer.answers()), peer.closed) == (before, None)
    assert wire.broker.deadline() == wire.now + 1
    wire.wait(1)
    assert len(peer.answers()) == before + 1
    assert peer.closed


def test_a_client_that_leaves_during_the_delay_leaves_nothing_behind() -> None:
    wire = SecureWire(connection_failed_authentication_delay_ms=100)
    peer = wire.connect()
    wire.handshake(peer, "PLAIN")
    attempts = [wire.request(peer, SaslAuthenticateRequest(auth_bytes=plain("alice", each)), 2) for each in "xy"]
    wire.send(peer, b"".join(attempts))
    wire.broker.disconnected(wire.now, peer.number)
    wire.wait(100)
    assert not wire.broker._closed
    assert wire.broker.deadline() is None


def test_a_connection_that_a_rule_closes_at_its_handshake_leaves_nothing_behind() -> None:
    nodes = FaultyNodes()
    nodes.rule("SaslHandshake", faults.lose_reply())
    peer = nodes.connect(listener="SASL_PLAINTEXT")
    nodes.ask(peer, SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert peer.closed
    assert not nodes.runtime.broker(1)._authentication.waiting


# -- mechanisms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (plain("alice", "x"), "Authentication failed: Invalid username or password"),
        (plain("zed", "x"), "Authentication failed: Invalid username or password"),
        (plain("", "x"), "Authentication failed: username not specified"),
        (plain("alice", ""), "Authentication failed: password not specified"),
        (
            plain("alice", "alice-secret", "bob"),
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"alice\0alice-secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0alice-secret\0x\0y", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
def test_plain_refuses_with_the_text_of_kafka(wire: SecureWire, data: bytes, text: str) -> None:
    peer = wire.connect()
    wire.handshake(peer, "PLAIN")
    assert refused(wire.authenticate(peer, data)) == text
    assert peer.closed


def test_plain_accepts_the_user_as_authorization_id(wire: SecureWire) -> None:
    peer = wire.connect()
    wire.handshake(peer, "PLAIN")
    assert wire.authenticate(peer, plain("alice", "alice-secret", "alice")).error_code == 0


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
@pytest.mark.parametrize("header", ["n,,", "n,a=alice,"])
def test_scram_proves_the_password_both_ways(wire: SecureWire, algorithm: str, header: str) -> None:
    peer, client = wire.connect(), Scram(algorithm, "alice", "alice-secret", header)
    wire.handshake(peer, f"SCRAM-{algorithm.upper().replace('SHA', 'SHA-')}")
    challenge = wire.authenticate(peer, client.first)
    assert (challenge.error_code, challenge.session_lifetime_ms) == (0, 0)
    assert re.match(rb"r=abc[0-9a-z]{26},s=", challenge.auth_bytes), "Kafka's nonce has 26 characters"
    final, proof = client.final(challenge.auth_bytes)
    assert wire.authenticate(peer, final).auth_bytes == proof
    assert wire.ask(peer, ANY, 9).cluster_id == "wire"


INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"


def test_scram_refuses_a_wrong_password_at_the_second_message_and_an_unknown_user_at_the_first(
    wire: SecureWire,
) -> None:
    peer, client = wire.connect(), Scram("sha256", "alice", "wrong")
    wire.handshake(peer, "SCRAM-SHA-256")
    challenge = wire.authenticate(peer, client.first)
    assert challenge.error_code == 0
    assert refused(wire.authenticate(peer, client.final(challenge.auth_bytes)[0])) == INVALID
    peer = wire.connect()
    wire.handshake(peer, "SCRAM-SHA-256")
    assert refused(wire.authenticate(peer, Scram("sha256", "zed", "x").first)) == INVALID


@pytest.mark.parametrize(
    "first", [b"y,,n=alice,r=abc", b"hello", b"", b"\xff", b"n,,n=alice,r=abc,tokenauth=true", b"n,,m=x,n=zed,r=abc"]
)
def test_scram_refuses_a_malformed_first_message(wire: SecureWire, first: bytes) -> None:
    peer = wire.connect()
    wire.handshake(peer, "SCRAM-SHA-256")
    assert refused(wire.authenticate(peer, first)) == INVALID


@pytest.mark.parametrize("case", ["other nonce", "no message", "short proof"])
def test_scram_refuses_a_malformed_final_message(wire: SecureWire, case: str) -> None:
    peer, client = wire.connect(), Scram("sha256", "alice", "alice-secret")
    wire.handshake(peer, "SCRAM-SHA-256")
    challenge = wire.authenticate(peer, client.first).auth_bytes
    final, _ = client.final(challenge, "abcother" if case == "other nonce" else None)
    if case == "no message":
        final = b"xx"
    elif case == "short proof":
        final = final[: final.index(b",p=")] + b",p=AAAA"
    assert refused(wire.authenticate(peer, final)) == INVALID


def test_scram_refuses_a_credential_with_too_few_iterations_at_the_first_message(wire: SecureWire) -> None:
    clients = wire.node.cluster.clients
    clients.apply(replace(credential_of("alice", 1, "alice-secret", b"salt"), iterations=4_095))
    peer = wire.connect()
    wire.handshake(peer, "SCRAM-SHA-256")
    assert refused(wire.authenticate(peer, Scram("sha256", "alice", "alice-secret").first)) == INVALID
    assert peer.closed


def test_scram_refuses_another_authorization_id(wire: SecureWire) -> None:
    peer = wire.connect()
    wire.handshake(peer, "SCRAM-SHA-256")
    text = "Authentication failed: Client requested an authorization id that is different from username"
    assert refused(wire.authenticate(peer, Scram("sha256", "alice", "x", "n,a=bob,").first)) == text


def test_a_credential_that_a_client_creates_logs_in(wire: SecureWire) -> None:
    salted = hashlib.pbkdf2_hmac("sha512", b"new-secret", b"grain", 8_192)
    upsertion = ScramCredentialUpsertion(
        name="carol", mechanism=2, iterations=8_192, salt=b"grain", salted_password=salted
    )
    (row,) = wire.ask(wire.log_in(), AlterUserScramCredentialsRequest(upsertions=(upsertion,)), 0).results
    assert row.error_code == 0
    peer, client = wire.connect(), Scram("sha512", "carol", "new-secret")
    wire.handshake(peer, "SCRAM-SHA-512")
    challenge = wire.authenticate(peer, client.first).auth_bytes
    assert b"i=8192" in challenge
    assert wire.authenticate(peer, client.final(challenge)[0]).error_code == 0


def test_a_token_logs_in_until_it_ends(wire: SecureWire) -> None:
    peer = wire.connect()
    wire.handshake(peer, "OAUTHBEARER")
    answer = wire.authenticate(peer, bearer(token({"sub": "olga", "exp": wire.now // 1000 + 2}), extensions="a=b\x01"))
    assert (answer.error_code, answer.auth_bytes) == (0, b"")
    assert answer.session_lifetime_ms == (wire.now // 1000 + 2) * 1000 - wire.now
    assert wire.ask(peer, ANY, 9).cluster_id == "wire"
    wire.wait(2_500)
    before = peer.bytes
    wire.send(peer, wire.request(peer, ANY, 9))
    assert peer.closed
    assert peer.bytes == before


def tokens_refused(now_s: float) -> dict[str, str]:
    good = {"sub": "olga", "exp": now_s + 3600}
    return {
        "no exp": token({"sub": "olga"}),
        "expired": token({"sub": "olga", "exp": now_s - 1}),
        "no sub": token({"exp": now_s + 3600}),
        "sub a number": token({**good, "sub": 5}),
        "from the future": token({**good, "iat": now_s + 50}),
        "signed": token(good, "RS256"),
        "one part": "abc",
        "exp a text": token({**good, "exp": "x"}),
        "exp infinite": token({**good, "exp": float("inf")}),
        "deep": base64.urlsafe_b64encode(b"[" * 90_000).decode() + ".e30.",
    }


@pytest.mark.parametrize("case", tokens_refused(0))
def test_an_invalid_token_is_refused_after_the_client_has_read_why(wire: SecureWire, case: str) -> None:
    peer, status = wire.connect(), '{"status":"invalid_token"}'
    wire.handshake(peer, "OAUTHBEARER")
    answer = wire.authenticate(peer, bearer(tokens_refused(wire.now / 1000)[case]))
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, status.encode(), 0)
    assert refused(wire.authenticate(peer, b"\x01")) == status
    assert peer.closed


def test_a_token_names_the_only_authorization_id(wire: SecureWire) -> None:
    peer = wire.connect()
    wire.handshake(peer, "OAUTHBEARER")
    good = token({"sub": "olga", "exp": wire.now / 1000 + 60})
    assert refused(wire.authenticate(peer, bearer(good, "bob"))) == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's principal"
        " name (olga)"
    )


@pytest.mark.parametrize(
    "message", [b"n,,\x01auth=Bearer\x01\x01", b"n,,\x01auth=Bearer a b\x01\x01", b"n,,\x01other=x\x01\x01", b"hello"]
)
def test_a_message_without_a_token_is_refused(wire: SecureWire, message: bytes) -> None:
    peer = wire.connect()
    wire.handshake(peer, "OAUTHBEARER")
    assert refused(wire.authenticate(peer, message)) == INVALID.replace("SCRAM-SHA-256", "OAUTHBEARER")
    assert peer.closed


def test_another_scheme_than_bearer_closes_the_connection_without_a_byte(wire: SecureWire) -> None:
    peer = wire.connect()
    wire.handshake(peer, "OAUTHBEARER")
    before = peer.bytes
    good = bearer(token({"sub": "olga", "exp": wire.now / 1000 + 60}))
    wire.send(peer, wire.request(peer, SaslAuthenticateRequest(auth_bytes=good.replace(b"Bearer", b"Basic")), 2))
    assert (peer.closed, peer.bytes) == ("SaslAuthenticate: no bearer token", before)


# -- sessions (KIP-368) --------------------------------------------------------------------------------------


@pytest.fixture
def limited() -> SecureWire:
    """A listener whose sessions last three seconds."""
    return SecureWire(connections_max_reauth_ms=3_000)


def test_a_session_without_reauthentication_ends_with_the_next_request(limited: SecureWire) -> None:
    peer = limited.log_in()
    limited.wait(3_500)
    assert not peer.closed
    before = peer.bytes
    limited.send(peer, limited.request(peer, ANY, 9))
    assert peer.closed
    assert peer.bytes == before


def test_a_session_goes_on_after_reauthentication_even_after_its_end(limited: SecureWire) -> None:
    peer = limited.log_in()
    limited.wait(3_500)
    assert limited.handshake(peer, "PLAIN").error_code == 0
    answer = limited.authenticate(peer, plain("alice", "alice-secret"))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 3_000)
    limited.wait(2_900)
    assert limited.ask(peer, ANY, 9).cluster_id == "wire"


def test_a_second_reauthentication_is_refused_for_a_second(limited: SecureWire) -> None:
    peer = limited.log_in()
    assert limited.handshake(peer, "PLAIN").error_code == 0
    assert limited.authenticate(peer, plain("alice", "alice-secret")).error_code == 0
    limited.wait(999)
    assert limited.handshake(peer, "PLAIN").error_code == Error.ILLEGAL_SASL_STATE
    limited.wait(1)
    assert limited.handshake(peer, "PLAIN").error_code == 0


def test_within_a_reauthentication_other_requests_get_34(limited: SecureWire) -> None:
    peer = limited.log_in()
    limited.handshake(peer, "PLAIN")
    assert limited.ask(peer, ANY, 9).brokers == ()
    assert peer.closed


def test_a_reauthentication_by_a_mechanism_that_is_not_enabled_closes(limited: SecureWire) -> None:
    peer = limited.log_in()
    assert limited.handshake(peer, "NOPE") is None
    assert peer.closed


def test_reauthentication_keeps_the_principal(limited: SecureWire) -> None:
    peer = limited.log_in()
    limited.wait(1_200)
    limited.handshake(peer, "PLAIN")
    text = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert refused(limited.authenticate(peer, plain("bob", "bob-secret"))) == text
    assert peer.closed


def test_reauthentication_keeps_the_mechanism(limited: SecureWire) -> None:
    peer = limited.log_in()
    limited.wait(1_200)
    assert limited.handshake(peer, "SCRAM-SHA-256").error_code == 0
    assert limited.authenticate(peer, Scram("sha256", "alice", "alice-secret").first) is None
    assert peer.closed


def test_the_shorter_of_session_and_token_counts(limited: SecureWire) -> None:
    peer = limited.connect()
    limited.handshake(peer, "OAUTHBEARER")
    answer = limited.authenticate(peer, bearer(token({"sub": "olga", "exp": limited.now / 1000 + 2})))
    assert answer.session_lifetime_ms == 2_000


def test_a_certificate_names_no_client_of_a_listener_with_sasl(wire: SecureWire) -> None:
    peer, gone = wire.log_in(), wire.connect()
    wire.broker.disconnected(wire.now, gone.number)
    for each in (peer, gone):
        assert wire.broker.identified(wire.now, each.number, "CN=carol") == []
    assert wire.broker._connections[peer.number].principal == "User:alice"
    plain_text = Wire.connect(wire)
    wire.broker.identified(wire.now, plain_text.number, "CN=carol")
    assert wire.broker._connections[plain_text.number].principal == "User:CN=carol"


# -- secrets -------------------------------------------------------------------------------------------------


def test_no_secret_is_in_the_trace_or_the_log(wire: SecureWire) -> None:
    peer = wire.log_in()
    salted = b"salted-secret"
    upsertion = ScramCredentialUpsertion(name="x", mechanism=1, iterations=4_096, salt=b"s", salted_password=salted)
    wire.ask(peer, AlterUserScramCredentialsRequest(upsertions=(upsertion,)), 0)
    other = wire.connect()
    wire.handshake(other, "PLAIN")
    wire.authenticate(other, plain("alice", "wrong-secret"))
    seen = json.dumps(list(wire.trace.events()), default=repr) + "".join(wire.logged)
    assert "SaslAuthenticate" in seen
    assert "secret" not in seen


def test_no_secret_is_in_the_report_of_a_bug(
    wire: SecureWire, monkeypatch: pytest.MonkeyPatch, no_bug_of_koordinator: list[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise LookupError("a bug")

    peer = wire.connect()
    wire.handshake(peer, "PLAIN")
    monkeypatch.setattr(Authenticator, "respond", fail)
    wire.authenticate(peer, plain("alice", "alice-secret"))
    no_bug_of_koordinator.clear()
    assert "a bug" in "".join(wire.logged)
    assert plain("alice", "alice-secret").hex() not in "".join(wire.logged)


# -- hostile bytes -------------------------------------------------------------------------------------------

MESSAGES = st.one_of(
    st.binary(max_size=60),
    st.text(st.sampled_from("n,y=ar:\x01\0 .-bcpi"), max_size=40).map(str.encode),
    st.sampled_from(
        [
            plain("alice", "alice-secret"),
            plain("alice", "x"),
            b"n,,n=alice,r=abc",
            b"c=biws,r=abc,p=AAAA",
            b"\x01",
            bearer("e30.e30."),
            bearer(token({"sub": "o", "exp": 1e300})),
            bearer(token({"sub": "o", "exp": 10**400})),
        ]
    ),
)

STEPS = st.one_of(
    st.tuples(st.just("handshake"), st.sampled_from([*ALL, "NOPE", ""]), st.sampled_from([0, 1])),
    st.tuples(st.just("authenticate"), MESSAGES, st.sampled_from([0, 1, 2])),
    st.tuples(st.just("frame"), MESSAGES, st.just(0)),
    st.tuples(st.just("bytes"), st.binary(max_size=40), st.just(0)),
    st.tuples(st.just("metadata"), st.none(), st.just(9)),
    st.tuples(st.just("versions"), st.none(), st.sampled_from([0, 3])),
    st.tuples(st.just("wait"), st.sampled_from([1, 100, 1_000, 4_000]), st.just(0)),
)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(steps=st.lists(STEPS, max_size=12), delay_ms=st.sampled_from([0, 100]), reauth_ms=st.sampled_from([0, 3_000]))
def test_whatever_a_client_sends_only_users_are_served_and_nothing_fails(
    steps: list[tuple[str, Any, int]], delay_ms: int, reauth_ms: int
) -> None:
    """A bug would be reported, and fail the test."""
    wire = SecureWire(connection_failed_authentication_delay_ms=delay_ms, connections_max_reauth_ms=reauth_ms)
    peer, has_logged_in = wire.connect(), False
    for step, value, version in steps:
        if step == "wait":
            wire.wait(value)
        if peer.closed:
            return
        authenticator = wire.broker._connections[peer.number].authenticator
        assert authenticator is not None
        has_logged_in |= authenticator.user is not None
        before = peer.bytes
        match step:
            case "handshake":
                wire.send(peer, wire.request(peer, SaslHandshakeRequest(mechanism=value), version))
            case "authenticate":
                wire.send(peer, wire.request(peer, SaslAuthenticateRequest(auth_bytes=value), version))
            case "frame":
                wire.send(peer, frame(value))
            case "bytes":
                wire.send(peer, value)
            case "metadata":
                wire.send(peer, wire.request(peer, ANY, version))
                assert has_logged_in or b"wire" not in peer.bytes[len(before) :], "the cluster's id"
            case "versions":
                software = {"client_software_name": "c", "client_software_version": "1"}
                wire.send(peer, wire.request(peer, ApiVersionsRequest(**software), version))
    assert len(wire.broker._authentication._refused) <= 1
