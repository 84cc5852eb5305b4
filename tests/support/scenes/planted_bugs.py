"""A bug at any moment of a request: an exception at the nth call of a function of the groups' code."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.emulator.core.groups.group_store import GroupStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

P = TypeVar("P")

NEVER = sys.maxsize

GROUPS = "koordinator.emulator.core.groups"


class PlantedError(Exception):
    """A bug."""


def bug_at(nth: int, act: Callable[[], object]) -> int:
    """Act, and raise PlantedError where a request makes its nth call; return the number of calls."""
    calls = 0

    def raise_at_call(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        # an exception in a generator may be ignored: it can be raised where that is closed
        if event != "call" or frame.f_code.co_name == "<genexpr>":
            return
        if frame.f_globals.get("__name__", "").startswith(GROUPS) and _is_in_request(frame.f_back):
            calls += 1
            if calls == nth:
                sys.setprofile(None)
                raise PlantedError(f"{frame.f_code.co_qualname} of {frame.f_globals['__name__']}")

    before = sys.getprofile()
    sys.setprofile(raise_at_call)
    try:
        act()
    except PlantedError:
        pass
    finally:
        sys.setprofile(before)
    return calls


def _is_in_request(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is GroupStore.serve.__code__:
            return True
        frame = frame.f_back
    return False


def planted(new_play: Callable[[], P], act: Callable[[P], object], most: int) -> Iterator[tuple[str, P]]:
    """Return plays in which a bug has ended an act, from its first to its last call, each with its moment."""
    calls = 0
    # the first time fills caches
    for _ in range(2):
        play = new_play()
        calls = bug_at(NEVER, partial(act, play))
    for moment in sorted({1 + (calls - 1) * at // (most - 1) for at in range(most)} if calls else ()):
        play = new_play()
        assert bug_at(moment, partial(act, play)) == moment
        yield f"call {moment} of {calls}", play
