"""Blocking calls from a loop: each runs on its own thread.

A cancelled caller returns at once. The thread is abandoned; its wait ends at its timeout, or when the cluster stops.
"""

from __future__ import annotations

import asyncio
import math
import threading
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import trio

from ..handles.errors import EXPECTED
from ..handles.loops import runs_trio
from ..handles.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager

_T = TypeVar("_T")


async def in_thread(call: Callable[[], _T], *, even_if_cancelled: bool = False) -> _T:
    """Make a call on another thread and return its result, in asyncio and in Trio.

    `even_if_cancelled`: also in a cancelled task. An expected error is raised without the frames of the thread.
    """
    __tracebackhide__ = True
    try:
        return await (_in_thread_of_trio(call, even_if_cancelled) if runs_trio() else _in_thread_of_asyncio(call))
    except EXPECTED as error:
        raise error.with_traceback(None) from error.__cause__


async def _in_thread_of_trio(call: Callable[[], _T], even_if_cancelled: bool) -> _T:  # noqa: FBT001 - as of `in_thread`
    results: list[_T] = []
    with trio.CancelScope(shield=even_if_cancelled):
        # the program's own limit on threads must not delay a wait
        limiter = trio.CapacityLimiter(math.inf)
        results.append(await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter))
    return results[0]


async def _in_thread_of_asyncio(call: Callable[[], _T]) -> _T:
    # asyncio.run waits for the threads of the loop's executor, so that one is not used
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def report(set_outcome: Callable[[], None]) -> None:
        # the loop may be closed, or the task cancelled
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if done.done() else set_outcome())

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - raised in the calling task
            outcome = error
            report(lambda: done.set_exception(outcome))
        else:
            report(lambda: done.set_result(result))

    threading.Thread(target=run, name="koordinator-aio", daemon=True).start()
    return await done


async def acquired(acquire: Callable[[], _T], release: Callable[[_T], object]) -> _T:
    """Make a call on another thread and return its result; if the caller is cancelled meanwhile, release that."""
    outcome: Outcome[_T] = Outcome()

    def begin() -> _T:
        try:
            outcome.set_result(acquire())
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            outcome.set_error(error)
        return outcome.result()

    def undo() -> None:
        with suppress(BaseException):
            release(outcome.result())

    try:
        return await in_thread(begin)
    except BaseException:
        threading.Thread(target=undo, name="koordinator-aio", daemon=True).start()
        raise


@asynccontextmanager
async def entered(manager: AbstractContextManager[_T]) -> AsyncIterator[_T]:
    """Enter and exit a blocking context manager on other threads."""
    result = await acquired(manager.__enter__, lambda _: manager.__exit__(None, None, None))
    try:
        yield result
    except BaseException as error:
        exception = error
        if not await in_thread(
            lambda: manager.__exit__(type(exception), exception, exception.__traceback__), even_if_cancelled=True
        ):
            raise
    else:
        await in_thread(lambda: manager.__exit__(None, None, None))
