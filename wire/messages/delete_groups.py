"""DeleteGroups (api key 42), versions 0-2, flexible from 2.

v1 answered before throttling | v2 flexible
"""

from ..schema import array, entity, int16, int32, message, string


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """Delete these groups with all their offsets."""

    groups_names: tuple[str, ...] = array(string)


@entity
class DeletableGroupResult:
    """Whether one group was deleted."""

    group_id: str = string()
    error_code: int = int16()


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """One row for each group named."""

    throttle_time_ms: int = int32()
    results: tuple[DeletableGroupResult, ...] = array(DeletableGroupResult)
