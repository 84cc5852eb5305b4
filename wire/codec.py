"""Decoding and encoding of messages, in any version.

The first use of a version compiles a Construct from the declaration (about a millisecond) and caches it. If the
compiled form fails, the interpreted form repeats the work and raises an error with the name of the field, unless the
input is too large for that.
"""

import struct
from functools import cache
from io import BytesIO
from typing import TypeVar

from construct import Compiled

from . import primitives
from .constructs import FAILED_BUILD, FAILED_PARSE, Array, Entity, Fixed, Leaf, Nullable, Part
from .frames import pack_length
from .primitives import TAG_COUNT_MAX, BoundedBytes, InvalidLength, Malformed
from .schema import FieldSpec, Kind, Message, declaration_of, fields_of

_M = TypeVar("_M", bound=Message)

_FORMATS = {
    Kind.BOOLEAN: "?",
    Kind.INT8: "b",
    Kind.INT16: "h",
    Kind.INT32: "i",
    Kind.INT64: "q",
    Kind.UINT16: "H",
    Kind.UINT32: "I",
    Kind.FLOAT64: "d",
}
_NAMES = {Kind.STRING: "string", Kind.BYTES: "bytes", Kind.RECORDS: "bytes", Kind.UUID: "uuid"}

_VERSION = struct.Struct(">h")
_LENGTH_PLACE = bytes(4)
_DIAGNOSED_BYTES_MAX = 1024 * 1024


def decode(
    cls: type[_M],
    version: int,
    data: bytes | bytearray | memoryview,
    *,
    begin: int = 0,
    exact: bool = False,
    bounded: bool = False,
) -> _M:
    """Return the message of class `cls` at offset `begin` of `data`.

    Trailing bytes are ignored, as by Kafka's parser, unless `exact`. Raises Malformed for invalid bytes, with the name
    of the field for input up to 1 MiB, and if `bounded` for arrays of more than a million elements and more than 10,000
    tagged fields. Raises ValueError for a version that the message does not have, which is a
    mistake of the caller.
    """
    parse = compiled_for(cls, version).parsefunc
    # fewer bytes cannot exceed a limit
    io = BoundedBytes(data) if bounded and len(data) > TAG_COUNT_MAX else BytesIO(data)
    if begin:
        io.seek(begin)
    try:
        message: _M = parse(io, None)
    except FAILED_PARSE as error:
        if len(data) > _DIAGNOSED_BYTES_MAX:
            kind = InvalidLength if isinstance(error, InvalidLength) else Malformed
            raise kind(f"{cls.__name__} v{version}, in {len(data)} bytes: {error}") from error
        io.seek(begin)
        construct_for(cls, version)._parse(io, None, cls.__name__)  # noqa: SLF001
        raise AssertionError(f"{cls.__name__} v{version} parses interpreted, but not compiled") from error
    if exact and (rest := len(io.read())):
        raise Malformed(f"{cls.__name__} v{version}: {rest} bytes follow the message")
    return message


def encode(message: Message, version: int) -> bytes:
    """Return the bytes of the message in this version.

    Raises ValueError with the name of the field for a value that is too large, null where null is not allowed, or not
    the default of a field that the version lacks and that is not ignorable. Raises ValueError for a version that the
    message does not have.
    """
    io = BytesIO()
    _write(message, version, io)
    return io.getvalue()


def encode_frame(header: bytes, message: Message, version: int) -> bytes:
    """Return a whole frame: the header and the message after their length as int32, with one copy of large fields.

    Raises the errors of `encode`, and ValueError for 2 GiB and more.
    """
    io = BytesIO()
    io.write(_LENGTH_PLACE + header)
    _write(message, version, io)
    length = io.tell() - len(_LENGTH_PLACE)
    io.seek(0)
    io.write(pack_length(length))
    return io.getvalue()


def _write(message: Message, version: int, io: BytesIO) -> None:
    cls = type(message)
    build = compiled_for(cls, version).buildfunc
    try:
        build(message, io, None)
    except FAILED_BUILD as error:
        construct_for(cls, version)._build(message, BytesIO(), None, cls.__name__)  # noqa: SLF001
        raise AssertionError(f"{cls.__name__} v{version} builds interpreted, but not compiled") from error


def read_version(data: bytes) -> int:
    """Return the int16 version at the start of data that no request describes. Raises Malformed."""
    if len(data) < _VERSION.size:
        raise Malformed(f"{len(data)} bytes are too few for a version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def decode_versioned(cls: type[_M], data: bytes) -> _M:
    """Return the message after its int16 version; a version above the newest known is read as that.

    New versions only append fields. Raises Malformed.
    """
    version = read_version(data)
    if version < 0:
        raise Malformed(f"{cls.__name__} has the version {version}")
    return decode(cls, min(version, declaration_of(cls).versions.max), data, begin=_VERSION.size)


def encode_versioned(message: Message, version: int) -> bytes:
    """Return the bytes of the message after its int16 version."""
    return _VERSION.pack(version) + encode(message, version)


@cache
def compiled_for(cls: type[Message], version: int) -> Compiled:
    """Return the compiled Construct: `parsefunc(io, None)`, `buildfunc(message, io, None)`, and its `source`."""
    return construct_for(cls, version).compile()


def construct_for(cls: type[Message], version: int) -> Entity:
    """Return the interpreted Construct of a message. Raises ValueError for a version that it does not have."""
    declaration = declaration_of(cls)
    if version not in declaration.versions:
        raise ValueError(f"{cls.__name__} has the versions {declaration.versions}, not {version}")
    return _entity(cls, version, flexible=version in declaration.flexible)


@cache
def _entity(cls: type[Message], version: int, *, flexible: bool) -> Entity:
    # cached: a struct with several uses is one Construct, and one compiled function
    specs = fields_of(cls)
    sent = {name: spec for name, spec in specs.items() if version in spec.versions}
    tagged = sorted((spec.tag, name) for name, spec in sent.items() if spec.tag is not None)
    return Entity(
        cls,
        {name: _part(spec, version, flexible=flexible) for name, spec in sent.items() if spec.tag is None},
        {tag: (name, _part(sent[name], version, flexible=flexible)) for tag, name in tagged},
        defaults={name: spec.default for name, spec in specs.items()},
        must_be_default=tuple(name for name in specs if name not in sent and not specs[name].ignorable),
        flexible=flexible,
    )


def _part(spec: FieldSpec, version: int, *, flexible: bool) -> Part:
    nullable = version in spec.nullable
    if spec.is_array:
        return Array(_single(spec.type, version, flexible=flexible), flexible=flexible, nullable=nullable)
    if nullable and isinstance(spec.type, type):
        return Nullable(_entity(spec.type, version, flexible=flexible), tagged=spec.tag is not None)
    return _single(spec.type, version, flexible=flexible, nullable=nullable)


def _single(type_: Kind | type[Message], version: int, *, flexible: bool, nullable: bool = False) -> Part:
    """Return the part of a single value."""
    if isinstance(type_, type):
        return _entity(type_, version, flexible=flexible)
    if type_ in _FORMATS:
        return Fixed(_FORMATS[type_])
    name = _NAMES[type_]
    if type_ is not Kind.UUID:
        name = ("nullable_" if nullable else "") + ("compact_" if flexible else "") + name
    return Leaf(getattr(primitives, f"read_{name}"), getattr(primitives, f"write_{name}"))
