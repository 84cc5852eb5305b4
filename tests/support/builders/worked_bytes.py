"""Cases of messages and their bytes, written by hand from the tables of the protocol."""

from typing import Any
from uuid import UUID

import pytest

UUID_HEX = "0123456789abcdef0123456789abcdef"
TOPIC_ID = UUID(UUID_HEX)


def case(name: str, version: int, message: object, hexadecimal: str) -> Any:
    """Return a test parameter of a message, its version and its bytes."""
    return pytest.param(message, version, bytes.fromhex(hexadecimal), id=name)
