"""The authentications of a broker's connections: their requests, their ends, and the principals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.frames import frame as pack_frame

from ..core.acls.acl import user_principal
from ..core.effects import Reply
from .authentication.authenticator import RECEIVE_BYTES_MAX, SaslVerdict
from .authentication.listener_security import ListenerSecurity
from .error_responses import error_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator.wire.apis import Message

    from ..config.settings import Settings
    from ..core.cluster import ClusterState
    from ..core.effects import Call, Effect
    from .connections import Connection

SASL_APIS = frozenset({int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)})


class Authentication:
    """Serves the requests of authentications.

    `perform` and `write` answer a request and a message without a header; `end` closes a connection for a reason.
    """

    def __init__(
        self,
        settings: Settings,
        cluster: ClusterState,
        connections: Mapping[int, Connection],
        perform: Callable[[int, Iterable[Effect]], None],
        write: Callable[[Connection, bytes], None],
        end: Callable[[int, Connection, str], None],
    ) -> None:
        self.security = ListenerSecurity(settings, cluster)
        self._settings = settings
        self._connections = connections
        self._perform, self._write, self._end = perform, write, end
        self.waiting: dict[int, Connection] = {}
        """The connections that have not authenticated, or do so again."""
        self._refused: list[tuple[int, Connection, Call | None, SaslVerdict]] = []
        """Failed authentications, whose responses leave late, in the order of their times."""

    def begin(self, peer: Connection) -> None:
        """Give a new connection the authenticator of its listener."""
        peer.authenticator = self.security.authenticator(peer.listener)
        if peer.authenticator is not None:
            peer.frames.limit = min(peer.frames.limit, RECEIVE_BYTES_MAX)
            self.waiting[peer.number] = peer

    def forget(self, connection: int) -> None:
        """Forget a connection that has closed, or needs no authentication."""
        self.waiting.pop(connection, None)

    def expire(self, now: int, user: str | None) -> int:
        """End the sessions of a user, or of all users, and return their number."""
        authenticators = [peer.authenticator for peer in self._connections.values() if peer.authenticator is not None]
        return sum(each.expire(now) for each in authenticators if user in (None, each.user))

    def deadline(self) -> int | None:
        """Return the time of the next `tick`."""
        return self._refused[0][0] if self._refused else None

    def tick(self, now: int) -> None:
        """End the failed authentications that are due."""
        while self._refused and self._refused[0][0] <= now:
            _, peer, call, verdict = self._refused.pop(0)
            self._end_refused(now, peer, call, verdict)

    def serve(self, now: int, call: Call, request: Message) -> bool:
        """Serve a request of an authentication, or refuse one within it; return False for another request.

        Others need not be asked: the API is none of `SASL_APIS`, and the connection is not `waiting`.
        """
        peer = self._connections.get(call.connection)
        if peer is None or peer.authenticator is None:
            return False
        verdict = peer.authenticator.respond(now, call.api_version, request)
        if verdict is None:
            if not peer.authenticator.is_in_exchange:
                return False
            response = error_response(call, request, Error.ILLEGAL_SASL_STATE)
            verdict = SaslVerdict(response, "a request within an exchange")
        if verdict.ends:
            self._refuse(now, peer, call, verdict)
        else:
            self._perform(now, [Reply(call, verdict.response)])
            self._follow(peer)
        return True

    def take_tokens(self, now: int, peer: Connection, data: bytes) -> None:
        """Answer a message without a header."""
        assert peer.authenticator is not None, "only authentications have messages without a header"
        verdict = peer.authenticator.take_tokens(now, data)
        if verdict.tokens is None:
            peer.is_refused = True
            self._refuse(now, peer, None, verdict)
        else:
            self._write(peer, pack_frame(verdict.tokens))
            self._follow(peer)

    def told_versions(self, connection: int) -> None:
        """Expect a handshake after a response to ApiVersions."""
        peer = self.waiting.get(connection)
        if peer is not None and peer.authenticator is not None:
            peer.authenticator.told_versions()

    def _follow(self, peer: Connection) -> None:
        """Serve all requests of a connection that has authenticated, until it does so again."""
        if peer.authenticator is None or peer.number not in self._connections:
            return
        if peer.authenticator.is_open:
            self.forget(peer.number)
            peer.frames.limit = self._settings.socket_request_max_bytes
            peer.principal = user_principal(peer.authenticator.user)
            peer.has_token = peer.authenticator.has_token
        else:
            assert peer.authenticator.is_in_exchange, "a handshake has begun one"
            self.waiting[peer.number] = peer

    def _refuse(self, now: int, peer: Connection, call: Call | None, verdict: SaslVerdict) -> None:
        """End a failed authentication after `connection.failed.authentication.delay.ms`."""
        delay_ms = self._settings.connection_failed_authentication_delay_ms
        if delay_ms:
            self._refused.append((now + delay_ms, peer, call, verdict))
        else:
            self._end_refused(now, peer, call, verdict)

    def _end_refused(self, now: int, peer: Connection, call: Call | None, verdict: SaslVerdict) -> None:
        if peer.number in self._connections and call is not None and verdict.response is not None:
            self._perform(now, [Reply(call, verdict.response)])
        self._end(now, peer, verdict.ends)
