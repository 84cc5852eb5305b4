"""Differences that are Kafka's: each with the issue that says so. Whatever else differs is ours to mend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from exploring.judging import Judgement
    from exploring.releases import Release


@dataclass(frozen=True)
class Explanation:
    """Why a broker says something else than the core, and will: a KAFKA issue, and which differences it explains."""

    issue: str
    what: str
    explains: Callable[[Judgement, Release], bool]


EXPLANATIONS: tuple[Explanation, ...] = ()
