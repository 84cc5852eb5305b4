"""The hard parts of transactions: each rule, a change of the code that breaks it, and the tests that fail then."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TRANSACTIONS = "emulator/core/transactions"
DATA = "emulator/core/data"
GROUPS = "emulator/core/groups"

CORE = "tests/core/transactions"
LOG = "tests/core/data/test_transactions_in_the_log.py"
OFFSETS = "tests/core/groups/test_transactional_offsets.py"
HANDLES = "tests/handles/test_transaction_handles.py"
VERIFICATION = "tests/broker/test_transaction_verification.py"
SCENARIOS = "tests/conformance/test_t"

WINDOW = "Between the answer to EndTxn and the markers"
PROTOCOLS = "Old and new protocol on one transactional id"
PRODUCERS = "Producers of a partition"
ORDER = "The order of the checks"
PENDING = "Pending offsets"
RELEASES = "What releases do differently"


@dataclass(frozen=True)
class BrokenRule:
    """A rule; `text` of the file at `path`, which occurs once, is replaced to break it; `tests` are pytest's names."""

    part: str
    rule: str
    path: str
    text: str
    instead: str
    tests: tuple[str, ...]

    @property
    def test_names(self) -> list[str]:
        """The names of the test functions."""
        return [each.rpartition("::")[2].partition("[")[0] for each in self.tests]


