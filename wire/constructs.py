"""The parts of messages, as Construct subclasses that compile to fast code.

A Leaf is a pair of functions, a Fixed a number, an Array a sequence of parts, an Entity a struct that becomes a
dataclass, a Nullable an optional entity. Each part has two implementations, which the tests compare:

* interpreted: `_parse` and `_build` process field by field and raise Malformed and ValueError with the field's path;
* compiled: `_emitparse` and `_emitbuild` return source code as written by hand, with functions imported by name,
  adjacent numbers in one struct call, and structs passed straight to their class. It has no paths, and raises Python's
  own errors: one of FAILED_PARSE or FAILED_BUILD.

An emitter returns an expression over the stream `io` and the value `obj` (or the argument of `_emitwrite`); statements
become functions of the generated module. There is one Construct for each version, so parsing makes no decisions.
"""

# Construct has no type information, and its hooks begin with an underscore.
# mypy: allow-subclassing-any
# ruff: noqa: ANN401

import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import groupby
from typing import Any

from construct import CodeGen, Construct

from . import primitives
from .primitives import InvalidLength, Malformed

FAILED_PARSE = (Malformed, IndexError, struct.error)
"""The errors of compiled parsing; interpreted parsing raises Malformed."""

FAILED_BUILD = (ValueError, TypeError, AttributeError, struct.error, OverflowError)
"""The errors of compiled building; interpreted building raises ValueError."""


@contextmanager
def _parsing(path: str) -> Iterator[None]:
    """Add the path to errors of parsing."""
    try:
        yield
    except FAILED_PARSE as error:
        reason = "bytes are missing" if isinstance(error, IndexError | struct.error) else error
        kind = InvalidLength if isinstance(error, InvalidLength) else Malformed
        raise kind(f"{path}: {reason}") from None


@contextmanager
def _building(path: str) -> Iterator[None]:
    """Add the path to errors of building."""
    try:
        yield
    except FAILED_BUILD as error:
        raise ValueError(f"{path}: {error}") from None


class Part(Construct):
    """A part of a message, with expressions for Construct's compiler over `io` and `obj`."""

    @abstractmethod
    def _parse(self, stream: BytesIO, _context: object, path: str) -> Any: ...

    @abstractmethod
    def _build(self, obj: Any, stream: BytesIO, _context: object, path: str) -> None: ...

    @abstractmethod
    def _emitparse(self, code: CodeGen) -> str:
        """Return an expression that consumes the value from `io`."""

    @abstractmethod
    def _emitwrite(self, code: CodeGen, value: str) -> str:
        """Return an expression that writes the value of the expression `value` to `io`."""

    def _emitbuild(self, code: CodeGen) -> str:
        return self._emitwrite(code, "obj")


class Leaf(Part):
    """A pair of functions of koordinator.wire.primitives."""

    def __init__(self, read: Callable[[BytesIO], Any], write: Callable[[Any, BytesIO], None]) -> None:
        super().__init__()
        self.read = read
        self.write = write

    def _parse(self, stream: BytesIO, _context: object, path: str) -> Any:
        with _parsing(path):
            return self.read(stream)

    def _build(self, obj: Any, stream: BytesIO, _context: object, path: str) -> None:
        with _building(path):
            self.write(obj, stream)

    def _emitparse(self, code: CodeGen) -> str:
        return f"{_imported(code, self.read)}(io)"

    def _emitwrite(self, code: CodeGen, value: str) -> str:
        return f"{_imported(code, self.write)}({value}, io)"


class Fixed(Part):
    """A big-endian number, by its format character in the module struct."""

    def __init__(self, fmt: str) -> None:
        super().__init__()
        self.fmt = fmt
        self.size = struct.calcsize(f">{fmt}")

    def _parse(self, stream: BytesIO, _context: object, path: str) -> Any:
        with _parsing(path):
            return struct.unpack(f">{self.fmt}", stream.read(self.size))[0]

    def _build(self, obj: Any, stream: BytesIO, _context: object, path: str) -> None:
        with _building(path):
            stream.write(struct.pack(f">{self.fmt}", obj))

    def _emitparse(self, code: CodeGen) -> str:
        return f"{_struct(code, 'unpack', self.fmt)}(io.read({self.size}))[0]"

    def _emitwrite(self, code: CodeGen, value: str) -> str:
        return f"io.write({_struct(code, 'pack', self.fmt)}({value}))"


