"""TLS and SASL of a client's connections, under the names of Kafka's client settings."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

from .errors import AuthenticationFailed, RequiredVersion, Unreachable

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from .connection import BrokerConnection

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

MECHANISMS = ("PLAIN", *HASHES)

_HANDSHAKE = RequiredVersion(ApiKey.SASL_HANDSHAKE, 1, "1.0")
_AUTHENTICATE = RequiredVersion(ApiKey.SASL_AUTHENTICATE, 0, "1.0")

_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


def properties(text: str) -> dict[str, str]:
    """Return the entries of a Java properties file; an entry goes on after a backslash at the end of its line."""
    found = {}
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        entry = line.strip()
        if entry and entry[0] not in "#!":
            name, _, value = (part.strip() for part in entry.partition("="))
            found[name] = value
    return found


@dataclass(frozen=True)
class ConnectionSecurity:
    """The security protocol of connections, with a user for SASL and PEM files for TLS."""

    protocol: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str | None = None
    key_file: str | None = None
    checks_host: bool = True

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> ConnectionSecurity:
        """Return what client settings say, under Kafka's names or librdkafka's. Raises ValueError with the setting.

        Settings that are not about security have no effect.
        """
        protocol = settings.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in PROTOCOLS:
            raise ValueError(f"security.protocol={protocol}: must be one of {', '.join(PROTOCOLS)}")
        for store in ("truststore", "keystore"):
            kind = settings.get(f"ssl.{store}.type", "JKS").upper()
            if f"ssl.{store}.location" in settings and kind != "PEM":
                raise ValueError(f"ssl.{store}.type={kind}: only PEM is read (ssl.{store}.type=PEM)")
        mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "PLAIN"))
        options = {
            name: quoted or plain for name, quoted, plain in _JAAS_OPTION.findall(settings.get("sasl.jaas.config", ""))
        }
        user = settings.get("sasl.username", _unescaped(options.get("username", "")))
        if protocol.startswith("SASL"):
            if mechanism not in MECHANISMS:
                raise ValueError(f"sasl.mechanism={mechanism}: must be one of {', '.join(MECHANISMS)}")
            if not user:
                raise ValueError("sasl.jaas.config: must have a username and a password")
        return cls(
            protocol,
            mechanism,
            user,
            settings.get("sasl.password", _unescaped(options.get("password", ""))),
            settings.get("ssl.truststore.location", settings.get("ssl.ca.location")),
            settings.get("ssl.keystore.location"),
            bool(settings.get("ssl.endpoint.identification.algorithm", "https")),
        )

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol.endswith("SSL")

    def secured(self, plain: socket.socket, host: str, peer: str) -> socket.socket:
        """Return a connection after its TLS handshake, if the protocol has one. Raises Unreachable, or TimeoutError."""
        if not self.has_tls:
            return plain
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            context.check_hostname = self.checks_host
            if self.key_file is not None:
                context.load_cert_chain(self.key_file)
            return context.wrap_socket(plain, server_hostname=host)
        except TimeoutError:
            raise
        except OSError as error:
            reason = (
                getattr(error, "verify_message", "") or getattr(error, "reason", "") or error.strerror or str(error)
            )
            raise Unreachable(f"{peer}: the TLS handshake failed: {reason}", retriable=False) from None

    def authenticate(self, connection: BrokerConnection) -> None:
        """Log in, if the protocol has SASL. Raises AuthenticationFailed, and the errors of requests."""
        if not self.protocol.startswith("SASL"):
            return
        version = connection.version(_HANDSHAKE)
        handshake = connection.send(SaslHandshakeRequest(mechanism=self.mechanism), version, SaslHandshakeResponse)
        if handshake.error_code:
            enabled = ", ".join(handshake.mechanisms)
            raise AuthenticationFailed(f"{connection.address}: {self.mechanism} is not enabled there; {enabled} are")
        if self.mechanism == "PLAIN":
            _exchange(connection, f"\0{self.user}\0{self.password}".encode())
        else:
            self._scram(connection, HASHES[self.mechanism])

    def _scram(self, connection: BrokerConnection, algorithm: str) -> None:
        """Prove the password, and that the broker knows it (RFC 5802)."""
        name = self.user.replace("=", "=3D").replace(",", "=2C")
        first = f"n={name},r={secrets.token_hex(12)}"
        challenge = _exchange(connection, f"n,,{first}".encode()).decode("utf-8", "replace")
        fields = dict(part.split("=", 1) for part in challenge.split(",") if "=" in part)
        try:
            salt, iterations, nonce = base64.b64decode(fields["s"]), int(fields["i"]), fields["r"]
        except (KeyError, ValueError):
            raise AuthenticationFailed(f"{connection.address}: the challenge of SCRAM cannot be read") from None
        salted = hashlib.pbkdf2_hmac(algorithm, self.password.encode(), salt, iterations)
        unproved = f"c=biws,r={nonce}"
        text = f"{first},{challenge},{unproved}".encode()
        key = hmac.digest(salted, b"Client Key", algorithm)
        signature = hmac.digest(hashlib.new(algorithm, key).digest(), text, algorithm)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        answer = _exchange(connection, f"{unproved},p={proof}".encode())
        expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), text, algorithm)
        if answer != b"v=" + base64.b64encode(expected):
            raise AuthenticationFailed(f"{connection.address}: the broker does not know the password of {self.user}")


def _exchange(connection: BrokerConnection, data: bytes) -> bytes:
    version = connection.version(_AUTHENTICATE)
    response = connection.send(SaslAuthenticateRequest(auth_bytes=data), version, SaslAuthenticateResponse)
    if response.error_code != Error.NONE:
        raise AuthenticationFailed(f"{connection.address}: {response.error_message or Error(response.error_code).name}")
    return response.auth_bytes


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


PLAINTEXT = ConnectionSecurity()
