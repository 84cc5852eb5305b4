"""What can go wrong. Every text is one line and names who it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from koordinator.wire.apis import ApiKey

EXPLAINED = {
    Error.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is still loading the group",
    Error.COORDINATOR_NOT_AVAILABLE: "there is no coordinator for the group at the moment",
    Error.NOT_COORDINATOR: "the broker is not the coordinator of the group",
    Error.INVALID_GROUP_ID: "the group id is not valid",
    Error.UNKNOWN_MEMBER_ID: "no such member in the group",
    Error.TOPIC_AUTHORIZATION_FAILED: "not authorised for the topic",
    Error.GROUP_AUTHORIZATION_FAILED: "not authorised for the group",
    Error.CLUSTER_AUTHORIZATION_FAILED: "not authorised for the cluster",
    Error.NON_EMPTY_GROUP: "the group has members",
    Error.GROUP_ID_NOT_FOUND: "there is no such group",
    Error.FENCED_INSTANCE_ID: "the instance id belongs to another member id",
}
"""What the errors mean that a user of groups may meet; the others have to speak for themselves."""


class ClientError(Exception):
    """There is no answer. The text names the broker's address and the cause."""


class Unreachable(ClientError):
    """There is no connection: the name is unknown, or nobody listens. `again` is whether that may change soon."""

    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.again = again


class Lost(ClientError):
    """The connection was closed while an answer was awaited; whether the request was carried out is not known."""


class TimedOut(ClientError):
    """There was no time left."""


class BadAnswer(ClientError):
    """The answer cannot be read, or answers something else."""


class Secured(ClientError):
    """The listener looks like one with TLS or SASL: `kind`, to judge from what was `seen`."""

    def __init__(self, seen: str, kind: str) -> None:
        super().__init__(f"{seen}: this looks like a {kind} listener, and only plaintext is supported")


class VersionMissing(ClientError):
    """The broker and we have no version of an API in common that could do what is wanted."""

    code = Error.UNSUPPORTED_VERSION


@dataclass(frozen=True, slots=True)
class Need:
    """The lowest version of an API that can do what is wanted, and the release of Apache Kafka it came with."""

    api: ApiKey
    version: int
    release: str

    def __str__(self) -> str:
        name = "".join(word.capitalize() for word in self.api.name.split("_"))
        return f"{name} v{self.version} is needed (Apache Kafka {self.release} or newer)"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is not done: a broker's error code, or None and only a text. `again`: a later try may succeed."""

    code: int | None
    message: str
    again: bool = False

    @property
    def name(self) -> str | None:
        """Kafka's name of the code; None without a code, and for one that is not known here."""
        return None if self.code is None else error_name(self.code)

    def __str__(self) -> str:
        if self.code is None:
            return self.message
        title = f"{self.name} ({self.code})" if self.name else f"error {self.code}"
        return f"{title}: {self.message}" if self.message else title


def error_name(code: int) -> str | None:
    """Kafka's name of an error code, if it is a known one."""
    try:
        return Error(code).name
    except ValueError:
        return None


def refusal(code: int, said: str | None = None, *, again: frozenset[Error] = frozenset()) -> Refusal:
    """A broker's error code, explained; `said` is its own message, `again` the codes that may pass."""
    known = error_name(code) is not None
    parts = [EXPLAINED.get(Error(code), "") if known else "", said or ""]
    return Refusal(code, "; ".join(part for part in parts if part), again=known and Error(code) in again)


def refusal_of(error: ClientError, *, resend: bool = True) -> Refusal:
    """A failed connection as the reason why something is not done.

    `resend`: what was asked may be asked twice. If not, a lost connection is not tried again.
    """
    match error:
        case VersionMissing():
            return Refusal(error.code, str(error))
        case Unreachable():
            return Refusal(None, str(error), again=error.again)
        case Lost() if resend:
            return Refusal(None, str(error), again=True)
        case Lost():
            return Refusal(None, f"{error}; it is not known whether that was carried out")
        case _:
            return Refusal(None, str(error))


__all__ = [
    "BadAnswer",
    "ClientError",
    "Lost",
    "Need",
    "Refusal",
    "Secured",
    "TimedOut",
    "Unreachable",
    "VersionMissing",
    "refusal",
    "refusal_of",
]
