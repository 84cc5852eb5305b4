"""Cheap value classes: frozen to type checkers only, and quick to declare."""

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass with slots, equality and hash by fields, frozen to type checkers.

    Creating a frozen dataclass takes five times as long, because CPython sets each field by `object.__setattr__`.
    """
    return with_methods(dataclass(slots=True, init=False, eq=False, repr=False)(cls))


def with_methods(cls: type[_T]) -> type[_T]:
    """Give a dataclass equality, hash and repr by fields, and an `__init__` that is compiled at its first call.

    `dataclass` would compile these for each class, most of which a server never creates: 110 ms at its start.
    """
    made: Any = cls
    names = [declared.name for declared in fields(made) if declared.compare]
    shown = [declared.name for declared in fields(made) if declared.compare and declared.repr]
    key: Any = attrgetter(*names) if names else lambda _: ()

    def __init__(self: _T, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807
        made.__init__ = _compiled_init(cls)
        made.__init__(self, *args, **kwargs)

    def __eq__(self: _T, other: object) -> bool:  # noqa: N807
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: _T) -> int:  # noqa: N807
        return hash(key(self))

    def __repr__(self: _T) -> str:  # noqa: N807
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{cls.__qualname__}({values})"

    for method in (__init__, __eq__, __hash__, __repr__):
        setattr(cls, method.__name__, method)
    return cls


def ready(cls: type[_T]) -> type[_T]:
    """Compile the `__init__` of a value class or message now: else the first group of a server pays for it."""
    made: Any = cls
    made.__init__ = _compiled_init(cls)
    return cls


def _compiled_init(cls: type) -> Any:  # noqa: ANN401
    # a subclass has the same fields, and so the same `__init__`
    heir = type(cls.__name__, (cls,), {"__doc__": cls.__doc__})
    # hold the class: a garbage collection would empty it, and its `__init__` would be gone
    made: Any = dataclass(slots=True, eq=False, repr=False)(heir)
    return made.__init__
