"""What a change of state has replaced, so that it can be taken back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
V = TypeVar("V")


class Journal:
    """What the records of one write have replaced, oldest first."""

    __slots__ = ("_undo",)

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        """Take everything back if the body raises."""

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Take everything back after an error, which goes on."""
        if error is not None:
            self.revert()

    def __bool__(self) -> bool:
        """Return whether there is anything to take back."""
        return bool(self._undo)

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Put a value into a table."""
        self.note(partial(table.__setitem__, key, table[key]) if key in table else partial(table.pop, key, None))
        table[key] = value

    def pop(self, table: dict[K, V], key: K) -> V | None:
        """Remove a key, which returns to its place: the order of a table is visible. Return its value, or None."""
        if key not in table:
            return None
        place, value = list(table).index(key), table.pop(key)
        self.note(partial(insert, table, place, key, value))
        return value

    def set(self, owner: object, name: str, value: object) -> None:
        """Set an attribute."""
        self.note(partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def note(self, undo: Callable[[], object]) -> None:
        """Note how to take back a change that is made elsewhere."""
        self._undo.append(undo)

    def revert(self) -> None:
        """Take everything back, the latest change first."""
        while self._undo:
            self._undo.pop()()


def insert(table: dict[K, V], place: int, key: K, value: V) -> None:
    """Put a new key at a place of a table."""
    rows = list(table.items())
    rows.insert(place, (key, value))
    table.clear()
    table.update(rows)
