"""A muted connection whose read-ahead is full is read again when its throttle time has passed."""

from __future__ import annotations

import ssl
import time

import pytest
from builders import requests
from clients.asking_client import AskingClient

from koordinator import Emulator, faults
from koordinator.emulator.broker.connections import READ_AHEAD_BYTES
from koordinator.wire.records import Record, write_batch

MUTE_MS = 300


@pytest.mark.parametrize("security", ["plaintext", "ssl"])
def test_a_large_request_behind_a_throttle_is_read_and_served_after_it(security: str) -> None:
    tls = None
    if security == "ssl":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    with Emulator(security=security, topics={"t": 1}) as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        cluster.add_rule("Produce", faults.throttle(MUTE_MS, mute=True), once=True)
        with AskingClient((host, int(port)), tls) as client:
            begun = time.monotonic()
            for size in (1, 8 * READ_AHEAD_BYTES):
                batch = write_batch([Record(timestamp=1_700_000_000_000, value=b"x" * size)])
                answer = client.ask(requests.produce("t", {0: batch}), 9)
                assert answer.responses[0].partition_responses[0].error_code == 0
            assert time.monotonic() - begun >= MUTE_MS / 1000
