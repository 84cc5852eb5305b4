"""The assignors that puppets have: what a consumer that leads its group computes between JoinGroup and SyncGroup."""

from collections.abc import Mapping
from types import MappingProxyType

from koordinator.emulator.controls.assignors.eager import RANGE, ROUND_ROBIN
from koordinator.emulator.controls.assignors.members import Assignment, Assignor, Candidate, Partitions

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "Candidate", "Partitions"]

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({a.name: a for a in (RANGE, ROUND_ROBIN)})
"""By the name that members vote for."""
