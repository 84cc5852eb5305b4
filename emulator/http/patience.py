"""Cancellation of a long poll when its client disconnects."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Cancel the block when the client disconnects. Exceptions of the block are raised unwrapped."""
    raised: list[Exception] = []
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        nursery.start_soon(watch)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the nursery would wrap it
            raised.append(error)
        nursery.cancel_scope.cancel()
    if raised:
        raise raised[0]
