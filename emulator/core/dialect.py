"""The differences between releases of Apache Kafka: one named behaviour for each, with its history.

`Dialect()` is the newest release. A rule that changed reads its field of `store.dialect`.

Up to 3.9 groups are run by the coordinator written in Scala (`GroupCoordinator`, OLD), since 4.0 by the one written in
Java (`GroupMetadataManager`, NEW, KIP-848); 3.9 has both. Each field names its source: the KAFKA issue, or the class
and the releases it was read in.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar, cast

from koordinator.wire.errors import Error
from koordinator.wire.values import value
from koordinator.wire.versions import Versions

from ..config.settings import NEW_COORDINATOR_CHOSEN_IN
from .java.hash_order import java_order, scala_order
from .write_errors import new_write_error, old_group_write_error, old_offset_write_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..config.settings import Settings
    from .java.hash_order import NameOrder


EDITIONS = ("2.4", "2.8", "OLD", "NEW", "4.0", "4.2", "4.3", "4.4")
"""The releases, oldest first; OLD and NEW are 3.9 with either coordinator."""

T = TypeVar("T")


def history(*changes: tuple[str, T]) -> T:
    """Return a field of `Dialect`: its values, each with the edition that was the first to have it."""
    made: Any = field(default=changes[-1][1], metadata=dict(changes))
    return cast("T", made)


def since(edition: str) -> bool:
    """Return a field that holds in an edition and in later ones."""
    return history((EDITIONS[0], False), (edition, True))


def before(edition: str) -> bool:
    """Return a field that holds in the editions before this one."""
    return history((EDITIONS[0], True), (edition, False))


@value
class Dialect:
    """The behaviours of one release; the defaults are those of the newest."""

    # -- OLD and NEW: the two group coordinators -------------------------------------------------------------

    sync_error_while_loading: Error = history(
        ("2.4", Error.REBALANCE_IN_PROGRESS), ("NEW", Error.COORDINATOR_LOAD_IN_PROGRESS)
    )
    """The error of SyncGroup while the group is being loaded. OLD: REBALANCE_IN_PROGRESS, because clients do
    not expect COORDINATOR_LOAD_IN_PROGRESS there (`GroupCoordinator.handleSyncGroup`)."""

    join_echoes_member_id_when_unavailable: bool = before("NEW")
    """Whether a failed JoinGroup echoes the member id while the group is being loaded or has another coordinator. OLD:
    yes (`GroupCoordinator.handleJoinGroup`; NEW: `GroupCoordinatorService.joinGroup`)."""

    join_checks_session_timeout_first: bool = since("NEW")
    """Whether INVALID_SESSION_TIMEOUT precedes the check of the coordinator. OLD: no (`validateGroupStatus` in
    `GroupCoordinator.handleJoinGroup`)."""

    lists_groups_while_loading: bool = before("NEW")
    """Whether ListGroups returns the loaded groups while a partition is being loaded; the error is
    COORDINATOR_LOAD_IN_PROGRESS either way. OLD: yes (`GroupCoordinator.handleListGroups`)."""

    serves_unreadable_partitions: bool = before("NEW")
    """Whether a node serves a partition it could not read as an empty one. OLD: yes
    (`GroupMetadataManager.loadGroupsAndOffsets`); NEW answers NOT_COORDINATOR (`CoordinatorRuntime`)."""

    offsets_have_table_order: bool = since("NEW")
    """Whether the tombstones of all offsets of a group, or of expired ones, have the order of a hash table. Since the
    new coordinator (`OffsetMetadataManager.deleteAllOffsets`, `cleanupExpiredOffsets`)."""

    writes_new_groups: bool = since("NEW")
    """Whether JoinGroup writes a group it creates at once, empty and at generation 0
    (`GroupMetadataManager.classicGroupJoinToClassicGroup`). OLD first writes a group when its leader has assigned, or
    when it becomes Empty."""

    loads_groups_without_offsets: bool = since("NEW")
    """Whether loading creates a group that had offsets, all of them aborted or deleted since; the next expiry check
    removes it (`OffsetMetadataManager.replay`). OLD loads groups with members or offsets only."""

    waits_for_log: bool = since("NEW")
    """Whether a new group, LeaveGroup of the last member, DeleteGroups and OffsetDelete become visible, and are
    answered, only once they are in the log; and whether an OffsetFetch that requires stable offsets waits for commits
    in flight, where OLD answers 88. OLD applies these changes first, and keeps them if the write fails
    (`GroupMetadataManager.cleanupGroupMetadata`; NEW: `CoordinatorRuntime`)."""

    stable_sync_restarts_session: bool = before("NEW")
    """Whether SyncGroup to a Stable group restarts the session. OLD: yes (`GroupCoordinator.doSyncGroup`)."""

    sync_may_name_unset_protocol: bool = since("NEW")
    """Whether SyncGroup may name a protocol while the group has none. OLD: INCONSISTENT_GROUP_PROTOCOL
    (`GroupCoordinator.validateSyncGroup`)."""

    replaced_member_stays_new: bool = before("NEW")
    """Whether a static member replaced while parked in its first JoinGroup still counts as new: its session timeout,
    not five minutes, limits the wait. OLD: yes (`GroupMetadata.replaceStaticMember`)."""

    group_write_error: Callable[[Error], Error] = history(("2.4", old_group_write_error), ("NEW", new_write_error))
    """Map the write error of a group record to the response error. OLD: REBALANCE_IN_PROGRESS instead of
    COORDINATOR_NOT_AVAILABLE after a timeout."""

    offset_write_error: Callable[[Error], Error] = history(("2.4", old_offset_write_error), ("NEW", new_write_error))
    """Map the write error of offset records to the response error. OLD: INVALID_COMMIT_OFFSET_SIZE instead of
    UNKNOWN_SERVER_ERROR for records that are too large."""

    commit_error_in_unknown_group: Error = history(("2.4", Error.ILLEGAL_GENERATION), ("NEW", Error.GROUP_ID_NOT_FOUND))
    """The error of a member's OffsetCommit v9+ in an unknown group. OLD: ILLEGAL_GENERATION, as in all
    versions (`GroupCoordinator.handleCommitOffsets`)."""

    leave_is_evaluated_once: bool = since("NEW")
    """Whether LeaveGroup starts or ends a rebalance once, after its last entry, if any entry succeeded, even one of a
    pending id. OLD: after each entry, and a pending id starts none (`GroupCoordinator.handleLeaveGroup`)."""

    rejection_completes_join: bool = before("NEW")
    """Whether GROUP_MAX_SIZE_REACHED may end a join phase that waited for the rejected member. OLD: at once; NEW: with
    the next event (`GroupCoordinator.handleJoinGroup`)."""

    every_initial_delay_is_extended: bool = since("NEW")
    """Whether new members extend the initial delay (KIP-134) of every join phase that starts from Empty. OLD: only of
    the group's first (`generationId == 0` in `GroupCoordinator.addMemberAndRebalance`)."""

    expiry_ends_initial_delay: bool = since("NEW")
    """Whether the initial delay ends early when a timer removes the last missing member. OLD: never
    (`InitialDelayedJoin.tryComplete`)."""

    describes_assignments_of_unstable_groups: bool = since("NEW")
    """Whether DescribeGroups shows the last known assignments of a group that is not Stable. OLD: empty
    (`GroupMetadata.summary`, `ClassicGroupMember.describeNoMetadata`)."""

    repeats_partitions: bool = since("NEW")
    """Whether OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete answer a partition as often as it is given,
    and write it as often. OLD: once (`GroupCoordinator` with maps of partitions); and OffsetFetch merges the rows of a
    topic that is given twice."""

    failed_join_phase_may_end: bool = since("NEW")
    """Whether a join phase that could not end, because of a subscription with invalid lengths, may end later. OLD: no,
    its `DelayedJoin` is completed."""

    vote_order: NameOrder = history(("2.4", scala_order), ("NEW", java_order))
    """The order in which the votes for a protocol are counted; the first of equals wins. NEW: Java's `HashMap`, OLD:
    Scala's (`ClassicGroup.selectProtocol`, `GroupMetadata.selectProtocol`)."""

    offset_delete_removes_empty_groups: bool = before("NEW")
    """Whether deleting offsets also removes an Empty group that is left without any, instead of the next expiry check:
    for OffsetDelete that group, for a deleted topic every such group. OLD: yes
    (`GroupMetadataManager.cleanupGroupMetadata`)."""

    deletion_keeps_producers: bool = before("NEW")
    """Whether a group stays whose only pending offset is deleted, until the marker of the transaction. OLD: yes
    (`GroupMetadata.removeOffsets`, `hasOffsets`)."""

    tombstones_end_pending_offsets: bool = since("NEW")
    """Whether OffsetDelete and DeleteGroups write tombstones for pending offsets too, and loading heeds them. OLD: no,
    so pending offsets return when the group is loaded again (`GroupMetadata.removeOffsets`,
    `GroupMetadataManager.doLoadGroupsAndOffsets`)."""

    writes_tombstone_at_generation_0: bool = since("NEW")
    """Whether removing a group at generation 0 writes a tombstone. OLD: no, because it has written no record
    (`GroupMetadataManager.cleanupGroupMetadata`)."""

    # -- the history of releases ----------------------------------------------------

    metadata_versions: Versions = history(
        ("2.4", Versions("none")),
        ("OLD", Versions("1-21")),
        ("4.0", Versions("7-25")),
        ("4.2", Versions("7-29")),
        ("4.3", Versions("7-30")),
        ("4.4", Versions("7-33")),
    )
    """The supported levels of the feature `metadata.version` (KIP-778); with ZooKeeper none."""

    lossless_metadata_version: int = history(("2.4", 17), ("4.0", 25), ("4.2", 29), ("4.3", 30), ("4.4", 33))
    """The lowest level to which `metadata.version` may be lowered from the highest. 3.9: 17 (`didMetadataChange`)."""

    tracks_eligible_leaders: bool = since("4.2")
    """Whether `min.insync.replicas` is a config of all brokers instead of each one's (KIP-966). Since 4.1
    (`ReplicationControlManager`)."""

    fails_at_overlong_records: bool = before("OLD")
    """Whether Produce fails with -1 if a record ends beyond its uncompressed batch, and is not the last one, or nothing
    of it is there. Up to 2.8 (`DefaultRecord.readFrom`); later it is refused with INVALID_RECORD."""

    demands_incremental_offsets: bool = before("2.8")
    """Whether compressed records of magic 1 and later are refused with INVALID_RECORD unless their offsets count from
    0. Up to 2.4 (`LogValidator`); later messages get the right ones, and a batch that would need them fails with
    UNKNOWN_SERVER_ERROR."""

    responses_move_partitions: bool = before("OLD")
    """Whether every partition of a fetch response moves to the end of its session. Up to 2.8 (`FetchSession`); later
    only those with records."""

    min_isr_may_exceed_replicas: bool = before("OLD")
    """Whether Produce with acks -1 is refused with NOT_ENOUGH_REPLICAS if `min.insync.replicas` is above the number of
    replicas. Up to 2.8 (`Partition.appendRecordsToLeader`; 3.9: `effectiveMinIsr`)."""

    prints_java_sets: bool = since("4.3")
    """Whether refusals of dynamic configs list names in brackets, not as a Scala set. Since 4.3."""

    reassignment_awaits_added_alone: bool = since("4.3")
    """Whether a reassignment that removes no more replicas than it adds ends when the added ones are in sync; before,
    it waits for all that remain. Since 4.3 (`PartitionReassignmentReplicas.maybeCompleteReassignment`)."""

    describes_unset_client_metrics: bool = since("4.2")
    """Whether DescribeConfigs shows the defaults of client metrics, and only the requested rows. Since 4.1
    (`ConfigHelper`).
    """

    transaction_versions: Versions = history(("2.4", Versions("none")), ("4.0", Versions("0-2")))
    """The supported levels of the feature `transaction.version`. Since 4.0 (KIP-890)."""

    group_versions: Versions = history(("2.4", Versions("none")), ("4.0", Versions("0-1")))
    """The supported levels of the feature `group.version`: 1 turns consumer groups on. Since 4.0 (KIP-848)."""

    share_versions: Versions = history(("2.4", Versions("none")), ("4.2", Versions("0-1")), ("4.4", Versions("0-2")))
    """The supported levels of the feature `share.version`: 1 turns share groups on, 2 dead letters. On by default
    since 4.2 (KIP-932) and 4.4 (KIP-1191)."""

    streams_versions: Versions = history(("2.4", Versions("none")), ("4.2", Versions("0-1")))
    """The supported levels of the feature `streams.version`: 1 turns streams groups on. On by default
    since 4.2 (KIP-1071)."""

    updates_features_at_once: bool = since("4.0")
    """Whether UpdateFeatures changes all features or none, and before v2 repeats only the accepted ones. Since 4.0
    (KIP-1022)."""

    checks_pending_change_first: bool = since("4.0")
    """Whether AddPartitionsToTxn answers CONCURRENT_TRANSACTIONS for a change that is being written before it
    compares producer id and epoch. Since 4.0 (`TransactionCoordinator.handleAddPartitionsToTransaction`)."""

    init_clears_transaction_start: bool = since("4.0")
    """Whether InitProducerId resets the start time that DescribeTransactions shows. Since 4.0 (`TransactionMetadata`).
    """

    verifies_transactional_offsets: bool = since("OLD")
    """Whether TxnOffsetCommit asks the transaction coordinator before it stores offsets. Since 3.7 (KIP-890)."""

    markers_of_offsets_are_written_apart: bool = since("NEW")
    """Whether a marker that cannot be written to `__consumer_offsets` leaves the others of its request alone. NEW: yes
    (`KafkaApis.handleWriteTxnMarkersRequest`, `GroupCoordinatorService.completeTransaction`)."""

    markers_wait_for_repeated_partitions: bool = since("OLD")
    """Whether WriteTxnMarkers with a repeated partition is never answered: a result of each row is waited for, and one
    is written. Seen on 3.9 and later, not on 2.8 (`KafkaApis.handleWriteTxnMarkersRequest`)."""

    markers_of_offsets_are_counted_each: bool = since("4.0")
    """Whether repeated partitions of `__consumer_offsets` have a result each, so that WriteTxnMarkers is answered.
    Since 4.0, not in 3.9 (`KafkaApis.handleWriteTxnMarkersRequest`)."""

    producers_expire_with_transactional_ids: bool = before("OLD")
    """Partitions forget idle producers after `transactional.id.expiration.ms`; since 3.4 after
    `producer.id.expiration.ms` (KIP-854)."""

    describe_producers_explains_errors: bool = since("OLD")
    """Whether DescribeProducers explains an unknown topic, and refuses an illegal name with
    INVALID_TOPIC_EXCEPTION. Since 3.0."""

    verifies_produced_batches: bool = since("OLD")
    """Whether the first transactional batch in a partition is verified. Since 3.6 (KIP-890)."""

    verifies_epoch_of_open_transactions: bool = since("4.0")
    """Whether a batch of another epoch inside an open transaction is verified as well. Since 4.1 (KIP-890)."""

    expires_groups_under_pending_offsets: bool = history(("2.4", False), ("NEW", True), ("4.0", False))
    """Whether an expiry check ends an Empty group that has pending offsets alone: it is Dead until its next write, and
    its offsets are hidden. In 3.9 NEW (`OffsetMetadataManager.cleanupExpiredOffsets`)."""

    refused_offsets_stay_pending: bool = before("OLD")
    """Whether an offset refused for its metadata is pending nevertheless, if others of its request are accepted: until
    the next commit of its partition or the end of its transaction. A transaction cannot commit the offsets that follow
    it. In 2.8 (`GroupMetadataManager.storeOffsets`, `GroupMetadata.completePendingTxnOffsetCommit`)."""

    failed_offsets_end_pending: bool = before("NEW")
    """Whether a TxnOffsetCommit that the log refuses also discards the producer's earlier offset of the partition, for
    example that of a newer epoch. True in the OLD coordinator (`GroupMetadata.failPendingTxnOffsetCommit`)."""

    empty_group_accepts_any_transactional_member: bool = since("OLD")
    """Whether a TxnOffsetCommit without a generation may name any member in an Empty group, and must have one in a
    group with members. In 2.8 a member id is checked if it is not empty, and a generation if it is not negative
    (`GroupCoordinator.doTxnCommitOffsets`)."""

    raises_epoch_once_to_fence: bool = since("2.8")
    """Whether a fence whose record could not be written is repeated with the same epoch. In 2.4 each try raises it
    (`TransactionMetadata.prepareFenceProducerEpoch`, transaction version below 2)."""

    write_txn_markers_version: int = history(("2.4", 0), ("2.8", 1), ("4.2", 2))
    """The version of WriteTxnMarkers that brokers send to each other. 2 since 4.1 (KIP-890)."""
    skips_markers_without_leader: bool = since("4.3")
    """Whether a transaction is completed without the markers of partitions that have no leader.

    Since 4.3 (`KRaftMetadataCache.getPartitionLeaderEndpoint`): the transaction then stays open in their logs.
    """
    first_group_epoch: int = history(("2.4", 0), ("4.3", 1))
    """The epoch of a new consumer or share group, and of the first target of any, before one is computed. Before 4.3: 0
    (`ModernGroup`, `StreamsGroup`)."""

    first_join_raises_epoch: bool = history(("2.4", False), ("4.2", True), ("4.3", False))
    """Whether the first member of a consumer group raises its epoch without topics, and with a pattern before it is
    resolved. In 4.2 (`GroupMetadataManager.consumerGroupHeartbeat`); in 4.3 the group has epoch 1 before."""

    cordons_log_dirs: bool = since("4.3")
    """Whether the refusal of a replication factor mentions cordoned log directories. Since 4.3 (KIP-1066)."""

    deletes_without_policy: bool = since("4.0")
    """Whether clients may delete records under an empty `cleanup.policy`. Not up to 3.9
    (`Partition.deleteRecordsOnLeader`)."""

    describes_defaults: bool = before("2.8")
    """Whether DescribeConfigs v0, which has no sources, marks defaults. In 2.4: later ones never set `is_default`
    (`ConfigHelper`)."""

    describes_configs_with_null_messages: bool = before("2.8")
    """Whether DescribeConfigs has null for a missing error message. In 2.4; later releases have ""."""

    spaces_assignments: bool = since("4.3")
    """Whether a consumer group computes at most one target per `group.consumer.assignment.interval.ms`. Since 4.3
    (KIP-1263)."""

    partitions_have_epochs: bool = since("4.3")
    """Whether a member's partitions have the epochs at which it got them: an offset may be committed with any epoch
    from that on. Since 4.3 (KIP-1251)."""

    hashes_topics: bool = since("4.2")
    """Whether a consumer group remembers its topics as a hash, in the record of its epoch. Since 4.1 (KIP-1101); before
    in a record of their own."""

    describes_pending_partitions: bool = since("4.3")
    """Whether ConsumerGroupDescribe shows partitions that await revocation as assigned. Since 4.3
    (`ConsumerGroupMember.asConsumerGroupDescribeMember`)."""

    members_may_rejoin: bool = since("4.2")
    """Whether epoch 0 of a dynamic member of a consumer group is always a rejoin. Since 4.2; before:
    FENCED_MEMBER_EPOCH, unless its previous epoch is 0
    (`GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid`)."""

    unsubscribing_revokes_at_once: bool = since("4.2")
    """Whether a changed subscription takes partitions of a member away at once. Since 4.2; before: with the next target
    (`CurrentAssignmentBuilder`)."""

    revocation_raises_epoch: bool = before("4.2")
    """Whether a member that must revoke again after a revocation shows an epoch one higher. Before 4.2: yes
    (`CurrentAssignmentBuilder`)."""

    preference_raises_epoch: bool = since("4.4")
    """Whether the epoch of a consumer group rises when a heartbeat changes the assignor that most members prefer. Since
    4.4 (`GroupMetadataManager.hasPreferredServerAssignorChanged`); before, the next target has it."""

    emptied_group_gets_target: bool = since("4.4")
    """Whether the last members of a consumer, share or streams group leave it a target of their group epoch: then the
    assignment interval does not delay the first target of new members. Since 4.4
    (`GroupMetadataManager.consumerGroupFenceMembers`, `shareGroupFenceMember`, `streamsGroupFenceMember`)."""

    full_streams_group_takes_its_members: bool = since("4.4")
    """Whether a member may rejoin a streams group that is full. Since 4.4 (`throwIfStreamsGroupIsFull`)."""

    tasks_follow_state: bool = since("4.4")
    """Whether the assignor of streams groups knows the tasks that members have, not those of the target before, and
    prefers owners with the most of a changelog. Since 4.4 (`TargetAssignmentBuilder`, `StickyTaskAssignor`)."""

    full_owners_hide_no_other: bool = history(("2.4", False), ("4.2", True), ("4.3", False), ("4.4", True))
    """Whether a standby task of a streams group may return to any of its owners, although the process of the first one
    has it already. In 4.2.2 and since 4.4, not in 4.3.1 (`StickyTaskAssignor.findPrevMemberWithLeastLoad`)."""

    streams_members_convert_tasks: bool = since("4.4")
    """Whether a member of a streams group changes the type of a task that it has, without giving it up in between.
    Since 4.4 (`CurrentAssignmentBuilder.convertReplicaRole`)."""

    streams_members_may_be_static: bool = since("4.4")
    """Whether streams groups have static members. Since 4.4 (`getOrMaybeCreateStaticStreamsGroupMember`)."""

    streams_groups_have_rack_tags: bool = since("4.4")
    """Whether clients of a streams group have to have the tags in `streams.rack.aware.assignment.tags`. Since 4.4
    (`GroupMetadataManager.streamsGroupAssignmentConfigs`)."""

    takes_task_offsets: bool = since("4.4")
    """Whether heartbeats of streams groups may have the offsets of tasks, and warm-up tasks. Since 4.4
    (`GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures`)."""

    streams_groups_refine_targets: bool = since("4.4")
    """Whether members of a streams group go for a copy of the target, which the first heartbeat of its epoch makes, and
    a request with the instance id of another member changes even if it is refused; and whether a member of a stable
    group that has other tasks than its target raises the epoch. Since 4.4
    (`GroupMetadataManager.refinedAssignmentForEpoch`, `StreamsGroup.relabelRefinedAssignment`)."""

    endpoint_change_raises_its_epoch: bool = since("4.4")
    """Whether the epoch of endpoints rises with the tasks and the endpoint of a member, not with each join; and whether
    a member that joins without an endpoint has none. Since 4.4
    (`GroupMetadataManager.streamsGroupHeartbeat`, `hasUserEndpointChanged`)."""

    endpoints_have_existing_partitions: bool = history(("2.4", False), ("4.2", True), ("4.3", False), ("4.4", True))
    """Whether members of a streams group are told only of partitions that exist at an endpoint. In 4.2.2 and since 4.4;
    in 4.3 a topic with fewer partitions than there are tasks gets their first ones (`EndpointToPartitionsManager`)."""

    streams_task_offset_interval_ms: int = history(("2.4", 0), ("4.4", 60_000))
    """The interval in ms at which members of a streams group report the offsets of their tasks. Before 4.4: none
    (`group.streams.task.offset.interval.ms`, an internal setting)."""

    streams_acceptable_recovery_lag: int = history(("2.4", 0), ("4.4", 10_000))
    """The lag of a warm-up task that has caught up, as members of streams groups are told. Before 4.4: 0
    (`group.streams.acceptable.recovery.lag`, an internal setting)."""

    share_groups_read_all_of_new_partitions: bool = since("4.4")
    """Whether a share group begins with the first record of partitions that are added to a topic which it reads. Since
    4.4 (`GroupMetadataManager.maybeCreateInitializeShareGroupStateRequest`); before, by `share.auto.offset.reset`."""

    classic_members_follow_targets: bool = since("4.3")
    """Whether a classic member of a consumer group has to rejoin once there is a newer target. Before 4.3: once the
    group has a newer epoch (`GroupMetadataManager.classicGroupHeartbeatToConsumerGroup`)."""

    downgrades_heed_targets: bool = since("4.3")
    """Whether a static member that joins as the only classic one starts a rebalance if the target is outdated. Before
    4.3: if it has another subscription (`GroupMetadataManager.convertToClassicGroup`)."""

    new_share_partitions_await_targets: bool = since("4.3")
    """Whether partitions that have got their state raise no epoch of a share group while its epoch has no target. Since
    4.3; before, they raise it once more (`GroupMetadataManager.shareGroupHeartbeat`)."""

    reads_without_leader_epoch: bool = since("4.3")
    """Whether a share coordinator answers a read with leader epoch -1, whatever the latest one is. Since 4.3
    (`ShareCoordinatorShard.maybeGetReadStateError`)."""

    brokers_default_streams_configs: bool = history(("2.4", True), ("4.2", False), ("4.3", True))
    """Whether a group with configs of its own takes the others about streams from its broker, too. In 4.2 they have the
    defaults of Kafka, whatever the broker is set to (`GroupCoordinatorConfig.extractGroupConfigMap`)."""

    missing_share_ids_are_invalid: bool = since("4.3")
    """Whether ShareFetch and ShareAcknowledge without a group or a member get INVALID_REQUEST. Since 4.3; before, -1
    (`KafkaApis.handleShareFetchRequest`)."""

    share_fetches_fail_without_topic_names: bool = history(("2.4", False), ("4.3", True), ("4.4", False))
    """Whether a row of a ShareFetch for a topic that does not exist makes its response UNKNOWN_SERVER_ERROR. In 4.3.1,
    and in neither 4.2.2 nor 4.4 (`KafkaApis.processShareFetchResponse`)."""

    renewals_may_be_forbidden: bool = since("4.3")
    """Whether a share group has the config `share.renew.acknowledge.enable`. Since 4.3; before, members may always
    renew the locks of their records (`SharePartition.acknowledgeBatchRecords`)."""

    state_epochs_are_checked: bool = since("4.4")
    """Whether a share coordinator refuses negative epochs. Since 4.4 (`ShareCoordinatorShard`); before, they are not
    compared with those of the state."""

    share_writes_go_forward: bool = since("4.4")
    """Whether a write at a share coordinator leaves no lower start offset and, at the same one, no lower number of
    completed deliveries; and all batches that are alike become one. Since 4.4
    (`ShareCoordinatorShard.generateShareStateRecord`, `PersisterStateBatchCombiner.sweepMerge`)."""

    fenced_state_names_its_group: bool = before("4.4")
    """Whether the text of FENCED_STATE_EPOCH speaks of share groups. Before 4.4 (`Errors`)."""

    full_group_takes_static_members: bool = since("4.4")
    """Whether a member with an instance id that the consumer group knows passes `group.consumer.max.size`. Since 4.4
    (`GroupMetadataManager.throwIfConsumerGroupIsFull`)."""

    given_up_instance_ids_are_free: bool = since("4.4")
    """Whether an instance id that a member of a consumer group gave up for another one is forgotten. Since 4.4; before,
    it stays the member's, even after the member is gone (`ConsumerGroup.updateStaticMember`)."""

    assignors_see_successors_alone: bool = since("4.4")
    """Whether the assignor of a consumer group never sees a static member that is being replaced; the target of its
    successor is written if it changes. Before 4.4 the replaced one may decide the order of members, and the target is
    written in any case (`TargetAssignmentBuilder`, `UpdatedMembersAndTargetAssignmentView`)."""

    group_limits_have_ranges: bool = since("4.4")
    """Whether the refusal of a group's config beyond the limits of its broker names them as a range. Since 4.4
    (`GroupConfig.validateIntRange`)."""

    limits_group_values: bool = since("4.3")
    """Whether a group's config that is beyond the limits of its broker counts as the limit. In 4.3
    (`GroupConfig.evaluate`); in 4.0 it counts as it is."""

    consumer_groups_are_a_preview: bool = before("4.0")
    """Whether the consumer protocol is off by default (`group.coordinator.rebalance.protocols`), and so is migration;
    groups have no configs. Before 4.0 (KIP-848)."""

    consumer_members_leave_by_leave_group: bool = since("4.0")
    """Whether LeaveGroup also removes members that use the consumer protocol. Since 4.0; before:
    UNKNOWN_MEMBER_ID (`GroupMetadataManager.classicGroupLeaveToConsumerGroup`)."""

    consumer_joins_may_lack_topics: bool = since("4.0")
    """Whether a member may join a consumer group without topics. Since 4.0; before: INVALID_REQUEST, and an
    empty member id is noticed last (`GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid`)."""

    describes_missing_groups: bool = since("4.0")
    """Whether ConsumerGroupDescribe says why a group is not found. Since 4.0 (KAFKA-17750)."""

    new_patterns_keep_epoch: bool = since("4.2")
    """Whether a pattern that is new to a consumer group leaves the group epoch until it is resolved. Since 4.2; before:
    it rises at once (`GroupMetadataManager.maybeUpdateRegularExpressions`)."""

    pending_partitions_may_stay: bool = since("4.0")
    """Whether a member whose next target has partitions that it was to give up takes them back at once. Before 4.0 with
    the next heartbeat (`CurrentAssignmentBuilder`)."""

    extra_partition_stays: bool = since("4.0")
    """Whether the assignor `uniform` leaves an extra partition to a member that has it. Before 4.0 the first members
    get it (`UniformHomogeneousAssignmentBuilder`)."""

    consumer_groups_list_racks: bool = before("4.0")
    """Whether the record of a consumer group's topics has the racks of their replicas. Before 4.0
    (`ConsumerGroup.computeSubscriptionMetadata`)."""

    mixed_subscriptions_move_partitions: bool = before("4.0")
    """Whether the assignor `uniform` balances different subscriptions by single moves, and fails with
    UNKNOWN_SERVER_ERROR when it would move partitions in opposite directions. Before 4.0
    (`UniformHeterogeneousAssignmentBuilder`)."""

    commits_by_name_remember_topic_ids: bool = since("4.3")
    """Whether an offset that is committed by the name of a topic belongs to the topic's id, too, and its record has
    that id. Since 4.3; since 4.1 one that is committed by the id does (KAFKA-19141)."""

    group_configs_have_defaults_behind_them: bool = since("4.3")
    """Whether DescribeConfigs lists the default of a group config behind its own value. Since 4.3 (`ConfigHelper`)."""

    rates_are_read_only: bool = before("4.3")
    """Whether DescribeConfigs shows the rates that limit replication as read-only. Up to 4.2
    (`DynamicBrokerConfig.AllDynamicConfigs`)."""

    stores_changes_of_producer_ids: bool = since("4.3")
    """Whether the record of a transactional id has its producer ids before and after a change. Since 4.3; before, they
    are forgotten with the next load (`TransactionLog.valueToBytes`)."""

    knows_rates: bool = since("2.8")
    """Whether DescribeConfigs knows the type of these rates. In 2.4 their values are null, as of any unknown name
    (`KafkaConfig.configType`)."""

    unexpected_audiences_are_refused: bool = before("4.4")
    """Whether a broker without `sasl.oauthbearer.expected.audience` refuses signed tokens that have one. Since 4.4 it
    starts only with an audience or with `sasl.oauthbearer.allow.unverified.audience` (`BrokerJwtValidator`)."""

    transactions_remember_topic_ids: bool = since("4.4")
    """Whether offsets of transactions belong to a topic id too, whatever the version of TxnOffsetCommit. Since 4.4
    (KIP-1319, `OffsetMetadataManager.commitTransactionalOffset`)."""

    offset_version: int = history(("2.4", 3), ("4.2", 4))
    """The version of OffsetCommitValue of offsets without a topic id, as those of transactions. Before 4.1: 3
    (`GroupCoordinatorRecordHelpers.newOffsetCommitRecord`)."""

    timestamp_after_max_ms: int = history(("2.4", 2**63 - 1), ("4.0", 60 * 60 * 1000))
    """The default of `message.timestamp.after.max.ms`. Unlimited before 4.0 (KIP-1030)."""

    producers_may_set_append_time: bool = since("OLD")
    """Whether the attribute LogAppendTime of a producer's batch is reset; the batch is refused only if it also has no
    timestamps. In 2.8: always refused with INVALID_TIMESTAMP (`LogValidator.validateTimestamp`)."""

    explains_record_errors: bool = since("OLD")
    """Whether the message of a Produce row quotes the errors of its first three records. In 2.8 it quotes none
    (`LogValidator.processRecordErrors`)."""

    unregister_broker_explains_errors: bool = since("4.0")
    """Whether UnregisterBroker explains its refusal. Since 4.0."""

    produce_without_batch_closes: bool = before("2.8")
    """Whether a Produce v3+ closes the connection if a partition does not begin with a complete batch. In 2.4 such a
    request cannot be parsed (`ProduceRequest.validateRecords`)."""

    refuses_unknown_replicas: bool = since("OLD")
    """Whether a Fetch of a broker that is no replica is refused with 6. Up to 2.8 it gets no records
    (`ReplicaManager.fetchMessages`; since 3.3, KIP-841)."""

    unknown_partitions_have_aborted: bool = since("OLD")
    """Whether the row of an unknown partition in Fetch has an empty list of aborted transactions, where others have
    null. In 2.8 it has null (`FetchResponse.partitionResponse`)."""

    failed_fetch_has_null_records: bool = history(("2.4", False), ("OLD", True), ("4.0", False))
    """Whether the rows of a Fetch that fails have null records, not empty ones. In 3.9 (`FetchRequest`)."""

    failed_fetch_repeats_rows: bool = since("OLD")
    """Whether a Fetch that fails has a row for each time that a partition is given. In 2.8 it has one
    (`FetchRequest.getErrorResponse`)."""

    returns_cut_batches: bool = before("OLD")
    """Whether Fetch up to v2 returns the beginning of a first batch that its limit cuts, as it is in the log. In 2.8
    (`KafkaApis.maybeConvertFetchedData`); later nothing is returned."""

    preferred_replicas_end_fetches: bool = since("OLD")
    """Whether a fetch is answered at once if it names another replica to fetch from. Up to 2.8 after its whole wait
    (`ReplicaManager.fetchMessages`)."""

    replicas_wake_fetches: bool = since("OLD")
    """Whether a fetch that waits at a follower gets what the leader appends. Up to 2.8 after its whole wait
    (`ReplicaFetcherThread`)."""

    replicas_are_unavailable: bool = before("2.8")
    """Whether a broker that has no replica answers REPLICA_NOT_AVAILABLE to a fetch from any replica. In 2.4
    (`ReplicaManager.getPartitionOrError`)."""

    refuses_unknown_timestamps: bool = since("OLD")
    """Whether ListOffsets answers 35 to a negative timestamp that is not special in its version. In 2.8 it is a time
    before the first record (`ReplicaManager.fetchOffsetForTimestamp`)."""

    looks_up_offsets_together: bool = history(("2.4", True), ("2.8", False), ("4.0", True))
    """Whether ListOffsets has one row for a partition that is given twice, and an unknown isolation level fails all
    rows. In 2.8 and 3.9 each row is looked up for itself (`KafkaApis.handleListOffsetRequestV1AndAbove`)."""

    group_operations: int = history(("2.4", 328), ("4.0", 3400))
    """The authorized operations of a group (KIP-430) without an authorizer, as bits: READ, DELETE, DESCRIBE,
    DESCRIBE_CONFIGS and ALTER_CONFIGS. Before 4.0 groups have no configs: 328 (`AclEntry.supportedOperations`)."""

    auto_created_topic_error: Error = history(
        ("2.4", Error.LEADER_NOT_AVAILABLE), ("OLD", Error.UNKNOWN_TOPIC_OR_PARTITION)
    )
    """The error of the Metadata response whose request creates a topic. With ZooKeeper: LEADER_NOT_AVAILABLE
    (`KafkaApis.getTopicMetadata`, `AutoTopicCreationManager`)."""

    has_default_quotas: bool = before("OLD")
    """Whether `quota.producer.default` and `quota.consumer.default` limit the client ids that no quota limits
    (`ClientQuotaManager`); 3.0 has removed them."""

    administers_with_zookeeper: bool = before("OLD")
    """Whether topics, configs, quotas and credentials are in ZooKeeper (2.4 and 2.8). Then requests that create,
    extend, delete or configure have other checks in another order and other messages (`data/administration.py`), a
    quota may be negative, and a request may alter a user once per mechanism (`KafkaApis`, `ZkAdminManager`). Otherwise
    the controller validates these requests."""

    fails_at_absent_configs: bool = before("2.8")
    """Whether changes of configs fail with UNKNOWN_SERVER_ERROR at what is absent: a value, the topic, or the own value
    of a list that is appended to; and whether CreateTopics validates configs first. In 2.4 (`AdminManager`)."""

    leaders_outlive_controller: bool = before("OLD")
    """Whether partitions keep leader and epoch while no broker is up. With ZooKeeper: yes, because the last broker is
    the controller (`KafkaController.onBrokerFailure`)."""

    any_broker_serves_admin_requests: bool = since("OLD")
    """Whether a broker forwards requests that create, delete or extend topics to the controller (KIP-590). With
    ZooKeeper it answers NOT_CONTROLLER (`KafkaApis.handleCreateTopicsRequest`, 2.4 and 2.8)."""

    answers_offset_fetch_without_groups: bool = since("4.0")
    """Whether OffsetFetch v8 and later without groups is answered. In 3.9: never (`KafkaApis.handleOffsetFetchRequest`
    completes with its last group)."""

    state_filter_is_trimmed: bool = since("NEW")
    """Whether the states filter of ListGroups ignores white space around a state. OLD: no."""

    state_filter_ignores_case: bool = since("OLD")
    """Whether the states filter of ListGroups ignores case. Since 3.8 (KIP-848)."""

    rejoin_changes_timeouts: bool = since("OLD")
    """Whether a rejoin replaces the member's timeouts. Since 3.3.2 and 3.4 (KAFKA-14009)."""

    unknown_instance_id_is_rejected: bool = since("OLD")
    """Whether SyncGroup, Heartbeat, OffsetCommit and LeaveGroup reject an unknown instance id. Before 3.0 they ignore
    it if the member id is known (apache/kafka#9958)."""

    rejection_removes_pending_id: bool = since("OLD")
    """Whether GROUP_MAX_SIZE_REACHED removes the pending member id of the request. Since 3.0 (apache/kafka#9958)."""

    leave_fails_for_pending_instance: bool = before("OLD")
    """Whether LeaveGroup with a pending member id and an instance id gets UNKNOWN_SERVER_ERROR. Up to 2.8 it ends
    there, and the members before it have left (`GroupCoordinator.handleLeaveGroup`)."""

    pending_sync_expires: bool = since("2.8")
    """Whether members that do not send SyncGroup within the rebalance timeout are removed. Since 2.8.1 and 3.0
    (KAFKA-12890)."""

    unstable_groups_keep_offsets: bool = since("2.8")
    """Whether a group with members keeps all its offsets while it rebalances. Since 2.8.2 and 3.0.1 (KAFKA-13636)."""

    heartbeat_succeeds_before_sync: bool = since("2.8")
    """Whether a heartbeat between JoinGroup and SyncGroup restarts the session and is answered NONE. Before 2.7:
    REBALANCE_IN_PROGRESS, and no restart (KAFKA-10134)."""

    repeats_unknown_partitions: bool = since("OLD")
    """Whether OffsetCommit, TxnOffsetCommit and OffsetDelete answer an unknown partition as often as it is given, and
    an unknown topic without partitions with an empty row. Before 3.0: once, and not at all (`KafkaApis` with maps of
    partitions)."""

    repeats_added_partitions: bool = since("OLD")
    """Whether AddPartitionsToTxn answers a partition as often as it is given. Since 3.5 (KIP-890,
    `AddPartitionsToTxnRequest.errorResponseForTransaction`); before, once."""

    fails_at_invalid_lengths: bool = history(
        ("2.4", False), ("2.8", True), ("4.2", False), ("4.3", True), ("4.4", False)
    )
    """Whether the coordinator fails on a subscription or assignment with invalid lengths: a join phase does not end,
    and a group is not upgraded. In 2.4, 4.2.2 and since 4.4 it is unreadable like any other (`ConsumerProtocol`)."""

    unreadable_classic_members_are_inconsistent: bool = history(
        ("2.4", False), ("4.2", True), ("4.3", False), ("4.4", True)
    )
    """Whether a classic member whose subscription cannot be read is refused by a consumer group with
    INCONSISTENT_GROUP_PROTOCOL, not with -1. In 4.2.2, since 4.4 (`GroupMetadataManager.deserializeSubscription`)."""

    bounds_requests: bool = history(("2.4", False), ("4.2", True), ("4.3", False), ("4.4", True))
    """Whether a request with an array of more than a million elements, or with more than 10,000 tagged fields, closes
    the connection. In 4.2.2 and since 4.4 (`MessageUtil.MAX_ARRAY_LENGTH`, `MAX_TAGGED_FIELD_COUNT`)."""

    static_rejoin_is_written: bool = since("2.8")
    """Whether the new id of a static member that returns to a Stable group is written, and its protocols are checked.
    Before 2.6.1 it is answered at once, whatever it supports (KAFKA-10284)."""

    size_limit_counts_parked_joins: bool = since("2.8")
    """Whether `group.max.size` counts parked joins in a join phase. Before 2.6 it counts members: a join without an id
    is rejected at the limit, and above it members that have not rejoined (KAFKA-9885)."""

    static_rejoin_before_sync_rebalances: bool = since("2.8")
    """Whether a static member that returns between JoinGroup and SyncGroup starts a rebalance. Before 2.5 it is
    answered with the current generation (KAFKA-9801)."""

    new_member_session_begins_with_join: bool = since("2.8")
    """Whether a new member's session starts with its first JoinGroup response. In 2.4 it starts with the next request
    of the member (KAFKA-9752)."""

    coordinator_type_error: Error = history(("2.4", Error.UNKNOWN_SERVER_ERROR), ("2.8", Error.INVALID_REQUEST))
    """The error of FindCoordinator for an unknown key type. In 2.4: -1 (`CoordinatorType.forId`)."""

    finds_no_share_coordinators: bool = history(("2.4", False), ("OLD", True), ("4.0", False))
    """Whether FindCoordinator knows the type of share coordinators but finds none. In 3.9 (`KafkaApis`)."""

    offset_delete_repeats_topics: bool = before("2.8")
    """Whether OffsetDelete repeats a topic's row, with all partitions, for each of its partitions. In 2.4
    (`KafkaApis.handleOffsetDeleteRequest`)."""

    default_group_operations: int = history(("2.4", 0), ("2.8", -(1 << 31)))
    """The authorized operations of DescribeGroups if the client did not ask for them. In 2.4: 0 (`KafkaApis`)."""


def _dialect(edition: str) -> Dialect:
    known = EDITIONS[: EDITIONS.index(edition) + 1]
    histories = {each.name: each.metadata for each in fields(cast("Any", Dialect))}
    return Dialect(**{name: next(each[at] for at in reversed(known) if at in each) for name, each in histories.items()})


DIALECTS = {edition: _dialect(edition) for edition in EDITIONS}


def dialect_of(settings: Settings) -> Dialect:
    """Return the dialect of the configured release."""
    return dialect_of_release(settings.kafka_version, new_coordinator=settings.group_coordinator_new_enable)


def dialect_of_release(release: str, *, new_coordinator: bool) -> Dialect:
    """Return the dialect of a release; `new_coordinator` counts only where there is a choice."""
    if release == NEW_COORDINATOR_CHOSEN_IN:
        return DIALECTS["NEW" if new_coordinator else "OLD"]
    return DIALECTS[release]
