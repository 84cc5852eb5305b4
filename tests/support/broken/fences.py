"""Fences of members and generations: each rule, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

CODE = "emulator/core/groups/classic"
CORE = "tests/core/groups/classic"
SCENARIOS = "tests/conformance/test_e"
OFFSET_TESTS = "tests/core/groups/test_offsets.py"
OFFSETS = "emulator/core/groups/offsets.py"

FENCES = "Fences"

FENCE_RULES = (
    BrokenRule(
        FENCES,
        "a returning static member fences the parked JoinGroup of its predecessor (KIP-345)",
        f"{CODE}/join.py",
        "join_error(Error.FENCED_INSTANCE_ID, old.id)",
        "join_error(Error.UNKNOWN_MEMBER_ID, old.id)",
        (
            f"{CORE}/test_static_membership.py::test_a_return_in_a_join_phase_parks_and_replaces_the_old_member",
            f"{CORE}/test_static_membership.py::test_a_return_during_the_initial_delay_fences_the_first_join",
        ),
    ),
    BrokenRule(
        FENCES,
        "a returning static member fences the parked SyncGroup of its predecessor (KIP-345)",
        f"{CODE}/join.py",
        "rebalance.reply_to_sync(store, group, old, rebalance.sync_error(Error.FENCED_INSTANCE_ID))\n    member = ",
        "member = ",
        (
            f"{CORE}/test_static_membership.py::test_kafka_9801_a_return_before_the_assignment_rebalances",
            f"{SCENARIOS}09_static_membership.py::test_e144_a_static_member_that_comes_back_while_the_leader_is_awaited",
        ),
    ),
    BrokenRule(
        FENCES,
        "a returning static leader below v9 gets its old id as the leader's",
        f"{CODE}/join.py",
        "response = replace(response, leader=old_leader_id, members=())",
        "response = replace(response, members=())",
        (
            f"{CORE}/test_static_membership.py::test_a_returning_leader_gets_a_new_id_and_before_v9_the_old_leader_id",
            f"{SCENARIOS}09_static_membership.py::test_e132_a_returning_leader_receives_its_old_id_as_leader",
        ),
    ),
    BrokenRule(
        FENCES,
        "a static member that returns keeps its leadership",
        f"{CODE}/group.py",
        "        if self.leader_id == old.id:\n            self.leader_id = new_id\n        assert old",
        "        assert old",
        (
            f"{CORE}/test_static_membership.py::test_kip_814_a_returning_leader_skips_the_assignment",
            f"{CORE}/test_static_membership.py::test_kafka_10284_a_return_that_changes_the_selected_protocol_rebalances",
        ),
    ),
    BrokenRule(
        FENCES,
        "the old id of a replaced static member is fenced before it is unknown",
        f"{CODE}/group.py",
        "            if current_id != member_id:\n                return Error.FENCED_INSTANCE_ID\n",
        "",
        (f"{CORE}/test_static_membership.py::test_fencing_precedes_membership_and_membership_the_generation",),
    ),
    BrokenRule(
        FENCES,
        "an unknown instance id is UNKNOWN_MEMBER_ID",
        f"{CODE}/group.py",
        "            if current_id is None:\n                return Error.UNKNOWN_MEMBER_ID\n            if current_id",
        "            if current_id is not None and current_id",
        (
            f"{CORE}/test_static_membership.py::test_fencing_precedes_membership_and_membership_the_generation",
            f"{CORE}/test_static_membership.py::test_a_fenced_join_echoes_its_id",
        ),
    ),
    BrokenRule(
        FENCES,
        "a heartbeat of another generation is ILLEGAL_GENERATION",
        f"{CODE}/membership.py",
        "    if request.generation_id != group.generation:\n        return Error.ILLEGAL_GENERATION\n",
        "",
        (
            f"{CORE}/test_static_membership.py::test_fencing_precedes_membership_and_membership_the_generation",
            f"{CORE}/test_heartbeat.py::test_heartbeats_in_a_join_phase_get_rebalance_in_progress",
        ),
    ),
    BrokenRule(
        FENCES,
        "a SyncGroup of another generation is ILLEGAL_GENERATION",
        f"{CODE}/sync.py",
        "    if request.generation_id != group.generation:\n        return Error.ILLEGAL_GENERATION\n",
        "",
        (
            f"{CORE}/test_static_membership.py::test_fencing_precedes_membership_and_membership_the_generation",
            f"{CORE}/test_sync.py::test_a_sync_of_a_stranger_or_of_another_generation_is_refused",
        ),
    ),
    BrokenRule(
        FENCES,
        "a commit of another generation is ILLEGAL_GENERATION",
        f"{CODE}/offsets.py",
        "    if generation != group.generation:\n        return Error.ILLEGAL_GENERATION\n",
        "",
        (
            f"{CORE}/test_static_membership.py::test_fencing_precedes_membership_and_membership_the_generation",
            f"{OFFSET_TESTS}::test_only_members_of_this_generation_commit_to_a_group_that_has_any",
        ),
    ),
    BrokenRule(
        FENCES,
        "a commit between join and sync is REBALANCE_IN_PROGRESS",
        f"{CODE}/offsets.py",
        "    if group.state is ClassicGroupState.COMPLETING_REBALANCE:\n        return Error.REBALANCE_IN_PROGRESS\n",
        "",
        (
            f"{OFFSET_TESTS}::test_a_commit_before_the_assignment_gets_rebalance_in_progress",
            f"{OFFSET_TESTS}::test_a_refused_commit_does_not_restart_the_session",
        ),
    ),
    BrokenRule(
        FENCES,
        "a group with members accepts only commits of members",
        f"{CODE}/offsets.py",
        "        return Error.UNKNOWN_MEMBER_ID\n    error",
        "        return Error.NONE\n    error",
        (f"{OFFSET_TESTS}::test_only_members_of_this_generation_commit_to_a_group_that_has_any",),
    ),
    BrokenRule(
        FENCES,
        "an Empty group accepts commits without a generation",
        f"{CODE}/offsets.py",
        "if generation < 0 and group.state is ClassicGroupState.EMPTY:",
        "if False:",
        (f"{OFFSET_TESTS}::test_kafka_14201_an_empty_group_accepts_commits_without_a_generation",),
    ),
    BrokenRule(
        FENCES,
        "a SyncGroup has to name the group's protocol (KIP-559)",
        f"{CODE}/sync.py",
        "        return Error.INCONSISTENT_GROUP_PROTOCOL\n    return Error.NONE",
        "        pass\n    return Error.NONE",
        (f"{CORE}/test_sync.py::test_kip_559_a_sync_must_name_the_protocol_of_the_group",),
    ),
    BrokenRule(
        FENCES,
        "SyncGroup v5 has to name a protocol at all",
        "emulator/core/groups/membership.py",
        "PROTOCOL_REQUIRED_SINCE = 5",
        "PROTOCOL_REQUIRED_SINCE = 6",
        (f"{CORE}/test_sync.py::test_kip_559_a_sync_must_name_the_protocol_of_the_group",),
    ),
)
