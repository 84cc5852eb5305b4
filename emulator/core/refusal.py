"""A refusal by the core: Kafka's error and a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

if TYPE_CHECKING:
    from koordinator.wire.errors import Error


@value
class Refusal:
    """Why a request is refused; `message` has Kafka's wording where Kafka has one."""

    error: Error
    message: str

    @property
    def error_message(self) -> str | None:
        """The message as a field of a response: null without one."""
        return self.message or None


class RefusedError(ValueError):
    """A call from Python failed for a reason that a client would get as `error`.

    Its text is the message that a client would get, or a `reason` that says more.
    """

    def __init__(self, refusal: Refusal, reason: str = "") -> None:
        super().__init__(reason or refusal.message)
        self.refusal = refusal
        self.error = refusal.error
        self.reason = reason


class TransitionError(Exception):
    """A change of state that Kafka's coordinators do not make: a bug of the core."""


def refused(error: Error, message: str = "") -> RefusedError:
    """Return the exception for an error with Kafka's message, or without one."""
    return RefusedError(Refusal(error, message))
