"""The hard parts of consumer groups (KIP-848): each rule, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

CODE = "emulator/core/groups/consumer"
GROUPS = "emulator/core/groups"
CORE = "tests/core/groups/consumer"
MIGRATION = "tests/conformance/test_g04_migration.py"
MEMBERS = f"{CORE}/test_migration.py::TestClassicMembers"
PATTERN_TESTS = f"{CORE}/test_patterns.py"
RESOLUTION = f"{PATTERN_TESTS}::TestResolution"
UPGRADED = f"{MIGRATION}::test_g176_an_upgrade_puts_the_members_into_a_new_table"
RECORDED = f"{CORE}/test_recorded_groups.py::test_a_recorded_group_gets_kafkas_answers_and_writes_its_records"

TIES = "Equal assignments"
CLASSIC = "Classic members inside a consumer group"
HANDSHAKE = "The revocation handshake"
PATTERNS = "Patterns"
RELEASES = "What releases do differently"

CONSUMER_GROUP_RULES = (
    BrokenRule(
        TIES,
        "buckets follow Java's spread of the hash",
        "emulator/core/java/hash_tables.py",
        "(code ^ code >> 16) & (self._buckets - 1)",
        "code & (self._buckets - 1)",
        (RECORDED,),
    ),
    BrokenRule(
        TIES,
        "an extra partition is left to the member that has it",
        f"{CODE}/uniform.py",
        "if extra_stays and has_extra",
        "if False and has_extra",
        (RECORDED,),
    ),
    BrokenRule(
        TIES,
        "mixed subscriptions are balanced from the highest listed partition down",
        f"{CODE}/uniform_mixed.py",
        "partition, least = owned[most].pop(), levels.next_least()",
        "partition, least = owned[most].pop(0), levels.next_least()",
        (
            RECORDED,
            f"{CORE}/test_consumer_heartbeat.py::TestAssignors::test_g099_uniform_takes_the_last_partitions_of_the_most_loaded",
        ),
    ),
    BrokenRule(
        TIES,
        "in 3.9 a partition moves once",
        f"{CODE}/uniform_3_9.py",
        "partitions = [each for each in partitions if each not in gone]",
        "pass",
        (RECORDED,),
    ),
    BrokenRule(
        TIES,
        "a slot of the members' table iterates from its last key to its first",
        "emulator/core/java/hash_tables.py",
        "list(reversed(self._keys))",
        "list(self._keys)",
        (UPGRADED,),
    ),
    BrokenRule(
        TIES,
        "an upgrade puts the members into a new table",
        f"{GROUPS}/modern/changes.py",
        "group.put_in_order(group.record_types.changed_members(born))",
        "pass",
        (UPGRADED,),
    ),
    BrokenRule(
        CLASSIC,
        "a member below the epoch of the target is told to rejoin",
        f"{GROUPS}/conversion/classic_members.py",
        "        member.epoch < _awaited_epoch(store, group)\n        or",
        "        False\n        or",
        (f"{MEMBERS}::test_a_member_that_is_told_to_rejoin_has_its_rebalance_timeout",),
    ),
    BrokenRule(
        CLASSIC,
        "a member that has to give partitions up is told to rejoin",
        f"{GROUPS}/conversion/classic_members.py",
        "or member.state is MemberState.UNREVOKED_PARTITIONS\n",
        "or False\n",
        (f"{MEMBERS}::test_one_that_gives_partitions_up_at_the_epoch_of_the_target_is_told_to_rejoin",),
    ),
    BrokenRule(
        CLASSIC,
        "a member whose partitions are free now is told to rejoin",
        f"{GROUPS}/conversion/classic_members.py",
        "(member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member))",
        "False",
        (f"{CORE}/test_migration.py::test_a_scene_of_migration_is_played_as_on_a_broker",),
    ),
    BrokenRule(
        CLASSIC,
        "a JoinGroup is followed by a SyncGroup within the rebalance timeout",
        f"{GROUPS}/conversion/classic_members.py",
        "group.timers.set(ClassicSyncTimeout(member_id), group.now + request.rebalance_timeout_ms)",
        "pass",
        (f"{MEMBERS}::test_g126_a_join_has_to_be_followed_by_a_sync",),
    ),
    BrokenRule(
        CLASSIC,
        "a member that is told to rejoin has its rebalance timeout for it",
        f"{GROUPS}/conversion/classic_members.py",
        "group.timers.set(key, group.now + member.rebalance_timeout_ms)",
        "pass",
        (f"{MEMBERS}::test_a_member_that_is_told_to_rejoin_has_its_rebalance_timeout",),
    ),
    BrokenRule(
        CLASSIC,
        "the conversion is in one batch with the join that causes it",
        f"{GROUPS}/conversion/upgrade.py",
        "group.origin = classic, (group_tombstone(classic), *records)",
        "group.origin = classic, ()",
        (f"{CORE}/test_migration.py::TestUpgrade::test_g131_the_conversion_is_written_with_the_join",),
    ),
    BrokenRule(
        CLASSIC,
        "a group with a partition of two members is not upgraded",
        f"{GROUPS}/conversion/upgrade.py",
        "if held & given:",
        "if False:",
        (f"{MIGRATION}::test_g184_a_group_with_a_partition_of_two_members_is_not_upgraded",),
    ),
    BrokenRule(
        CLASSIC,
        "a successor keeps what its predecessor was to give up",
        f"{GROUPS}/modern/membership.py",
        "return replace(owner, id=member_id, epoch=0, previous_epoch=0, heard=Heard())",
        "return replace(owner, id=member_id, epoch=0, previous_epoch=0, heard=Heard(), pending={})",
        (f"{CORE}/test_migration.py::TestUpgrade::test_a_successor_keeps_what_its_classic_predecessor_was_to_give_up",),
    ),
    BrokenRule(
        CLASSIC,
        "a downgrade is one batch",
        f"{GROUPS}/conversion/downgrade.py",
        "    records += [\n        *currents,\n        *of_targets,",
        "    records += [",
        (f"{CORE}/test_migration.py::test_g129_a_downgrade_is_one_batch",),
    ),
    BrokenRule(
        HANDSHAKE,
        "a member that must revoke keeps its epoch",
        f"{CODE}/reconciliation.py",
        "member.epoch if epoch is None else epoch, keep, revoke)",
        "now.target_epoch, keep, revoke)",
        (
            f"{CORE}/test_reconciliation.py::test_a_member_that_must_revoke_keeps_its_epoch",
            f"{MIGRATION}::test_g119_a_classic_member_gives_its_half_up_in_two_rounds",
        ),
    ),
    BrokenRule(
        HANDSHAKE,
        "a changed subscription adds to what is pending",
        f"{CODE}/reconciliation.py",
        "pending: Partitions = {topic: dict(at) for topic, at in member.pending.items()}",
        "pending: Partitions = {}",
        (
            f"{CORE}/test_consumer_heartbeat.py::TestRevocation::test_g158_a_changed_subscription_adds_to_what_is_pending",
        ),
    ),
    BrokenRule(
        HANDSHAKE,
        "a partition keeps the epoch at which it was given",
        f"{CODE}/reconciliation.py",
        "kept | dict.fromkeys(free, now.target_epoch)",
        "dict.fromkeys([*kept, *free], now.target_epoch)",
        (
            f"{CORE}/test_reconciliation.py::test_partitions_that_others_hold_are_awaited",
            f"{CORE}/test_membership.py::TestOffsetsAndAdmin::test_g081_kip_1251_an_older_epoch_commits_what_it_was_given",
        ),
    ),
    BrokenRule(
        HANDSHAKE,
        "the previous epoch passes if the member owns nothing beyond its assignment",
        f"{CODE}/membership.py",
        "if epoch == member.previous_epoch and",
        "if False and",
        (
            f"{CORE}/test_consumer_heartbeat.py::TestRevocation::test_the_previous_epoch_passes_with_a_subset_of_the_assignment",
        ),
    ),
    BrokenRule(
        HANDSHAKE,
        "an older epoch commits the partitions that it was given",
        f"{CODE}/offsets.py",
        "and all(_got_at(member, *at) <= epoch for at in partitions)",
        "",
        (
            f"{CORE}/test_membership.py::TestOffsetsAndAdmin::test_g081_kip_1251_an_older_epoch_commits_what_it_was_given",
        ),
    ),
    BrokenRule(
        PATTERNS,
        "patterns are resolved at most once in ten seconds",
        f"{CODE}/patterns.py",
        "return age_ms > REFRESH_MIN_INTERVAL_MS and is_outdated",
        "return is_outdated",
        (
            f"{RESOLUTION}::test_g074_a_new_topic_is_seen_when_the_last_resolution_is_ten_seconds_old",
            f"{RESOLUTION}::test_a_second_pattern_within_ten_seconds_waits",
            f"{RESOLUTION}::test_a_pattern_that_replaces_one_just_resolved_waits_for_the_next_heartbeat",
        ),
    ),
    BrokenRule(
        PATTERNS,
        "the whole name has to match",
        f"{CODE}/patterns.py",
        "expression.fullmatch(name)",
        "expression.match(name)",
        (f"{RESOLUTION}::test_g072_the_whole_name_has_to_match",),
    ),
    BrokenRule(
        PATTERNS,
        "errors have RE2/J's descriptions",
        "emulator/core/expressions.py",
        "DESCRIPTIONS.get(description, description)",
        "description",
        (f"{PATTERN_TESTS}::test_an_invalid_pattern_is_refused_with_re2j_s_description",),
    ),
    BrokenRule(
        RELEASES,
        "the first epoch of a group is 1 in 4.3, and 0 before",
        "emulator/core/groups/modern/group.py",
        "self.first_epoch(dialect), dialect.first_group_epoch",
        "1, 1",
        (RECORDED,),
    ),
    BrokenRule(
        RELEASES,
        "before 4.3 an older epoch commits nothing",
        f"{CODE}/progress.py",
        "with_epochs=store.dialect.partitions_have_epochs",
        "with_epochs=True",
        (f"{CORE}/test_membership.py::TestOffsetsAndAdmin::test_g081_before_4_3_an_older_epoch_commits_nothing",),
    ),
    BrokenRule(
        RELEASES,
        "3.9 migrates no group by default",
        f"{GROUPS}/conversion/policy.py",
        "DISABLED if store.dialect.consumer_groups_are_a_preview else BIDIRECTIONAL",
        "BIDIRECTIONAL",
        (f"{CORE}/test_migration.py::TestUpgrade::test_3_9_migrates_no_group_by_default",),
    ),
    BrokenRule(
        RELEASES,
        "4.3 computes a target at most once in the assignment interval",
        f"{CODE}/progress.py",
        "and not is_too_early(store, group):",
        ":",
        (
            f"{CORE}/test_consumer_heartbeat.py::TestAssignmentInterval::test_g045_a_join_within_the_interval_is_taken_to_the_old_target",
        ),
    ),
    BrokenRule(
        RELEASES,
        "since 4.4 a changed preference for an assignor raises the epoch",
        f"{CODE}/progress.py",
        "update.is_heartbeat and store.dialect.preference_raises_epoch and",
        "update.is_heartbeat and",
        ("tests/conformance/test_g02_members.py::test_g180_since_4_4_a_changed_preference_raises_the_epoch",),
    ),
    BrokenRule(
        RELEASES,
        "since 4.4 the last members leave a target of their epoch",
        f"{GROUPS}/modern/membership.py",
        "store.dialect.emptied_group_gets_target and",
        "False and",
        (
            "tests/conformance/test_g02_members.py::test_g182_since_4_4_the_first_target_after_an_empty_group_is_not_late",
        ),
    ),
    BrokenRule(
        RELEASES,
        "since 4.4 the target of a successor is written if it changes",
        f"{CODE}/progress.py",
        "written = previous if alone else group.targets",
        "written = group.targets",
        ("tests/conformance/test_g05_records.py::test_g183_since_4_4_a_successor_keeps_the_record_of_its_target",),
    ),
)
"""The tests of patterns need google-re2."""
