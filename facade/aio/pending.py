"""Calls of asynchronous handles, to be awaited: a use without `await` raises an error that says so.

Without them `assert group.members` would pass: a coroutine is true.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from .waiting import entered

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")

OPERATORS = (
    "bool eq ne lt le gt ge len iter aiter contains getitem int float index str add radd sub rsub and or enter exit"
)
"""The operators that a test would use on the result."""


FORGOTTEN: list[str] = []
"""The calls that were never awaited, for which the fixture `koordinator_aio` fails its test."""


class Pending(Coroutine[Any, Any, T]):
    """A call of an asynchronous handle. Tasks and nurseries accept it as any coroutine."""

    def __init__(self, call: str, coroutine: Coroutine[Any, Any, T]) -> None:
        self._call = call
        self._coroutine = coroutine
        self._is_used = False

    def __repr__(self) -> str:
        return f"<{self._call}, not awaited>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self._call} has no {name!r} before it is awaited: {self._remedy}")

    def __del__(self) -> None:
        if not self._is_used:
            FORGOTTEN.append(f"{self._call} was never awaited: {self._remedy}")

    __hash__ = object.__hash__

    def __await__(self) -> Any:  # noqa: ANN401 - a generator of the loop
        return self._started().__await__()

    def send(self, value: Any) -> Any:  # noqa: ANN401 - a value of the loop
        """Resume the coroutine."""
        return self._started().send(value)

    def throw(self, *error: Any) -> Any:  # noqa: ANN401 - an exception of the loop
        """Raise an exception in the coroutine."""
        return self._started().throw(*error)

    def close(self) -> None:
        """End the coroutine."""
        self._started().close()

    def _started(self) -> Coroutine[Any, Any, T]:
        self._is_used = True
        return self._coroutine

    @property
    def _remedy(self) -> str:
        return f"write (await {self._call})"

    def _refuse(self) -> NoReturn:
        # no second message, that the coroutine was never awaited
        self.close()
        raise TypeError(f"{self._call} was not awaited: {self._remedy}")


def _refusal(operator: str) -> Any:  # noqa: ANN401 - a method
    def refuse(self: Pending[Any], *_: object) -> NoReturn:
        self._refuse()

    refuse.__name__ = f"__{operator}__"
    return refuse


for _operator in OPERATORS.split():
    setattr(Pending, f"__{_operator}__", _refusal(_operator))


class PendingHandle(Pending[T], AbstractAsyncContextManager[T], Generic[T]):
    """A call that returns a handle with an end: `await` returns the handle, `async with` also ends it."""

    async def __aenter__(self) -> T:
        handle: Any = await self
        self._block = entered(handle.blocking)
        await self._block.__aenter__()
        return handle  # type: ignore[no-any-return]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._block.__aexit__(kind, error, trace)
