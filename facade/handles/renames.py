"""Names of the release before: they work in this one, warn with the name of today, and are gone in the next one.

A method or property has `old = renamed(new)`, or `old: Renamed[T] = Renamed("new")`; a method whose arguments have
other names now has `@renamed_arguments(old="new")`. docs/upgrade.md lists them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")


class Renamed(Generic[T]):
    """The old name of a method or property. An access warns, and is that of the new name."""

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, handle: Any, owner: type) -> T:  # noqa: ANN401 - any handle
        if handle is None:
            return cast("T", self)
        warn_renamed(f"{type(handle).__name__}.{self.old}", f"{type(handle).__name__}.{self.new}")
        return cast("T", getattr(handle, self.new))


def renamed(method: F) -> F:
    """Return the old name of a method."""
    return cast("F", Renamed(method.__name__))


def renamed_arguments(**new_names: str | tuple[str, object]) -> Callable[[F], F]:
    """Accept old names of a method's arguments; `current_arguments` replaces them.

    A new name has a value, `("all_owned", True)`, if it stands for every value of the old one but None.
    """

    def mark(method: F) -> F:
        method.new_names = new_names  # type: ignore[attr-defined]
        return method

    return mark


def current_arguments(method: Callable[..., Any], options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call with their names of today; warn about old ones in the line that made the call."""
    new_names: Mapping[str, str | tuple[str, object]] = getattr(method, "new_names", {})
    if new_names.keys().isdisjoint(options):
        return options
    current = dict(options)
    for old in new_names.keys() & options.keys():
        new, value = new_names[old], current.pop(old)
        if not isinstance(new, str):
            new, value = new[0], new[1] if value is not None else None
        warn_renamed(f"{old}=", f"{new}=", 2)
        current[new] = value
    return current


def warn_renamed(old: str, new: str, frames: int = 1) -> None:
    """Warn that a name is old, in the line of the test: that many frames above the caller."""
    warnings.warn(f"{old} has a new name: {new}", DeprecationWarning, stacklevel=2 + frames)
