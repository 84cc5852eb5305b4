import gc
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import field, fields, replace
from types import FrameType
from typing import Any, ClassVar

import pytest

from koordinator.wire.values import INTERPRETED_MAX, _compiled_init, mutable, value


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


@value
class Late:
    x: int
    y: int = 2
    tags: list[int] = field(default_factory=list)
    unset: int = field(init=False, default=3)
    later: int = field(init=False)
    only: int = field(kw_only=True, default=4)
    kind: ClassVar[str] = "late"


def test_an_init_does_the_same_before_and_after_it_is_compiled() -> None:
    interpreted = Late.__init__
    for number in range(2 * INTERPRETED_MAX):
        made = (Late(number), Late(x=number), Late(number, 5, [6], only=7))
        assert [(each.x, each.y, each.tags, each.unset, each.only) for each in made] == [
            *[(number, 2, [], 3, 4)] * 2,
            (number, 5, [6], 3, 7),
        ]
        assert made[0].tags is not made[1].tags
        assert not hasattr(made[0], "later")
    assert Late.__init__ is not interpreted
    assert (Late.kind, Late.__init__.__qualname__) == ("late", "Late.__init__")


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((1, 2, [], 3), {}, "takes from 2 to 4 positional arguments but 5"),
        ((1,), {"x": 1}, "multiple values for argument 'x'"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
        ((1,), {"unset": 1}, "unexpected keyword argument 'unset'"),
    ],
)
def test_a_wrong_call_raises_the_error_of_a_dataclass(args: tuple[Any, ...], kwargs: dict[str, int], text: str) -> None:
    class Fresh:
        x: int
        y: int = 2
        tags: list[int] = field(default_factory=list)
        unset: int = field(init=False, default=3)

    made: Any = value(Fresh)
    with pytest.raises(TypeError, match=text):
        made(*args, **kwargs)


def test_the_fields_of_a_class_are_made_at_their_first_use_and_those_of_its_base_too() -> None:
    @value
    class Base:
        x: int

    @value
    class Heir(Base):
        y: int = 2

    assert not isinstance(vars(Heir)["__dataclass_fields__"], dict)
    assert [each.name for each in fields(Heir)] == ["x", "y"]
    assert isinstance(vars(Base)["__dataclass_fields__"], dict)
    assert (Heir(1), repr(Heir(1)).rpartition(".")[2]) == (Heir(1, 2), "Heir(x=1, y=2)")
    assert copy(Heir(1)) == Heir(1)
    assert pickle.loads(pickle.dumps(Point(1, "a"))) == Point(1, "a")  # noqa: S301


def test_objects_of_a_mutable_class_are_equal_to_themselves_alone() -> None:
    @mutable
    class Count:
        n: int = 0

    one, other = Count(), Count()
    one.n += 1
    assert (one, one.n, len({one, other})) == (one, 1, 2)
    assert Count(1) != one


def test_threads_that_need_a_class_for_the_first_time_at_once_see_the_same_fields() -> None:
    for _ in range(20):

        @value
        class Shared:
            x: int
            y: int = field(default=2, metadata={"of": "y"})

        with ThreadPoolExecutor(8) as threads:
            seen = list(threads.map(lambda _, cls=Shared: [*fields(cls)[1].metadata.items(), cls(1).y], range(8)))
        assert seen == [[("of", "y"), 2]] * 8


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
