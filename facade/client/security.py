"""TLS and SASL of a client's connections, under the names of Kafka's client settings."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import ssl
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

from .errors import AuthenticationFailed, RequiredVersion, Unreachable

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from .connection import BrokerConnection

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

MECHANISMS = ("PLAIN", *HASHES)

SETTINGS = (
    *("security.protocol", "security.providers"),
    *("sasl.mechanism", "sasl.mechanisms", "sasl.jaas.config", "sasl.username", "sasl.password"),
    *("sasl.client.callback.handler.class", "enable.sasl.oauthbearer.unsecure.jwt"),
    *("ssl.protocol", "ssl.provider", "ssl.providers", "ssl.cipher.suites", "ssl.enabled.protocols"),
    *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.key"),
    *("ssl.keystore.certificate.chain", "ssl.key.password", "ssl.key.location", "ssl.key.pem", "ssl.engine.id"),
    *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.certificates"),
    *("ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.endpoint.identification.algorithm"),
    *("ssl.secure.random.implementation", "ssl.engine.factory.class", "ssl.engine.location"),
    *("ssl.ca.location", "ssl.ca.pem", "ssl.ca.certificate.stores", "ssl.crl.location", "ssl.certificate.location"),
    *("ssl.certificate.pem", "ssl.curves.list", "ssl.sigalgs.list", "enable.ssl.certificate.verification"),
)
"""The security settings of Kafka's clients and librdkafka's, except those of FAMILIES. Only some have an effect."""

FAMILIES = ("sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.")
"""The beginnings of the names of other security settings."""

SIMILARITY = 0.85
"""How similar to a security setting an unknown name is that is a misspelling; other names are other settings."""

HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH = 62, 64
"""OpenSSL's X509_V_ERR codes of a certificate that is valid, but for another host."""

_HANDSHAKE = RequiredVersion(ApiKey.SASL_HANDSHAKE, 1, "1.0")
_AUTHENTICATE = RequiredVersion(ApiKey.SASL_AUTHENTICATE, 0, "1.0")

_T = TypeVar("_T")

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
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> ConnectionSecurity:
        """Return what client settings say, under Kafka's names or librdkafka's. Raises ValueError with the setting.

        The files of TLS are read. Settings that are not about security have no effect.
        """
        for name in settings:
            _check_name(name)
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
            _context(settings) if protocol.endswith("SSL") else None,
        )

    def secured(self, plain: socket.socket, host: str, peer: str) -> socket.socket:
        """Return a connection after its TLS handshake, if the protocol has one. Raises Unreachable, or TimeoutError."""
        if self.tls is None:
            return plain
        try:
            return self.tls.wrap_socket(plain, server_hostname=host)
        except TimeoutError:
            raise
        except OSError as error:
            reason = (
                getattr(error, "verify_message", "") or getattr(error, "reason", "") or error.strerror or str(error)
            )
            text = f"{peer}: the TLS handshake failed: {reason}{_tls_remedy(error, self.protocol)}"
            raise Unreachable(text, retriable=False) from None

    def authenticate(self, connection: BrokerConnection) -> None:
        """Log in, if the protocol has SASL. Raises AuthenticationFailed, and the errors of requests."""
        if not self.protocol.startswith("SASL"):
            return
        version = connection.version(_HANDSHAKE)
        handshake = connection.send(SaslHandshakeRequest(mechanism=self.mechanism), version, SaslHandshakeResponse)
        if handshake.error_code:
            raise AuthenticationFailed(f"{connection.address}: {self._mechanism_remedy(handshake.mechanisms)}")
        if self.mechanism == "PLAIN":
            _exchange(connection, f"\0{self.user}\0{self.password}".encode())
        else:
            self._scram(connection, HASHES[self.mechanism])

    def _mechanism_remedy(self, enabled: Sequence[str]) -> str:
        if not enabled:
            plain = self.protocol.removeprefix("SASL_")
            return f"the port has no SASL: set security.protocol={plain}, or give the port of a listener with SASL"
        return f"sasl.mechanism={self.mechanism}: not enabled there; must be one of {', '.join(enabled)}"

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


def _check_name(name: str) -> None:
    """Raise ValueError for an unknown security setting, or a name that is a misspelling of one."""
    if name in SETTINGS or name.startswith(FAMILIES):
        return
    is_security = name.startswith(("security.", "sasl.", "ssl."))
    similar = get_close_matches(name, SETTINGS, n=1, cutoff=0.6 if is_security else SIMILARITY)
    if is_security or similar:
        suggestion = f"; did you mean {similar[0]}?" if similar else ""
        raise ValueError(f"{name}: no security setting of Kafka's clients{suggestion}")


def _context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS settings of connections. Raises ValueError with the setting of a file that cannot be used."""
    authority = next((name for name in ("ssl.truststore.location", "ssl.ca.location") if name in settings), None)
    if authority is None:
        context = ssl.create_default_context()
    else:
        # only this authority is trusted
        context = _load(authority, settings[authority], lambda path: ssl.create_default_context(cafile=path))
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https") not in ("", "none")
    keys = "ssl.keystore.location"
    if keys in settings:
        # without a password OpenSSL would ask for it at the terminal
        password = settings.get("ssl.key.password", "")
        _load(keys, settings[keys], lambda path: context.load_cert_chain(path, password=password))
    return context


def _load(setting: str, path: str, load: Callable[[str], _T]) -> _T:
    try:
        return load(path)
    except ssl.SSLError as error:
        raise ValueError(f"{setting}={path}: OpenSSL cannot use it as PEM: {error.reason or error}") from None
    except OSError as error:
        raise ValueError(f"{setting}={path}: {error.strerror or error}") from None


def _tls_remedy(error: OSError, protocol: str) -> str:
    """Return what to change after a failed handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in (HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH):
            return "; give one of its names, or set ssl.endpoint.identification.algorithm= (empty)"
        return "; name the certificate of its authority, a PEM file, by ssl.ca.location"
    if isinstance(error, (ssl.SSLEOFError, ConnectionError)) or getattr(error, "reason", "") == "WRONG_VERSION_NUMBER":
        plain = protocol.replace("SSL", "PLAINTEXT")
        return f"; if the port has no TLS, set security.protocol={plain}"
    return ""


def _exchange(connection: BrokerConnection, data: bytes) -> bytes:
    version = connection.version(_AUTHENTICATE)
    response = connection.send(SaslAuthenticateRequest(auth_bytes=data), version, SaslAuthenticateResponse)
    if response.error_code != Error.NONE:
        raise AuthenticationFailed(f"{connection.address}: {response.error_message or Error(response.error_code).name}")
    return response.auth_bytes


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


PLAINTEXT = ConnectionSecurity()
