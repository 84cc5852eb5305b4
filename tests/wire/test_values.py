import gc
import sys
from dataclasses import field, replace
from types import FrameType
from typing import Any

import pytest

from koordinator.wire.values import _compiled_init, value


@value
class Point:
    x: int
    label: str = ""
    tags: tuple[str, ...] = field(default_factory=tuple)


@value
class Name:
    text: str


@value
class OtherName:
    text: str


@value
class Nothing:
    pass


def test_values_are_equal_and_hashed_by_class_and_fields() -> None:
    assert Point(1, "a") == Point(1, label="a") != Point(2, "a")
    assert len({Point(1), Point(1), Point(2), Name("a"), Name("a"), OtherName("a"), Nothing(), Nothing()}) == 5
    assert Name("a") != OtherName("a")
    assert Name("a") != "a"
    assert Nothing() == Nothing()


def test_the_repr_of_a_value_is_that_of_a_dataclass() -> None:
    assert repr(Point(1, "a", ("b",))) == "Point(x=1, label='a', tags=('b',))"
    assert repr(Nothing()) == "Nothing()"


def test_a_value_is_a_dataclass_with_slots() -> None:
    assert replace(Point(1), x=2) == Point(2)
    assert not hasattr(Point(1), "__dict__")
    match Point(3, "b"):
        case Point(x, label):
            assert (x, label) == (3, "b")
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point([]))  # type: ignore[arg-type]


def test_the_init_of_a_value_is_compiled_at_its_first_call() -> None:
    @value
    class Late:
        x: int
        y: int = 2
        unset: int = field(init=False, default=3)

    stub = Late.__init__
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Late()  # type: ignore[call-arg]
    assert Late.__init__ is not stub
    assert (Late(1).x, Late(x=1).y, Late(1).unset) == (1, 2, 3)


def test_an_init_is_compiled_while_garbage_is_collected_at_any_moment() -> None:
    """A class is in a cycle, so a collection empties one that nobody holds: `vars(…)["__init__"]` raised KeyError."""

    def collect(frame: FrameType, _event: str, _argument: object) -> Any:
        if frame.f_code is not _compiled_init.__code__:
            return None
        frame.f_trace_opcodes = True
        gc.collect()
        return collect

    before = sys.gettrace()
    # what exists before needs no visit
    gc.freeze()
    sys.settrace(collect)
    try:
        init = _compiled_init(Name)
    finally:
        sys.settrace(before)
        gc.unfreeze()
    name = Name.__new__(Name)
    init(name, "n")
    assert name == Name("n")
