"""A strict connection: our declarations must explain every byte of a response."""

from __future__ import annotations

import socket
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Self

from koordinator.wire import frames
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.schema import declaration_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.client.connection import Address

WAIT_S = 60.0
"""Time limit of a response on a busy machine."""


class StrictLink:
    """A connection to one broker; `served` has its advertised versions, by API key."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, WAIT_S)
        self._correlation_id = 0
        try:
            answer = self.ask(ApiVersionsRequest(client_software_name="strict", client_software_version="1"), 3)
            assert isinstance(answer, ApiVersionsResponse)
        except BaseException:
            self._socket.close()
            raise
        self.served = {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def versions(self, key: int) -> list[int]:
        """Return the versions that both sides serve."""
        return [version for version in APIS[key].versions if version in self.served.get(key, ())]

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Return the response; `version` defaults to the newest common one.

        AssertionError for a response that differs from our encoding of it in any byte: trailing bytes, an undeclared
        tagged field, or a lost value.
        """
        key = declaration_of(type(request)).key
        assert key is not None
        version = self.versions(key)[-1] if version is None else version
        self._correlation_id += 1
        header = frames.request_header(key, version, self._correlation_id, "strict")
        self._socket.sendall(frames.frame(header, encode(request, version)))
        frame = self._frame(f"{APIS[key].name} v{version}")
        expected = frames.response_header(key, version, self._correlation_id)
        assert frame.startswith(expected), f"{frame[:16].hex(' ')} is not the header of the answer"
        body = frame[len(expected) :]
        answer = decode(APIS[key].response, version, body, exact=True)
        assert encode(answer, version) == body, f"not all is said with {answer}"
        return answer

    def _frame(self, awaited: str) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4, awaited), "big"), awaited)

    def _exactly(self, count: int, awaited: str) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            assert piece, f"the connection was closed instead of an answer to {awaited}"
            data += piece
        return data


def is_closed_upon(address: Address, request: Any, version: int) -> bool:
    """Whether the broker closes the connection in place of a response."""
    with StrictLink(address) as there:
        try:
            there.ask(request, version)
        except (AssertionError, ConnectionError) as error:
            return isinstance(error, ConnectionError) or "was closed" in str(error)
    return False


def error_codes(message: Any) -> Iterator[int]:
    """Yield every error code in a message, outermost first."""
    for each in fields(message):
        value = getattr(message, each.name)
        if each.name.endswith("error_code"):
            yield value
        for row in value if isinstance(value, tuple) else (value,):
            if is_dataclass(row):
                yield from error_codes(row)
