"""Bearer tokens of OAUTHBEARER: unsecured ones (KIP-255), and signed ones with a set of keys (KIP-768).

A token is three parts with dots between them: header, claims and signature (RFC 7519). PyJWT checks and makes
signatures; times are arguments. Kafka: `OAuthBearerUnsecuredJws`; `BrokerJwtValidator` with jose4j.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import TYPE_CHECKING, Any

from koordinator.wire.primitives import Malformed
from koordinator.wire.values import value

from ...config.value_rules import LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...config.settings import Settings
    from ...core.dialect import Dialect

    Claims = Mapping[str, Any]
    WebKey = Mapping[str, Any]
    """A key in JSON (RFC 7517)."""

PARTS = 3
"""The parts of a token."""

PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "key_ops")
"""The fields of a private key that its public key does not have."""


@value
class BearerToken:
    """A valid token: the name of its user, and its end in ms."""

    user: str
    ends_at: int


def unsecured(now: int, token: str) -> BearerToken | None:
    """Return a token without a signature, whose claims are believed; None if it is not valid now."""
    parts = token.split(".")
    if len(parts) != PARTS or parts[2]:
        return None
    header, claims = map(_json, parts[:2])
    if header is None or claims is None or header.get("alg") != "none":
        return None
    user, ends_at = claims.get("sub"), _milliseconds(claims.get("exp"))
    if not isinstance(user, str) or not user.strip() or ends_at is None or ends_at <= now:
        return None
    if claims.get("iat") is not None:
        issued_at = _milliseconds(claims["iat"])
        if issued_at is None or issued_at > now:
            return None
    return BearerToken(user, ends_at)


def validator(settings: Settings, dialect: Dialect, keys: Sequence[WebKey]) -> Callable[[int, str], BearerToken | None]:
    """Return the function that validates tokens: with keys they are signed."""
    return SignedTokens(settings, dialect, keys).valid if keys else unsecured


class SignedTokens:
    """Validates signed tokens: signature, `exp`, `iat`, `nbf`, `iss`, `aud`, and the claims of user and scopes."""

    def __init__(self, settings: Settings, dialect: Dialect, keys: Sequence[WebKey]) -> None:
        self._settings = settings
        self._refuses_unexpected_audiences = dialect.unexpected_audiences_are_refused
        self._keys = keys

    def valid(self, now: int, token: str) -> BearerToken | None:
        """Return a token; None if it is not valid now. Raises Malformed for scopes that close the connection."""
        claims = self._verified(token)
        ends = None if claims is None else self._end(now // 1000, claims)
        if claims is None or ends is None or not self._is_for_us(claims):
            return None
        user = claims.get(self._settings.sasl_oauthbearer_sub_claim_name)
        if not self._has_valid_scopes(claims) or not isinstance(user, str) or not user.strip():
            return None
        return BearerToken(user.strip(), ends * 1000)

    def _verified(self, token: str) -> Claims | None:
        """Return the claims of a token that one of the keys has signed."""
        import jwt  # noqa: PLC0415 - only signed tokens need it

        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, RecursionError):
            return None
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm == "none":
            return None
        for key in self._keys_for(header):
            public = {name: given for name, given in key.items() if name not in PRIVATE}
            try:
                payload = jwt.PyJWS().decode(token, jwt.PyJWK(public, algorithm), [algorithm])
                claims = json.loads(payload)
            except (jwt.PyJWTError, ValueError, RecursionError):
                continue
            return claims if isinstance(claims, dict) else None
        return None

    def _keys_for(self, header: Claims) -> list[WebKey]:
        """Return the keys that may have signed a token: with its `kid` and its algorithm."""
        return [
            key
            for key in self._keys
            if header.get("kid") in {None, key.get("kid")}
            and key.get("alg") in {None, header.get("alg")}
            and key.get("use") in {None, "sig"}
        ]

    def _is_for_us(self, claims: Claims) -> bool:
        """Return whether issuer and audience are those that the settings expect."""
        if any(not isinstance(claims.get(name, ""), str) for name in ("iss", "sub", "jti")):
            return False
        issuer = self._settings.sasl_oauthbearer_expected_issuer
        return (not issuer or claims.get("iss") == issuer) and self._has_expected_audience(claims)

    def _has_expected_audience(self, claims: Claims) -> bool:
        given = self._settings.sasl_oauthbearer_expected_audience
        expected = {each.strip() for each in given.split(",") if each.strip()}
        if not expected and not self._refuses_unexpected_audiences:
            return True
        audiences = claims.get("aud")
        if audiences is None:
            return not expected
        audiences = [audiences] if isinstance(audiences, str) else audiences
        return isinstance(audiences, list) and any(each in expected for each in audiences)

    def _has_valid_scopes(self, claims: Claims) -> bool:
        """Return whether the scopes are texts that differ; there may be none. Raises Malformed for other types."""
        scopes = claims.get(self._settings.sasl_oauthbearer_scope_claim_name)
        if not isinstance(scopes, str | list):
            return True
        found: set[str] = set()
        for scope in [scopes] if isinstance(scopes, str) else scopes:
            if not isinstance(scope, str | None):
                raise Malformed("SaslAuthenticate: a scope of the token is no text")
            text = (scope or "").strip()
            if not text or text in found:
                return False
            found.add(text)
        return True

    def _end(self, now_s: int, claims: Claims) -> int | None:
        """Return the end of a token in seconds, if it is valid at a time; it has a time of issue, too."""
        skew_s = self._settings.sasl_oauthbearer_clock_skew_seconds
        ends, issued, begins = (_seconds(claims.get(name)) for name in ("exp", "iat", "nbf"))
        if ends is None or issued is None or not 0 <= issued <= ends or now_s - skew_s >= ends:
            return None
        if "nbf" in claims and (begins is None or begins > ends or begins - skew_s > now_s):
            return None
        return ends


def made(now: int, user: str, lifetime_ms: int, settings: Settings, keys: Sequence[WebKey], own: Claims) -> str:
    """Return a token for a user, signed if there are keys. Raises ValueError if none of them can sign.

    The claims `own` replace those made here; None removes one.
    """
    issuer, audience = settings.sasl_oauthbearer_expected_issuer, settings.sasl_oauthbearer_expected_audience
    claims: dict[str, Any] = {
        settings.sasl_oauthbearer_sub_claim_name: user,
        "iat": now // 1000,
        "exp": (now + lifetime_ms) / 1000 if not keys else (now + lifetime_ms) // 1000,
        "iss": issuer or None,
        "aud": audience.split(",")[0].strip() or None,
        **own,
    }
    claims = {name: given for name, given in claims.items() if given is not None}
    if not keys:
        return ".".join(_encoded(part) for part in ({"alg": "none"}, claims)) + "."
    key = next((each for each in keys if "d" in each or each.get("kty") == "oct"), None)
    if key is None:
        raise ValueError(
            "the keys of sasl.oauthbearer.jwks.endpoint.url are public: they sign no tokens; give a private key, too,"
            " or the word generated"
        )
    import jwt  # noqa: PLC0415 - as above

    jwk = jwt.PyJWK(dict(key))
    headers = {"kid": key["kid"]} if "kid" in key else None
    return jwt.PyJWS().encode(json.dumps(claims).encode(), jwk, algorithm=None, headers=headers)


def _encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def _json(part: str) -> dict[str, Any] | None:
    try:
        content = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _milliseconds(given: object) -> int | None:
    """Return a time that is given in seconds; None if it is no number."""
    if not isinstance(given, int | float) or isinstance(given, bool) or not math.isfinite(given):
        return None
    return int(min(max(given, 0), LONG_MAX // 1000) * 1000)


def _seconds(given: object) -> int | None:
    """Return a time in whole seconds; None if it is no number."""
    if not isinstance(given, int | float) or isinstance(given, bool) or not math.isfinite(given):
        return None
    return int(min(max(given, -LONG_MAX), LONG_MAX) // 1)
