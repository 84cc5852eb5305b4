"""Messages of SASL clients: PLAIN (RFC 4616), SCRAM (RFC 5802), and OAUTHBEARER (RFC 7628) with unsecured tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


def token(claims: Mapping[str, object], algorithm: str = "none") -> str:
    parts = ({"alg": algorithm}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def bearer(token: str, authorization_id: str = "", extensions: str = "") -> bytes:
    name = f"a={authorization_id}" if authorization_id else ""
    return f"n,{name},\x01auth=Bearer {token}\x01{extensions}\x01".encode()


class Scram:
    """The two messages of one authentication, written without the code of koordinator's broker and client."""

    def __init__(self, algorithm: str, user: str, password: str, header: str = "n,,", extensions: str = "") -> None:
        self._algorithm, self._password, self._header = algorithm, password, header
        self._bare = f"n={user},r=abc{extensions}"

    @property
    def first(self) -> bytes:
        return (self._header + self._bare).encode()

    def final(self, challenge: bytes, nonce: str | None = None) -> tuple[bytes, bytes]:
        """Return the final message, with another nonce than the broker's, and the answer that proves the broker."""
        fields = dict(part.split("=", 1) for part in challenge.decode().split(","))
        assert fields["r"].startswith("abc")
        salted = hashlib.pbkdf2_hmac(
            self._algorithm, self._password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
        )
        binding = base64.b64encode(self._header.encode()).decode()
        unproved = f"c={binding},r={nonce or fields['r']}"
        text = f"{self._bare},{challenge.decode()},{unproved}".encode()
        key = hmac.digest(salted, b"Client Key", self._algorithm)
        signature = hmac.digest(hashlib.new(self._algorithm, key).digest(), text, self._algorithm)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        server = hmac.digest(hmac.digest(salted, b"Server Key", self._algorithm), text, self._algorithm)
        return f"{unproved},p={proof}".encode(), b"v=" + base64.b64encode(server)
