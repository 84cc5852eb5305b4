"""Unauthenticated bytes on listeners with SASL and with TLS, and the same clients after they have authenticated.

`Sasl` is `Noise` on a broker with SASL and ACLs: clients send corrupted logins, and everything else before, within and
after a login. `Tls` sends random bytes, corrupted handshakes and corrupted records to a connection with TLS. OpenSSL
draws its own keys, so that a run of `Tls` repeats the corruptions, and not the bytes.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from contextlib import closing, suppress
from functools import cache
from typing import TYPE_CHECKING

from clients.frame_clients import Peer

from builders.acl_requests import acl, creation, request
from builders.fuzzing import SLOW_S, Hang, Noise, Ring, Tally
from builders.mutations import Mutations
from builders.sasl_messages import Scram, bearer, plain, token
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.emulator.core.data.scram import credential_of
from koordinator.emulator.server.certificates import Certificates
from koordinator.emulator.server.tls import TlsConnection, TlsFailed, TlsListener
from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from koordinator.wire.apis import Message

PASSWORD = "secret"
USERS = ("alice", "bob")
"""Alice may do everything, bob what the ACLs allow."""

CLAIMS = {"sub": "olga", "iat": 0, "exp": 10_000_000_000}
LOGINS = {
    "PLAIN": plain("alice", PASSWORD),
    "SCRAM-SHA-256": Scram("sha256", "alice", PASSWORD).first,
    "SCRAM-SHA-512": Scram("sha512", "bob", PASSWORD).first,
    "OAUTHBEARER": bearer(token(CLAIMS)),
}
"""The first message of a login by each mechanism."""


class SecureRing(Ring):
    """A broker whose listener has SASL, and whose clients log in, begin to, or do not."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(
            authorizer_class_name=STANDARD_AUTHORIZER,
            super_users="User:alice",
            delegation_token_secret_key=PASSWORD,
            connections_max_reauth_ms=chance.choice((0, 60_000)),
        )
        self._chance = chance
        self.logins = 0
        clients = self.node.cluster.clients
        clients.passwords |= dict.fromkeys(USERS, PASSWORD)
        for number in (1, 2):
            clients.apply(credential_of("alice", number, PASSWORD, b"salt"))

    def connect(self) -> Peer:
        peer = Peer(next(self._numbers))
        self.peers[peer.number] = peer
        self.broker.connected(self.now, peer.number, "/127.0.0.1", "SASL_PLAINTEXT")
        return peer

    def another(self) -> Peer:
        """Connect a client; two of three authenticate."""
        peer = super().another()
        if self._chance.random() < 2 / 3:
            self.ask(peer, SaslHandshakeRequest(mechanism="PLAIN"), 1)
            message = plain(self._chance.choice(USERS), PASSWORD)
            assert self.ask(peer, SaslAuthenticateRequest(auth_bytes=message), 2).error_code == 0
            self.logins += 1
        return peer


