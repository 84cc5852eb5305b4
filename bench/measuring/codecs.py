"""The cost of reading and writing a message, beside three other codecs."""

from __future__ import annotations

import gc
import importlib
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from measuring.by_hand import BY_HAND
from measuring.rows import Row
from measuring.samples import SAMPLES
from measuring.stock import STOCK

from koordinator.wire.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.schema import Message

ROUNDS = 25
SLICE_S = 0.004
"""The length of one contestant's turn."""

STOCK_TARGET = 15.0
BY_HAND_TARGET = 1.3
KAFKA_PYTHON_TARGET = 1.3

_THEIRS = {
    "JoinGroupRequest": "kafka.protocol.consumer.group",
    "JoinGroupResponse": "kafka.protocol.consumer.group",
    "MetadataRequest": "kafka.protocol.metadata",
    "MetadataResponse": "kafka.protocol.metadata",
    "SyncGroupRequest": "kafka.protocol.consumer.group",
    "HeartbeatRequest": "kafka.protocol.consumer.group",
    "OffsetCommitRequest": "kafka.protocol.consumer.group",
    "FetchResponse": "kafka.protocol.consumer.fetch",
}
"""The modules of kafka-python's messages."""


@dataclass(frozen=True)
class Way:
    """One way to read and write one message."""

    name: str
    read: Callable[[], Any]
    write: Callable[[], bytes]


def rows(*, quick: bool) -> list[Row]:
    """Return one row for each message and contestant."""
    results = []
    for text, message, version in SAMPLES:
        data = encode(message, version)
        ways = _ways(message, version, data)
        for way in ways:
            if way.write() != data:
                raise AssertionError(f"{way.name} writes other bytes for {text}")
            way.read()
        costs = _costs(ways, rounds=2 if quick else ROUNDS)
        results += _compared(f"{text} v{version} ({len(data):,} B)", costs)
    return results


def _ways(message: Message, version: int, data: bytes) -> list[Way]:
    cls = type(message)
    stock = STOCK[cls]
    parsed = stock.parse(data)
    if decode(cls, version, data) != message:
        raise AssertionError(f"{cls.__name__} differs after a round trip")
    theirs_cls = _kafka_python(cls)
    theirs = theirs_cls.decode(data, version=version)
    theirs._header = None  # noqa: SLF001 - its decoder leaves this slot unset, its encoder looks at it
    ways = [
        Way("koordinator", lambda: decode(cls, version, data), lambda: encode(message, version)),
        Way("stock Construct", lambda: stock.parse(data), lambda: bytes(stock.build(parsed))),
        Way(
            "kafka-python",
            lambda: theirs_cls.decode(data, version=version),
            lambda: bytes(theirs.encode(version=version)),
        ),
    ]
    if cls in BY_HAND:
        read, write = BY_HAND[cls]
        if read(data) != message:
            raise AssertionError(f"{cls.__name__} differs after it is read by hand")
        ways.append(Way("by hand", lambda: read(data), lambda: write(message)))
    return ways


def _kafka_python(cls: type) -> Any:
    return getattr(importlib.import_module(_THEIRS[cls.__name__]), cls.__name__)


def _costs(ways: list[Way], rounds: int) -> dict[str, tuple[float, float]]:
    """Return microseconds of processor time to read and to write: the minimum over rounds in which all take turns."""
    jobs = [(way.name, kind, job) for way in ways for kind, job in (("read", way.read), ("write", way.write))]
    repeats = {(name, kind): _repeats(job) for name, kind, job in jobs}
    best: dict[tuple[str, str], float] = {}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, kind, job in jobs:
                count = repeats[name, kind]
                cost = _timed(job, count) / count
                best[name, kind] = min(best.get((name, kind), sys.float_info.max), cost)
    finally:
        gc.enable()
    return {way.name: (best[way.name, "read"] * 1e6, best[way.name, "write"] * 1e6) for way in ways}


def _repeats(job: Callable[[], Any]) -> int:
    count = 1
    while _timed(job, count) < SLICE_S:
        count *= 2
    return count


def _timed(job: Callable[[], Any], count: int) -> float:
    begun = time.process_time()
    for _ in range(count):
        job()
    return time.process_time() - begun


def _compared(work: str, costs: dict[str, tuple[float, float]]) -> list[Row]:
    ours = sum(costs["koordinator"])
    results = []
    for name, target, text in (
        ("stock Construct", STOCK_TARGET, f"at least {STOCK_TARGET:.0f} times faster"),
        ("by hand", BY_HAND_TARGET, f"at most {BY_HAND_TARGET} times its time"),
        ("kafka-python", KAFKA_PYTHON_TARGET, f"at least {KAFKA_PYTHON_TARGET} times faster"),
    ):
        if name not in costs:
            continue
        theirs = sum(costs[name])
        slower = name == "by hand"
        ratio = ours / theirs if slower else theirs / ours
        results.append(
            Row(
                part="decode + encode",
                work=work,
                measured=f"{ours:.1f} µs",
                beside=f"{name}: {theirs:.1f} µs",
                result=f"{ratio:.2f} times its time" if slower else f"{ratio:.1f} times faster",
                target=text,
                met=ratio <= target if slower else ratio >= target,
                figures={
                    "contestant": name,
                    "ratio": ratio,
                    "ours_us": dict(zip(("decode", "encode"), costs["koordinator"], strict=True)),
                    "theirs_us": dict(zip(("decode", "encode"), costs[name], strict=True)),
                },
            )
        )
    return results
