"""The SASL mechanisms: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER; bytes in, bytes out.

An exchange is one attempt of a client. Its `step` takes a message, and returns the next one; the last has the name of
the user. Kafka: `PlainSaslServer`, `ScramSaslServer`, `OAuthBearerSaslServer`.
"""

from __future__ import annotations

import base64
import hmac
import re
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from koordinator.wire.primitives import Malformed
from koordinator.wire.values import value

from ...core.data.delegation_tokens import password_of
from ...core.data.scram import ITERATIONS_MIN, MECHANISMS, credential_of, digest, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...core.data.metadata_changes import DelegationTokenSet, ScramCredentialSet
    from .tokens import BearerToken

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"

SCRAM = {name: number for number, name in MECHANISMS.items()}
"""The number of each SCRAM mechanism."""

NAMES = (PLAIN, *SCRAM, OAUTHBEARER)
"""The mechanisms that a listener can enable."""

NONCE_LENGTH = 26

TOKENS = 3
"""The parts of a message of PLAIN."""

# names have no "=" and no ",", values no ","
CLIENT_FIRST = re.compile(
    r"(?P<header>n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,)(?:m=[\x01-\x2b\x2d-\x7f]+,)?"
    r"(?P<bare>n=(?P<user>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?P<extensions>(?:,[A-Za-z]+=[\x01-\x2b\x2d-\x7f]+)*))"
)
CLIENT_FINAL = re.compile(
    r"(?P<unproved>c=[A-Za-z0-9/+=]*,r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]+=[\x01-\x2b\x2d-\x7f]+)*)"
    r",p=(?P<proof>(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?)"
)
CLIENT_TOKEN = re.compile(
    r"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,"
    r"\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)*)\x01"
)
AUTHORIZATION = re.compile(r"(?P<scheme>\w+) +(?P<token>[-\w.]+)", re.ASCII)

OTHER_NAME = "Authentication failed: Client requested an authorization id that is different from username"

TOKEN_AUTHENTICATION = "tokenauth=true"  # noqa: S105 - the name of an extension, for delegation tokens (KIP-48)

REFUSED_TOKEN = '{"status":"invalid_token"}'  # noqa: S105 - no secret


class AuthenticationRefused(Exception):
    """An attempt that fails; the text is the error message of the response."""


class InvalidCredentials(AuthenticationRefused):
    """An attempt that fails for a reason which is not told, so that nobody can list users."""


@value
class SaslStep:
    """The next message of the broker. At the end it has the name of the user, and the end of its credential in ms.

    `by_delegation`: the credential is a delegation token.
    """

    data: bytes
    user: str | None = None
    ends_at: int | None = None
    by_delegation: bool = False


class SaslExchange(Protocol):
    """An attempt of a client."""

    def step(self, now: int, data: bytes) -> SaslStep:
        """Process a message. Raises AuthenticationRefused, and Malformed if the connection just closes."""


@value
class Accounts:
    """The users of a cluster: passwords for PLAIN, and credentials for SCRAM by user and number of the mechanism.

    `tokens` are delegation tokens by id, with the secret of their passwords. `valid_token`
    returns a token of OAUTHBEARER, if it is valid at a time in ms.
    """

    passwords: Mapping[str, str] = field(repr=False)
    credentials: Mapping[str, Mapping[int, ScramCredentialSet]] = field(repr=False)
    tokens: Mapping[str, DelegationTokenSet]
    token_secret: str = field(repr=False)
    valid_token: Callable[[int, str], BearerToken | None]


def exchange_of(mechanism: str, accounts: Accounts, new_nonce: Callable[[], str]) -> SaslExchange:
    """Return a new attempt by a mechanism of `NAMES`."""
    if mechanism == PLAIN:
        return PlainExchange(accounts)
    if mechanism == OAUTHBEARER:
        return TokenExchange(accounts.valid_token)
    return ScramExchange(SCRAM[mechanism], accounts, new_nonce)


class PlainExchange:
    """PLAIN (RFC 4616): one message with a name and a password."""

    def __init__(self, accounts: Accounts) -> None:
        self._passwords = accounts.passwords

    def step(self, now: int, data: bytes) -> SaslStep:
        """Compare the password."""
        del now
        parts = data.decode("utf-8", "replace").split("\0", TOKENS)
        if len(parts) != TOKENS:
            raise AuthenticationRefused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        for name, part in (("username", user), ("password", password)):
            if not part:
                raise AuthenticationRefused(f"Authentication failed: {name} not specified")
        expected = self._passwords.get(user)
        if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
            raise AuthenticationRefused("Authentication failed: Invalid username or password")
        if authorization_id not in {"", user}:
            raise AuthenticationRefused(OTHER_NAME)
        return SaslStep(b"", user)


