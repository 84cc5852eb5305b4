"""Signed tokens (RFC 7519) and their key sets (RFC 7517), made by the libraries, without code of koordinator."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

if TYPE_CHECKING:
    from collections.abc import Mapping

KNOWN, CURVE, STRANGE = "known", "curve", "strange"
"""The names of keys: two that the broker has, and one that it has not."""


@cache
def key(name: str) -> Any:
    if name == CURVE:
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65_537, key_size=2048)


def key_set(*, private: bool = False) -> list[dict[str, Any]]:
    """Return the keys that a broker has, by default without their private parts."""
    rsa_key, curve = key(KNOWN), key(CURVE)
    if private:
        return [{**RSAAlgorithm.to_jwk(rsa_key, as_dict=True), "kid": KNOWN}]
    return [
        {**RSAAlgorithm.to_jwk(rsa_key.public_key(), as_dict=True), "kid": KNOWN, "use": "sig"},
        {**ECAlgorithm.to_jwk(curve.public_key(), as_dict=True), "kid": CURVE, "alg": "ES256"},
    ]


def key_file(*, private: bool = False) -> str:
    return json.dumps({"keys": key_set(private=private)})


def signed(claims: Mapping[str, object], name: str = KNOWN, *, algorithm: str = "", key_id: str | None = None) -> str:
    """Return a token that a key has signed; `key_id` is the name of its key in the token, "" for none."""
    chosen = algorithm or ("ES256" if name == CURVE else "RS256")
    known_as = name if key_id is None else key_id
    headers = {"kid": known_as} if known_as else None
    return jwt.PyJWS().encode(json.dumps(claims).encode(), key(name), chosen, headers)