class Sasl(Noise):
    """Corrupted logins, and noise before and after a login."""

    def __init__(self, chance: random.Random, corpus: Sequence[bytes]) -> None:
        ring = SecureRing(chance)
        logins = _logins(ring)
        # as many of them as of all others
        super().__init__(chance, [*corpus, *logins * (len(corpus) // len(logins))], ring)


def _logins(ring: Ring) -> list[bytes]:
    """Return the frames of logins, of delegation tokens and of ACLs."""
    messages: list[tuple[Message, int]] = [
        *((SaslHandshakeRequest(mechanism=name), version) for name in (*LOGINS, "GSSAPI") for version in (0, 1)),
        *((SaslAuthenticateRequest(auth_bytes=data), version) for data in LOGINS.values() for version in (0, 1, 2)),
        (request(ApiKey.CREATE_DELEGATION_TOKEN, max_lifetime_ms=-1, renewers=()), 3),
        (request(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), 3),
        (creation([acl((2, "t", 3), 3, principal="User:bob")]), 3),
    ]
    writer = Peer(0)
    frames = [ring.request(writer, message, version) for message, version in messages]
    # after a handshake v0 the tokens have no header
    return [*frames, *(len(data).to_bytes(4, "big") + data for data in LOGINS.values())]


# -- TLS -----------------------------------------------------------------------------------------------------


@cache
def _listener() -> TlsListener:
    certificates = Certificates(None, ())
    return TlsListener(certificates.context("requested"), "SSL", certificates.ca_file)


class TlsRing:
    """What the connections with TLS have taken."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.last: deque[str] = deque(maxlen=12)

    def end(self) -> None:
        """Do nothing: each connection has ended with its step."""


class Tls:
    """Connections with TLS: each has a handshake, corrupted or not, and records."""

    FRAMES = 2_000

    def __init__(self, chance: random.Random, corpus: Sequence[bytes]) -> None:
        self.ring = TlsRing()
        self._chance, self._corpus = chance, corpus
        self._client = ssl.create_default_context(cafile=_listener().ca_file)
        self._hellos = [_hello(self._client) for _ in range(8)]

    def step(self) -> None:
        """Open a connection, send to it, and close it."""
        ours, theirs = socket.socketpair()
        with closing(ours), closing(theirs):
            for each in (ours, theirs):
                each.settimeout(0)
            connection = TlsConnection(1, ours, _listener(), "/127.0.0.1")
            way: Callable[[TlsConnection, socket.socket], None] = self._chance.choice((self._noise, self._records))
            try:
                way(connection, theirs)
            except TlsFailed as failed:
                self.ring.tally.reasons[failed.reason] += 1
                self.ring.tally.closed += 1
            connection.close()

    def _noise(self, connection: TlsConnection, theirs: socket.socket) -> None:
        """Send random bytes, or a corrupted ClientHello, in one piece or in two."""
        is_random = self._chance.random() < 0.2
        data = self._chance.randbytes(self._chance.randrange(1, 500)) if is_random else self._corrupted(*self._hellos)
        at = self._chance.randrange(len(data) + 1) if self._chance.random() < 0.2 else 0
        for piece in filter(None, (data[:at], data[at:])):
            self._feed(connection, theirs, piece)

    def _records(self, connection: TlsConnection, theirs: socket.socket) -> None:
        """Complete the handshake, and send records of which some are corrupted."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self._client.wrap_bio(incoming, outgoing, server_hostname="localhost")
        for _ in range(3):
            try:
                client.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                # the client gives up
                return
            sent = outgoing.read()
            if self._chance.random() < 0.05:
                sent = self._corrupted(sent) if sent else sent
            if sent:
                self._feed(connection, theirs, sent)
            try:
                incoming.write(theirs.recv(1 << 16))
            except BlockingIOError:
                break
        for _ in range(self._chance.randrange(1, 8)):
            try:
                client.write(self._chance.choice(self._corpus))
            except ssl.SSLError:
                return
            sent = outgoing.read()
            is_corrupted = self._chance.random() < 0.3
            self._feed(connection, theirs, self._corrupted(sent) if is_corrupted else sent)

    def _corrupted(self, *pieces: bytes) -> bytes:
        """Corrupt one of these pieces; the length before it is that of the mutations, and is left out."""
        frames = [len(piece).to_bytes(4, "big") + piece for piece in pieces]
        return Mutations(self._chance, frames).mutated()[4:] or b"\x16"

    def _feed(self, connection: TlsConnection, theirs: socket.socket, data: bytes) -> None:
        """Send bytes, and read what there is to read, within the limit of the processing time."""
        tally = self.ring.tally
        tally.frames += 1
        self.ring.last.append(data.hex())
        before = time.thread_time()
        for at in range(0, len(data), 1 << 16):
            theirs.send(data[at : at + (1 << 16)])
            with suppress(BlockingIOError):
                tally.answers += bool(connection.read())
        took = time.thread_time() - before
        if took > tally.slowest_s:
            tally.slowest_s, tally.slowest = took, data.hex()
        if took > SLOW_S:
            raise Hang(f"one input took {took:.1f} s")


def _hello(context: ssl.SSLContext) -> bytes:
    """Return a ClientHello."""
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()
