"""Detection of running asyncio and Trio loops, which a blocking call would stop."""

from __future__ import annotations

import sys

import trio

from .errors import BlockingCallInLoop


def refuse_in_loop(call: str) -> None:
    """Raise BlockingCallInLoop if the calling thread runs an asyncio or a Trio loop."""
    if _runs_asyncio():
        loop = "an asyncio"
    elif runs_trio():
        loop = "a Trio"
    else:
        return
    raise BlockingCallInLoop(
        f"{call} would block {loop} loop that is running in this thread; await it with a handle of koordinator.aio,"
        " such as aio.Cluster(cluster)"
    )


def runs_trio() -> bool:
    """Return whether the calling thread runs a Trio loop."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def _runs_asyncio() -> bool:
    # a program that runs asyncio has imported it
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
