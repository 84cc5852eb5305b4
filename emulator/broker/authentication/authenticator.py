"""The states of a connection to a listener with SASL: handshake, exchange, session, re-authentication (KIP-368).

Kafka: `SaslServerAuthenticator`, and `KafkaChannel` for the end of a session.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from koordinator.wire.primitives import Malformed
from koordinator.wire.values import value

from .mechanisms import AuthenticationRefused, InvalidCredentials, exchange_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from koordinator.wire.apis import Message

    from .mechanisms import Accounts, SaslExchange

RECEIVE_BYTES_MAX = 524_288
"""The largest message before the end of the authentication (`sasl.server.max.receive.size`)."""

REAUTHENTICATION_INTERVAL_MS = 1_000
"""The shortest time between two re-authentications of a connection."""

ILLEGAL_AFTER = "SaslAuthenticate request received after successful authentication"


class NotAuthenticated(Malformed):
    """A request of a client that does not log in; clients without SASL repeat it on each new connection."""


class State(Enum):
    """The next input of a connection."""

    START = auto()
    HANDSHAKE = auto()
    """The same after ApiVersions, which is answered once."""
    EXCHANGE = auto()
    DONE = auto()


@value
class SaslVerdict:
    """The response to a request of an authentication. If `ends`, it leaves late, and the connection closes.

    Without a response the connection only closes. `tokens`: bytes that leave without a header, after a handshake v0.
    """

    response: Message | None
    ends: str = ""
    tokens: bytes | None = None


class Authenticator:
    """The authentication of one connection.

    `mechanisms` are those of the listener, in the order of responses. A session ends after `reauth_ms`, or with its
    credential; 0 sets no limit.
    """

    def __init__(
        self, mechanisms: Sequence[str], accounts: Accounts, reauth_ms: int, new_nonce: Callable[[], str]
    ) -> None:
        self._mechanisms = tuple(mechanisms)
        self._accounts = accounts
        self._reauth_ms = reauth_ms
        self._new_nonce = new_nonce
        self._state = State.START
        self._mechanism = ""
        self._exchange: SaslExchange | None = None
        self._has_headers = True
        self._is_repeated = self._is_other_mechanism = False
        self._repeated_at: int | None = None
        self._ends_at: int | None = None
        self.user: str | None = None
        """The name of the authenticated user."""
        self.has_token = False
        """Whether the user has authenticated by a delegation token."""

    @property
    def is_open(self) -> bool:
        """Whether requests of every API are served."""
        return self._state is State.DONE

    @property
    def expects_tokens(self) -> bool:
        """Whether the next frame is a message of the exchange, without a header."""
        return self._state is State.EXCHANGE and not self._has_headers

    @property
    def is_in_exchange(self) -> bool:
        """Whether only messages of the exchange are served."""
        return self._state is State.EXCHANGE

    def check(self, now: int, key: int) -> None:
        """Raise Malformed, which closes the connection, if a request of an API is not expected now.

        It is NotAuthenticated before the authentication.
        """
        if self._state is State.DONE:
            if self._ends_at is not None and now >= self._ends_at and key != ApiKey.SASL_HANDSHAKE:
                raise Malformed(f"the session of User:{self.user} has ended: the client did not authenticate again")
            return
        if self._state is State.EXCHANGE or key == ApiKey.SASL_HANDSHAKE:
            return
        if self._state is State.START and key == ApiKey.API_VERSIONS:
            return
        raise NotAuthenticated(f"a request before the authentication, which begins with SaslHandshake (api key {key})")

    def expire(self, now: int) -> bool:
        """End the session, and return whether there is one: the next request closes the connection (KIP-368)."""
        is_open = self.user is not None and (self._ends_at is None or self._ends_at > now)
        if is_open:
            self._ends_at = now
        return is_open

    def told_versions(self) -> None:
        """Expect a handshake: ApiVersions was answered without an error."""
        assert self._state is State.START, "ApiVersions is answered once, before the handshake"
        self._state = State.HANDSHAKE

    def respond(self, now: int, version: int, request: Message) -> SaslVerdict | None:
        """Return the response to a request of an authentication; None if it has no part in one."""
        if isinstance(request, SaslHandshakeRequest):
            if self._state is State.EXCHANGE:
                illegal = SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE)
                return SaslVerdict(illegal, "SaslHandshake within an exchange")
            return self._handshake(now, version, request.mechanism)
        if isinstance(request, SaslAuthenticateRequest):
            if self._state is State.DONE:
                error = Error.ILLEGAL_SASL_STATE
                return SaslVerdict(SaslAuthenticateResponse(error_code=error, error_message=ILLEGAL_AFTER))
            return self._authenticate(now, request.auth_bytes)
        return None

    def take_tokens(self, now: int, data: bytes) -> SaslVerdict:
        """Process a message without a header."""
        verdict = self._authenticate(now, data)
        if verdict.ends:
            return SaslVerdict(None, verdict.ends)
        assert isinstance(verdict.response, SaslAuthenticateResponse)
        return SaslVerdict(None, tokens=verdict.response.auth_bytes)

    def _handshake(self, now: int, version: int, mechanism: str) -> SaslVerdict:
        is_done = self._state is State.DONE
        if is_done and not self._may_repeat(now):
            return SaslVerdict(SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE))
        if is_done and mechanism not in self._mechanisms:
            return SaslVerdict(None, f"the mechanism {mechanism!r:.40} is not enabled")
        if mechanism not in self._mechanisms:
            error = Error.UNSUPPORTED_SASL_MECHANISM
            response = SaslHandshakeResponse(error_code=error, mechanisms=self._mechanisms)
            return SaslVerdict(response, f"the mechanism {mechanism!r:.40} is not enabled")
        if is_done:
            self._repeated_at = now
        self._is_repeated, self._is_other_mechanism = is_done, is_done and mechanism != self._mechanism
        self._state, self._has_headers = State.EXCHANGE, version > 0
        self._mechanism = mechanism
        self._exchange = exchange_of(mechanism, self._accounts, self._new_nonce)
        return SaslVerdict(SaslHandshakeResponse(mechanisms=self._mechanisms))

    def _may_repeat(self, now: int) -> bool:
        """Return whether a session may begin anew: it has an end, and did not just do so."""
        is_early = self._repeated_at is not None and now - self._repeated_at < REAUTHENTICATION_INTERVAL_MS
        return self._ends_at is not None and not is_early

    def _authenticate(self, now: int, data: bytes) -> SaslVerdict:
        if self._is_other_mechanism:
            return SaslVerdict(None, "another mechanism than that of the session")
        assert self._exchange is not None, "a handshake begins an exchange"
        try:
            step = self._exchange.step(now, data)
        except InvalidCredentials:
            attempt = "re-authentication" if self._is_repeated else "authentication"
            return _refused(
                f"Authentication failed during {attempt} due to invalid credentials with SASL mechanism"
                f" {self._mechanism}"
            )
        except AuthenticationRefused as error:
            return _refused(str(error))
        if step.user is not None and self._is_repeated and step.user != self.user:
            return _refused(
                f"Cannot change principals during re-authentication from User.{self.user}: User.{step.user}"
            )
        lifetime_ms = 0 if step.user is None else self._begin_session(now, step.user, step.ends_at)
        self.has_token = step.by_delegation
        return SaslVerdict(
            SaslAuthenticateResponse(error_message="", auth_bytes=step.data, session_lifetime_ms=lifetime_ms)
        )

    def _begin_session(self, now: int, user: str, ends_at: int | None) -> int:
        """Open the connection, and return for how long, in ms; 0 has no end."""
        ends = [each for each in (ends_at, now + self._reauth_ms if self._reauth_ms else None) if each is not None]
        self._state, self._exchange = State.DONE, None
        self.user, self._ends_at = user, min(ends, default=None)
        # a token may have ended within the allowed skew of clocks
        return 0 if self._ends_at is None else max(self._ends_at - now, 0)


def _refused(text: str) -> SaslVerdict:
    error, reason = Error.SASL_AUTHENTICATION_FAILED, text.removeprefix("Authentication failed: ")
    response = SaslAuthenticateResponse(error_code=error, error_message=text)
    return SaslVerdict(response, f"the authentication failed: {reason}")
