"""RemoveRaftVoter (api key 81), version 0, flexible (KIP-853)."""

from uuid import UUID

from ..schema import int16, int32, message, string, uuid_


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    """A voter to remove from the metadata quorum."""

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: UUID = uuid_()


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    """The result."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
