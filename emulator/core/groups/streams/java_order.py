"""Java's order of strings (`String.compareTo`), which is that of their UTF-16 code units."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def by_java_order(texts: Iterable[str]) -> list[str]:
    """Return strings in ascending order."""
    return sorted(texts, key=java_text_order)


def java_text_order(text: str) -> bytes:
    """Return the sort key of a string."""
    return text.encode("utf-16-be", "surrogatepass")