class Array(Part):
    """A sequence of elements; an array of numbers is one struct call."""

    def __init__(self, subcon: Part, *, flexible: bool, nullable: bool) -> None:
        super().__init__()
        self.subcon = subcon
        kind = ("nullable_" if nullable else "") + ("compact_" if flexible else "") + "count"
        self.read_count = getattr(primitives, f"read_{kind}")
        self.write_count = getattr(primitives, f"write_{kind}")

    def _parse(self, stream: BytesIO, _context: object, path: str) -> Any:
        with _parsing(path):
            count = self.read_count(stream)
            if count is not None:
                primitives.check_remaining(stream, count)
        if count is None:
            return None
        return tuple([self.subcon._parse(stream, None, f"{path}[{i}]") for i in range(count)])

    def _build(self, obj: Any, stream: BytesIO, _context: object, path: str) -> None:
        with _building(path):
            self.write_count(obj, stream)
        for i, item in enumerate(() if obj is None else obj):
            self.subcon._build(item, stream, None, f"{path}[{i}]")

    def _emitparse(self, code: CodeGen) -> str:
        count = _imported(code, self.read_count)
        if isinstance(self.subcon, Fixed):
            read_numbers = _imported(code, primitives.read_numbers)
            return f'{read_numbers}(io, {count}, "{self.subcon.fmt}", {self.subcon.size})'
        return f"{_imported(code, primitives.read_items)}(io, {count}, {_parser(code, self.subcon)})"

    def _emitwrite(self, code: CodeGen, value: str) -> str:
        count = _imported(code, self.write_count)
        if isinstance(self.subcon, Fixed):
            write_numbers = _imported(code, primitives.write_numbers)
            return f'{write_numbers}({value}, io, {count}, "{self.subcon.fmt}")'
        write_items = _imported(code, primitives.write_items)
        return f"{write_items}({value}, io, {count}, {_builder(code, self.subcon)})"


class Nullable(Part):
    """An entity after a byte that marks null; a tagged field has another marker and is always written."""

    def __init__(self, subcon: "Entity", *, tagged: bool) -> None:
        super().__init__()
        self.subcon = subcon
        self.tagged = tagged
        self.read = primitives.read_tagged_nullable if tagged else primitives.read_nullable
        self.write = primitives.write_tagged_nullable if tagged else primitives.write_nullable

    def _parse(self, stream: BytesIO, _context: object, path: str) -> Any:
        with _parsing(path):
            is_present = self.read(stream, lambda _io: True)
        return self.subcon._parse(stream, None, path) if is_present else None

    def _build(self, obj: Any, stream: BytesIO, _context: object, path: str) -> None:
        def build(value: object, io: BytesIO) -> None:
            self.subcon._build(value, io, None, path)

        self.write(obj, stream, build)

    def _emitparse(self, code: CodeGen) -> str:
        return f"{_imported(code, self.read)}(io, {_parser(code, self.subcon)})"

    def _emitwrite(self, code: CodeGen, value: str) -> str:
        return f"{_imported(code, self.write)}({value}, io, {_builder(code, self.subcon)})"


