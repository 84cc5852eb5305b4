"""The declaration language of messages: one typed class for all versions, one line per field, in Kafka's terms.

    @message(key=12, versions="0-4", flexible="4+")
    class HeartbeatRequest:
        group_id: str = string()
        generation_id: int = int32()
        member_id: str = string()
        group_instance_id: str | None = string("3+", nullable="3+", default=None)

A field function takes the versions that have the field (default "0+"), and by name:

* nullable: the versions that allow null (default none);
* default: the value of a field that is not sent; by default Kafka's implicit zero: 0, False, "", b"", (), the zero
  UUID, None for nullable records, a struct of defaults;
* tag: its number, if it is a tagged field;
* ignorable: a version without the field silently omits a value that is not the default; without `ignorable` encoding
  such a value raises ValueError.

The functions are annotated with the type of the value, so that type checkers see plain attributes; they return
dataclass fields with a FieldSpec. Messages are frozen to type checkers only: frozen dataclasses take a third longer to
decode. Never assign to a field.

Rules: clients/src/main/resources/common/message/README.md of Apache Kafka.
"""

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from types import EllipsisType
from typing import ClassVar, Protocol, TypeVar, dataclass_transform, overload
from uuid import UUID

from .primitives import ZERO_UUID
from .versions import Versions

_T = TypeVar("_T")
_KEY = "kafka"


