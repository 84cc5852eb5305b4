"""ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe: what the rows of all kinds have.

Kafka: `GroupMetadataManager.consumerGroupDescribe`, `shareGroupDescribe`, `streamsGroupDescribe`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.wire.errors import Error

from ...acls.acl import NO_OPERATIONS
from ...refusal import Refusal
from .group import ModernGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..group_store import GroupStore

G = TypeVar("G", bound=ModernGroup[Any, Any])
R = TypeVar("R")


def describe(  # noqa: PLR0913 - what the kinds differ in
    store: GroupStore,
    now: int,
    request: Any,  # noqa: ANN401 - of one of three APIs
    kind: type[G],
    row: Callable[..., R],
    details: Callable[[G], Mapping[str, object]],
    *,
    is_served: bool,
) -> tuple[R, ...]:
    """Return a row for each group id of a request; `details` are the fields that only this kind of row has."""
    operations = store.dialect.group_operations if request.include_authorized_operations else NO_OPERATIONS

    def describe_group(group_id: str) -> R:
        group = _find(store, now, group_id, kind, is_served=is_served)
        if isinstance(group, Refusal):
            return row(error_code=group.error, error_message=group.error_message, group_id=group_id)
        return row(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=group.assignor(store.settings),
            authorized_operations=operations,
            **details(group),
        )

    return tuple(map(describe_group, request.group_ids))


def _find(store: GroupStore, now: int, group_id: str, kind: type[G], *, is_served: bool) -> G | Refusal:
    """Return a group of the kind, or why a row describes none."""
    error = store.status(group_id) if group_id else Error.INVALID_GROUP_ID
    if not is_served:
        error = Error.UNSUPPORTED_VERSION
    if error is not Error.NONE:
        return Refusal(error, "")
    group = store.find_visible(now, group_id)
    if isinstance(group, kind):
        return group
    problem = "not found" if group is None else f"is not a {kind.kind} group"
    message = f"Group {group_id} {problem}." if store.dialect.describes_missing_groups else ""
    return Refusal(Error.GROUP_ID_NOT_FOUND, message)
