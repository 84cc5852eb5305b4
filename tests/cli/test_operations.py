"""The log lines and the trace file that docs/operations.md describes."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from koordinator.client.logs import ADMIN_CLIENT_ID, OFFSETS_TOPIC
from koordinator.emulator.broker.unreached_listeners import REPEAT_MS
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.wire import frames
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import encode
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.wire.apis import Message
    from tests.cli.conftest import Served

DOCUMENT = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")

WAIT_S = 60

PLACEHOLDER = re.compile(r"\b(?:v?N|[A-Z]{3,})\b|…")


def first_column(heading: str) -> list[str]:
    """Return the code of the first column of the table with this heading."""
    table = DOCUMENT.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)


def templates(texts: Iterable[str]) -> dict[str, re.Pattern[str]]:
    """Return a pattern for each text with placeholders, the most specific first."""
    return {
        text: re.compile(".*".join(re.escape(part) for part in PLACEHOLDER.split(text)))
        for text in sorted(texts, key=lambda text: len(PLACEHOLDER.sub("", text)), reverse=True)
    }


def which(line: str, among: dict[str, re.Pattern[str]]) -> str:
    """Return the text of the document for a line."""
    for text, pattern in among.items():
        if pattern.fullmatch(line):
            return text
    pytest.fail(f"docs/operations.md does not know the line {line!r}")


def connect(ready: dict[str, Any]) -> socket.socket:
    return socket.create_connection((ready["host"], ready["port"]), WAIT_S)


def frame(api: ApiKey, version: int, request: Message, client_id: str = "raw") -> bytes:
    return frames.frame(frames.request_header(api, version, 1, client_id), encode(request, version))


def bare(api_key: int, version: int, body: bytes = b"") -> bytes:
    request = struct.pack(">hhih", api_key, version, 1, -1) + body
    return struct.pack(">i", len(request)) + request


HOSTILE = {
    "TLS": b"\x16\x03\x01\x02\x00\x01",
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "too large": b"\x7f\xff\xff\xff",
    "unknown api": bare(999, 0),
    "unknown version": bare(ApiKey.HEARTBEAT, 99),
    "cut": bare(ApiKey.HEARTBEAT, 0, b"\0\5g"),
    "unspeakable": frame(
        ApiKey.JOIN_GROUP,
        5,
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            group_instance_id="i" * 32_767,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        ),
    ),
    "acks 0": frame(
        ApiKey.PRODUCE,
        3,
        ProduceRequest(
            acks=0,
            timeout_ms=1000,
            topic_data=(TopicProduceData(name="none", partition_data=(PartitionProduceData(index=0, records=b""),)),),
        ),
    ),
}


def authentication(password: bytes) -> tuple[bytes, bytes]:
    return (
        frame(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN")),
        frame(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + password)),
    )


HANDSHAKE, RIGHT = authentication(b"alice-secret")
GROUP_OF_OTHERS = frame(ApiKey.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="others"))
"""A request for a group that alice may not describe, in the millisecond of her session."""

UNAUTHENTICATED = (
    ("SSL", (bare(ApiKey.API_VERSIONS, 0),)),
    ("SASL_PLAINTEXT", authentication(b"wrong")),
    ("SASL_PLAINTEXT", (bare(ApiKey.HEARTBEAT, 0),)),
    ("SASL_PLAINTEXT", (HANDSHAKE, RIGHT + GROUP_OF_OTHERS, bare(ApiKey.API_VERSIONS, 0))),
)
"""Requests by listener; after the last one the connection closes."""

UNLOADABLE = (
    frame(ApiKey.SASL_HANDSHAKE, 0, SaslHandshakeRequest(mechanism="PLAIN")),
    frame(ApiKey.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g")),
    frame(
        ApiKey.PRODUCE,
        3,
        ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=(
                TopicProduceData(
                    name=OFFSETS_TOPIC,
                    partition_data=(PartitionProduceData(index=3, records=write_batch([Record(1, 1, b"k", b"v")])),),
                ),
            ),
        ),
        ADMIN_CLIENT_ID,
    ),
)
"""A truncated key of `__consumer_offsets`."""

REFUSED = frame(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    1,
    ConsumerGroupHeartbeatRequest(
        group_id="c",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_regex="[",
        topic_partitions=(),
    ),
)
"""A subscription to an invalid pattern."""


def test_the_log_has_exactly_the_lines_of_the_document(serve: Callable[..., Served], tmp_path: Path) -> None:
    path = tmp_path / "trace"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    served = serve(
        *("--port", "0", "--trace", str(path), "--config", "log.dirs=x", "--config", "default.replication.factor=3"),
        *("--listener", "OTHER=127.0.0.1:0", "--advertised", "OTHER=127.0.0.3:1"),
        *("--listener", "SSL=127.0.0.1:0", "--listener", "SASL_PLAINTEXT=127.0.0.1:0"),
        *("--config", "connections.max.reauth.ms=1", "--config", f"authorizer.class.name={STANDARD_AUTHORIZER}"),
        *("--config", "super.users=User:ANONYMOUS"),
    )
    ready = served.ready()
    os.close(reader)
    with ExitStack() as stack:
        for data in HOSTILE.values():
            connection = stack.enter_context(connect(ready))
            connection.sendall(data)
            assert connection.recv(1) == b"", data
    for listener, requests in UNAUTHENTICATED:
        host, port = ready["listeners"][listener].split(":")
        with socket.create_connection((host, int(port)), WAIT_S) as connection:
            for data in requests[:-1]:
                connection.sendall(data)
                assert connection.recv(1_000)
            time.sleep(0.01)
            connection.sendall(requests[-1])
            while connection.recv(1_000):
                pass
    with connect(ready) as connection:
        for data in (*UNLOADABLE, REFUSED):
            connection.sendall(data)
            assert connection.recv(1000)
    lines = []
    with connect(ready) as connection:
        # a client that only looks up its group, and again when that has not helped
        connection.sendall(UNLOADABLE[1])
        assert connection.recv(1000)
        time.sleep(REPEAT_MS / 1000)
        connection.sendall(UNLOADABLE[1])
        while not (lines and "for the coordinator of group" in lines[-1]):
            lines.append(served.line("err") or pytest.fail("it ended"))
    refused = serve("--port", str(ready["port"]))
    assert refused.ended() == 2
    assert served.stop() == 0
    lines += served.rest("err")

    known = templates(text for text in first_column("line") if text.startswith("koordinator"))
    assert {which(line, known) for line in lines + refused.rest("err")} == set(known)
    reasons = templates(first_column("the reason says"))
    closed = [line.partition(" closed: ")[2] for line in lines if line.startswith("koordinator: connection")]
    assert [which(reason, reasons) for reason in closed] == first_column("the reason says")


def test_the_trace_file_may_be_truncated_while_it_is_written(serve: Callable[..., Served], tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    served = serve("--port", "0", "--trace", str(path))
    ready = served.ready()
    with connect(ready) as connection:
        connection.sendall(bare(ApiKey.API_VERSIONS, 0))
        assert connection.recv(1)
        before = path.read_text(encoding="utf-8").splitlines()
        os.truncate(path, 0)
    assert served.stop() == 0
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["seq"] == json.loads(before[-1])["seq"] + 1
