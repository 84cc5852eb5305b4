"""The releases of Apache Kafka: each replaces the behaviours in which it differs from the next one. See `Dialect`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.versions import Versions

from ..config.settings import NEW_COORDINATOR_CHOSEN_IN
from .dialect import Dialect
from .groups.classic.hash_order import scala_order
from .write_errors import old_group_write_error, old_offset_write_error

if TYPE_CHECKING:
    from ..config.settings import Settings

KAFKA_4_3 = Dialect()
KAFKA_4_0 = replace(
    KAFKA_4_3,
    metadata_versions=Versions("7-25"),
    lossless_metadata_version=25,
    tracks_eligible_leaders=False,
    describes_unset_client_metrics=False,
    skips_markers_without_leader=False,
    first_group_epoch=0,
    cordons_log_dirs=False,
    spaces_assignments=False,
    partitions_have_epochs=False,
    hashes_topics=False,
    describes_pending_partitions=False,
    members_may_rejoin=False,
    unsubscribing_revokes_at_once=False,
    revocation_raises_epoch=True,
    new_patterns_keep_epoch=False,
    commits_remember_topic_ids=False,
    offset_version=3,
    write_txn_markers_version=1,
)
KAFKA_3_9_NEW = replace(
    KAFKA_4_0,
    deletes_without_policy=False,
    rates_are_read_only=True,
    unregister_broker_explains_errors=False,
    consumer_groups_are_a_preview=True,
    prints_java_sets=False,
    consumer_members_leave_by_leave_group=False,
    consumer_joins_may_lack_topics=False,
    describes_missing_groups=False,
    extra_partition_stays=False,
    mixed_subscriptions_move_partitions=True,
    pending_partitions_may_stay=False,
    group_operations=328,
    timestamp_after_max_ms=2**63 - 1,
    failed_fetch_has_null_records=True,
    answers_offset_fetch_without_groups=False,
    metadata_versions=Versions("1-21"),
    lossless_metadata_version=17,
    transaction_versions=Versions("none"),
    group_versions=Versions("none"),
    expires_groups_under_pending_offsets=True,
    updates_features_at_once=False,
    checks_pending_change_first=False,
    init_clears_transaction_start=False,
    verifies_epoch_of_open_transactions=False,
    looks_up_offsets_together=False,
)
KAFKA_3_9_OLD = replace(
    KAFKA_3_9_NEW,
    expires_groups_under_pending_offsets=False,
    sync_error_while_loading=Error.REBALANCE_IN_PROGRESS,
    join_echoes_member_id_when_unavailable=True,
    join_checks_session_timeout_first=False,
    lists_groups_while_loading=True,
    serves_unreadable_partitions=True,
    writes_new_groups=False,
    loads_groups_without_offsets=False,
    waits_for_log=False,
    stable_sync_restarts_session=True,
    sync_may_name_unset_protocol=False,
    replaced_member_stays_new=True,
    group_write_error=old_group_write_error,
    offset_write_error=old_offset_write_error,
    failed_offsets_end_pending=True,
    commit_error_in_unknown_group=Error.ILLEGAL_GENERATION,
    leave_is_evaluated_once=False,
    rejection_completes_join=True,
    every_initial_delay_is_extended=False,
    expiry_ends_initial_delay=False,
    describes_assignments_of_unstable_groups=False,
    repeats_partitions=False,
    failed_join_phase_may_end=False,
    state_filter_is_trimmed=False,
    vote_order=scala_order,
    offset_delete_removes_empty_groups=True,
    deletion_keeps_producers=True,
    tombstones_end_pending_offsets=False,
    writes_tombstone_at_generation_0=False,
)
KAFKA_2_8 = replace(
    KAFKA_3_9_OLD,
    metadata_versions=Versions("none"),
    auto_created_topic_error=Error.LEADER_NOT_AVAILABLE,
    producers_may_set_append_time=False,
    failed_fetch_has_null_records=False,
    failed_fetch_repeats_rows=False,
    returns_cut_batches=True,
    explains_record_errors=False,
    fails_at_overlong_records=True,
    responses_move_partitions=True,
    min_isr_may_exceed_replicas=True,
    refuses_unknown_replicas=False,
    unknown_partitions_have_aborted=False,
    refuses_unknown_timestamps=False,
    administers_with_zookeeper=True,
    leaders_outlive_controller=True,
    any_broker_serves_admin_requests=False,
    state_filter_ignores_case=False,
    rejoin_changes_timeouts=False,
    unknown_instance_id_is_rejected=False,
    rejection_removes_pending_id=False,
    repeats_unknown_partitions=False,
    verifies_transactional_offsets=False,
    verifies_produced_batches=False,
    describe_producers_explains_errors=False,
    producers_expire_with_transactional_ids=True,
    empty_group_accepts_any_transactional_member=False,
    refused_offsets_stay_pending=True,
)
KAFKA_2_4 = replace(
    KAFKA_2_8,
    knows_rates=False,
    fails_at_absent_configs=True,
    pending_sync_expires=False,
    unstable_groups_keep_offsets=False,
    heartbeat_succeeds_before_sync=False,
    invalid_lengths_fail_join_phase=False,
    static_rejoin_is_written=False,
    size_limit_counts_parked_joins=False,
    static_rejoin_before_sync_rebalances=False,
    new_member_session_begins_with_join=False,
    coordinator_type_error=Error.UNKNOWN_SERVER_ERROR,
    offset_delete_repeats_topics=True,
    default_group_operations=0,
    produce_without_batch_closes=True,
    looks_up_offsets_together=True,
    write_txn_markers_version=0,
    demands_incremental_offsets=True,
    describes_defaults=True,
)

DIALECTS = {"4.3": KAFKA_4_3, "4.0": KAFKA_4_0, "3.9": KAFKA_3_9_OLD, "2.8": KAFKA_2_8, "2.4": KAFKA_2_4}


def dialect_of(settings: Settings) -> Dialect:
    """Return the dialect of the configured release."""
    return dialect_of_release(settings.kafka_version, new_coordinator=settings.group_coordinator_new_enable)


def dialect_of_release(release: str, *, new_coordinator: bool) -> Dialect:
    """Return the dialect of a release; `new_coordinator` counts only where there is a choice."""
    chosen = new_coordinator and release == NEW_COORDINATOR_CHOSEN_IN
    return KAFKA_3_9_NEW if chosen else DIALECTS[release]
