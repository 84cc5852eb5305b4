"""Streams groups: each rule, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

GROUPS = "emulator/core/groups/streams"
HEARTBEATS = "tests/core/groups/streams/test_streams_heartbeat.py"

STREAMS = "streams groups"


def _beat(test: str) -> tuple[str, ...]:
    return (f"{HEARTBEATS}::Test{test}",)


STREAMS_GROUP_RULES = (
    BrokenRule(
        STREAMS,
        "a task is given up before another process gets it (KIP-1071)",
        f"{GROUPS}/reconciliation.py",
        "            wanted.active - self.active - (standby - own.standby) - (warmup - own.warmup),",
        "            wanted.active - (standby - own.standby) - (warmup - own.warmup),",
        _beat("MembersOfStreamsGroups::test_h120_a_task_is_revoked_before_another_member_gets_it"),
    ),
    BrokenRule(
        STREAMS,
        "every change of a member's metadata raises the epoch",
        f"{GROUPS}/progress.py",
        "raises = is_new or (after is not before and _raises_epoch(request, before, after))",
        "raises = is_new",
        _beat("MembersOfStreamsGroups::test_h131_every_change_of_a_member_raises_the_epoch"),
    ),
    BrokenRule(
        STREAMS,
        "a topology with the epoch of the group's has its subtopologies",
        f"{GROUPS}/progress.py",
        "if known.epoch != topology.epoch or _by_id(known) != _by_id(topology):",
        "if known.epoch != topology.epoch:",
        _beat("TopologiesOfStreamsGroups::test_h122_a_topology_does_not_change"),
    ),
    BrokenRule(
        STREAMS,
        "a member reports tasks that the topology has",
        f"{GROUPS}/progress.py",
        "            if not 0 <= partition < subtopology.tasks:",
        "            if partition < 0:",
        _beat("MembersOfStreamsGroups::test_a_task_that_the_topology_does_not_have_is_refused"),
    ),
    BrokenRule(
        STREAMS,
        "other settings of the assignor raise the epoch",
        f"{GROUPS}/progress.py",
        "    raises |= configs != group.assignment_configs\n",
        "",
        _beat("TopologiesOfStreamsGroups::test_other_settings_of_the_assignor_raise_the_epoch_once"),
    ),
    BrokenRule(
        STREAMS,
        "a new group waits for more members before it has a target (KIP-1071)",
        f"{GROUPS}/progress.py",
        "if not group.members and delay_ms and StreamsInitialDelay() not in group.timers:",
        "if group.members and delay_ms and StreamsInitialDelay() not in group.timers:",
        _beat("DelaysOfStreamsGroups::test_h128_the_first_target_waits_for_more_members"),
    ),
    BrokenRule(
        STREAMS,
        "two targets have a distance (KIP-1263)",
        f"{GROUPS}/progress.py",
        "    if is_too_early(store, group):\n        status.append",
        "    if not group.members and is_too_early(store, group):\n        status.append",
        _beat("DelaysOfStreamsGroups::test_h129_targets_have_a_distance"),
    ),
    BrokenRule(
        STREAMS,
        "a shutdown is told to every member",
        f"{GROUPS}/heartbeat.py",
        "    if soft.shutdown_by is not None:",
        "    if soft.shutdown_by is not None and not group.members:",
        _beat("EndsOfMembersOfStreamsGroups::test_h132_a_shutdown_is_told_to_everybody_until_the_group_is_empty"),
    ),
    BrokenRule(
        STREAMS,
        "only a joining member, or one with other tasks, is told its tasks",
        f"{GROUPS}/heartbeat.py",
        "has_tasks = request.member_epoch == JOINING_EPOCH or member.assigned != before.assigned",
        "has_tasks = True",
        _beat("MembersOfStreamsGroups::test_h120_a_task_is_revoked_before_another_member_gets_it"),
    ),
)
