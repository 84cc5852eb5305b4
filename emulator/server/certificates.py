"""The certificates of listeners with TLS: those of a directory, or new ones of an authority made for this process."""

from __future__ import annotations

import atexit
import ipaddress
import shutil
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..config.install_hint import install_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    import trustme

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Names and addresses in each certificate that is made here."""

CA, SERVER, CLIENT = "ca.pem", "server.pem", "client.pem"
"""The authority; the key of the brokers with its chain; a key with a chain that clients may use."""

CLIENT_NAME = "client"
"""The common name in the clients' certificate."""

DAY = timedelta(days=1)

CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Certificates:
    """The files of a directory: `ca.pem`, `server.pem` (a key and its chain) and `client.pem` (the same for clients).

    Without `server.pem` they are made and written there, for `hosts` and the names of this machine. Without a
    directory they are written to one that ends with the process; clusters with the same hosts share them. Raises
    ValueError where they cannot be made or read.
    """

    def __init__(self, directory: str | Path | None, hosts: Sequence[str]) -> None:
        names = self._hosts = tuple(dict.fromkeys([*LOCAL_HOSTS, *hosts]))
        self._authority: trustme.CA | None = None
        """The authority with its key, if it was made here."""
        if directory is None:
            self.directory, self._authority = _made_for_process(names)
        else:
            self.directory = Path(directory)
            if not (self.directory / SERVER).exists():
                self._authority = _make(self.directory, names)

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority, which clients have to trust."""
        return self.directory / CA

    def rotated(self, to: str, client_auth: str) -> ssl.SSLContext:
        """Return the settings with another certificate: `renewed`, `expired` or `untrusted`. Raises ValueError.

        A renewed one is signed by the same authority; with an authority of the user's own, `server.pem` is read again.
        """
        if self._authority is None and to == "renewed":
            return self.context(client_auth)
        if self._authority is None and to == "expired":
            raise ValueError(f"the key of the authority {self.ca_file} is not known here, so it signs no certificate")
        authority = _new_authority() if to == "untrusted" or self._authority is None else self._authority
        with tempfile.TemporaryDirectory(prefix="koordinator-certificate-") as folder:
            path = Path(folder) / SERVER
            _write_server(path, authority, self._hosts, to)
            return self.context(client_auth, path)

    def context(self, client_auth: str, server_file: Path | None = None) -> ssl.SSLContext:
        """Return the settings of TLS for a listener with this `ssl.client.auth`. Raises ValueError.

        The certificate is that of `server_file`, by default that of the directory.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            context.load_cert_chain(server_file or self.directory / SERVER)
            context.verify_mode = CLIENT_AUTH[client_auth]
            if client_auth != "none":
                context.load_verify_locations(self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ValueError(f"certificates of {self.directory}: {SERVER} and {CA}: {error}") from error
        return context


@cache
def _made_for_process(hosts: tuple[str, ...]) -> tuple[Path, trustme.CA]:
    directory = Path(tempfile.mkdtemp(prefix="koordinator-certificates-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory, _make(directory, hosts)


def _make(directory: Path, hosts: tuple[str, ...]) -> trustme.CA:
    """Write the files of a new authority."""
    authority = _new_authority()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        authority.cert_pem.write_to_path(directory / CA)
        _write_server(directory / SERVER, authority, hosts)
        # Java reads no certificate with an empty list of names
        for_clients = authority.issue_cert(CLIENT_NAME, common_name=CLIENT_NAME, organization_name="koordinator")
        _write(directory / CLIENT, for_clients)
    except OSError as error:
        raise ValueError(f"certificates of {directory}: {error.strerror or error}") from error
    return authority


def _new_authority() -> trustme.CA:
    try:
        # a large import, which only TLS needs
        import trustme  # noqa: PLC0415
    except ImportError as error:
        raise ValueError(f"TLS needs trustme, which is not installed: {install_hint('tls')}") from error
    return trustme.CA(organization_name="koordinator")


def _write_server(path: Path, authority: trustme.CA, hosts: tuple[str, ...], kind: str = "renewed") -> None:
    """Write a new certificate of the brokers; an `expired` one was valid until yesterday."""
    now = datetime.now(UTC)
    begins, ends = (now - 2 * DAY, now - DAY) if kind == "expired" else (None, None)
    _write(path, authority.issue_cert(*filter(_is_certifiable, hosts), not_before=begins, not_after=ends))


def _write(path: Path, certificate: trustme.LeafCert) -> None:
    """Write a key and its chain."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - a dependency of trustme

    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    # the format that Java reads, too
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.touch(mode=0o600)
    path.write_bytes(encoded + b"".join(pem.bytes() for pem in certificate.cert_chain_pems))


def _is_certifiable(host: str) -> bool:
    """Return whether a certificate can have a host: an address, or a name without underscores (RFC 5891)."""
    import idna  # noqa: PLC0415 - a dependency of trustme

    try:
        ipaddress.ip_address(host)
    except ValueError:
        try:
            idna.encode(host)
        except idna.IDNAError:
            return False
    return True
