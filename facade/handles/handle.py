"""The base of the handles: every public method checks its arguments and shortens the traceback of its errors.

`Handle.__init_subclass__` wraps the public methods and properties of each handle once. The wrapper compares the
arguments with the method's annotations, so that a wrong type is one line with the value, the place and the remedy
before anything happens. An expected error leaves the wrapper without the frames of the emulator, the port and the
thread between them, and without the chain of errors that led to it; an error of koordinator itself keeps both. The
names of the call are in `call_text`, for messages that refer to the call of the test.
"""

from __future__ import annotations

import collections.abc
import inspect
import math
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import EXPECTED, InvalidArgument
from .renames import current_arguments

if TYPE_CHECKING:
    from .port import Port

F = TypeVar("F", bound=Callable[..., Any])

NOUNS: Mapping[Any, str] = {
    Any: "value",
    bool: "True, False",
    float: "finite number",
    int: "integer",
    object: "value",
    str: "string",
    type(None): "None",
}
"""Types in the words of messages."""

SHOWN = reprlib.Repr()
SHOWN.maxstring = SHOWN.maxother = 80
"""The representation of values in messages: one line, shortened."""


@dataclass(frozen=True, slots=True)
class HandleCall:
    """A call of a public method or property by the user of a handle."""

    handle: object
    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The handle and the method, `Group('svc').evict`."""
        name, handle = self.function.__name__, self.handle
        # the id of a topic is a request
        key = handle.name if hasattr(handle, "name") else getattr(handle, "id", None)
        owner = f"{type(self.handle).__name__}{'' if key is None else f'({key!r})'}"
        return owner if name == "__init__" else f"{owner}.{name}"

    def __str__(self) -> str:
        if getattr(self.function, "is_property", False):
            return self.place
        shown = [SHOWN.repr(value) for value in self.args]
        shown += [f"{name}={SHOWN.repr(value)}" for name, value in self.options.items()]
        return f"{self.place}({', '.join(shown)})"


CALL: ContextVar[HandleCall | None] = ContextVar("koordinator_call", default=None)
"""The outermost call of a handle in this context."""


class Handle:
    """The base of all handles."""

    _port: Port

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if inspect.isfunction(member):
                setattr(cls, name, checked(member))
            elif isinstance(member, property) and member.fget is not None:
                reader = checked(member.fget)
                reader.is_property = True  # type: ignore[attr-defined]
                setattr(cls, name, property(reader, doc=member.__doc__))


def checked(function: F) -> F:
    """Wrap a public method: raise InvalidArgument for a wrong argument, and expected errors with a short traceback."""

    @wraps(function)
    def call(self: object, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - those of the method
        __tracebackhide__ = True
        options = dict(current_arguments(function, options))
        is_outermost = CALL.get() is None
        # within the block, so that an interrupt leaves no call behind: later errors would name it
        try:
            if is_outermost:
                CALL.set(HandleCall(self, call, args, options))
            _check(HandleCall(self, function, args, options))
            result = _shortened(function, self, *args, **options)
        finally:
            if is_outermost:
                CALL.set(None)
        is_block = isinstance(result, AbstractContextManager) and not isinstance(result, Handle)
        return _Block(result) if is_block else result

    return typing.cast("F", call)


def _shortened(function: Callable[..., Any], *args: Any, **options: Any) -> Any:  # noqa: ANN401 - those of the function
    """Call a function; raise expected errors without its frames."""
    __tracebackhide__ = True
    try:
        return function(*args, **options)
    except EXPECTED as error:
        raise error.with_traceback(None) from error.__cause__


class _Block:
    """A context manager of a handle, whose errors are as short as those of a method."""

    def __init__(self, manager: AbstractContextManager[Any]) -> None:
        self._manager = manager

    def __enter__(self) -> Any:  # noqa: ANN401 - that of the manager
        __tracebackhide__ = True
        return _shortened(self._manager.__enter__)

    def __exit__(self, *error: object) -> bool | None:
        __tracebackhide__ = True
        return typing.cast("bool | None", _shortened(self._manager.__exit__, *error))


def _check(call: HandleCall) -> None:
    parameters = _parameters(call.function)
    positional = [name for name, (_, _, is_positional) in parameters.items() if is_positional]
    named = dict(zip(positional, call.args, strict=False)) | dict(call.options)
    for name, value in named.items():
        hint, default, _ = parameters.get(name, (Any, None, False))
        # a default may be outside of its annotation's values, such as an empty tuple
        if value is not default and not _fits(value, hint):
            noun = _noun(hint)
            article = "" if not noun[0].islower() else "an " if noun[0] in "aeiou" else "a "
            raise InvalidArgument(f"{call.place}: {name}={SHOWN.repr(value)}: must be {article}{noun}")


@cache
def _parameters(function: Callable[..., Any]) -> dict[str, tuple[Any, Any, bool]]:
    """Return type and default of each parameter with one name and one value, and whether it may be positional."""
    hints = _hints(inspect.unwrap(function), vars(collections.abc) | vars(sys.modules[function.__module__]))
    return {
        name: (hints[name], each.default, each.kind is not each.KEYWORD_ONLY)
        for name, each in inspect.signature(function).parameters.items()
        if name in hints and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }


def _hints(function: Callable[..., Any], names: dict[str, Any]) -> dict[str, Any]:
    """Return the types of annotations; names that a module imports for type checkers only admit any value."""
    try:
        return typing.get_type_hints(function, localns=names)
    except NameError as error:
        return _hints(function, {**names, str(error.name): Any})


def _fits(value: Any, hint: Any) -> bool:  # noqa: ANN401 - any value and type, one case each
    hint = getattr(hint, "__bound__", hint)
    if hint is Any:
        return True
    if hint in (None, type(None)):
        return value is None
    if hint in (int, float) and isinstance(value, bool):
        return False
    if hint is float:
        return isinstance(value, int | float) and math.isfinite(value)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return isinstance(value, hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is typing.Literal:
        # the operation knows the choices, and suggests one
        return isinstance(value, str)
    if isinstance(value, str | bytes) or not isinstance(value, origin):
        return False
    if origin is tuple:
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if issubclass(origin, Mapping):
        return all(_fits(key, inner[0]) and _fits(each, inner[1]) for key, each in value.items())
    # an iterator can be read only once, and records are checked where they are read
    return not issubclass(origin, Collection) or all(_fits(each, inner[0]) for each in value)


def _noun(hint: Any) -> str:  # noqa: ANN401 - any type
    """Return a type in words, such as "list of strings or None"."""
    hint = getattr(hint, "__bound__", hint)
    if hint in NOUNS:
        return NOUNS[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType, typing.Literal):
        nouns = list(dict.fromkeys(map(repr if origin is typing.Literal else _noun, inner)))
        return " or ".join(filter(None, [", ".join(nouns[:-1]), nouns[-1]]))
    if origin is None:
        return f"{getattr(hint, '__name__', hint)}".removesuffix("Handle")
    if origin is tuple:
        return f"({', '.join(map(_noun, inner))})"
    if issubclass(origin, Mapping):
        return f"mapping of {_noun(inner[0])} to {_noun(inner[1])}"
    return f"list of {_noun(inner[0])}" if issubclass(origin, Collection) else "list"
