"""What a change of state has replaced, so that it can be taken back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
V = TypeVar("V")


class JournaledTable(dict[K, V]):
    """A table whose keys remember when they came, so that a removed one can return to its place.

    `remove` takes the same time for any number of keys, `put_back` does not: a failed write is rare.
    """

    __slots__ = ("_latest", "births")

    def __init__(self) -> None:
        super().__init__()
        self.births: dict[K, int] = {}
        """A number for each key; those of newer keys are greater."""
        self._latest = 0

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self:
            self._latest += 1
            self.births[key] = self._latest
        super().__setitem__(key, value)

    def remove(self, key: K) -> tuple[V, int]:
        """Remove a key; return its value, and its number in `births`."""
        return self.pop(key), self.births.pop(key)

    def put_back(self, key: K, value: V, birth: int) -> None:
        """Put a removed key back to its place."""
        rows = [*self.items(), (key, value)]
        self.births[key] = birth
        rows.sort(key=lambda row: self.births[row[0]])
        self.clear()
        self.update(rows)


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

    def put(self, table: JournaledTable[K, V], key: K, value: V) -> None:
        """Put a value into a table."""
        self.note(partial(table.__setitem__, key, table[key]) if key in table else partial(table.remove, key))
        table[key] = value

    def pop(self, table: JournaledTable[K, V], key: K) -> V | None:
        """Remove a key, which returns to its place: the order of a table is visible. Return its value, or None."""
        if key not in table:
            return None
        value, birth = table.remove(key)
        self.note(partial(table.put_back, key, value, birth))
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
