"""Partition assignors of puppets, run by a group's leader between JoinGroup and SyncGroup."""

from collections.abc import Mapping
from types import MappingProxyType

from .eager import RANGE, ROUND_ROBIN
from .members import Assignment, Assignor, Candidate, Partitions
from .sticky import COOPERATIVE_STICKY, STICKY

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "Candidate", "Partitions"]

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {each.name: each for each in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)}
)
"""Assignors by protocol name."""