RULES = (
    BrokenRule(
        WINDOW,
        "the coordinator answers 51 until all markers are written",
        f"{TRANSACTIONS}/transaction.py",
        "self.change is not None or self.data.status.is_prepared or self.is_stuck",
        "self.change is not None",
        (
            f"{CORE}/test_ending.py::test_version_5_is_busy_until_the_markers_are_written",
            f"{SCENARIOS}05_features.py::test_t041_a_repeat_waits_for_the_markers",
            f"{SCENARIOS}02_producers.py::test_t087_a_marker_refused_for_good_leaves_the_transaction_prepared",
        ),
    ),
    BrokenRule(
        WINDOW,
        "a transaction is complete when its last marker is written, not before",
        f"{TRANSACTIONS}/markers.py",
        "    transaction.unmarked = set(transaction.data.partitions)\n",
        "    transaction.unmarked = set()\n    complete(store, transaction)\n",
        (
            f"{CORE}/test_ending.py::test_a_lost_marker_is_sent_again_until_it_is_written",
            f"{HANDLES}::test_a_hold_on_markers_keeps_a_transaction_prepared",
            f"{SCENARIOS}05_features.py::test_t126_a_transaction_waits_for_the_leader_that_is_down",
        ),
    ),
    BrokenRule(
        WINDOW,
        "a marker without a response is sent again",
        f"{TRANSACTIONS}/markers.py",
        "    if transaction.unmarked & sent.partitions:\n",
        "    if False:\n",
        (f"{CORE}/test_ending.py::test_a_lost_marker_is_sent_again_until_it_is_written",),
    ),
    BrokenRule(
        WINDOW,
        "the last stable offset waits for the marker of its partition",
        f"{DATA}/producers.py",
        "        first = next(iter(self._open.values()), end)\n",
        "        first = end\n",
        (
            f"{LOG}::test_the_last_stable_offset_is_that_of_the_first_open_transaction",
            f"{SCENARIOS}01_transactions.py::test_t074_the_last_stable_offset_is_that_of_the_open_transaction",
        ),
    ),
    BrokenRule(
        WINDOW,
        "offsets are unstable until their marker is written",
        f"{GROUPS}/group_store.py",
        "union(group.table.refused, *group.table.pending.values())",
        "union(group.table.refused)",
        (
            f"{OFFSETS}::test_a_pending_offset_is_invisible_until_its_transaction_commits",
            f"{SCENARIOS}01_transactions.py::test_t099_a_pending_offset_is_unstable_until_the_end",
        ),
    ),
    BrokenRule(
        WINDOW,
        "a leader tries the first batch of the next transaction again for 100 ms",
        f"{DATA}/transactional_produce.py",
        "RETRY_MS, RETRIES_MAX = 20, 5",
        "RETRY_MS, RETRIES_MAX = 20, 0",
        (f"{VERIFICATION}::test_a_leader_asks_again_for_100_ms_while_the_last_transaction_is_completed",),
    ),
    BrokenRule(
        PROTOCOLS,
        "EndTxn v5 raises the epoch, and its markers have the new one",
        f"{TRANSACTIONS}/ending.py",
        "        epoch=data.epoch + 1,\n        last_epoch=data.epoch,\n",
        "        epoch=data.epoch,\n        last_epoch=data.epoch,\n",
        (
            f"{CORE}/test_ending.py::test_version_5_raises_the_epoch_and_knows_a_repeated_request",
            f"{CORE}/test_ending.py::test_markers_have_the_epoch_the_result_and_the_version",
            f"{SCENARIOS}05_features.py::test_t136_old_and_new_protocol_take_turns_on_one_transactional_id",
            f"{SCENARIOS}01_transactions.py::test_t042_version_5_raises_the_epoch_and_knows_a_repeat",
        ),
    ),
    BrokenRule(
        PROTOCOLS,
        "EndTxn v0-4 leaves the epoch, and its markers have the same one",
        f"{TRANSACTIONS}/ending.py",
        "store.change(now, transaction, cause, answer, client_version=0)",
        "store.change(now, transaction, cause, answer, client_version=0, epoch=data.epoch + 1)",
        (
            f"{CORE}/test_ending.py::test_after_an_abort_the_same_epoch_goes_on",
            f"{CORE}/test_ending.py::test_markers_have_the_epoch_the_result_and_the_version",
            f"{SCENARIOS}01_transactions.py::test_t036_an_abort_may_be_repeated_and_the_epoch_goes_on",
            f"{SCENARIOS}05_features.py::test_t136_old_and_new_protocol_take_turns_on_one_transactional_id",
        ),
    ),
    BrokenRule(
        PROTOCOLS,
        "the previous epoch marks a repeated EndTxn v5",
        f"{TRANSACTIONS}/ending.py",
        "request.producer_epoch + 1 == data.epoch\n",
        "request.producer_epoch == data.epoch\n",
        (
            f"{CORE}/test_ending.py::test_version_5_raises_the_epoch_and_knows_a_repeated_request",
            f"{SCENARIOS}01_transactions.py::test_t042_version_5_raises_the_epoch_and_knows_a_repeat",
        ),
    ),
    BrokenRule(
        PROTOCOLS,
        "sequences start again at 0 with a new epoch",
        f"{DATA}/producers.py",
        "        if header.producer_epoch > producer.epoch or not producer.batches:\n",
        "        if not producer.batches:\n",
        ("tests/core/data/test_produce.py::test_kip_98_a_new_epoch_begins_at_0_and_fences_the_old_one",),
    ),
    BrokenRule(
        PROTOCOLS,
        "sequences go on after a marker of the same epoch",
        f"{DATA}/producers.py",
        "        if producer is None or header.producer_epoch > producer.epoch:\n",
        "        if producer is None or header.producer_epoch >= producer.epoch:\n",
        (
            f"{LOG}::test_sequences_go_on_after_a_marker_of_the_same_epoch",
            f"{SCENARIOS}01_transactions.py::test_t069_sequences_go_on_in_the_next_transaction_of_an_epoch",
        ),
    ),
    BrokenRule(
        PROTOCOLS,
        "EndTxn v5 leaves the last epoch with another producer id",
        f"{TRANSACTIONS}/markers.py",
        "    continues = data.next_producer_id != NO_ID\n",
        "    continues = False\n",
        (
            f"{CORE}/test_ending.py::test_version_5_leaves_an_exhausted_epoch_with_a_new_producer_id",
            f"{SCENARIOS}05_features.py::test_t047_version_5_continues_with_another_producer_id_after_the_last_epoch",
        ),
    ),
    BrokenRule(
        PROTOCOLS,
        "InitProducerId leaves the last epoch with another producer id",
        f"{TRANSACTIONS}/init_producer.py",
        "    if not data.is_exhausted:\n",
        "    if True:\n",
        (
            f"{CORE}/test_init_producer.py::test_exhausted_epochs_continue_with_a_new_producer_id",
            f"{SCENARIOS}05_features.py::test_t020_an_exhausted_epoch_continues_with_another_producer_id",
        ),
    ),
    BrokenRule(
        PROTOCOLS,
        "level 0 of transaction.version refuses EndTxn v5 with 35",
        f"{TRANSACTIONS}/transaction_store.py",
        "        if self.transaction_version:\n            return Error.NONE\n",
        "        return Error.NONE\n",
        (
            f"{CORE}/test_ending.py::test_at_level_0_version_5_is_refused_and_its_change_stays_pending",
            f"{SCENARIOS}05_features.py::test_t048_the_level_of_the_feature_changes_at_run_time",
        ),
    ),
    BrokenRule(
        PRODUCERS,
        "the end of a transaction of version 2 keeps the first sequence of the next one",
        f"{DATA}/producers.py",
        " and not (verification.starts_at_0 and verification.epoch == header.producer_epoch):",
        ":",
        (f"{SCENARIOS}02_producers.py::test_t145_the_end_of_a_transaction_keeps_the_first_sequence_of_the_next",),
    ),
    BrokenRule(
        PRODUCERS,
        "five batches are remembered",
        f"{DATA}/producers.py",
        "_BATCHES_REMEMBERED = 5",
        "_BATCHES_REMEMBERED = 6",
        (
            "tests/core/data/test_produce.py::test_kip_98_only_the_last_five_batches_are_remembered",
            f"{SCENARIOS}02_producers.py::test_t060_five_batches_are_remembered",
        ),
    ),
    BrokenRule(
        PRODUCERS,
        "a batch of an earlier transaction of the epoch is a duplicate",
        f"{DATA}/producers.py",
        "        if producer is None or producer.epoch != header.producer_epoch:\n            return None\n",
        "        if producer is None or producer.epoch != header.producer_epoch or producer.open_since == NONE:\n"
        "            return None\n",
        (
            f"{LOG}::test_sequences_go_on_after_a_marker_of_the_same_epoch",
            f"{SCENARIOS}01_transactions.py::test_t069_sequences_go_on_in_the_next_transaction_of_an_epoch",
        ),
    ),
    BrokenRule(
        PRODUCERS,
        "an unknown producer starts at any sequence, with Produce v12 at 0",
        f"{DATA}/producers.py",
        "            return 0 if (starts_at_0 if verification is None else verification.starts_at_0) else None\n",
        "            return 0\n",
        (
            f"{LOG}::test_an_unknown_producer_starts_anywhere_but_not_with_transaction_version_2",
            f"{SCENARIOS}02_producers.py::test_t062_an_unknown_producer_may_start_anywhere",
        ),
    ),
    BrokenRule(
        PRODUCERS,
        "after a refused first batch nothing above its sequence is accepted",
        f"{DATA}/producers.py",
        "        if verification is not None and header.base_sequence > verification.lowest_sequence:\n",
        "        if False:\n",
        (
            f"{LOG}::test_after_a_refused_first_batch_nothing_above_it_is_taken",
            f"{SCENARIOS}02_producers.py::test_t137_a_leader_that_restarts_forgets_the_sequences_it_refused",
        ),
    ),
    BrokenRule(
        PRODUCERS,
        "another leader does not know the refused batches",
        f"{DATA}/log.py",
        "        self.producers.forget_verifications()\n",
        "",
        (f"{LOG}::test_a_new_leader_does_not_know_the_sequences_that_the_last_one_refused",),
    ),
    BrokenRule(
        ORDER,
        "an unknown partition hides the errors of the coordinator, and spares the others with 55",
        f"{TRANSACTIONS}/adding.py",
        "        if unknown:\n",
        "        if unknown and _find(store, wanted)[1] is Error.NONE:\n",
        (f"{CORE}/test_adding.py::test_an_unknown_partition_spares_the_others_and_hides_other_errors",),
    ),
    BrokenRule(
        ORDER,
        "producer id and epoch are compared before the state",
        f"{TRANSACTIONS}/ending.py",
        "    if request.producer_id != data.producer_id:\n        return Error.INVALID_PRODUCER_ID_MAPPING\n"
        "    if request.producer_epoch != data.epoch:\n        return Error.PRODUCER_FENCED\n"
        "    if transaction.is_busy:\n        return Error.CONCURRENT_TRANSACTIONS\n",
        "    if transaction.is_busy:\n        return Error.CONCURRENT_TRANSACTIONS\n"
        "    if request.producer_id != data.producer_id:\n        return Error.INVALID_PRODUCER_ID_MAPPING\n"
        "    if request.producer_epoch != data.epoch:\n        return Error.PRODUCER_FENCED\n",
        (f"{SCENARIOS}02_producers.py::test_t087_a_marker_refused_for_good_leaves_the_transaction_prepared",),
    ),
    BrokenRule(
        ORDER,
        "the leader compares the epoch before the sequence",
        f"{DATA}/producers.py",
        "        if producer is not None and epoch < producer.epoch:\n            return Refusal(\n",
        "        if producer is not None and epoch < producer.epoch and sequence == 0:\n            return Refusal(\n",
        (
            f"{LOG}::test_sequences_start_again_after_a_marker_of_a_higher_epoch",
            f"{SCENARIOS}01_transactions.py::test_t017_requests_of_a_fenced_producer_are_refused",
        ),
    ),
    BrokenRule(
        ORDER,
        "TxnOffsetCommit asks the transaction coordinator before it looks at the member, and v5 opens the transaction",
        f"{GROUPS}/transactional_offsets.py",
        "    if store.dialect.verifies_transactional_offsets and not _is_open(store, request):\n",
        "    error = _refuse_member(store, store.find(now, request.group_id), request)\n"
        "    if error is not Error.NONE:\n        return _reply(store, call, request, refused, error)\n"
        "    if store.dialect.verifies_transactional_offsets and not _is_open(store, request):\n",
        (
            f"{OFFSETS}::test_the_transaction_is_checked_before_the_member",
            f"{SCENARIOS}03_offsets.py::test_t095_the_transaction_is_checked_before_the_member",
            f"{SCENARIOS}03_offsets.py::test_t098_version_5_begins_the_transaction_even_if_the_member_is_refused",
        ),
    ),
    BrokenRule(
        PENDING,
        "of two commits the later record wins, whatever the order of the markers",
        f"{GROUPS}/offset_table.py",
        "            if pending.position > self.positions.get(at, pending.position - 1):\n",
        "            if is_commit:\n",
        (
            f"{OFFSETS}::test_loading_decides_by_the_order_of_the_records_too",
            f"{OFFSETS}::test_of_two_producers_the_later_record_wins_whichever_marker_comes_first",
            f"{OFFSETS}::test_an_ordinary_commit_made_after_a_pending_one_wins",
            f"{SCENARIOS}03_offsets.py::test_t100_an_ordinary_commit_made_after_a_pending_one_wins",
            f"{SCENARIOS}01_transactions.py::test_t101_of_two_producers_the_later_record_wins",
        ),
    ),
    BrokenRule(
        PENDING,
        "an offset without a marker is pending after a load",
        f"{GROUPS}/loading.py",
        "        group.table = replay.tables[group_id]\n",
        "        group.table.committed = replay.tables[group_id].committed\n",
        (
            f"{OFFSETS}::test_a_loaded_offset_without_a_marker_is_pending",
            f"{SCENARIOS}04_times.py::test_t117_a_restart_keeps_transactions_offsets_and_records",
        ),
    ),
    BrokenRule(
        PENDING,
        "OffsetDelete and DeleteGroups remove pending offsets, and the marker brings nothing back",
        f"{GROUPS}/offset_table.py",
        "            self.discard_of(producer_id, partitions)\n",
        "            pass\n",
        (
            f"{OFFSETS}::test_deletion_removes_pending_offsets_and_the_marker_brings_nothing_back",
            f"{SCENARIOS}03_offsets.py::test_t103_deleted_offsets_do_not_come_back",
        ),
    ),
    BrokenRule(
        RELEASES,
        "a producer whose transaction timed out resumes in 4.3, and is fenced in 3.9",
        f"{TRANSACTIONS}/ending.py",
        "    if store.transaction_version >= TV2:\n        return _decide(",
        "    if store.transaction_version > TV2:\n        return _decide(",
        (
            f"{CORE}/test_init_producer.py::test_a_fenced_producer_resumes_with_transaction_version_2_only",
            f"{SCENARIOS}01_transactions.py::test_t015_only_transaction_version_2_lets_a_fenced_producer_resume",
        ),
    ),
    BrokenRule(
        RELEASES,
        "4.3 completes a transaction without the markers of partitions that have no leader",
        "emulator/core/dialect.py",
        'skips_markers_without_leader: bool = since("4.3")',
        'skips_markers_without_leader: bool = since("2.4")',
        (f"{SCENARIOS}05_features.py::test_t126_a_transaction_waits_for_the_leader_that_is_down",),
    ),
    BrokenRule(
        RELEASES,
        "3.9 NEW expires a group under its pending offsets",
        "emulator/core/dialect.py",
        'expires_groups_under_pending_offsets: bool = history(("2.4", False), ("NEW", True), ("4.0", False))',
        'expires_groups_under_pending_offsets: bool = before("2.4")',
        (f"{SCENARIOS}03_offsets.py::test_t135_an_expiry_check_finds_a_group_of_pending_offsets",),
    ),
    BrokenRule(
        RELEASES,
        "2.8 accepts batches of partitions that were never added, which hang",
        "emulator/core/dialect.py",
        'verifies_produced_batches: bool = since("OLD")',
        'verifies_produced_batches: bool = since("2.4")',
        (
            f"{SCENARIOS}01_transactions.py::test_t050_a_batch_outside_the_transaction_is_refused",
            f"{SCENARIOS}01_transactions.py::test_t059_a_fenced_producer_cannot_write_anywhere",
        ),
    ),
    BrokenRule(
        RELEASES,
        "2.8 accepts offsets of groups that were never added",
        "emulator/core/dialect.py",
        'verifies_transactional_offsets: bool = since("OLD")',
        'verifies_transactional_offsets: bool = since("2.4")',
        (
            f"{OFFSETS}::test_2_8_never_asks_the_transaction_coordinator",
            f"{SCENARIOS}03_offsets.py::test_t131_a_commit_outside_the_transaction",
        ),
    ),
    BrokenRule(
        RELEASES,
        "TxnOffsetCommit names the error of a member since version 6",
        f"{GROUPS}/transactional_offsets.py",
        "    if error in NEW_ERRORS and call.api_version < TOPIC_ID_SINCE:\n",
        "    if error in NEW_ERRORS:\n",
        (f"{SCENARIOS}03_offsets.py::test_t147_version_6_names_the_error_of_a_member",),
    ),
    BrokenRule(
        RELEASES,
        "AddPartitionsToTxn v4 without transactions is never answered",
        f"{TRANSACTIONS}/adding.py",
        "    if transactions and not adds.waiting:\n",
        "    if not adds.waiting:\n",
        (f"{CORE}/test_adding.py::test_an_empty_batch_is_never_answered",),
    ),
)
"""All rules, those of a part together."""


def by_part(rules: Iterable[BrokenRule] = RULES) -> dict[str, list[BrokenRule]]:
    """Return the rules of each part."""
    return {part: list(each) for part, each in groupby(rules, lambda rule: rule.part)}
