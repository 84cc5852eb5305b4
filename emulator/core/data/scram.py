"""The keys of SCRAM credentials (RFC 5802, KIP-84). Kafka: `ScramFormatter` and `ScramMechanism`."""

from __future__ import annotations

import base64
import hashlib
import hmac

from .metadata_changes import ScramCredentialSet

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""The mechanisms by the number that requests use."""

HASHES = {1: "sha256", 2: "sha512"}

ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 16_384


def digest(mechanism: int, data: bytes) -> bytes:
    """Return the hash of data."""
    return hashlib.new(HASHES[mechanism], data).digest()


def signed(mechanism: int, key: bytes, data: bytes) -> bytes:
    """Return the HMAC of data."""
    return hmac.digest(key, data, HASHES[mechanism])


def credential_of_salted(
    user: str, mechanism: int, iterations: int, salt: bytes, salted_password: bytes
) -> ScramCredentialSet:
    """Return the credential of a salted password: the broker keeps keys, and no password."""
    stored_key = digest(mechanism, signed(mechanism, salted_password, b"Client Key"))
    server_key = signed(mechanism, salted_password, b"Server Key")
    return ScramCredentialSet(user, mechanism, iterations, *map(_text, (salt, stored_key, server_key)))


def credential_of(user: str, mechanism: int, password: str, salt: bytes) -> ScramCredentialSet:
    """Return the credential of a password, with the fewest iterations that Kafka accepts."""
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, ITERATIONS_MIN)
    return credential_of_salted(user, mechanism, ITERATIONS_MIN, salt, salted)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