class Entity(Part):
    """A struct: its fields in order, then, if flexible, tagged fields. Parsing returns `cls(**fields)`.

    Args:
        cls: the dataclass; fields that are not parsed keep its defaults.
        fields: the parts of the fields that are always sent, in order.
        tagged: tag -> name and part, in the order of the tags; sent only if not the default.
        defaults: the defaults of tagged fields and of the fields in `must_be_default`.
        must_be_default: names of fields that the version lacks; building requires their default.
        flexible: whether the struct ends in tagged fields.
    """

    def __init__(
        self,
        cls: type,
        fields: Mapping[str, Part],
        tagged: Mapping[int, tuple[str, Part]],
        *,
        defaults: Mapping[str, object],
        must_be_default: tuple[str, ...],
        flexible: bool,
    ) -> None:
        super().__init__()
        self.cls = cls
        self.fields = fields
        self.tagged = tagged
        self.defaults = defaults
        self.must_be_default = must_be_default
        self.flexible = flexible

    # -- interpreted --

    def _parse(self, stream: BytesIO, _context: object, path: str) -> Any:
        values = {name: part._parse(stream, None, f"{path}.{name}") for name, part in self.fields.items()}
        if self.flexible:
            with _parsing(f"{path}, tagged fields"):
                tags = primitives.read_tags(stream)
            for tag, io in tags:
                if tag in self.tagged:
                    name, part = self.tagged[tag]
                    values[name] = part._parse(io, None, f"{path}.{name}")
                    with _parsing(f"{path}.{name}"):
                        primitives.end_tag(io)
        return self.cls(**values)

    def _build(self, obj: Any, stream: BytesIO, _context: object, path: str) -> None:
        if not isinstance(obj, self.cls):
            raise ValueError(f"{path}: {obj!r} is not of class {self.cls.__name__}")  # noqa: TRY004 - as for other bad values
        for name in self.must_be_default:
            if not _is_default(getattr(obj, name), self.defaults[name]):
                raise ValueError(f"{path}.{name}: this version has no such field, the value would be lost")
        for name, part in self.fields.items():
            part._build(getattr(obj, name), stream, None, f"{path}.{name}")
        if self.flexible:
            tags = []
            for tag, (name, part) in self.tagged.items():
                value = getattr(obj, name)
                if _is_always_written(part) or not _is_default(value, self.defaults[name]):
                    io = BytesIO()
                    part._build(value, io, None, f"{path}.{name}")
                    tags.append((tag, io.getvalue()))
            primitives.write_tags(tags, stream)

    # -- compiled --

    def _emitparse(self, code: CodeGen) -> str:
        return f"{_parser(code, self)}(io)"

    def _emitwrite(self, code: CodeGen, value: str) -> str:
        return f"{_builder(code, self)}({value}, io)"

    def _emitparser(self, code: CodeGen, function: str) -> None:
        """Append the function that parses this entity."""
        lines = [f"def {function}(io):"]
        for fmt, names in self._runs():
            if fmt:
                size = struct.calcsize(f">{fmt}")
                targets = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
                lines.append(f"    {targets} = {_struct(code, 'unpack', fmt)}(io.read({size}))")
            else:
                lines.extend(f"    {name} = {self.fields[name]._emitparse(code)}" for name in names)
        if self.tagged:
            lines += self._tag_parser(code)
        elif self.flexible:
            lines.append(f"    {_imported(code, primitives.skip_tags)}(io)")
        names = [*self.fields, *(name for name, _ in self.tagged.values())]
        values = ", ".join(f"{name}={name}" for name in names)
        lines.append(f"    return {_imported(code, self.cls)}({values})")
        code.append("\n".join(lines))

    def _tag_parser(self, code: CodeGen) -> list[str]:
        lines = [f"    {name} = {self._default(code, name)}" for name, _ in self.tagged.values()]
        lines.append(f"    for tag, io in {_imported(code, primitives.read_tags)}(io):")
        for tag, (name, part) in self.tagged.items():
            lines.append(f"        if tag == {tag}:")
            lines.append(f"            {name} = {part._emitparse(code)}")
            lines.append(f"            {_imported(code, primitives.end_tag)}(io)")
        return lines

    def _emitbuilder(self, code: CodeGen, function: str) -> None:
        """Append the function that builds this entity."""
        lines = [f"def {function}(message, io):"]
        for name in self.must_be_default:
            lines.append(f"    if {self._differs(code, name)}:")
            lines.append(f'        raise ValueError("{name} would be lost")')
        for fmt, names in self._runs():
            if fmt:
                values = ", ".join(f"message.{name}" for name in names)
                lines.append(f"    io.write({_struct(code, 'pack', fmt)}({values}))")
            else:
                lines.extend(f"    {self.fields[name]._emitwrite(code, f'message.{name}')}" for name in names)
        if self.tagged:
            lines += self._tag_builder(code)
        elif self.flexible:
            lines.append('    io.write(b"\\0")')
        if len(lines) == 1:
            lines.append("    pass")
        code.append("\n".join(lines))

    def _tag_builder(self, code: CodeGen) -> list[str]:
        lines = ["    tags, end = [], io"]
        for tag, (name, part) in self.tagged.items():
            lines.append(f"    if {_is_always_written(part) or self._differs(code, name)}:")
            lines.append("        io = BytesIO()")
            lines.append(f"        {part._emitwrite(code, f'message.{name}')}")
            lines.append(f"        tags.append(({tag}, io.getvalue()))")
        lines.append(f"    {_imported(code, primitives.write_tags)}(tags, end)")
        return lines

    def _runs(self) -> Iterator[tuple[str, list[str]]]:
        """Yield runs of field names: adjacent numbers with their format, other fields with an empty one."""
        for is_number, run in groupby(self.fields, lambda name: isinstance(self.fields[name], Fixed)):
            names = list(run)
            yield "".join(self.fields[name].fmt for name in names) if is_number else "", names

    def _default(self, code: CodeGen, name: str) -> str:
        """Return an expression for the default of a field."""
        default = self.defaults[name]
        if _is_literal(default):
            return repr(default)
        cls = _imported(code, self.cls)
        code.append(f'DEFAULT_{cls}_{name} = {cls}.__dataclass_fields__["{name}"].default')
        return f"DEFAULT_{cls}_{name}"

    def _differs(self, code: CodeGen, name: str) -> str:
        """Return an expression that is true if a field differs from its default."""
        value = f"message.{name}"
        match self.defaults[name]:
            case None:
                return f"{value} is not None"
            case "" | b"" | ():
                return f"{value} or {value} is None"  # false for () and []
            case default if _is_literal(default):
                return f"{value} != {default!r}"
        default = self._default(code, name)  # identity first: it is usually the same object
        return f"{value} is not {default} and {value} != {default}"


