"""The classic coordinator: each rule of JoinGroup and of rebalances, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

CODE = "emulator/core/groups/classic"
MEMBERSHIP = "emulator/core/groups/membership.py"
CORE = "tests/core/groups/classic"
SCENARIOS = "tests/conformance/test_e"
GROUP_TESTS = "tests/core/groups"

JOIN = "JoinGroup"
REBALANCES = "Rebalances"

CLASSIC_GROUP_RULES = (
    BrokenRule(
        JOIN,
        "a dynamic member without an id gets one with MEMBER_ID_REQUIRED from v4 on (KIP-394)",
        f"{CODE}/join.py",
        "MEMBER_ID_REQUIRED_SINCE = 4",
        "MEMBER_ID_REQUIRED_SINCE = 5",
        (
            f"{CORE}/test_member_id_required.py::test_every_join_without_an_id_gets_a_new_one_and_all_are_valid",
            f"{CORE}/test_member_id_required.py::test_a_pending_id_delays_the_join_phase_until_it_expires",
        ),
    ),
    BrokenRule(
        JOIN,
        "an id handed out expires after the session timeout (KIP-394)",
        f"{CODE}/join.py",
        "group.timers.set(PendingMemberExpiry(member_id), group.now + request.session_timeout_ms)",
        "group.timers.set(PendingMemberExpiry(member_id), group.now + request.session_timeout_ms + 1)",
        (
            f"{CORE}/test_member_id_required.py::test_an_id_not_used_within_the_session_timeout_is_forgotten",
            f"{CORE}/test_member_id_required.py::test_a_pending_id_delays_the_join_phase_until_it_expires",
        ),
    ),
    BrokenRule(
        JOIN,
        "a pending member cannot be static",
        f"{CODE}/join.py",
        "    if request.group_instance_id is not None:\n"
        '        return store.reply(call, join_error(Error.UNKNOWN_SERVER_ERROR, ""))\n',
        "",
        (
            f"{CORE}/test_member_id_required.py::test_a_pending_id_cannot_join_as_a_static_member",
            f"{SCENARIOS}03_member_id_required.py::test_e044_an_id_that_was_given_cannot_come_back_as_a_static_member",
        ),
    ),
    BrokenRule(
        JOIN,
        "a join phase counts parked joins for group.max.size (KAFKA-9885)",
        f"{CODE}/join.py",
        "group.awaiting_join < size_max",
        "len(group.members) < size_max",
        (
            f"{CORE}/test_group_max_size.py::test_the_last_free_place_can_be_taken",
            f"{CORE}/test_group_max_size.py::test_members_of_a_full_group_may_rejoin",
        ),
    ),
    BrokenRule(
        JOIN,
        "a member of a full group may rejoin (KIP-389)",
        f"{CODE}/join.py",
        "return member is not None or len(group.members) < size_max",
        "return len(group.members) < size_max",
        (
            f"{CORE}/test_group_max_size.py::test_members_of_a_full_group_may_rejoin",
            f"{CORE}/test_group_max_size.py::test_kafka_9885_parked_joins_count_and_later_ones_are_rejected",
        ),
    ),
    BrokenRule(
        JOIN,
        "a member over group.max.size is removed from the group that it was in",
        f"{CODE}/join.py",
        "if member_id in group.members or dialect.rejection_removes_pending_id:",
        "if dialect.rejection_removes_pending_id:",
        (
            f"{SCENARIOS}10_group_max_size.py::test_e171_a_group_loaded_with_too_many_members_takes_those_that_come_first",
        ),
    ),
    BrokenRule(
        JOIN,
        "the session timeout has to be in the broker's bounds",
        MEMBERSHIP,
        "in_bounds = minimum <= request.session_timeout_ms <= maximum",
        "in_bounds = minimum <= request.session_timeout_ms",
        (
            f"{CORE}/test_join.py::test_a_session_timeout_out_of_bounds_is_refused_and_changes_nothing",
            f"{CORE}/test_join.py::test_a_session_timeout_out_of_bounds_does_not_create_the_group",
        ),
    ),
    BrokenRule(
        JOIN,
        "of two protocols with one name the first counts",
        f"{CODE}/join.py",
        "names.setdefault(protocol.name, protocol.metadata)",
        "names[protocol.name] = protocol.metadata",
        (f"{CORE}/test_join.py::test_of_two_protocols_with_one_name_the_first_counts",),
    ),
    BrokenRule(
        JOIN,
        "a new member is parked at most five minutes in its first JoinGroup",
        f"{CODE}/group.py",
        "NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000",
        "NEW_MEMBER_JOIN_TIMEOUT_MS = 300_001",
        (f"{CORE}/test_member_id_required.py::test_the_session_of_a_first_time_joiner_is_five_minutes_while_it_waits",),
    ),
    BrokenRule(
        JOIN,
        "an unchanged follower of a stable group rejoins without a rebalance",
        f"{CODE}/join.py",
        "STABLE if unchanged:",
        "STABLE if False:",
        (
            f"{CORE}/test_join.py::test_a_follower_that_rejoins_unchanged_is_answered_at_once_without_a_rebalance",
            f"{CORE}/test_join.py::test_a_follower_that_rejoins_unchanged_does_not_refresh_its_session",
        ),
    ),
    BrokenRule(
        JOIN,
        "the leader of a stable group starts a rebalance when it rejoins",
        f"{CODE}/join.py",
        "case ClassicGroupState.STABLE if member.id == group.leader_id:",
        "case ClassicGroupState.STABLE if False:",
        (
            f"{CORE}/test_join.py::test_kip_800_a_reason_changes_nothing_but_the_facts",
            f"{CORE}/test_join.py::test_the_leader_of_a_stable_group_starts_a_rebalance_when_it_rejoins",
        ),
    ),
    BrokenRule(
        JOIN,
        "SkipAssignment is set for a returning static leader from v9 on (KIP-814)",
        f"{CODE}/join.py",
        "SKIP_ASSIGNMENT_SINCE = 9",
        "SKIP_ASSIGNMENT_SINCE = 8",
        (f"{CORE}/test_static_membership.py::test_a_returning_leader_gets_a_new_id_and_before_v9_the_old_leader_id",),
    ),
    BrokenRule(
        JOIN,
        "an unknown member id starts no group",
        MEMBERSHIP,
        "    if request.member_id:\n        return store.reply",
        "    if False:\n        return store.reply",
        (
            f"{CORE}/test_join.py::test_an_unissued_member_id_is_unknown_and_creates_no_group",
            f"{SCENARIOS}02_join_validation.py::test_e021_an_unknown_id_does_not_make_a_group",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a heartbeat in a join phase is REBALANCE_IN_PROGRESS",
        f"{CODE}/membership.py",
        "        case ClassicGroupState.PREPARING_REBALANCE:\n"
        "            restart_session(store, group, member)\n"
        "            return Error.REBALANCE_IN_PROGRESS",
        "        case ClassicGroupState.PREPARING_REBALANCE:\n"
        "            restart_session(store, group, member)\n"
        "            return NONE",
        (
            f"{CORE}/test_rebalance_timeout.py::test_heartbeats_keep_members_alive_that_have_not_rejoined",
            f"{CORE}/test_sync.py::test_the_session_restarts_with_the_assignment",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a heartbeat in a join phase restarts the session",
        f"{CODE}/membership.py",
        "        case ClassicGroupState.PREPARING_REBALANCE:\n            restart_session(store, group, member)\n",
        "        case ClassicGroupState.PREPARING_REBALANCE:\n",
        (
            f"{CORE}/test_rebalance_timeout.py::test_a_parked_join_needs_no_heartbeats",
            f"{CORE}/test_rebalance_timeout.py::test_heartbeats_keep_members_alive_that_have_not_rejoined",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a heartbeat while the coordinator is loading succeeds",
        MEMBERSHIP,
        "return NONE if status is Error.COORDINATOR_LOAD_IN_PROGRESS else status",
        "return status",
        (
            "tests/broker/test_nodes.py::TestMoving::test_b3_a_loading_coordinator_refuses_requests_and_accepts_heartbeats",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "the first join phase of a group waits for the initial delay (KIP-134)",
        f"{CODE}/rebalance.py",
        "initial = group.state is ClassicGroupState.EMPTY\n",
        "initial = False\n",
        (f"{CORE}/test_initial_delay.py::test_a_delay_with_a_new_member_is_extended_up_to_the_rebalance_timeout",),
    ),
    BrokenRule(
        REBALANCES,
        "a join phase ends when all members have joined",
        f"{CODE}/rebalance.py",
        "if group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_joined:",
        "if False:",
        (
            f"{CORE}/test_rebalance_timeout.py::test_a_late_leader_is_removed_and_replaced",
            f"{CORE}/test_rebalance_timeout.py::test_the_longest_rebalance_timeout_of_all_members_counts",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a pending member id keeps a join phase open",
        f"{CODE}/group.py",
        "self.awaiting_join == len(self.members) and not self.pending_members",
        "self.awaiting_join == len(self.members)",
        (
            f"{CORE}/test_group_max_size.py::test_a_refused_id_is_forgotten_and_the_join_phase_goes_on_until_its_timer",
            f"{CORE}/test_member_id_required.py::test_a_pending_id_delays_the_join_phase_until_it_expires",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a new member extends the initial delay, at most to the rebalance timeout",
        f"{CODE}/rebalance.py",
        "delay = min(store.settings.group_initial_rebalance_delay_ms, timer.remaining_ms)",
        "delay = store.settings.group_initial_rebalance_delay_ms",
        (f"{CORE}/test_initial_delay.py::test_a_delay_with_a_new_member_is_extended_up_to_the_rebalance_timeout",),
    ),
    BrokenRule(
        REBALANCES,
        "the end of a join phase removes dynamic members that did not join, not static ones",
        f"{CODE}/rebalance.py",
        "if member.parked_join is None and not member.is_static]",
        "if member.parked_join is None]",
        (
            f"{CORE}/test_static_membership.py::test_an_absent_static_member_stays_when_the_join_phase_ends",
            f"{CORE}/test_static_membership.py::test_kafka_12890_but_it_is_out_if_it_does_not_sync",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a leader that did not rejoin is replaced by a member that did",
        f"{CODE}/rebalance.py",
        "if leader is None or leader.parked_join is None:",
        "if leader is None:",
        (
            f"{CORE}/test_static_membership.py::test_an_absent_leader_is_succeeded_by_a_member_that_rejoined",
            f"{CORE}/test_static_membership.py::test_the_phase_goes_on_while_all_static_members_are_absent",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "only the leader's JoinGroup response has the members",
        f"{CODE}/rebalance.py",
        "if is_leader else ()",
        "if True else ()",
        (
            f"{CORE}/test_rebalance_timeout.py::test_a_late_leader_is_removed_and_replaced",
            f"{CORE}/test_initial_delay.py::test_a_delay_with_a_new_member_is_extended_up_to_the_rebalance_timeout",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "members without a SyncGroup are removed after the rebalance timeout (KAFKA-12890)",
        f"{CODE}/rebalance.py",
        "    if store.dialect.pending_sync_expires:\n",
        "    if False:\n",
        (
            f"{CORE}/test_sync.py::test_kafka_12890_a_member_that_does_not_sync_in_time_is_removed",
            f"{CORE}/test_sync.py::test_kafka_12890_a_leader_that_does_not_sync_is_out_too",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a parked member does not expire",
        f"{CODE}/rebalance.py",
        "if member is None or member.session_held_by is not None:",
        "if member is None:",
        (
            f"{CORE}/test_rebalance_timeout.py::test_a_parked_join_needs_no_heartbeats",
            f"{CORE}/test_rebalance_timeout.py::test_a_silent_member_that_has_not_rejoined_ends_the_phase_with_its_session",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a new member expires in its first JoinGroup",
        f"{CODE}/group.py",
        "if self.is_new or not self.is_parked:",
        "if not self.is_parked:",
        (f"{CORE}/test_member_id_required.py::test_the_session_of_a_first_time_joiner_is_five_minutes_while_it_waits",),
    ),
    BrokenRule(
        REBALANCES,
        "a rebalance before the assignment fails the parked SyncGroups with REBALANCE_IN_PROGRESS",
        f"{CODE}/rebalance.py",
        "        fail_parked_syncs(store, group, Error.REBALANCE_IN_PROGRESS)\n",
        "        pass\n",
        (
            f"{CORE}/test_sync.py::test_kafka_12890_a_leader_that_does_not_sync_is_out_too",
            f"{CORE}/test_sync.py::test_a_write_completed_after_the_group_moved_on_is_ignored",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "the removed member's parked JoinGroup gets UNKNOWN_MEMBER_ID",
        f"{CODE}/rebalance.py",
        '    store.reply(group.take_join(member), join_error(Error.UNKNOWN_MEMBER_ID, ""))\n    drop_sync',
        "    group.take_join(member)\n    drop_sync",
        (
            f"{CORE}/test_initial_delay.py::test_the_delay_does_not_end_when_all_members_leave",
            f"{CORE}/test_leave.py::test_the_parked_join_of_a_leaving_member_is_answered",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "the join phase lasts at most the longest rebalance timeout",
        f"{CODE}/rebalance.py",
        "group.timers.set(RebalanceTimeout(), group.now + max(group.rebalance_timeout_ms, 1))",
        "group.timers.set(RebalanceTimeout(), group.now + max(group.rebalance_timeout_ms, 1) + 1)",
        (
            f"{CORE}/test_rebalance_timeout.py::test_a_late_leader_is_removed_and_replaced",
            f"{CORE}/test_rebalance_timeout.py::test_the_longest_rebalance_timeout_of_all_members_counts",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a member that the leader omits gets an empty assignment",
        f"{CODE}/sync.py",
        'member.assignment = assignments.get(member.id, b"")',
        "member.assignment = assignments.get(member.id, member.assignment)",
        (f"{CORE}/test_sync.py::test_only_the_leader_assigns",),
    ),
    BrokenRule(
        REBALANCES,
        "an assignment of an earlier generation changes nothing",
        f"{CODE}/sync.py",
        "if group.state is not ClassicGroupState.COMPLETING_REBALANCE or group.generation != generation:",
        "if group.state is not ClassicGroupState.COMPLETING_REBALANCE:",
        (f"{CORE}/test_sync.py::test_a_write_completed_after_the_group_moved_on_is_ignored",),
    ),
    BrokenRule(
        REBALANCES,
        "an assignment that is not written starts a new rebalance",
        f"{CODE}/sync.py",
        "rebalance.prepare_or_complete(store, group, Reason(Cause.STORE_ERROR, reason, leader_id))",
        "pass",
        (
            f"{CORE}/test_transitions.py::test_every_row_of_the_table_occurs",
            f"{GROUP_TESTS}/test_append_failures.py::test_parked_syncs_get_the_error_and_a_rebalance_starts",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "the protocol is the one with most votes",
        f"{CODE}/group.py",
        "return max(order(votes), key=votes.__getitem__)",
        "return next(iter(order(votes)))",
        (f"{SCENARIOS}04_rebalances.py::test_e066_the_protocol_with_the_most_votes_is_selected",),
    ),
    BrokenRule(
        REBALANCES,
        "a protocol that not all members support is no candidate",
        f"{CODE}/group.py",
        "if offers == size}",
        "if offers}",
        (
            f"{CORE}/test_join.py::test_a_protocol_that_one_member_lacks_is_no_candidate",
            f"{CORE}/test_transitions.py::test_every_row_of_the_table_occurs",
        ),
    ),
    BrokenRule(
        REBALANCES,
        "a joiner without a common protocol is refused",
        f"{CODE}/group.py",
        "protocol_type == self.protocol_type and any(",
        "protocol_type == self.protocol_type or any(",
        (f"{CORE}/test_join.py::test_a_joiner_needs_the_protocol_type_and_a_common_protocol",),
    ),
    BrokenRule(
        REBALANCES,
        "a LeaveGroup by instance id removes the member with it",
        f"{CODE}/membership.py",
        "        member_id = current_id\n",
        "        return Error.NONE\n",
        (f"{GROUP_TESTS}/test_append_failures.py::test_the_last_leave_is_answered_after_its_write",),
    ),
    BrokenRule(
        REBALANCES,
        "the leave of a member starts a rebalance",
        f"{CODE}/membership.py",
        "        rebalance.prepare(store, group, why)\n",
        "        pass\n",
        (
            f"{CORE}/test_initial_delay.py::test_members_of_a_later_rebalance_do_not_extend_the_next_delay",
            f"{CORE}/test_initial_delay.py::test_a_group_that_became_empty_has_an_initial_delay_again",
        ),
    ),
)
