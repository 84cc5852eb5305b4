"""The keys that sign tokens of OAUTHBEARER: those of a file, or one made for this process."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.install_hint import install_hint
from ..config.value_rules import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING = "sasl.oauthbearer.jwks.endpoint.url"

GENERATED = "generated"

RSA_BITS = 2048


def token_keys(url: str) -> tuple[Mapping[str, Any], ...]:
    """Return the keys of a setting: none if it is empty, a new one for `generated`. Raises InvalidSetting."""
    if not url:
        return ()
    try:
        import jwt  # noqa: F401, PLC0415 - a large import, which only signed tokens need
    except ImportError as error:
        raise InvalidSetting(f"{SETTING} needs PyJWT, which is not installed: {install_hint('oauth')}") from error
    if url == GENERATED:
        return (_made_for_process(),)
    from urllib.parse import urlsplit  # noqa: PLC0415 - as above
    from urllib.request import url2pathname  # noqa: PLC0415 - as above

    parts = urlsplit(url)
    if parts.scheme != "file":
        raise InvalidSetting(
            f"{SETTING}={url}: must be a file: URL, or {GENERATED}; save the key set of a provider in a file"
        )
    path = Path(url2pathname(parts.path))
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise InvalidSetting(f"{SETTING}={url}: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidSetting(f"{SETTING}={url}: the file has no JSON") from error
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, list) or not keys or not all(isinstance(key, dict) and "kty" in key for key in keys):
        raise InvalidSetting(f"{SETTING}={url}: the file has no JSON Web Key Set (RFC 7517)")
    return tuple(keys)


@cache
def _made_for_process() -> Mapping[str, Any]:
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - as above
    from jwt.algorithms import RSAAlgorithm  # noqa: PLC0415 - as above

    key = rsa.generate_private_key(public_exponent=65_537, key_size=RSA_BITS)
    return {**RSAAlgorithm.to_jwk(key, as_dict=True), "kid": "koordinator", "alg": "RS256"}