def _is_always_written(part: Part) -> bool:
    return isinstance(part, Nullable) and part.tagged


def _is_literal(value: object) -> bool:
    return value is None or isinstance(value, int | float | str | bytes | tuple)


def _is_default(value: object, default: object) -> bool:
    return not value and value is not None if default == () else value == default


# Helpers of the emitters. The compiled form of a Construct is one module; `code` collects its source.


def _imported(code: CodeGen, thing: Any) -> str:
    """Import a function or class into the generated module and return its name."""
    code.append(f"from {thing.__module__} import {thing.__qualname__}")
    return str(thing.__qualname__)


def _struct(code: CodeGen, method: str, fmt: str) -> str:
    """Bind a method of a struct in the generated module and return its name."""
    name = f"{method}_{fmt}".replace("?", "t")  # no other format uses "t"
    code.append(f'{name} = struct.Struct(">{fmt}").{method}')
    return name


def _parser(code: CodeGen, part: Part) -> str:
    """Return the name of a function of `io` that parses an entity or an array element."""
    if isinstance(part, Leaf):
        return _imported(code, part.read)
    name = f"parse_{part.cls.__name__}"
    if name not in code.parsercache:
        code.parsercache[name] = name
        part._emitparser(code, name)
    return name


def _builder(code: CodeGen, part: Part) -> str:
    """Return the name of a function of a value and `io` that builds an entity or an array element."""
    if isinstance(part, Leaf):
        return _imported(code, part.write)
    name = f"build_{part.cls.__name__}"
    if name not in code.buildercache:
        code.buildercache[name] = name
        part._emitbuilder(code, name)
    return name
