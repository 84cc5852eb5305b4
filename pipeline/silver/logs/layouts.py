"""The layouts of log lines: what collectors put around a line is removed, and the message of a JSON record is found.

    [pod/kafka-0/kafka] 2026-11-21T20:15:01.123456789Z [2026-11-21 20:15:01,123] INFO …    kubectl logs
    2026-11-21T20:15:01.123456789Z stdout F [2026-11-21 20:15:01,123] INFO …               a node's container log
    kafka-1  | [2026-11-21 20:15:01,123] INFO …                                            docker compose
    {"instant": {"epochSecond": …}, "loggerName": …, "message": …}                         log4j2's JsonLayout
    {"@timestamp": …, "log.logger": …, "message": …}                                       JsonTemplateLayout, logstash
    {"log": "[2026-11-21 20:15:01,123] INFO …", "time": …}                                 docker's json-file

The content of a line determines its layout, so that a file may mix them.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_ANSI = re.compile(r"\x1b\[[\d;]*m")
"""Colours, as docker compose adds them."""

_STREAM = re.compile(r"\[pod/[^\]]+\] |[\w.-]+ +\| ", re.ASCII)
"""The container of a line."""

_DATE_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
_COLLECTED = re.compile(
    rf"{_DATE_TIME}[\d.]*(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] (?=.)|(?=\[?{_DATE_TIME}|\{{|%\d\||\s))", re.ASCII
)
"""The time of a collector, before that of the program."""

_NESTED_MAX = 3
"""Depth of records in records: docker's json-file contains the JSON of a program."""

_MESSAGES = ("message", "log", "msg")
_TIMES = ("@timestamp", "timestamp", "time", "ts")


class PlainLine(NamedTuple):
    """A line without its wrappers. `time` is theirs: microseconds, or text. `dms` is the message of Huawei's log."""

    stream: str
    text: str
    time: int | str | None = None
    dms: dict[str, Any] | None = None


def unwrapped(raw: str) -> PlainLine:
    """Return a line without its container and colours, and with the collector's time apart."""
    text = _ANSI.sub("", raw) if "\x1b" in raw else raw
    stream = _STREAM.match(text)
    text = text[stream.end() :] if stream else text
    collected = _COLLECTED.match(text)
    name = stream[0].rstrip() if stream else ""
    return PlainLine(name, text[collected.end() :], collected[0]) if collected else PlainLine(name, text)


def plain(raw: str) -> PlainLine:
    """Return the message of a JSON record, or the text of another line."""
    line = unwrapped(raw)
    for _ in range(_NESTED_MAX):
        record = _record(line.text)
        if record is None:
            break
        message = next((record[name] for name in _MESSAGES if name in record), None)
        time = _time(record) or line.time
        if isinstance(message, dict):
            return line._replace(time=time, dms=message)
        if not isinstance(message, str):
            break
        line = unwrapped(valid(message))._replace(stream=line.stream, time=time)
    return line


def valid(text: str) -> str:
    """Return a text of a JSON record without lone surrogates, which no table can have."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _record(text: str) -> dict[str, Any] | None:
    """Return a JSON object; None for other text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _time(record: dict[str, Any]) -> int | str | None:
    instant = record.get("instant")
    if isinstance(instant, dict) and type(instant.get("epochSecond")) is int:
        nanos = instant.get("nanoOfSecond")
        return int(instant["epochSecond"]) * 1_000_000 + (nanos // 1000 if type(nanos) is int else 0)
    if type(record.get("timeMillis")) is int:
        return int(record["timeMillis"]) * 1000
    return next((record[name] for name in _TIMES if isinstance(record.get(name), str)), None)
