"""Mistakes with messages that type checkers find, each on a line with a `type: ignore`.

mypy checks this module and reports an ignore without an error; nothing runs it.
"""

from dataclasses import replace

from koordinator.wire.apis import Message
from koordinator.wire.codec import decode, encode
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.schema import array, binary, entity, int32, message, nested, records, string


@entity
class Right:
    """A correct declaration."""

    number: int = int32("1+", default=-1)
    text: str = string()
    text_or_null: str | None = string("5+", nullable="5+")
    batches: bytes | None = records(nullable="0+")
    numbers: tuple[int, ...] = array(int32)
    texts: tuple[str, ...] = array(string)
    protocols: tuple[JoinGroupRequestProtocol, ...] | None = array(JoinGroupRequestProtocol, nullable="0+")
    protocol: JoinGroupRequestProtocol = nested(JoinGroupRequestProtocol)
    protocol_or_null: JoinGroupRequestProtocol | None = nested(JoinGroupRequestProtocol, nullable="0+", default=None)


@message(key=None, versions="0", flexible="none")
class Wrong:
    """Wrong declarations."""

    text: str = int32()  # type: ignore[assignment]
    number: int = binary()  # type: ignore[assignment]
    not_optional: str = string("5+", nullable="5+")  # type: ignore[assignment]
    no_default: str = string(default=None)  # type: ignore[call-overload]
    texts: tuple[str, ...] = array(int32)  # type: ignore[arg-type]
    null: tuple[int, ...] = array(int32, nullable="0+")  # type: ignore[assignment]
    rights: tuple[str, ...] = array(Right)  # type: ignore[arg-type]
    right: Right = nested(Right, nullable="0+")  # type: ignore[assignment]
    other: Right = nested(JoinGroupRequestProtocol)  # type: ignore[assignment]


def use(request: JoinGroupRequest) -> Message:
    """Wrong uses, and at the end correct ones."""
    JoinGroupRequest(grup_id="g")  # type: ignore[call-arg]
    JoinGroupRequest(group_id=1)  # type: ignore[arg-type]
    JoinGroupRequest("g")  # type: ignore[call-arg]
    JoinGroupRequest(group_id=None)  # type: ignore[arg-type]
    request.group_id = "h"  # type: ignore[misc]
    misspelt = request.grup_id  # type: ignore[attr-defined]
    protocol: JoinGroupRequest = request.protocols[0]  # type: ignore[assignment]
    decode(Right, 0, protocol.group_id)  # type: ignore[arg-type]
    encode("message", 0)  # type: ignore[arg-type]
    right: Right = decode(Right, 0, encode(request, 0))
    return replace(right, number=right.number + len(right.texts), text=misspelt)
