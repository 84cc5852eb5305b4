"""The security of a node's listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .authenticator import Authenticator
from .mechanisms import NONCE_LENGTH, Accounts
from .protocols import WITH_SASL, enabled_mechanisms, protocol_of
from .tokens import validator

if TYPE_CHECKING:
    from ...config.settings import Settings
    from ...core.cluster import ClusterState


class ListenerSecurity:
    """The protocols of listeners by name, and an authenticator for each connection to one with SASL."""

    def __init__(self, settings: Settings, cluster: ClusterState) -> None:
        self._settings = settings
        self._cluster = cluster
        self._mechanisms = enabled_mechanisms(settings)
        self._protocols: dict[str, str] = {}

    def protocol(self, listener: str) -> str:
        """Return the security protocol of a listener."""
        if listener not in self._protocols:
            self._protocols[listener] = protocol_of(listener, self._settings)
        return self._protocols[listener]

    def authenticator(self, listener: str) -> Authenticator | None:
        """Return the authenticator of a new connection; None without SASL."""
        if self.protocol(listener) not in WITH_SASL:
            return None
        clients = self._cluster.clients
        valid_token = validator(self._settings, self._cluster.features.dialect, clients.token_keys)
        secret = self._settings.delegation_token_secret_key
        accounts = Accounts(clients.passwords, clients.credentials, clients.tokens, secret, valid_token)
        return Authenticator(self._mechanisms, accounts, self._settings.connections_max_reauth_ms, self._new_nonce)

    def _new_nonce(self) -> str:
        return self._cluster.new_uuid().hex[:NONCE_LENGTH]
