"""Durations in Java's words; all of these were put to a broker as `share.auto.offset.reset` (Kafka 4.4.0)."""

from __future__ import annotations

import pytest

from koordinator.emulator.config.durations import duration_ns

SECOND = 10**9
HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("P1D", 24 * HOUR),
        ("pt1h", HOUR),
        ("P1DT2H3M4.5S", 26 * HOUR + 184 * SECOND + SECOND // 2),
        ("PT1,5S", 3 * SECOND // 2),
        ("PT1.S", SECOND),
        ("PT0.000000001S", 1),
        ("PT+1S", SECOND),
        ("+P1D", 24 * HOUR),
        ("-PT-1H", HOUR),
        ("-PT1H", -HOUR),
        ("PT1H-90M", -HOUR // 2),
        ("P-1DT24H", 0),
        ("PT-0.5S", -SECOND // 2),
        ("PT0000000000000000000000001S", SECOND),
        ("PT9223372036854775807S", (2**63 - 1) * SECOND),
    ],
)
def test_a_duration_has_days_hours_minutes_and_seconds_each_with_a_sign(text: str, ns: int) -> None:
    assert duration_ns(text) == ns


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "P1DT", "P1Y", "P1D2H", "PT1M1H", "PT.5S", "PT1.0123456789S", "PT1S ", "1H"),
        *("PT9223372036854775808S", "P99999999999999999D", "PT1\u0663S"),
    ],
)
def test_no_other_text_is_a_duration(text: str) -> None:
    assert duration_ns(text) is None
