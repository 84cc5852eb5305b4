"""The layouts of log lines: what collectors put around a line is removed, and JSON becomes a plain line.

    [pod/kafka-0/kafka] 2026-11-21T20:15:01.123456789Z [2026-11-21 20:15:01,123] INFO …    kubectl logs
    2026-11-21T20:15:01.123456789Z stdout F [2026-11-21 20:15:01,123] INFO …               a node's container log
    kafka-1  | [2026-11-21 20:15:01,123] INFO …                                            docker compose
    {"instant": {"epochSecond": …}, "loggerName": …, "message": …}                         log4j2's JsonLayout
    {"@timestamp": …, "log.logger": …, "message": …}                                       JsonTemplateLayout, logstash
    {"log": "[2026-11-21 20:15:01,123] INFO …", "time": …}                                 docker's json-file

The content of a line determines its layout, so that a load may mix them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
_COLLECTED = rf"{_TIME}[\d.]*(?:Z|[+-]\d\d:\d\d) "
_WRAPPER = (
    r"^(?:\[pod/[^\]]+\] |[\w.-]+ +\| )?"
    rf"(?:{_COLLECTED}(?:std(?:out|err) [FP] )(?=.)|{_COLLECTED}(?=\[?{_TIME}|\{{|%\d\||\s))?"
)
_IS_JSON = r"^\s*\{"

_DMS = r'"type"\s*:\s*"\w+_REBALANCE"'
"""A field of the one JSON that is no layout: Huawei's, whose message is an object."""

_MESSAGES = ("message", "log", "msg")
_TIMES = ("['@timestamp']", "timestamp", "time", "ts")
_LOGGERS = ("loggerName", "logger_name", "['log.logger']", "logger")


def with_plain(lines: DataFrame, name: str) -> DataFrame:
    """Replace a column of lines: without their wrappers, and JSON records as `TIME MESSAGE (LOGGER)`."""
    line = F.col(name)
    # two steps, because Spark would repeat the first one for each use
    lines = lines.withColumn(name, F.regexp_replace(line, _WRAPPER, ""))
    return lines.withColumn(name, F.when(line.rlike(_IS_JSON), F.coalesce(_from_json(line), line)).otherwise(line))


def _from_json(line: Column) -> Column:
    """Return a JSON record as a plain line; null if it has no message."""
    message, time, logger = (_first(line, names) for names in (_MESSAGES, _TIMES, _LOGGERS))
    seconds = F.get_json_object(line, "$.instant.epochSecond").try_cast("bigint")
    nanos = F.get_json_object(line, "$.instant.nanoOfSecond").try_cast("bigint")
    millis = F.get_json_object(line, "$.timeMillis").try_cast("bigint")
    micros = F.coalesce(seconds * 1_000_000 + F.floor(nanos / 1_000), millis * 1_000)
    stamp = F.concat(F.date_format(F.timestamp_micros(micros), "yyyy-MM-dd HH:mm:ss.SSSSSS"), F.lit("Z"))
    full = F.concat_ws(" ", F.coalesce(stamp, time), message, F.concat(F.lit("("), logger, F.lit(")")))
    return F.when(
        message.isNotNull() & ~line.rlike(_DMS),
        F.when(message.rlike(rf"^\[?{_TIME}"), message).otherwise(full),
    )


def _first(line: Column, names: tuple[str, ...]) -> Column:
    return F.coalesce(*(F.get_json_object(line, f"${name}" if name.startswith("[") else f"$.{name}") for name in names))
