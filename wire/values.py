"""Cheap data classes: quick to declare, and frozen to type checkers only.

A server declares hundreds of classes at its start, and uses few. `dataclass` would take a quarter of that time, so a
class gets its slots at once, and the rest of a dataclass when somebody first needs it.
"""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields
from itertools import count
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")

VALUE_METHODS = ("__init__", "__eq__", "__hash__", "__repr__")

INTERPRETED_MAX = 16
"""Calls of an `__init__` before it is compiled, which takes as long as a hundred of them."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass with slots, equality and hash by fields, frozen to type checkers.

    Creating a frozen dataclass takes five times as long, because CPython sets each field by `object.__setattr__`.
    """
    return slotted(cls)


@dataclass_transform(field_specifiers=(field,))
def mutable(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass with slots, whose objects are equal to themselves alone."""
    return slotted(cls, methods=("__init__", "__repr__"))


def slotted(cls: type[_T], *, kw_only: bool = False, methods: Iterable[str] = VALUE_METHODS) -> type[_T]:
    """Return a class as a dataclass with slots, whose fields and methods are made at their first use."""
    declared = {name: member for name, member in vars(cls).items() if name not in {"__dict__", "__weakref__"}}
    names = [name for name, type_ in cls.__annotations__.items() if "ClassVar[" not in f"{type_}"]
    members = {name: member for name, member in declared.items() if name not in names}
    members |= {name: _LATE[name] for name in methods}
    members |= {"__slots__": names, "__match_args__": () if kw_only else (*names,)}
    members["__dataclass_fields__"] = _LateFields((cls.__name__, cls.__bases__, declared), kw_only=kw_only)
    metaclass: Any = type(cls)
    made: type[_T] = metaclass(cls.__name__, cls.__bases__, members)
    made.__qualname__ = cls.__qualname__
    return made


class _LateFields:
    """The fields of a class made by `slotted`, which replace this descriptor when somebody first looks at them."""

    def __init__(self, declared: tuple[str, tuple[type, ...], dict[str, Any]], *, kw_only: bool) -> None:
        self._declared, self._kw_only = declared, kw_only

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner: Any = owner

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        # a class of its own: another thread may look at the same time
        name, bases, members = self._declared
        made: Any = dataclass(init=False, eq=False, repr=False, kw_only=self._kw_only)(type(name, bases, {**members}))
        self._owner.__dataclass_params__ = made.__dataclass_params__
        self._owner.__dataclass_fields__ = found = made.__dataclass_fields__
        assert isinstance(found, dict), "the fields of a dataclass, by their names"
        return found


def _late(name: str) -> Callable[..., Any]:
    """Return a method that makes the real one of its class, and calls it."""

    def method(self: object, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        for cls in type(self).__mro__:
            if vars(cls).get(name) is method:
                setattr(cls, name, _MAKERS[name](cls))
        return getattr(self, name)(*args, **kwargs)

    return method


def _init(cls: type) -> Any:  # noqa: ANN401
    """Return an `__init__` that reads the fields; from its INTERPRETED_MAXth call on, a compiled one replaces it."""
    made: Any = cls
    rows = [(each.name, each.init, each.default, each.default_factory) for each in fields(made)]
    positional = [each.name for each in fields(made) if each.init and not each.kw_only]
    has_more = hasattr(made, "__post_init__")
    calls = count(1)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807
        given = dict(zip(positional, args, strict=False)) | kwargs
        is_plain = len(given) == len(args) + len(kwargs) and next(calls) < INTERPRETED_MAX
        for name, is_given, default, factory in rows if is_plain else ():
            if is_given and name in given:
                setattr(self, name, given.pop(name))
            elif default is not MISSING:
                setattr(self, name, default)
            elif factory is not MISSING:
                setattr(self, name, factory())
            elif is_given:
                is_plain = False
        if not is_plain or given:
            # it raises the TypeError of a wrong call, too
            made.__init__ = _compiled_init(cls)
            made.__init__(self, *args, **kwargs)
        elif has_more:
            self.__post_init__()

    return __init__


def _compiled_init(cls: type) -> Any:  # noqa: ANN401
    # a subclass has the same fields, and so the same `__init__`
    heir = type(cls.__name__, (cls,), {"__doc__": cls.__doc__})
    # hold the class: a garbage collection would empty it, and its `__init__` would be gone
    made: Any = dataclass(slots=True, eq=False, repr=False)(heir)
    return made.__init__


def _eq(cls: type) -> Callable[[object, object], bool]:
    key = _key(cls)

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(cls: type) -> Callable[[object], int]:
    key = _key(cls)

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(key(self))

    return __hash__


def _repr(cls: type) -> Callable[[object], str]:
    made: Any = cls
    shown = [each.name for each in fields(made) if each.repr and each.compare]

    def __repr__(self: object) -> str:  # noqa: N807
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{cls.__qualname__}({values})"

    return __repr__


def _key(cls: type) -> Callable[[object], Any]:
    made: Any = cls
    names = [each.name for each in fields(made) if each.compare]
    return attrgetter(*names) if names else lambda _: ()


_MAKERS = {"__init__": _init, "__eq__": _eq, "__hash__": _hash, "__repr__": _repr}

_LATE = {name: _late(name) for name in _MAKERS}
