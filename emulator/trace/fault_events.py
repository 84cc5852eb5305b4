"""The events of the trace that tell of a test's hand on requests: rules and holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.effects import Call


@value
class RuleNoted:
    """A rule was `added`, `removed`, acted on a request (`used`), or could not do it to the group (`failed`).

    `body` says what it is, what it did, or what the problem was.
    """

    change: str
    rule_id: str
    group_id: str | None
    body: Mapping[str, object]
    call: Call | None = None
    member_id: str | None = None
    group_now: int | None = None


@value
class HoldNoted:
    """A hold was `added` or `removed`; a request `entered` it, was `released`, or waits `behind` one that is held.

    A lock-step is a hold that releases by itself.
    """

    change: str
    hold_id: str
    group_id: str | None
    body: Mapping[str, object]
    call: Call | None = None
    member_id: str | None = None
    group_now: int | None = None
