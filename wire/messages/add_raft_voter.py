"""AddRaftVoter (api key 80), versions 0-1, flexible (KIP-853).

v1 ack_when_committed
"""

from uuid import UUID

from ..schema import array, boolean, entity, int16, int32, message, string, uint16, uuid_


@entity
class Listener:
    """A listener of the voter."""

    name: str = string()
    host: str = string()
    port: int = uint16()


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    """A new voter of the metadata quorum."""

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid_()
    listeners: tuple[Listener, ...] = array(Listener)
    ack_when_committed: bool = boolean("1+", default=True)


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    """The result."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
