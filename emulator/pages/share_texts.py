"""Records of share groups in a few words: acquired, acknowledged, locks that have ended (KIP-932), those given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SHOWN_MAX = 3
"""The most ranges of records in a text."""


def records_text(body: Mapping[str, Any]) -> str:
    """Return the records in the body of a line, as `orders-0: 0-4 (delivery 2)`; "" if it has none."""
    if "acknowledged" in body:
        return _listed(f"{_range(*row[:4])} {', '.join(row[4])}" for row in body["acknowledged"])
    if "acquired" in body:
        return _listed(f"{_range(*row[:4])}{_delivery(row[4])}" for row in body["acquired"])
    if "ended" in body:
        return _listed(
            f"{_range(*row[:4])}{' archived' if row[5].startswith('archiv') else ''}" for row in body["ended"]
        )
    if "archived" in body:
        return _listed(f"{_range(*row[:4])}{_delivery(row[4])}" for row in body["archived"])
    if "dead" in body:
        topic, partition, first, last, count = body["dead"]
        problem = body.get("problem")
        end = f" not written: {problem}" if problem else f" to {body.get('written_to')}"
        return f"{_range(topic, partition, first, last)}{_delivery(count)}{end}"
    return ""


def _range(topic: str, partition: int, first: int, last: int) -> str:
    return f"{topic}-{partition}: {first}" + (f"-{last}" if last > first else "")


def _delivery(count: int) -> str:
    return f" (delivery {count})" if count > 1 else ""


def _listed(texts: Iterable[str]) -> str:
    rows = list(texts)
    more = f" and {len(rows) - SHOWN_MAX} more" if len(rows) > SHOWN_MAX else ""
    return f"{', '.join(rows[:SHOWN_MAX])}{more}"
