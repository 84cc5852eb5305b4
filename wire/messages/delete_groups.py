"""DeleteGroups (api key 42), versions 0-3, flexible from 2.

v1 response before throttling | v2 flexible | v3 error_message and GROUP_DELETION_FAILED (KIP-1331)
"""

from ..schema import array, entity, int16, int32, message, string


@message(key=42, versions="0-3", flexible="2+")
class DeleteGroupsRequest:
    """Groups to delete, with their offsets."""

    groups_names: tuple[str, ...] = array(string)


@entity
class DeletableGroupResult:
    """The result of one group."""

    group_id: str = string()
    error_code: int = int16()
    error_message: str | None = string("3+", nullable="3+", default=None, ignorable=True)


@message(key=42, versions="0-3", flexible="2+")
class DeleteGroupsResponse:
    """A row for each group of the request."""

    throttle_time_ms: int = int32()
    results: tuple[DeletableGroupResult, ...] = array(DeletableGroupResult)
