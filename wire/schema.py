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
from dataclasses import Field, field, fields
from enum import Enum
from functools import cache
from types import EllipsisType
from typing import ClassVar, Generic, Protocol, TypeVar, dataclass_transform, overload

from .primitives import ZERO_UUID
from .values import slotted, value
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


@value
class FieldSpec:
    """The declaration of a field; `type` is the element type of an array."""

    type: Kind | type[Message]
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object
    ignorable: bool


@value
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
    return slotted(cls, kw_only=True)


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


class Scalar(Generic[_T]):
    """The field function of a primitive type."""

    def __init__(self, kind: Kind, zero: _T) -> None:
        self.kind = kind
        self._zero = zero

    def __call__(
        self, versions: str = "0+", *, default: _T | EllipsisType = ..., tag: int | None = None, ignorable: bool = False
    ) -> _T:
        """Declare a field."""
        value = self._zero if isinstance(default, EllipsisType) else default
        return _field(value, self.kind, versions, tag=tag, ignorable=ignorable)


class NullableScalar(Scalar[_T]):
    """The field function of a primitive type with a representation of null."""

    @overload
    def __call__(
        self, versions: str = "0+", *, default: _T | EllipsisType = ..., tag: int | None = None, ignorable: bool = False
    ) -> _T: ...
    @overload
    def __call__(
        self,
        versions: str = "0+",
        *,
        nullable: str,
        default: _T | EllipsisType | None = ...,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> _T | None: ...
    def __call__(
        self,
        versions: str = "0+",
        *,
        nullable: str = "none",
        default: _T | EllipsisType | None = ...,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> _T | None:
        """Declare a field."""
        zero = None if self.kind is Kind.RECORDS and nullable != "none" else self._zero
        value = zero if isinstance(default, EllipsisType) else default
        return _field(value, self.kind, versions, nullable=nullable, tag=tag, ignorable=ignorable)


boolean = Scalar(Kind.BOOLEAN, zero=False)
int8 = Scalar(Kind.INT8, 0)
int16 = Scalar(Kind.INT16, 0)
int32 = Scalar(Kind.INT32, 0)
int64 = Scalar(Kind.INT64, 0)
uint16 = Scalar(Kind.UINT16, 0)
uint32 = Scalar(Kind.UINT32, 0)
float64 = Scalar(Kind.FLOAT64, 0.0)
uuid_ = Scalar(Kind.UUID, ZERO_UUID)
string = NullableScalar(Kind.STRING, "")
binary = NullableScalar(Kind.BYTES, b"")
"""Opaque bytes, "bytes" in Kafka's schemas."""
records = NullableScalar(Kind.RECORDS, b"")
"""Record batches, which koordinator.wire.records reads."""


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
    type_ = element.kind if isinstance(element, Scalar) else element
    if not isinstance(type_, Kind | type):
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
    """Declare a nested struct; a nullable one follows a marker byte (1, or -1 for null; 1 or 0 if it is tagged)."""
    value = element() if isinstance(default, EllipsisType) else default
    return _field(value, element, versions, nullable=nullable, tag=tag, ignorable=ignorable)


_versions = cache(Versions)
"""Fields share their ranges: few texts declare thousands."""


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
        versions=_versions(versions),
        nullable=_versions(nullable),
        tag=tag,
        default=default,
        ignorable=ignorable,
    )
    return field(default=default, metadata={_KEY: spec})
