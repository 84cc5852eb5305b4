"""How messages are declared: one typed class for all versions, a line per field, in Kafka's words.

    @message(key=12, versions="0-4", flexible="4+")
    class HeartbeatRequest:
        group_id: str = string()
        generation_id: int = int32()
        member_id: str = string()
        group_instance_id: str | None = string("3+", nullable="3+", default=None)

A field function takes the versions that have the field ("0+" unless said), and by name:

* nullable: the versions in which null may be sent (none unless said);
* default: what the field is if it is not sent; Kafka's implicit zero unless said: 0, False, "", b"",
  (), the zero UUID, None for nullable records, a struct of defaults;
* tag: its number, if it is a tagged field;
* ignorable: a value that is not the default may silently be left out of a version without the field;
  otherwise encoding such a value raises ValueError.

The functions claim to return the type of the value, so that type checkers see plain attributes; really they
return dataclass fields that carry a FieldSpec. To type checkers messages are frozen; in CPython they are
plain dataclasses with slots, because frozen ones take a third longer to decode. Never write to one.

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
    """What every class decorated with @message or @entity is: a dataclass with declared fields."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


class Kind(Enum):
    """The primitive types, with the names that Kafka's JSON schemas give them."""

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
    """What is declared of one field: its type (of an array: that of its elements) and where it is sent."""

    type: Kind | type[Message]
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object
    ignorable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What is declared of one message; key is None for messages that are not requests or responses."""

    key: int | None
    versions: Versions
    flexible: Versions


_DECLARATIONS: dict[type, Declaration] = {}


def declaration_of(cls: type[Message]) -> Declaration:
    """The declaration of a class decorated with @message; TypeError for any other class."""
    declaration = _DECLARATIONS.get(cls)
    if declaration is None:
        raise TypeError(f"{cls.__name__} is not declared with @message")
    return declaration


def fields_of(cls: type[Message]) -> dict[str, FieldSpec]:
    """The declared fields of a message or entity, by name, in the order in which they are sent."""
    return {each.name: each.metadata[_KEY] for each in fields(cls)}


@dataclass_transform(kw_only_default=True, frozen_default=True)
def entity(cls: type[_T]) -> type[_T]:
    """Declare a struct inside messages. It is flexible where the message around it is."""
    for name in cls.__annotations__:
        declared = vars(cls).get(name)
        if not isinstance(declared, Field) or _KEY not in declared.metadata:
            raise TypeError(f"{cls.__name__}.{name} is not declared with a field function")
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(*, key: int | None, versions: str, flexible: str) -> Callable[[type[_T]], type[_T]]:
    """Declare a message: its api key (None if it is neither request nor response) and its versions.

    In the versions named by `flexible` lengths are uvarints and every struct ends in tagged fields
    (KIP-482). Declare messages at the top of a module: the compiled codec imports them by name.
    """

    def declare(cls: type[_T]) -> type[_T]:
        made = entity(cls)
        _DECLARATIONS[made] = Declaration(key=key, versions=Versions(versions), flexible=Versions(flexible))
        return made

    return declare


def boolean(versions: str = "0+", *, default: bool = False, tag: int | None = None, ignorable: bool = False) -> bool:
    """One byte: 0 is False, anything else is True."""
    return _field(default, Kind.BOOLEAN, versions, tag=tag, ignorable=ignorable)


def int8(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """A signed number of 8 bits."""
    return _field(default, Kind.INT8, versions, tag=tag, ignorable=ignorable)


def int16(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """A signed number of 16 bits."""
    return _field(default, Kind.INT16, versions, tag=tag, ignorable=ignorable)


def int32(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """A signed number of 32 bits."""
    return _field(default, Kind.INT32, versions, tag=tag, ignorable=ignorable)


def int64(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """A signed number of 64 bits."""
    return _field(default, Kind.INT64, versions, tag=tag, ignorable=ignorable)


def uint16(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """A number of 16 bits, not negative."""
    return _field(default, Kind.UINT16, versions, tag=tag, ignorable=ignorable)


def uint32(versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    """A number of 32 bits, not negative."""
    return _field(default, Kind.UINT32, versions, tag=tag, ignorable=ignorable)


def float64(versions: str = "0+", *, default: float = 0.0, tag: int | None = None, ignorable: bool = False) -> float:
    """A floating point number of 64 bits (IEEE 754)."""
    return _field(default, Kind.FLOAT64, versions, tag=tag, ignorable=ignorable)


def uuid_(versions: str = "0+", *, default: UUID = ZERO_UUID, tag: int | None = None, ignorable: bool = False) -> UUID:
    """16 bytes; ZERO_UUID stands for none."""
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
    """Text in UTF-8."""
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
    """Bytes that mean nothing here; "bytes" in Kafka's schemas."""
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
    """Record batches, one after the other; koordinator.wire.records reads them."""
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
    """Any number of elements: `array(int32)`, `array(string)`, or of an entity, `array(Member)`.

    Decoding makes tuples; encoding takes any sequence.
    """
    type_ = element if isinstance(element, type) else _KINDS.get(element)
    if type_ is None:
        raise TypeError(f"an array is of a field function or an entity, not of {element!r}")
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
    """A struct; where it is nullable, one byte before it says whether it is there (-1 or 1)."""
    value = element() if isinstance(default, EllipsisType) else default
    return _field(value, element, versions, nullable=nullable, tag=tag, ignorable=ignorable)


def _field(  # noqa: PLR0913 - one argument for each thing that can be declared
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
