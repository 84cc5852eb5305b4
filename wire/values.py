"""Cheap value classes for objects of every request: frozen to type checkers only."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def value(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass with slots, equality and hash by fields, frozen to type checkers.

    Creating a frozen dataclass takes five times as long, because CPython sets each field by `object.__setattr__`.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
