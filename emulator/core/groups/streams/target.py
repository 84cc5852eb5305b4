"""The target of a streams group. Kafka: `TargetAssignmentBuilder` of streams groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...java.hash_tables import HashTable
from ..modern.steps import time_of_target
from .records import RECORD_TYPES, target_record
from .settings import STANDBY_REPLICAS
from .sticky_assignor import StreamsMemberSpec, SubtopologySpec, assign_sticky
from .tasks import NO_TASKS, ReportedOffsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import StreamsGroup
    from .progress import StreamsUpdate
    from .tasks import Tasks
    from .topology import ConfiguredTopology

NOTHING_REPORTED = ReportedOffsets()


def compute_target(
    store: GroupStore,
    group: StreamsGroup,
    update: StreamsUpdate | None,
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
) -> dict[str, Tasks]:
    """Return the target of each member, in table order, with the one of the heartbeat as it is after it.

    While topics are missing or wrong, no member has tasks.
    """
    members = {member.id: member for member in group.ordered_members()}
    if update is not None:
        if update.replaced is not None:
            del members[update.replaced.id]
        members[update.after.id] = update.after
    ordered = {member_id: members[member_id] for member_id in HashTable(members)}
    if not configured.is_ready or configured.subtopologies is None:
        return dict.fromkeys(ordered, NO_TASKS)
    dialect = store.dialect
    reported = group.soft.task_offsets
    if update is not None and update.offsets is not None:
        reported = {**reported, update.after.id: update.offsets}
    specs = {
        member_id: StreamsMemberSpec(
            process_id=member.process_id,
            tasks=member.assigned if dialect.tasks_follow_state else group.targets.get(member_id, NO_TASKS),
            offsets=reported.get(member_id, NOTHING_REPORTED).offsets,
        )
        for member_id, member in ordered.items()
    }
    subtopologies = {
        name: SubtopologySpec(each.tasks, is_stateful=each.is_stateful)
        for name, each in configured.subtopologies.items()
    }
    replicas = int(configs[STANDBY_REPLICAS])
    return assign_sticky(
        specs,
        subtopologies,
        replicas,
        ranks_owners=dialect.tasks_follow_state,
        skips_owners=dialect.full_owners_hide_no_other,
    )


def target_records(
    store: GroupStore, group: StreamsGroup, known: Mapping[str, Tasks], targets: Mapping[str, Tasks], epoch: int
) -> list[CoordinatorRecord]:
    """Return the records of the targets that differ from the known ones, and of their epoch."""
    return [
        *(
            target_record(group.id, member_id, target)
            for member_id, target in targets.items()
            if known.get(member_id) != target
        ),
        RECORD_TYPES.target_epoch_record(group.id, epoch, time_of_target(store, group)),
    ]
