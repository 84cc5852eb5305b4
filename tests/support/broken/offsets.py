"""Committed offsets and their expiry: each rule, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

GROUPS = "emulator/core/groups"
OFFSET_TESTS = "tests/core/groups/test_offsets.py"
EXPIRY_TESTS = "tests/core/groups/test_offset_expiry.py"
TRANSACTIONAL = "tests/core/groups/test_transactional_offsets.py"
SCENARIOS = "tests/conformance/test_e"

COMMITTED = "Offsets"

OFFSET_RULES = (
    BrokenRule(
        COMMITTED,
        "offset metadata over offset.metadata.max.bytes is refused, the others are committed",
        f"{GROUPS}/offsets.py",
        "utf16_length(metadata) > metadata_max",
        "utf16_length(metadata) > metadata_max + 1",
        (
            f"{OFFSET_TESTS}::test_metadata_is_measured_in_utf_16_units",
            f"{OFFSET_TESTS}::test_a_partition_with_too_much_metadata_does_not_affect_others",
        ),
    ),
    BrokenRule(
        COMMITTED,
        "the length of metadata is that of UTF-16",
        f"{GROUPS}/offsets.py",
        'len(text.encode("utf-16-le")) // 2',
        "len(text)",
        (
            f"{OFFSET_TESTS}::test_metadata_is_measured_in_utf_16_units",
            f"{SCENARIOS}11_offsets.py::test_e183_metadata_is_measured_in_utf_16_units",
        ),
    ),
    BrokenRule(
        COMMITTED,
        "a topic that the group subscribes to keeps its offsets in OffsetDelete (KIP-496)",
        f"{GROUPS}/offset_expiry.py",
        "return Error.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(topic) else Error.NONE",
        "return Error.NONE",
        (
            f"{EXPIRY_TESTS}::test_only_unsubscribed_offsets_can_be_deleted",
            f"{EXPIRY_TESTS}::test_subscriptions_are_those_of_all_members_of_the_last_generation_formed",
        ),
    ),
    BrokenRule(
        COMMITTED,
        "offsets of an Empty group expire from the time it became Empty (KIP-211)",
        f"{GROUPS}/classic/group.py",
        "            return self.state_changed_at\n",
        "            return committed.commit_timestamp\n",
        (f"{EXPIRY_TESTS}::test_the_offsets_of_an_empty_group_expire_after_the_retention",),
    ),
    BrokenRule(
        COMMITTED,
        "offsets in an unfinished transaction do not expire",
        f"{GROUPS}/offset_expiry.py",
        "if deadline <= group.now and tp not in unstable}",
        "if deadline <= group.now}",
        (
            f"{EXPIRY_TESTS}::test_a_commit_in_flight_keeps_offset_and_group",
            f"{TRANSACTIONAL}::test_pending_offsets_keep_a_group_and_its_offsets_from_expiring",
        ),
    ),
    BrokenRule(
        COMMITTED,
        "a commit restarts the session of its member",
        f"{GROUPS}/classic/offsets.py",
        "    restart_session(store, group, member)\n",
        "",
        (f"{OFFSET_TESTS}::test_a_members_commit_restarts_its_session",),
    ),
    BrokenRule(
        COMMITTED,
        "a deleted topic takes its offsets with it",
        f"{GROUPS}/offset_expiry.py",
        "        if group is not None:\n            unstable",
        "        if False:\n            unstable",
        (f"{EXPIRY_TESTS}::test_deleting_a_topic_deletes_its_offsets_in_every_group",),
    ),
)
