"""The certificates of listeners with TLS: those of a directory, or new ones of an authority made for this process."""

from __future__ import annotations

import atexit
import ipaddress
import shutil
import ssl
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..config.install_hint import install_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Names and addresses in each certificate that is made here."""

CA, SERVER, CLIENT = "ca.pem", "server.pem", "client.pem"
"""The authority; the key of the brokers with its chain; a key with a chain that clients may use."""

CLIENT_NAME = "client"
"""The common name in the clients' certificate."""

CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Certificates:
    """The files of a directory: `ca.pem`, `server.pem` (a key and its chain) and `client.pem` (the same for clients).

    Without `server.pem` they are made and written there, for `hosts` and the names of this machine. Without a
    directory they are written to one that ends with the process; clusters with the same hosts share them. Raises
    ValueError where they cannot be made or read.
    """

    def __init__(self, directory: str | Path | None, hosts: Sequence[str]) -> None:
        names = tuple(dict.fromkeys([*LOCAL_HOSTS, *hosts]))
        if directory is None:
            self.directory = _made_for_process(names)
        else:
            self.directory = Path(directory)
            if not (self.directory / SERVER).exists():
                _make(self.directory, names)

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority, which clients have to trust."""
        return self.directory / CA

    @property
    def client_file(self) -> Path:
        """A key, unencrypted PKCS#8, with its certificate, which clients may use."""
        return self.directory / CLIENT

    def context(self, client_auth: str) -> ssl.SSLContext:
        """Return the settings of TLS for a listener with this `ssl.client.auth`. Raises ValueError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            context.load_cert_chain(self.directory / SERVER)
            context.verify_mode = CLIENT_AUTH[client_auth]
            if client_auth != "none":
                context.load_verify_locations(self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ValueError(f"certificates of {self.directory}: {SERVER} and {CA}: {error}") from error
        return context


@cache
def _made_for_process(hosts: tuple[str, ...]) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="koordinator-certificates-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    _make(directory, hosts)
    return directory


def _make(directory: Path, hosts: tuple[str, ...]) -> None:
    """Write the files of a new authority."""
    try:
        # a large import, which only TLS needs
        import trustme  # noqa: PLC0415
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    except ImportError as error:
        raise ValueError(f"TLS needs trustme, which is not installed: {install_hint('tls')}") from error

    def write(name: str, certificate: trustme.LeafCert) -> None:
        key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
        # the format that Java reads, too
        encoded = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(encoded + b"".join(pem.bytes() for pem in certificate.cert_chain_pems))

    authority = trustme.CA(organization_name="koordinator")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        authority.cert_pem.write_to_path(directory / CA)
        write(SERVER, authority.issue_cert(*filter(_is_certifiable, hosts)))
        write(CLIENT, authority.issue_cert(common_name=CLIENT_NAME, organization_name="koordinator"))
    except OSError as error:
        raise ValueError(f"certificates of {directory}: {error.strerror or error}") from error


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
