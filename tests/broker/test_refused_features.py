"""A refused member, pattern or codec is a line of the log and has its remedy in the trace: clients seldom show it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from clients.frame_clients import Wire

from koordinator.emulator.broker.refused_features import refusal_of
from koordinator.emulator.core import expressions
from koordinator.emulator.pages.timeline import timeline
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

REMEDY = "SubscribedTopicRegex `t.*` cannot be resolved: google-re2 is missing, pip install google-re2."


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "re2", None)
    expressions.compiled.cache_clear()
    yield
    expressions.compiled.cache_clear()


@pytest.mark.usefixtures("without_re2")
def test_a_refused_pattern_is_one_line_of_the_log_and_has_its_remedy_in_the_timeline() -> None:
    wire = Wire()
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_regex="t.*",
        topic_partitions=(),
    )
    for _ in range(2):
        assert wire.ask(wire.connect(), request, 1).error_code == Error.INVALID_REGULAR_EXPRESSION
    assert wire.logged == [f"client 'c' (/127.0.0.1): ConsumerGroupHeartbeat is refused: {REMEDY}"]
    (line,) = [line for line in timeline(wire.trace.events()) if "first error" in line]
    assert f"-> INVALID_REGULAR_EXPRESSION: {REMEDY}" in line


def test_a_refused_join_is_one_line_of_the_log() -> None:
    wire = Wire()
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=2**31 - 1,
        rebalance_timeout_ms=1000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    for _ in range(2):
        assert wire.ask(wire.connect(), request, 9).error_code == Error.INVALID_SESSION_TIMEOUT
    (line,) = wire.logged
    assert line.startswith("client 'c' (/127.0.0.1): JoinGroup is refused: session.timeout.ms=2147483647 must be from")


def test_a_refused_codec_has_the_remedy_of_its_row() -> None:
    row = PartitionProduceResponse(
        index=0, error_code=Error.UNSUPPORTED_COMPRESSION_TYPE, base_offset=-1, error_message="pip install cramjam"
    )
    response = ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=(row,)),))
    assert refusal_of(response) == "pip install cramjam"
    assert refusal_of(ProduceResponse(responses=())) is None
