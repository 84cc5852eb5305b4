"""Messages of SASL clients: PLAIN (RFC 4616), and OAUTHBEARER (RFC 7628) with unsecured tokens."""

from __future__ import annotations

import base64
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
