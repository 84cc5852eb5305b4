"""Values that are made, or looked up, for every request: frozen to type checkers, plain to the interpreter."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")
_E = TypeVar("_E", bound=type[Enum])


@dataclass_transform(frozen_default=True)
def value(cls: type[_T]) -> type[_T]:
    """A dataclass that nobody changes, with slots, equal and hashed by its fields.

    CPython makes a really frozen one five times slower, since each field is set through `object.__setattr__`.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


def plain_members(cls: _E) -> _E:
    """An enumeration whose members are plain attributes, as they are from Python 3.12 on.

    Python 3.11 calls a function whenever one is named, which takes ten times as long.
    """
    for name, member in cls.__members__.items():
        type.__setattr__(cls, name, member)
    return cls
