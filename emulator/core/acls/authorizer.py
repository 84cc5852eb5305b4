"""The decisions of Kafka's `StandardAuthorizer` about requests of clients, by the ACLs of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .acl import ANY_NAME, ANY_PRINCIPAL, CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...config.settings import Settings
    from ..effects import Call
    from .acl import Acl, AclTable

ANY_TOPIC = "hardcode"
"""The name that stands for any resource (`Authorizer.authorizeByResourceType`)."""

IMPLIED: dict[int, frozenset[int]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""The operations whose permission includes that of another one."""


class Authorizer:
    """Allows the operations of super users, and those that an ACL allows and no ACL denies.

    `super_users` are principals (`User:admin`). If `allows_without_acls`, all clients may use resources without ACLs
    (`allow.everyone.if.no.acl.found`).
    """

    def __init__(self, acls: AclTable, super_users: Iterable[str], *, allows_without_acls: bool) -> None:
        self._acls = acls
        self._super_users = frozenset(super_users)
        self._allows_without_acls = allows_without_acls

    def allows(self, call: Call, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return whether the client of a call may do something with a resource."""
        if not call.principal or call.principal in self._super_users:
            return True
        is_allowed, has_acls = False, False
        implied = IMPLIED.get(operation, frozenset())
        for acl in self._acls.of(resource_type, name):
            has_acls = True
            if not _is_for(acl, call):
                continue
            fits = acl.operation in (operation, Operation.ALL)
            if acl.permission == Permission.DENY and fits:
                return False
            is_allowed = is_allowed or (acl.permission == Permission.ALLOW and (fits or acl.operation in implied))
        return is_allowed or (self._allows_without_acls and not has_acls)

    def allows_any(self, call: Call, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether there may be a resource with which the client may do something."""
        if self.allows(call, operation, resource_type, ANY_TOPIC):
            return True
        fitting = [
            acl
            for acl in self._acls.of_type(resource_type)
            if _is_for(acl, call) and acl.operation in (operation, Operation.ALL)
        ]
        denied = {(acl.pattern_type, acl.resource_name) for acl in fitting if acl.permission == Permission.DENY}
        if (PatternType.LITERAL, ANY_NAME) in denied:
            return False
        return any(not _is_covered(acl, denied) for acl in fitting if acl.permission == Permission.ALLOW)

    def operations(self, call: Call, resource_type: ResourceType, name: str, bits: int) -> int:
        """Return those of some operations that the client may do with a resource, all as bits."""
        asked = (each for each in Operation if bits & (1 << each))
        return sum(1 << each for each in asked if self.allows(call, each, resource_type, name))


def authorizer_of(settings: Settings, acls: AclTable) -> Authorizer | None:
    """Return the authorizer of `authorizer.class.name`; None without one."""
    if not settings.authorizer_class_name:
        return None
    super_users = (each.strip() for each in settings.super_users.split(";"))
    return Authorizer(acls, super_users, allows_without_acls=settings.allow_everyone_if_no_acl_found)


def _is_for(acl: Acl, call: Call) -> bool:
    """Return whether an ACL is for the principal and the address of a client."""
    return acl.principal in (call.principal, ANY_PRINCIPAL) and acl.host in (ANY_NAME, call.client_host.lstrip("/"))


def _is_covered(acl: Acl, denied: set[tuple[int, str]]) -> bool:
    """Return whether everything that an ACL allows is denied."""
    name = acl.resource_name
    if acl.pattern_type == PatternType.LITERAL and name == ANY_NAME:
        return False
    if acl.pattern_type == PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