class ScramExchange:
    """SCRAM (RFC 5802, KIP-84): two messages each way, and no password on the wire."""

    def __init__(self, mechanism: int, accounts: Accounts, new_nonce: Callable[[], str]) -> None:
        self._mechanism = mechanism
        self._accounts = accounts
        self._nonce = new_nonce()
        self._user = self._first = ""
        self._credential: ScramCredentialSet | None = None
        self._token: DelegationTokenSet | None = None

    def step(self, now: int, data: bytes) -> SaslStep:
        """Send the salt; then compare the proof of the password, and prove that the broker knows it, too."""
        del now
        text = data.decode("utf-8", "replace")
        return self._challenge(text) if self._credential is None else self._verify(self._credential, text)

    def _challenge(self, text: str) -> SaslStep:
        message = CLIENT_FIRST.fullmatch(text)
        if message is None:
            raise InvalidCredentials
        self._user = _name(message["user"])
        if TOKEN_AUTHENTICATION in message["extensions"].split(","):
            credential = self._credential_of_token(self._user)
        else:
            credential = self._accounts.credentials.get(self._user, {}).get(self._mechanism)
        if credential is None or not credential.stored_key:
            raise InvalidCredentials
        if message["authzid"] is not None and _name(message["authzid"]) != self._user:
            raise AuthenticationRefused(OTHER_NAME)
        if (credential.iterations or 0) < ITERATIONS_MIN:
            raise InvalidCredentials
        self._credential, self._nonce = credential, message["nonce"] + self._nonce
        answer = f"r={self._nonce},s={credential.salt},i={credential.iterations}"
        self._first = f"{message['bare']},{answer}"
        return SaslStep(answer.encode())

    def _verify(self, credential: ScramCredentialSet, text: str) -> SaslStep:
        message = CLIENT_FINAL.fullmatch(text)
        if message is None or message["nonce"] != self._nonce:
            raise InvalidCredentials
        signed_text = f"{self._first},{message['unproved']}".encode()
        stored_key, server_key = base64.b64decode(credential.stored_key), base64.b64decode(credential.server_key)
        signature, proof = signed(self._mechanism, stored_key, signed_text), base64.b64decode(message["proof"])
        if len(proof) != len(signature):
            raise InvalidCredentials
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(digest(self._mechanism, client_key), stored_key):
            raise InvalidCredentials
        answer = base64.b64encode(signed(self._mechanism, server_key, signed_text)).decode()
        token = self._token
        if token is None:
            return SaslStep(f"v={answer}".encode(), self._user)
        owner = token.owner.partition(":")[2]
        return SaslStep(f"v={answer}".encode(), owner, token.expires_at, by_delegation=True)

    def _credential_of_token(self, token_id: str) -> ScramCredentialSet | None:
        """Return the credential of a delegation token, if there is one: its password is its HMAC (KIP-48)."""
        self._token = self._accounts.tokens.get(token_id)
        if self._token is None or not self._accounts.token_secret:
            return None
        password = password_of(self._accounts.token_secret, token_id)
        return credential_of(token_id, self._mechanism, password, self._token.token_id.encode())


def _name(text: str) -> str:
    """Return a name without SCRAM's escapes."""
    return text.replace("=2C", ",").replace("=3D", "=")


class TokenExchange:
    """OAUTHBEARER (RFC 7628, KIP-255): one message with a token."""

    def __init__(self, valid: Callable[[int, str], BearerToken | None]) -> None:
        self._valid = valid
        self._refusal: str | None = None

    def step(self, now: int, data: bytes) -> SaslStep:
        """Check the token. A refused one gets its reason, and the client's next message the error."""
        if self._refusal is not None:
            raise AuthenticationRefused(self._refusal)
        message = CLIENT_TOKEN.fullmatch(data.decode("utf-8", "replace"))
        pairs = {} if message is None else dict(pair.split("=", 1) for pair in message["pairs"].split("\x01")[:-1])
        if message is None or "auth" not in pairs:
            raise InvalidCredentials
        authorization = AUTHORIZATION.fullmatch(pairs["auth"])
        if authorization is None:
            raise InvalidCredentials
        if authorization["scheme"].lower() != "bearer":
            raise Malformed("SaslAuthenticate: no bearer token")
        token = self._valid(now, authorization["token"])
        if token is None:
            self._refusal = REFUSED_TOKEN
            return SaslStep(REFUSED_TOKEN.encode())
        authorization_id = _name(message["authzid"] or "")
        if authorization_id not in {"", token.user}:
            raise AuthenticationRefused(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different"
                f" from the token's principal name ({token.user})"
            )
        return SaslStep(b"", token.user, token.ends_at)
