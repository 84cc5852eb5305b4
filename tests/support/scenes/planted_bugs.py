"""A bug at any moment of a request: an exception at the nth call that it makes in its room of the core."""

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

CORE = "koordinator.emulator.core."

AROUND = {"_fire_due", "drain", "take_back"}
"""What an input does before and after its request."""


class PlantedError(Exception):
    """A bug."""


def bug_at(nth: int, act: Callable[[], object], serve: Callable[..., Any] = GroupStore.serve) -> int:
    """Act, and raise PlantedError where a request makes its nth call of a function in its room; return the calls.

    `serve` is the function that serves requests, and its room is the package of the core that has it.
    """
    calls = 0
    room = CORE + serve.__module__.removeprefix(CORE).partition(".")[0]

    def raise_at_call(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        # an exception in a generator may be ignored: it can be raised where that is closed
        if event != "call" or frame.f_code.co_name == "<genexpr>":
            return
        if frame.f_globals.get("__name__", "").startswith(room) and _is_in(serve, frame):
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


def _is_in(serve: Callable[..., Any], called: FrameType) -> bool:
    frame: FrameType | None = called
    while frame is not None and frame.f_code.co_name not in AROUND:
        if frame.f_code is serve.__code__:
            return frame is not called
        frame = frame.f_back
    return False


def planted(
    new_play: Callable[[], P], act: Callable[[P], object], most: int, serve: Callable[..., Any] = GroupStore.serve
) -> Iterator[tuple[str, P]]:
    """Return plays in which a bug has ended an act, from its first to its last call, each with its moment."""
    calls = 0
    # the first time fills caches
    for _ in range(2):
        play = new_play()
        calls = bug_at(NEVER, partial(act, play), serve)
    for moment in sorted({1 + (calls - 1) * at // (most - 1) for at in range(most)} if calls else ()):
        play = new_play()
        assert bug_at(moment, partial(act, play), serve) == moment
        yield f"call {moment} of {calls}", play
