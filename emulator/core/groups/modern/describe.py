"""ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe: which group a row describes, or why none.

Kafka: `GroupMetadataManager.consumerGroupDescribe`, `shareGroupDescribe`, `streamsGroupDescribe`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.wire.errors import Error

from ...acls.acl import NO_OPERATIONS
from ...refusal import Refusal
from .group import ModernGroup

if TYPE_CHECKING:
    from ..group_store import GroupStore

G = TypeVar("G", bound=ModernGroup[Any, Any])


def operations_of(store: GroupStore, request: Any) -> int:  # noqa: ANN401 - of one of three APIs
    """Return the operations of a client on every group, as bits, if a request asks for them."""
    return store.dialect.group_operations if request.include_authorized_operations else NO_OPERATIONS


def find_described(store: GroupStore, now: int, group_id: str, kind: type[G], *, is_served: bool) -> G | Refusal:
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
