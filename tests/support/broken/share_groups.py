"""Share groups: each rule, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

GROUPS = "emulator/core/groups/share"
STATE = "emulator/core/share_state"
DATA = "emulator/core/data/share"

HEARTBEATS = "tests/core/groups/share/test_share_heartbeat.py"
EPOCHS = f"{HEARTBEATS}::TestShareEpochs"
COORDINATOR = "tests/core/share_state/test_share_coordinator.py"
BATCHES = "tests/core/share_state/test_batches.py"
PARTITIONS = "tests/core/data/share/test_partition.py"
FETCHES = "tests/core/data/share/test_share_fetch.py"
SESSIONS = "tests/core/data/share/test_share_sessions.py"
LEVERS = "tests/control/test_shares.py"
LETTERS = "tests/core/data/share/test_dead_letters.py"

MEMBERS = "Members of share groups"
STORED = "Stored state of share partitions"
RECORDS = "Records of share groups"

SHARE_GROUP_RULES = (
    BrokenRule(
        MEMBERS,
        "the epoch rises once the share coordinator has initialized partitions",
        f"{GROUPS}/epochs.py",
        "changed = after.names != before.names or _has_pending_partitions(store, group)",
        "changed = after.names != before.names",
        (
            f"{EPOCHS}::test_h017_partitions_are_initialized_before_they_are_assigned",
            f"{EPOCHS}::test_h026_new_partitions_take_two_epochs",
        ),
    ),
    BrokenRule(
        MEMBERS,
        "only initialized partitions are assigned",
        f"{GROUPS}/epochs.py",
        "initialized = {topic: partitions for topic, (_, partitions) in group.state_partitions.initialized.items()}",
        "initialized = {each.topic_id: range(len(each.logs)) for each in store.cluster.topics.values()}",
        (
            f"{EPOCHS}::test_h017_partitions_are_initialized_before_they_are_assigned",
            f"{EPOCHS}::test_h026_new_partitions_take_two_epochs",
        ),
    ),
    BrokenRule(
        MEMBERS,
        "a member may repeat its previous epoch",
        f"{GROUPS}/heartbeat.py",
        " or (epoch < member.epoch and epoch == member.previous_epoch)",
        "",
        (f"{HEARTBEATS}::TestShapeOfShares::test_h009_a_member_may_repeat_its_previous_epoch_and_no_other",),
    ),
    BrokenRule(
        MEMBERS,
        "a smaller epoch is fenced with a text that names the previous one",
        f"{GROUPS}/heartbeat.py",
        'f", and it does not match the previous member epoch ({member.previous_epoch})"',
        '""',
        (f"{HEARTBEATS}::TestShapeOfShares::test_h009_a_member_may_repeat_its_previous_epoch_and_no_other",),
    ),
    BrokenRule(
        MEMBERS,
        "the size of the group is checked before its members",
        f"{GROUPS}/heartbeat.py",
        "if member is None and len(group.members) >= limit:",
        "if member is None and request.member_epoch == JOINING_EPOCH and len(group.members) >= limit:",
        (f"{HEARTBEATS}::TestShapeOfShares::test_h015_a_full_group_refuses_whoever_is_not_in_it",),
    ),
    BrokenRule(
        MEMBERS,
        "leaving computes no target",
        "emulator/core/groups/modern/membership.py",
        "    if store.dialect.emptied_group_gets_target and len(member_ids) == len(group.members):\n",
        "    if True:\n",
        (
            f"{EPOCHS}::test_h020_leaving_raises_the_epoch_and_the_next_heartbeat_computes_the_target",
            f"{EPOCHS}::test_h024_an_empty_group_keeps_its_epochs_and_its_state",
        ),
    ),
    BrokenRule(
        STORED,
        "a write with a lower state epoch is fenced",
        f"{STATE}/coordinator.py",
        "        if row.state_epoch != NO_EPOCH and row.state_epoch < state.state_epoch:\n"
        "            raise self._fenced()\n",
        "",
        (f"{COORDINATOR}::test_h107_a_lower_state_epoch_is_fenced",),
    ),
    BrokenRule(
        STORED,
        "a write with a lower leader epoch is fenced",
        f"{STATE}/coordinator.py",
        "        if row.leader_epoch != NO_EPOCH and row.leader_epoch < state.leader_epoch:\n"
        "            raise _RefusedRow(Error.FENCED_LEADER_EPOCH)\n",
        "",
        (f"{COORDINATOR}::test_h108_a_read_notes_the_leader_epoch_and_a_write_does_not",),
    ),
    BrokenRule(
        STORED,
        "where batches overlap, the one with more deliveries counts",
        f"{STATE}/batches.py",
        "if left.rank > right.rank else",
        "if left.rank < right.rank else",
        (
            f"{BATCHES}::test_m3_the_batch_with_more_deliveries_or_the_higher_state_counts",
            f"{BATCHES}::test_every_offset_has_the_state_of_the_batch_that_counts_most",
        ),
    ),
    BrokenRule(
        STORED,
        "after the set number of updates comes a snapshot",
        f"{STATE}/coordinator.py",
        "state.updates < self.store",
        "state.updates <= self.store",
        (f"{COORDINATOR}::test_h096_every_third_record_is_a_snapshot_after_two_updates",),
    ),
    BrokenRule(
        STORED,
        "the stored start offset is one write behind",
        f"{DATA}/partition.py",
        "write.start, write.complete_count = self.start, self.complete_count",
        "write.start, write.complete_count = self.start + self.complete_count, self.complete_count",
        (
            f"{PARTITIONS}::test_kip_932_the_stored_start_offset_is_one_write_behind",
            f"{FETCHES}::test_kip_932_acknowledgements_are_stored_with_the_start_offset_before_them",
        ),
    ),
    BrokenRule(
        RECORDS,
        "only the holder of a record acknowledges it",
        f"{DATA}/partition.py",
        "            if each.member_id != member_id:\n                raise RefusedError(OTHER_OFFSET_OWNER)\n",
        "",
        (f"{PARTITIONS}::test_kip_932_a_record_is_acknowledged_once_and_by_its_holder",),
    ),
    BrokenRule(
        RECORDS,
        "acknowledgements of a partition are carried out all or not at all",
        f"{DATA}/partition.py",
        "            self._take_back(write)\n            raise\n",
        "            raise\n",
        (f"{PARTITIONS}::test_kip_932_acknowledgements_of_what_is_not_in_flight_are_refused_and_nothing_is_changed",),
    ),
    BrokenRule(
        RECORDS,
        "a record that is released at the limit of deliveries is archived",
        f"{DATA}/batches.py",
        "self.count >= limit",
        "self.count > limit",
        (f"{PARTITIONS}::test_kip_932_released_records_keep_their_count_and_the_last_delivery_is_archived",),
    ),
    BrokenRule(
        RECORDS,
        "a release by acknowledgement does not end the wait of a fetch",
        f"{DATA}/led_partitions.py",
        "if moved and (write.changes or not write.holders):",
        "if write.changes or not write.holders:",
        (f"{FETCHES}::test_kip_932_a_release_by_acknowledgement_ends_no_wait",),
    ),
    BrokenRule(
        RECORDS,
        "a request uses the epoch of its share session up",
        f"{DATA}/sessions.py",
        "        session.epoch = next_epoch(epoch)\n",
        "",
        (
            f"{SESSIONS}::test_kip_932_epochs_are_consecutive_and_never_repeated",
            f"{SESSIONS}::test_kip_932_both_requests_count_in_one_sequence",
        ),
    ),
    BrokenRule(
        RECORDS,
        "the end of a share session releases no records of forgotten partitions",
        f"{DATA}/share_fetches.py",
        "for key in session.partitions:",
        "for key in [each[1:] for each in self.partitions.led if each[0] == session.key[0]]:",
        (f"{SESSIONS}::test_kip_932_records_of_forgotten_partitions_are_not_released",),
    ),
    BrokenRule(
        RECORDS,
        "locks of records end by the clock of their group",
        f"{DATA}/led_partitions.py",
        "due = None if deadline is None else self._cluster.clocks.of(led.group_id, now).due_at(deadline, now)",
        "due = deadline",
        (f"{LEVERS}::test_a_lock_ends_by_the_clock_of_its_group",),
    ),
    BrokenRule(
        RECORDS,
        "a rejected record is archived after its dead letter is written",
        f"{DATA}/partition.py",
        "limits.given_up if kind == REJECT else STATES[kind]",
        "STATES[kind]",
        (f"{LETTERS}::test_kip_1191_a_rejected_record_is_archiving_until_its_dead_letter_is_written",),
    ),
    BrokenRule(
        RECORDS,
        "a dead letter is written after the state of its record",
        f"{DATA}/led_partitions.py",
        "        if refusal is None or not write.changes:\n",
        "        if True:\n",
        (f"{LETTERS}::test_kip_1191_a_refused_acknowledgement_writes_no_dead_letter",),
    ),
    BrokenRule(
        RECORDS,
        "a topic takes dead letters only if its config says so",
        f"{DATA}/dead_letters.py",
        'topic.config(ENABLE).strip().lower() != "true"',
        "False",
        (f"{LETTERS}::test_kip_1191_records_without_a_fit_topic_are_archived",),
    ),
)