class Message(Protocol):
    """A class decorated with @message or @entity: a dataclass with declared fields."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


class Kind(Enum):
    """The primitive types, named as in Kafka's JSON schemas."""

    BOOLEAN = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT16 = "uint16"
    UINT32 = "uint32"
    FLOAT64 = "float64"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"
    UUID = "uuid"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """The declaration of a field; `type` is the element type of an array."""

    type: Kind | type[Message]
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object
    ignorable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The declaration of a message; key is None for messages that are neither requests nor responses."""

    key: int | None
    versions: Versions
    flexible: Versions


_DECLARATIONS: dict[type, Declaration] = {}


def declaration_of(cls: type[Message]) -> Declaration:
    """Return the declaration of a class decorated with @message. Raises TypeError for any other class."""
    declaration = _DECLARATIONS.get(cls)
    if declaration is None:
        raise TypeError(f"{cls.__name__} is not declared with @message")
    return declaration


def fields_of(cls: type[Message]) -> dict[str, FieldSpec]:
    """Return the declared fields of a message or entity by name, in wire order."""
    return {declared.name: declared.metadata[_KEY] for declared in fields(cls)}


@dataclass_transform(kw_only_default=True, frozen_default=True)
def entity(cls: type[_T]) -> type[_T]:
    """Declare a struct inside messages; it is flexible in the same versions as the message."""
    for name in cls.__annotations__:
        declared = vars(cls).get(name)
        if not isinstance(declared, Field) or _KEY not in declared.metadata:
            raise TypeError(f"{cls.__name__}.{name} is not declared with a field function")
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(*, key: int | None, versions: str, flexible: str) -> Callable[[type[_T]], type[_T]]:
    """Declare a message with its API key (None if it is neither request nor response) and versions.

    In `flexible` versions lengths are uvarints and every struct ends in tagged fields (KIP-482). Declare messages at
    the top level of a module: the compiled codec imports them by name.
    """

    def declare(cls: type[_T]) -> type[_T]:
        made = entity(cls)
        _DECLARATIONS[made] = Declaration(key=key, versions=Versions(versions), flexible=Versions(flexible))
        return made

    return declare


def boolean(versions: str = "0+", *, default: bool = False, tag: int | None = None, ignorable: bool = False) -> bool:
    """Declare a boolean: byte 0 is False, any other is True."""
    return _field(default, Kind.BOOLEAN, versions, tag=tag, ignorable=ignorable)


def int8(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """Declare a signed 8-bit number."""
    return _field(default, Kind.INT8, versions, tag=tag, ignorable=ignorable)


def int16(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """Declare a signed 16-bit number."""
    return _field(default, Kind.INT16, versions, tag=tag, ignorable=ignorable)


def int32(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """Declare a signed 32-bit number."""
    return _field(default, Kind.INT32, versions, tag=tag, ignorable=ignorable)


def int64(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """Declare a signed 64-bit number."""
    return _field(default, Kind.INT64, versions, tag=tag, ignorable=ignorable)


def uint16(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """Declare an unsigned 16-bit number."""
    return _field(default, Kind.UINT16, versions, tag=tag, ignorable=ignorable)


def uint32(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """Declare an unsigned 32-bit number."""
    return _field(default, Kind.UINT32, versions, tag=tag, ignorable=ignorable)


def float64(versions: str = "0+", *, default: float = 0.0, tag: int | None = None, ignorable: bool = False) -> float:
    """Declare a 64-bit floating point number (IEEE 754)."""
    return _field(default, Kind.FLOAT64, versions, tag=tag, ignorable=ignorable)


def uuid_(versions: str = "0+", *, default: UUID = ZERO_UUID, tag: int | None = None, ignorable: bool = False) -> UUID:
    """Declare a UUID of 16 bytes; ZERO_UUID stands for none."""
    return _field(default, Kind.UUID, versions, tag=tag, ignorable=ignorable)


@overload
def string(versions: str = "0+", *, default: str = "", tag: int | None = None, ignorable: bool = False) -> str: ...
@overload
def string(
    versions: str = "0+",
    *,
    nullable: str,
    default: str | None = "",
    tag: int | None = None,
    ignorable: bool = False,
) -> str | None: ...
def string(
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: str | None = "",
    tag: int | None = None,
    ignorable: bool = False,
) -> str | None:
    """Declare a UTF-8 string."""
    return _field(default, Kind.STRING, versions, nullable=nullable, tag=tag, ignorable=ignorable)


@overload
def binary(versions: str = "0+", *, default: bytes = b"", tag: int | None = None, ignorable: bool = False) -> bytes: ...
@overload
def binary(
    versions: str = "0+",
    *,
    nullable: str,
    default: bytes | None = b"",
    tag: int | None = None,
    ignorable: bool = False,
) -> bytes | None: ...
def binary(
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: bytes | None = b"",
    tag: int | None = None,
    ignorable: bool = False,
) -> bytes | None:
    """Declare opaque bytes ("bytes" in Kafka's schemas)."""
    return _field(default, Kind.BYTES, versions, nullable=nullable, tag=tag, ignorable=ignorable)


@overload
def records(versions: str = "0+", *, tag: int | None = None, ignorable: bool = False) -> bytes: ...
@overload
def records(
    versions: str = "0+", *, nullable: str, tag: int | None = None, ignorable: bool = False
) -> bytes | None: ...
def records(
    versions: str = "0+", *, nullable: str = "none", tag: int | None = None, ignorable: bool = False
) -> bytes | None:
    """Declare record batches, which koordinator.wire.records reads."""
    default = b"" if nullable == "none" else None
    return _field(default, Kind.RECORDS, versions, nullable=nullable, tag=tag, ignorable=ignorable)


@overload
def array(
    element: Callable[..., _T], versions: str = "0+", *, tag: int | None = None, ignorable: bool = False
) -> tuple[_T, ...]: ...
@overload
def array(
    element: Callable[..., _T],
    versions: str = "0+",
    *,
    nullable: str,
    default: tuple[_T, ...] | None = (),
    tag: int | None = None,
    ignorable: bool = False,
) -> tuple[_T, ...] | None: ...
def array(
    element: Callable[..., _T],
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: tuple[_T, ...] | None = (),
    tag: int | None = None,
    ignorable: bool = False,
) -> tuple[_T, ...] | None:
    """Declare an array of primitives, such as `array(int32)`, or of an entity.

    Decoding returns tuples; encoding accepts any sequence.
    """
    type_ = element if isinstance(element, type) else _KINDS.get(element)
    if type_ is None:
        raise TypeError(f"an array takes a field function or an entity, not {element!r}")
    return _field(default, type_, versions, is_array=True, nullable=nullable, tag=tag, ignorable=ignorable)


@overload
def nested(element: type[_T], versions: str = "0+", *, tag: int | None = None, ignorable: bool = False) -> _T: ...
@overload
def nested(
    element: type[_T],
    versions: str = "0+",
    *,
    nullable: str,
    default: _T | EllipsisType | None = ...,
    tag: int | None = None,
    ignorable: bool = False,
) -> _T | None: ...
def nested(
    element: type[_T],
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: _T | EllipsisType | None = ...,
    tag: int | None = None,
    ignorable: bool = False,
) -> _T | None:
    """Declare a nested struct; a nullable one follows a marker byte (1, or -1 for null)."""
    value = element() if isinstance(default, EllipsisType) else default
    return _field(value, element, versions, nullable=nullable, tag=tag, ignorable=ignorable)


def _field(  # noqa: PLR0913 - one argument per property of a field
    default: _T,
    type_: Kind | type,
    versions: str,
    *,
    is_array: bool = False,
    nullable: str = "none",
    tag: int | None,
    ignorable: bool,
) -> _T:
    spec = FieldSpec(
        type=type_,
        is_array=is_array,
        versions=Versions(versions),
        nullable=Versions(nullable),
        tag=tag,
        default=default,
        ignorable=ignorable,
    )
    return field(default=default, metadata={_KEY: spec})


_KINDS: dict[object, Kind] = {
    boolean: Kind.BOOLEAN,
    int8: Kind.INT8,
    int16: Kind.INT16,
    int32: Kind.INT32,
    int64: Kind.INT64,
    uint16: Kind.UINT16,
    uint32: Kind.UINT32,
    float64: Kind.FLOAT64,
    string: Kind.STRING,
    binary: Kind.BYTES,
    records: Kind.RECORDS,
    uuid_: Kind.UUID,
}
