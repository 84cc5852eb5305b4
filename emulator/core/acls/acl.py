"""ACLs as values, and the table of a cluster's ACLs.

Kafka: `AclBinding`, `ResourcePattern`, `AclControlManager`.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY_NAME = "*"
"""A literal pattern of all resources, and the host of clients from anywhere."""

ANY_PRINCIPAL = "User:*"

ANONYMOUS = "User:ANONYMOUS"
"""The principal of clients that have not authenticated."""


def user_principal(name: str | None) -> str:
    """Return the principal of a user; None is one who has not authenticated."""
    return ANONYMOUS if name is None else f"User:{name}"


NO_OPERATIONS = -(2**31)
"""The authorized operations of a resource in a response to a client that did not ask for them."""

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class ResourceType(IntEnum):
    """The type of the resource that an ACL protects."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of an ACL is compared with that of a resource. ANY and MATCH are for filters."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """An operation of a principal with a resource."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether an ACL allows or denies."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """Allows or denies an operation on the resources of a pattern to a principal, from a host.

    The numbers are those of the wire: a broker stores what newer clients send, too.
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


@value
class AclFilter:
    """The ACLs of DescribeAcls and DeleteAcls; None and ANY match all."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, acl: Acl) -> bool:
        """Return whether an ACL is one of these (`AclBindingFilter.matches`)."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.pattern_type in (PatternType.ANY, PatternType.MATCH, acl.pattern_type)
            and self._has_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _has_name(self, acl: Acl) -> bool:
        if self.resource_name is None or self.resource_name == acl.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name == ANY_NAME


class AclTable:
    """The ACLs of a cluster, by pattern."""

    def __init__(self) -> None:
        self._by_pattern: dict[tuple[int, int, str], dict[Acl, None]] = {}
        self._prefix_lengths: Counter[tuple[int, int]] = Counter()
        """The number of prefixes by resource type and length: a long name is compared with these alone."""

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._by_pattern.get(_pattern(acl), {})

    def __iter__(self) -> Iterator[Acl]:
        for acls in self._by_pattern.values():
            yield from acls

    def add(self, acl: Acl) -> None:
        """Add an ACL."""
        acls = self._by_pattern.setdefault(_pattern(acl), {})
        if not acls and acl.pattern_type == PatternType.PREFIXED:
            self._prefix_lengths[acl.resource_type, len(acl.resource_name)] += 1
        acls[acl] = None

    def remove(self, acl: Acl) -> None:
        """Remove an ACL."""
        acls = self._by_pattern.get(_pattern(acl))
        if acls is None:
            return
        acls.pop(acl, None)
        if not acls:
            del self._by_pattern[_pattern(acl)]
            if acl.pattern_type == PatternType.PREFIXED:
                self._prefix_lengths[acl.resource_type, len(acl.resource_name)] -= 1

    def of(self, resource_type: int, name: str) -> Iterator[Acl]:
        """Yield the ACLs whose pattern fits a resource. The cost depends on the lengths of prefixes alone."""
        for literal in dict.fromkeys((name, ANY_NAME)):
            yield from self._by_pattern.get((resource_type, PatternType.LITERAL, literal), ())
        for (kind, length), count in self._prefix_lengths.items():
            if count and kind == resource_type and length <= len(name):
                yield from self._by_pattern.get((resource_type, PatternType.PREFIXED, name[:length]), ())

    def of_type(self, resource_type: int) -> Iterator[Acl]:
        """Yield the ACLs of a type of resources."""
        return (acl for acl in self if acl.resource_type == resource_type)


def _pattern(acl: Acl) -> tuple[int, int, str]:
    return acl.resource_type, acl.pattern_type, acl.resource_name
