"""Partition assignors of puppets, run by a group's leader between JoinGroup and SyncGroup."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from .eager import RANGE, ROUND_ROBIN
from .members import Assignment, Assignor, Candidate, Partitions
from .sticky import COOPERATIVE_STICKY, STICKY

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "Candidate", "Partitions", "assignor_of"]

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {each.name: each for each in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)}
)
"""Assignors by protocol name."""


def assignor_of(protocol: str) -> Assignor:
    """Return the assignor of a protocol; a client's own is eager, and assigns like roundrobin."""
    return ASSIGNORS.get(protocol) or replace(ROUND_ROBIN, name=protocol)
