"""Calls that block, made from a loop: each on a thread of its own, so that the loop goes on.

Whoever is cancelled while it waits is so at once. The thread is left to itself, with a wait that ends at its timeout,
or when the cluster stops.
"""

from __future__ import annotations

import asyncio
import math
import threading
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import trio

from ..handles.emulator import runs_trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager

_T = TypeVar("_T")


async def in_thread(call: Callable[[], _T], *, whatever_happens: bool = False) -> _T:
    """Make a call on another thread, and give what it gives. Works in asyncio and in Trio.

    `whatever_happens`: in a task that has been cancelled, too.
    """
    if not runs_trio():
        return await _in_thread_of_asyncio(call)
    given: list[_T] = []
    with trio.CancelScope(shield=whatever_happens):
        # not one of the limited number of threads that programs share
        limiter = trio.CapacityLimiter(math.inf)
        given.append(await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter))
    return given[0]


async def _in_thread_of_asyncio(call: Callable[[], _T]) -> _T:
    # not in the loop's executor, for whose threads asyncio.run waits at its end
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def tell(say: Callable[[], None]) -> None:
        # nobody listens once the loop has been closed, or the task was cancelled
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if done.done() else say())

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            problem = error
            tell(lambda: done.set_exception(problem))
        else:
            tell(lambda: done.set_result(result))

    threading.Thread(target=run, name="koordinator-aio", daemon=True).start()
    return await done


@asynccontextmanager
async def entered(manager: AbstractContextManager[_T]) -> AsyncIterator[_T]:
    """A context manager that blocks, as one that is awaited."""
    given = await in_thread(manager.__enter__)
    try:
        yield given
    except BaseException as error:
        problem = error
        if not await in_thread(
            lambda: manager.__exit__(type(problem), problem, problem.__traceback__), whatever_happens=True
        ):
            raise
    else:
        await in_thread(lambda: manager.__exit__(None, None, None))
