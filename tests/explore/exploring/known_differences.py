"""Differences explained by a Kafka issue; every other difference is our bug."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from exploring.releases import Release
    from exploring.verdicts import Judgement


@dataclass(frozen=True)
class Explanation:
    """A lasting difference: a KAFKA issue, and the differences it explains."""

    issue: str
    what: str
    explains: Callable[[Judgement, Release], bool]


EXPLANATIONS: tuple[Explanation, ...] = ()
