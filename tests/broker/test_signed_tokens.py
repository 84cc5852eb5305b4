"""Signed tokens of OAUTHBEARER: what a broker accepts as jose4j does, and what it makes for a test (KIP-768).

`tests/kafka/test_signed_tokens_on_kafka.py` compares more tokens with brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jwt
import pytest
from builders.sasl_messages import token
from builders.signed_tokens import CURVE, KNOWN, STRANGE, key, key_set, signed

from koordinator.emulator.broker.authentication.tokens import BearerToken, made, validator
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.config.value_rules import InvalidSetting
from koordinator.emulator.core.dialect import dialect_of_release
from koordinator.emulator.server.token_keys import token_keys
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_700_000_000_123
NOW_S = NOW // 1000


def claims(**changes: object) -> dict[str, object]:
    given = {"sub": "olga", "iat": NOW_S, "exp": NOW_S + 60, **changes}
    return {name: value for name, value in given.items() if value is not None}


def accepted(text: str, release: str = "4.4", **settings: str) -> BearerToken | None:
    found, _ = Settings.of("fast", {f"sasl.oauthbearer.{name.replace('_', '.')}": v for name, v in settings.items()})
    return validator(found, dialect_of_release(release, new_coordinator=True), key_set())(NOW, text)


OLGA = BearerToken("olga", (NOW_S + 60) * 1000)


@pytest.mark.parametrize("name", [KNOWN, CURVE])
def test_a_token_that_a_known_key_has_signed_lasts_until_its_end(name: str) -> None:
    assert accepted(signed(claims(), name)) == OLGA


@pytest.mark.parametrize(
    "text",
    [
        signed(claims(), STRANGE),
        signed(claims(), STRANGE, key_id=KNOWN),
        signed(claims(), key_id=CURVE),
        token(claims()),
        signed(claims()).rpartition(".")[0] + ".",
        signed(claims()) + ".x",
        jwt.PyJWS().encode(b"[]", key(KNOWN), "RS256"),
        jwt.PyJWS().encode(b"x" * 40, b"x" * 40, "HS256"),
        "abc",
    ],
    ids=["strange", "impostor", "other key", "unsecured", "cut", "longer", "list", "hmac", "text"],
)
def test_a_token_without_the_signature_of_a_known_key_is_refused(text: str) -> None:
    assert accepted(text) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": " "},
        {"exp": NOW_S - 30},
        {"iat": NOW_S + 61},
        {"nbf": NOW_S + 31},
        {"nbf": "x"},
        {"exp": float("inf")},
        {"scope": ["a", "a"]},
        {"scope": ""},
        {"jti": 5},
    ],
    ids=str,
)
def test_a_token_that_is_not_valid_now_is_refused(changes: dict[str, object]) -> None:
    assert accepted(signed(claims(**changes))) is None


def test_clocks_may_differ_by_the_skew() -> None:
    late = signed(claims(iat=NOW_S - 100, exp=NOW_S - 29))
    assert accepted(late) == BearerToken("olga", (NOW_S - 29) * 1000)
    assert accepted(late, clock_skew_seconds="28") is None


def test_a_scope_that_is_no_text_closes_the_connection() -> None:
    with pytest.raises(Malformed):
        accepted(signed(claims(scope=[5])))


def test_issuer_audience_and_names_of_claims_are_settings() -> None:
    text = signed(claims(sub=None, user="olga", iss="me", aud=["x", "kafka"]))
    settings = {"expected_issuer": "me", "expected_audience": "broker, kafka", "sub_claim_name": "user"}
    assert accepted(text, **settings) == OLGA
    for name in ("expected_issuer", "expected_audience", "sub_claim_name"):
        assert accepted(text, **(settings | {name: "other"})) is None


def test_a_broker_that_expects_no_audience_refuses_one_until_4_3() -> None:
    text = signed(claims(aud="kafka"))
    assert accepted(text, "4.4") == OLGA
    assert accepted(text, "4.3") is None


@pytest.mark.parametrize("keys", [[], key_set(private=True)], ids=["unsecured", "signed"])
def test_a_token_that_is_made_here_is_accepted_here(keys: list[Any]) -> None:
    settings, _ = Settings.of("fast", {"sasl.oauthbearer.expected.audience": "a,b"})
    valid = validator(settings, dialect_of_release("4.4", new_coordinator=True), keys)
    assert valid(NOW, made(NOW, "olga", 60_877, settings, keys, {})) == BearerToken("olga", NOW - 123 + 61_000)
    assert valid(NOW, made(NOW, "olga", -40_000, settings, keys, {})) is None
    assert valid(NOW, made(NOW, "olga", 60_000, settings, keys, {"exp": None})) is None


def test_public_keys_make_no_token() -> None:
    settings, _ = Settings.of("fast", {})
    with pytest.raises(ValueError, match=r"the keys of sasl\.oauthbearer\.jwks\.endpoint\.url are public"):
        made(NOW, "olga", 60_000, settings, key_set(), {})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file or directory"),
        ("{", "the file has no JSON"),
        ("[]", r"the file has no JSON Web Key Set \(RFC 7517\)"),
        ('{"keys": []}', r"the file has no JSON Web Key Set \(RFC 7517\)"),
        ('{"keys": [{"alg": "RS256"}]}', r"the file has no JSON Web Key Set \(RFC 7517\)"),
    ],
)
def test_a_file_without_keys_is_refused(tmp_path: Path, content: str | None, problem: str) -> None:
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidSetting, match=f"^sasl.oauthbearer.jwks.endpoint.url={path.as_uri()}: {problem}$"):
        token_keys(path.as_uri())


def test_keys_behind_a_network_are_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidSetting, match="must be a file: URL, or generated; save the key set"):
        token_keys("https://tokens.example/keys")
