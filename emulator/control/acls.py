"""Operations on ACLs: rights are given, denied and taken away at once, as by an administrator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.settings import STANDARD_AUTHORIZER
from ..config.suggest import UnknownWord, did_you_mean
from ..core.acls.acl import ANY_NAME, CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from ..core.data.metadata_changes import AclSet
from ..trace.events import VerbUsed
from .results import Right

if TYPE_CHECKING:
    from ..broker.cluster_runtime import ClusterRuntime

_Resource = tuple[int, str, int]
"""Type, name and pattern of a resource: the first fields of an ACL."""

OPERATIONS = tuple(each.name.lower() for each in Operation if each is not Operation.ANY)
"""The words for operations."""


class Acls:
    """Operations on the rights of clients. All raise ValueError without an authorizer.

    A user is a principal without its type (`alice` for `User:alice`), or `*` for all. A resource is a topic, a group or
    a transactional id, or else the cluster. A name with `*` at its end stands for all names that begin so.
    """

    def __init__(self, runtime: ClusterRuntime) -> None:
        self._runtime = runtime

    def all(self, _now: int) -> list[Right]:
        """Return all ACLs, in the order in which their patterns were first used."""
        return [_right(acl) for acl in self._runtime.cluster.clients.acls]

    def allow(  # noqa: PLR0913 - the fields of an ACL
        self,
        now: int,
        *,
        user: str,
        operation: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        host: str = ANY_NAME,
    ) -> None:
        """Allow a user an operation. Raises RefusedError (a ValueError) where the disk refuses it."""
        self._set(now, Permission.ALLOW, user, operation, _resource(topic, group, transactional_id), host)

    def deny(  # noqa: PLR0913 - as above
        self,
        now: int,
        *,
        user: str,
        operation: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        host: str = ANY_NAME,
    ) -> None:
        """Deny a user an operation, whatever else allows it.

        Raises RefusedError (a ValueError) where the disk refuses it.
        """
        self._set(now, Permission.DENY, user, operation, _resource(topic, group, transactional_id), host)

    def revoke(
        self,
        now: int,
        *,
        user: str,
        operation: str | None = None,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
    ) -> int:
        """Remove the ACLs of a user, those that allow and those that deny, and return their number.

        With an operation or a resource only those with the same operation, or for the same resource.
        """
        cluster = self._runtime.cluster
        self._check()
        number = None if operation is None else _operation(operation)
        is_named = (topic, group, transactional_id) != (None, None, None)
        resource = _resource(topic, group, transactional_id) if is_named else None
        found = [
            acl
            for acl in cluster.clients.acls
            if acl.principal == _principal(user) and number in (None, acl.operation) and resource in (None, acl[:3])
        ]
        cluster.storage.propose(*(AclSet(acl, exists=False) for acl in found))
        self._note(now, "revoke", user, operation, resource)
        return len(found)

    def _set(self, now: int, permission: Permission, user: str, operation: str, resource: _Resource, host: str) -> None:
        self._check()
        acl = Acl(*resource, _principal(user), host, _operation(operation), permission)
        self._runtime.cluster.storage.propose(AclSet(acl, exists=True))
        self._note(now, permission.name.lower(), user, operation, resource)

    def _check(self) -> None:
        if self._runtime.cluster.authorizer is None:
            raise ValueError(
                f"the cluster has no authorizer: start it with the config authorizer.class.name={STANDARD_AUTHORIZER}"
            )

    def _note(self, now: int, verb: str, user: str, operation: str | None, resource: _Resource | None) -> None:
        arguments = {"user": user, "operation": operation}
        group_id = None
        if resource is not None:
            kind, name, pattern = resource
            arguments[ResourceType(kind).name.lower()] = _shown(name, pattern)
            is_group = kind == ResourceType.GROUP and pattern == PatternType.LITERAL and name != ANY_NAME
            group_id = name if is_group else None
        cluster, trace = self._runtime.cluster, self._runtime.trace
        group_now = now if group_id is None else cluster.clocks.of(group_id, now).read(now)
        given: dict[str, object] = {name: value for name, value in arguments.items() if value is not None}
        trace.add(trace.now_us(), VerbUsed(verb, group_id, group_now, given), cluster.brokers.controller_id)


def remove_acls(runtime: ClusterRuntime) -> None:
    """Remove all ACLs."""
    runtime.cluster.storage.propose(*(AclSet(acl, exists=False) for acl in list(runtime.cluster.clients.acls)))


def _right(acl: Acl) -> Right:
    return Right(
        acl.principal,
        Permission(acl.permission).name.lower(),
        Operation(acl.operation).name.lower(),
        ResourceType(acl.resource_type).name.lower(),
        _shown(acl.resource_name, acl.pattern_type),
        acl.host,
    )


def _shown(name: str, pattern: int) -> str:
    return f"{name}{ANY_NAME}" if pattern == PatternType.PREFIXED else name


def _principal(user: str) -> str:
    if not user:
        raise ValueError("user='': must be a name, or * for all users")
    return user if ":" in user else f"User:{user}"


def _operation(word: str) -> Operation:
    if word not in OPERATIONS:
        raise UnknownWord(f"operation {word!r}: must be one of {', '.join(OPERATIONS)}{did_you_mean(word, OPERATIONS)}")
    return Operation[word.upper()]


def _resource(topic: str | None, group: str | None, transactional_id: str | None) -> _Resource:
    """Return type, name and pattern of a resource."""
    named = [
        (kind, name)
        for kind, name in (
            (ResourceType.TOPIC, topic),
            (ResourceType.GROUP, group),
            (ResourceType.TRANSACTIONAL_ID, transactional_id),
        )
        if name is not None
    ]
    if len(named) > 1:
        raise ValueError("an ACL is for one resource: a topic, a group or a transactional id")
    if not named:
        return ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL
    kind, name = named[0]
    if not name:
        raise ValueError("the name of a resource is not empty; * stands for all")
    if name.endswith(ANY_NAME) and name != ANY_NAME:
        return kind, name.removesuffix(ANY_NAME), PatternType.PREFIXED
    return kind, name, PatternType.LITERAL
