"""Checks of clients, zombies and rebalances: each rule, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

CODE, READER = "emulator/verify", "facade/trace"
MEMBERS = "tests/verify/test_member_checks.py"
REBALANCES = "tests/verify/test_rebalance_checks.py"
CASES = "tests/verify/test_single_cases.py"
ZOMBIES = "tests/verify/test_zombies.py"
STORIES = "tests/verify/test_rebalances.py"
READING = "tests/trace/test_reader.py"
SHARES = "tests/verify/test_share_checks.py"

VERDICTS = "Verdicts"

VERDICT_RULES = (
    BrokenRule(
        VERDICTS,
        "a commit of a removed member is a zombie's",
        f"{CODE}/zombies.py",
        "        if commit.member_id in self._removed:",
        "        if False:",
        (f"{ZOMBIES}::test_a_former_member",),
    ),
    BrokenRule(
        VERDICTS,
        "a commit of an old generation is a zombie's",
        f"{CODE}/zombies.py",
        "        if behind and not is_consumer:",
        "        if False:",
        (f"{ZOMBIES}::test_an_old_generation",),
    ),
    BrokenRule(
        VERDICTS,
        "a commit of another member's partition is a zombie's",
        f"{CODE}/zombies.py",
        "        if not foreign:",
        "        if True:",
        (
            f"{ZOMBIES}::test_a_partition_owned_by_another_member",
            f"{REBALANCES}::test_c06_a_partition_that_two_use",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "in a consumer group a commit of an earlier epoch is a zombie's if another member holds the partition",
        f"{CODE}/zombies.py",
        "for at, step in self._holders.items()}",
        "for at, step in ()}",
        (
            f"{ZOMBIES}::test_in_a_consumer_group_a_partition_held_by_another_member",
            f"{ZOMBIES}::test_in_a_consumer_group_an_old_epoch_for_a_partition_that_went_to_another_member",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "a commit without a generation is nobody's zombie",
        f"{CODE}/zombies.py",
        "commit.generation is not None and commit.generation >= 0",
        "commit.generation is not None",
        (f"{ZOMBIES}::test_commits_of_members_in_good_standing_are_none",),
    ),
    BrokenRule(
        VERDICTS,
        "C01 finds an id that is used late",
        f"{CODE}/join_checks.py",
        "elif use is not None and client_ms(trace, join, use.request) <= session_ms:",
        "elif use is not None:",
        (f"{MEMBERS}::test_c01_an_id_that_is_not_used_in_time",),
    ),
    BrokenRule(
        VERDICTS,
        "C01 finds a second join without the id",
        f"{CODE}/join_checks.py",
        "    if second is not None:",
        "    if False:",
        (f"{MEMBERS}::test_c01_an_id_that_is_replaced_by_another",),
    ),
    BrokenRule(
        VERDICTS,
        "C02 finds a retry without a lookup",
        f"{CODE}/lookup_checks.py",
        "        elif retry is not None:",
        "        elif False:",
        (
            f"{MEMBERS}::test_c02_a_retry_without_a_lookup",
            f"{MEMBERS}::test_c02_a_lookup_by_another_client_does_not_count",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "C02 and C09 find loops",
        f"{CODE}/lookup_checks.py",
        "return len(recent) == LOOP_REQUESTS and",
        "return False and",
        (
            f"{MEMBERS}::test_c02_an_endless_ping_pong",
            f"{MEMBERS}::test_c09_a_tight_loop",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "C03 finds commits of an old generation",
        f"{CODE}/commit_checks.py",
        "        if newer:",
        "        if False:",
        (
            f"{MEMBERS}::test_c03_a_zombie_commit",
            "tests/verify/test_client_checks_in_each_version.py::test_a_check_fails_in_each_version",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "C04 finds late heartbeats",
        f"{CODE}/member_checks.py",
        "if elapsed_ms - lagged_ms < self._limit_ms:",
        "if True:",
        (
            f"{MEMBERS}::test_c04_a_gap_between_heartbeats",
            f"{MEMBERS}::test_c04_a_member_that_goes_silent",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "C04 does not count the time that a hold blocked the connection",
        f"{CODE}/member_checks.py",
        "            elapsed_ms -= self._trace.blocked_ms(self._connection, start, line)\n",
        "            pass\n",
        (f"{MEMBERS}::test_c04_heartbeats_behind_a_held_request_are_not_late",),
    ),
    BrokenRule(
        VERDICTS,
        "C04 finds storms",
        f"{CODE}/member_checks.py",
        "if len(recent) > STORM_HEARTBEATS:",
        "if False:",
        (f"{MEMBERS}::test_c04_a_storm_of_heartbeats",),
    ),
    BrokenRule(
        VERDICTS,
        "C05 finds a static member that leaves",
        f"{CODE}/member_checks.py",
        "            if is_static and leave.generation != STATIC_LEAVING_EPOCH:",
        "            if False:",
        (
            f"{MEMBERS}::test_c05_a_static_member_that_leaves",
            f"{CASES}::test_c05_a_static_member_that_left_for_a_while_first",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "C05 is unclear about a dynamic member that closed",
        f"{CODE}/member_checks.py",
        "        elif member_id not in left:",
        "        elif False:",
        (
            f"{MEMBERS}::test_c05_a_dynamic_member_that_vanishes_was_killed_or_does_not_leave",
            f"{CASES}::test_c05_a_member_that_left_once_and_vanished_later",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "C06 finds an owned partition given to another member",
        f"{CODE}/ownership_checks.py",
        "        if losers:",
        "        if False:",
        (
            f"{REBALANCES}::test_c06_a_partition_assigned_before_its_revocation",
            "tests/verify/test_client_checks_in_each_version.py::test_a_check_fails_in_each_version",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "C07 finds a partition given twice",
        f"{CODE}/ownership_checks.py",
        "if len(labels) > 1}",
        "if len(labels) > 9}",
        (
            f"{REBALANCES}::test_c07_a_partition_given_to_two",
            f"{CASES}::test_a_deleted_group_counts_its_generations_again",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "C07 waits for the follow-up rebalance of KIP-429",
        f"{CODE}/ownership_checks.py",
        "if errors and _follow_up_is_due(trace, members):",
        "if False:",
        (f"{REBALANCES}::test_c07_a_cooperative_group_before_its_second_round",),
    ),
    BrokenRule(
        VERDICTS,
        "C08 finds a member that rejoins late",
        f"{CODE}/join_checks.py",
        "if client_ms(trace, signal, exchange.request) > timeout_ms:",
        "if False:",
        (f"{REBALANCES}::test_c08_a_member_that_does_not_rejoin_in_time",),
    ),
    BrokenRule(
        VERDICTS,
        "C10 finds partitions revoked without a commit",
        f"{CODE}/commit_checks.py",
        "(observations.add_failure if auto_commit else observations.add_unclear)(text, revoke)",
        "pass",
        (f"{REBALANCES}::test_c10_no_commit_before_the_revoke",),
    ),
    BrokenRule(
        VERDICTS,
        "a rebalance that another overtakes is superseded",
        f"{READER}/rebalances.py",
        'self._end(line, "superseded")',
        'self._end(line, "open")',
        (f"{STORIES}::test_one_that_another_supersedes",),
    ),
    BrokenRule(
        VERDICTS,
        "the straggler is the last member to join",
        f"{READER}/rebalances.py",
        "    last = last_joins[-1]\n",
        "    last = last_joins[0]\n",
        (f"{STORIES}::test_one_that_completes",),
    ),
    BrokenRule(
        VERDICTS,
        "a rebalance waits for a JoinGroup response that is held back",
        f"{READER}/rebalances.py",
        "                return\n",
        "                pass\n",
        (f"{READING}::test_a_rebalance_waits_for_a_response_that_a_test_holds_back",),
    ),
    BrokenRule(
        VERDICTS,
        "the reader of traces forgets what is settled",
        f"{READER}/rebalances.py",
        "            self._forget(lines)\n",
        "",
        (f"{READING}::test_the_reader_keeps_only_what_is_open",),
    ),
    BrokenRule(
        VERDICTS,
        "C13 finds a refused commit after which the member never joins",
        f"{CODE}/join_checks.py",
        "        observations.add_failure(text, commit)\n",
        "        pass\n",
        (f"{CASES}::test_c13_a_member_that_never_joins_after_a_refused_commit",),
    ),
    BrokenRule(
        VERDICTS,
        "C14 finds a leader without SyncGroup",
        f"{CODE}/join_checks.py",
        '        observations.add_failure(f"{text}; it has sent no SyncGroup{trace.software(member_id)}", join)\n',
        "        pass\n",
        (
            f"{CASES}::test_c14_a_leader_without_a_sync_group",
            f"{CASES}::test_c14_a_later_generation_does_not_excuse_the_leader_of_an_earlier_one",
        ),
    ),
    BrokenRule(
        VERDICTS,
        "S13 finds a record with two holders",
        f"{CODE}/share_checks.py",
        "        if record is not None and record.holder:\n",
        "        if False:\n",
        (f"{SHARES}::test_a_wrong_coordinator_fails_one_check",),
    ),
    BrokenRule(
        VERDICTS,
        "S14 finds a delivery that is not counted",
        f"{CODE}/share_checks.py",
        "(record is not None and count != before + 1)",
        "False",
        (f"{SHARES}::test_a_wrong_coordinator_fails_one_check",),
    ),
    BrokenRule(
        VERDICTS,
        "S15 finds a finished record that is delivered",
        f"{CODE}/share_checks.py",
        'record is not None and record.left == "finished" and record.line is not None',
        "False",
        (f"{SHARES}::test_a_wrong_coordinator_fails_one_check",),
    ),
    BrokenRule(
        VERDICTS,
        "S16 finds an acknowledgement by another member than the holder",
        f"{CODE}/share_checks.py",
        "        if record.holder and record.holder != name:\n",
        "        if False:\n",
        (f"{SHARES}::test_a_wrong_coordinator_fails_one_check",),
    ),
)
