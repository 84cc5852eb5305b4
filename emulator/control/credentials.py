"""Operations on what clients authenticate with: tokens, sessions of SASL, and the certificate of the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..broker.authentication.tokens import made
from ..config.suggest import UnknownWord, did_you_mean
from ..trace.events import VerbUsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..broker.cluster_runtime import ClusterRuntime
    from .nodes import Host

RENEWED, EXPIRED, UNTRUSTED = "renewed", "expired", "untrusted"

CERTIFICATES = (RENEWED, EXPIRED, UNTRUSTED)
"""The certificates that brokers can get."""

LIFETIME_MS = 3_600_000


class Credentials:
    """Operations on tokens, sessions and certificates. No token is in the trace."""

    def __init__(self, runtime: ClusterRuntime, host: Host) -> None:
        self._runtime = runtime
        self._host = host

    def token(
        self, now: int, *, user: str, lifetime_ms: int = LIFETIME_MS, claims: Mapping[str, Any] | None = None
    ) -> str:
        """Return a token of SASL/OAUTHBEARER for a user; it has expired if its lifetime is not above 0.

        `claims` are added, and replace those of the token; null removes one. It is signed if the cluster has keys
        (`sasl.oauthbearer.jwks.endpoint.url`). Raises ValueError if none of them is private.
        """
        if not user:
            raise ValueError("user='': must be a name")
        cluster = self._runtime.cluster
        return made(now, user, lifetime_ms, cluster.settings, cluster.clients.token_keys, claims or {})

    def expire_authentication(self, now: int, *, user: str | None = None) -> int:
        """End the SASL sessions of a user, or of all, and return their number (KIP-368).

        A connection closes with its next request, unless the client authenticates again before.
        """
        brokers = [self._runtime.broker(node) for node, state in self._runtime.states.items() if state != "down"]
        ended = sum(broker.expire_authentication(now, user) for broker in brokers)
        self._note(now, "expire_authentication", {} if user is None else {"user": user})
        return ended

    def rotate_certificate(self, now: int, *, to: str = RENEWED) -> None:
        """Give the brokers another certificate: a renewed one, one that has expired, or an untrusted one.

        Connections that are open go on, as after a change of `ssl.keystore.location` (KIP-226). Raises ValueError
        without a listener with TLS, and for an expired certificate of an authority whose key is not known here.
        """
        if to not in CERTIFICATES:
            choices = ", ".join(CERTIFICATES)
            raise UnknownWord(f"to={to!r}: must be one of {choices}{did_you_mean(to, CERTIFICATES)}")
        self._host.rotate_certificate(to)
        self._note(now, "rotate_certificate", {"to": to})

    def _note(self, now: int, verb: str, arguments: dict[str, object]) -> None:
        trace = self._runtime.trace
        trace.add(trace.now_us(), VerbUsed(verb, None, now, arguments), self._runtime.cluster.brokers.controller_id)
