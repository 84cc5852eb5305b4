"""The errors of the client. Every text is one line that names the broker, topic or group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from koordinator.wire.apis import ApiKey

EXPLANATIONS: dict[int, str] = {
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
"""Explanations of the errors that operators of groups often see."""


class ClientError(Exception):
    """A request has no response. The text names the broker's address and the cause."""


class Unreachable(ClientError):
    """No connection: the host name is unknown, or nothing listens. `retriable` tells whether a retry may succeed."""

    def __init__(self, text: str, *, retriable: bool) -> None:
        super().__init__(text)
        self.retriable = retriable


class ConnectionLost(ClientError):
    """The connection was closed before the response; the broker may have carried out the request."""


class TimedOut(ClientError):
    """The deadline passed."""


class InvalidResponse(ClientError):
    """The response cannot be decoded, or belongs to another request."""


class SecuredListener(ClientError):
    """The listener appears to require TLS or SASL (`kind`), to judge from its `behaviour`."""

    def __init__(self, behaviour: str, kind: str) -> None:
        super().__init__(f"{behaviour}: this looks like a {kind} listener; give its settings by --command-config")


class AuthenticationFailed(ClientError):
    """The broker refuses the user, the password or the mechanism."""


class NoCommonVersion(ClientError):
    """The broker and this client have no common version of an API that is recent enough."""

    code = Error.UNSUPPORTED_VERSION


@dataclass(frozen=True, slots=True)
class RequiredVersion:
    """The lowest version of an API that a request needs, and the release of Apache Kafka that introduced it."""

    api: ApiKey
    version: int
    release: str

    def __str__(self) -> str:
        name = "".join(word.capitalize() for word in self.api.name.split("_"))
        return f"{name} v{self.version} is needed (Apache Kafka {self.release} or newer)"


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason for a failed request: a broker's error code, or None and a text. `retriable`: a retry may succeed."""

    code: int | None
    message: str
    retriable: bool = False

    @property
    def name(self) -> str | None:
        """Kafka's name of the code; None without a code and for an unknown one."""
        return next((error.name for error in Error if error == self.code), None)

    def __str__(self) -> str:
        if self.code is None:
            return self.message
        title = f"{self.name} ({self.code})" if self.name else f"error {self.code}"
        return f"{title}: {self.message}" if self.message else title


def broker_failure(code: int, message: str | None = None, *, retriable: frozenset[Error] = frozenset()) -> Failure:
    """Return a broker's error as a failure.

    `message` is the text of the response; without one, an explanation stands for it. `retriable` are the codes to
    retry.
    """
    # an unknown code has neither
    return Failure(code, message or EXPLANATIONS.get(code, ""), retriable=code in retriable)


def connection_failure(error: ClientError, *, idempotent: bool = True) -> Failure:
    """Return a failed connection as the failure of a request.

    A request that is not idempotent is not retried after the connection was lost.
    """
    match error:
        case NoCommonVersion():
            return Failure(error.code, str(error))
        case Unreachable():
            return Failure(None, str(error), retriable=error.retriable)
        case ConnectionLost() if idempotent:
            return Failure(None, str(error), retriable=True)
        case ConnectionLost():
            return Failure(None, f"{error}; the broker may have carried out the request")
        case _:
            return Failure(None, str(error))
