"""How the core says no: the protocol's error, and a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.errors import Error


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something was not done; the sentence is in Kafka's words where Kafka has some."""

    error: Error
    message: str


class RefusedError(ValueError):
    """Python code asked for what a client would have been refused, with `error`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.error = refusal.error
