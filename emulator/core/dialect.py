"""What releases of Apache Kafka do differently: a named behaviour for each difference a classic group shows.

`Dialect()` is the newest release, and every older one is said by what it does otherwise. Nothing else in the core knows
of releases: a rule that was once another asks for its field of `store.dialect`.

Up to release 3.9 groups were run by the coordinator written in Scala (`GroupCoordinator`, OLD), from 4.0 on by the one
written in Java (`GroupMetadataManager`, NEW, KIP-848); 3.9 has both. What is known of a field stands beside it: the
KAFKA issue where there is one, else the class and the releases it was read in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ..config.settings import NEW_COORDINATOR_CHOSEN_IN
from .groups.classic.hash_order import java_order, scala_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from .groups.classic.group import NameOrder


def new_write_error(error: Error) -> Error:
    """What NEW says where records could not be written: `CoordinatorOperationExceptionHelper`."""
    match error:
        case Error.UNKNOWN_TOPIC_OR_PARTITION | Error.NOT_ENOUGH_REPLICAS | Error.REQUEST_TIMED_OUT:
            return Error.COORDINATOR_NOT_AVAILABLE
        case Error.NOT_LEADER_OR_FOLLOWER | Error.KAFKA_STORAGE_ERROR:
            return Error.NOT_COORDINATOR
        case Error.MESSAGE_TOO_LARGE | Error.RECORD_LIST_TOO_LARGE | Error.INVALID_FETCH_SIZE:
            return Error.UNKNOWN_SERVER_ERROR
        case _:
            return error


def old_group_write_error(error: Error) -> Error:
    """What OLD says where the record of a group could not be written: `GroupMetadataManager.storeGroup`."""
    match error:
        case Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            return Error.COORDINATOR_NOT_AVAILABLE
        case Error.REQUEST_TIMED_OUT:
            return Error.REBALANCE_IN_PROGRESS
        case _:
            return new_write_error(error)


def old_offset_write_error(error: Error) -> Error:
    """What OLD says where offsets could not be written: `GroupMetadataManager.storeOffsets`."""
    match error:
        case Error.MESSAGE_TOO_LARGE | Error.RECORD_LIST_TOO_LARGE | Error.INVALID_FETCH_SIZE:
            return Error.INVALID_COMMIT_OFFSET_SIZE
        case Error.REQUEST_TIMED_OUT:
            return error
        case _:
            return old_group_write_error(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The behaviours of one release; the defaults are those of the newest."""

    # -- OLD and NEW: the two group coordinators -------------------------------------------------------------

    sync_error_while_loading: Error = Error.COORDINATOR_LOAD_IN_PROGRESS
    """What SyncGroup is told while the group is being loaded. OLD: 27, because clients do not expect 14 there
    (`GroupCoordinator.handleSyncGroup`)."""

    join_echoes_member_id_when_unavailable: bool = False
    """Whether a JoinGroup gets its member id back from a node that loads the group, or is not its coordinator. OLD does
    (`GroupCoordinator.handleJoinGroup`; NEW: `GroupCoordinatorService.joinGroup`)."""

    join_checks_session_timeout_first: bool = True
    """Whether INVALID_SESSION_TIMEOUT comes before the question who coordinates the group. OLD asks that first
    (`validateGroupStatus` in `GroupCoordinator.handleJoinGroup`)."""

    lists_groups_while_loading: bool = False
    """Whether ListGroups has the groups of the other partitions while one is being loaded; 14 it says in any case.
    OLD does (`GroupCoordinator.handleListGroups`)."""

    serves_unreadable_partitions: bool = False
    """Whether a node serves the groups of a partition it could not read, as if there were none. OLD does
    (`GroupMetadataManager.loadGroupsAndOffsets`); NEW is not their coordinator then (`CoordinatorRuntime`)."""

    writes_new_groups: bool = True
    """Whether a group made by JoinGroup is written at once, empty and at generation 0
    (`GroupMetadataManager.classicGroupJoinToClassicGroup`). OLD first writes a group when its leader has assigned, or
    when it gets empty."""

    waits_for_log: bool = True
    """Whether changes other than assignments and commits are seen, and answered, only once they are in the log: a new
    group, LeaveGroup of the last member, DeleteGroups, OffsetDelete; and an OffsetFetch that requires stable offsets
    waits for commits being written, where OLD says 88. OLD has done them when it answers, and leaves it at that if they
    cannot be written (`GroupMetadataManager.cleanupGroupMetadata`; NEW: `CoordinatorRuntime`)."""

    stable_sync_restarts_session: bool = False
    """Whether SyncGroup to a stable group is a sign of life. OLD: yes (`GroupCoordinator.doSyncGroup`)."""

    sync_may_name_unset_protocol: bool = True
    """Whether SyncGroup may name a protocol before the group has one. OLD: 23
    (`GroupCoordinator.validateSyncGroup`)."""

    replaced_member_stays_new: bool = False
    """Whether a static member that is replaced while it waits in its first JoinGroup still counts as one that has never
    joined: its session, not five minutes, limits how long it may wait. OLD: yes
    (`GroupMetadata.replaceStaticMember`)."""

    group_write_error: Callable[[Error], Error] = new_write_error
    """From the error of a write to what is told of a group whose record could not be written. OLD: 27 instead of 15 if
    it took too long."""

    offset_write_error: Callable[[Error], Error] = new_write_error
    """The same for the offsets of OffsetCommit. OLD: 28 instead of -1 if they were too large."""

    commit_error_in_unknown_group: Error = Error.GROUP_ID_NOT_FOUND
    """What a member's OffsetCommit of v9 and later is told in a group that is not there. OLD: 22, as in all versions
    (`GroupCoordinator.handleCommitOffsets`)."""

    leave_is_evaluated_once: bool = True
    """Whether LeaveGroup looks only once whether that starts or ends a rebalance: after the last of its members, if one
    entry succeeded, even one of an id that has not joined yet. OLD looks after each, and an id that has not joined
    starts nothing (`GroupCoordinator.handleLeaveGroup`)."""

    rejection_completes_join: bool = False
    """Whether a join phase may end because somebody it waited for is refused with GROUP_MAX_SIZE_REACHED. OLD looks at
    once, NEW with the next event (`GroupCoordinator.handleJoinGroup`)."""

    every_initial_delay_is_extended: bool = True
    """Whether new members extend the initial delay (KIP-134) of every join phase that begins with an empty group. OLD:
    of the group's first (`generationId == 0` in `GroupCoordinator.addMemberAndRebalance`)."""

    expiry_ends_initial_delay: bool = True
    """Whether the initial delay ends early when a timer removes who had not rejoined. OLD: never
    (`InitialDelayedJoin.tryComplete`)."""

    describes_assignments_of_unstable_groups: bool = True
    """Whether DescribeGroups shows the assignments of a group that is not stable, the last ones known. OLD: empty
    (`GroupMetadata.summary`, `ClassicGroupMember.describeNoMetadata`)."""

    vote_order: NameOrder = java_order
    """In which order the votes for a protocol are looked through; of equals the first wins. NEW has them in a `HashMap`
    of Java's, OLD in one of Scala's (`ClassicGroup.selectProtocol`, `GroupMetadata.selectProtocol`)."""

    offset_delete_removes_empty_groups: bool = False
    """Whether an empty group without offsets goes when offsets are deleted, not only with the next look for what has
    expired: by OffsetDelete that group, with a topic every such group. OLD: yes
    (`GroupMetadataManager.cleanupGroupMetadata`)."""

    writes_tombstone_at_generation_0: bool = True
    """Whether the end of a group is written though it never had a generation, and so in OLD no record either
    (`GroupMetadataManager.cleanupGroupMetadata`)."""

    # -- the history of releases, the latest change first ----------------------------------------------------

    commits_remember_topic_ids: bool = True
    """Whether a committed offset is that of a topic with a certain id, and is written with it (OffsetCommitValue v4).
    Since 4.1 (KAFKA-19141)."""

    group_operations: int = 3400
    """The authorized operations of a group (KIP-430) without an authorizer, as bits: READ, DELETE, DESCRIBE,
    DESCRIBE_CONFIGS and ALTER_CONFIGS. Before 4.0 groups have no configs: 328 (`AclEntry.supportedOperations`)."""

    any_broker_serves_admin_requests: bool = True
    """Whether a broker that is not the controller makes, deletes and enlarges topics, by asking that one (KIP-590).
    With ZooKeeper it answers NOT_CONTROLLER (`KafkaApis.handleCreateTopicsRequest`, 2.4 and 2.8)."""

    state_filter_ignores_case: bool = True
    """Whether ListGroups compares the states it is to list without case. Since 3.8 (KIP-848)."""

    rejoin_changes_timeouts: bool = True
    """Whether a member that joins again may have other timeouts. Since 3.3.2 and 3.4 (KAFKA-14009)."""

    unknown_instance_id_is_rejected: bool = True
    """Whether an instance id nobody has is refused in SyncGroup, Heartbeat, OffsetCommit and LeaveGroup. Before 3.0 it
    is ignored there if the member id is known (apache/kafka#9958)."""

    rejection_removes_pending_id: bool = True
    """Whether GROUP_MAX_SIZE_REACHED ends the wait for an id handed out with MEMBER_ID_REQUIRED. Since 3.0
    (apache/kafka#9958)."""

    pending_sync_expires: bool = True
    """Whether members that do not send SyncGroup within the rebalance timeout are removed. Since 2.8.1 and 3.0
    (KAFKA-12890)."""

    unstable_groups_keep_offsets: bool = True
    """Whether no offset of a group with members expires while it rebalances. Since 2.8.2 and 3.0.1 (KAFKA-13636)."""

    heartbeat_succeeds_before_sync: bool = True
    """Whether a heartbeat between JoinGroup and SyncGroup keeps the member alive and is answered 0. Before 2.7 it is
    answered 27 and does not (KAFKA-10134)."""

    static_rejoin_is_written: bool = True
    """Whether the new id of a static member that is back in a stable group is written, and its protocols looked at.
    Before 2.6.1 it is answered at once, whatever it offers (KAFKA-10284)."""

    size_limit_counts_parked_joins: bool = True
    """Whether in a join phase `group.max.size` counts those who wait. Before 2.6 it counts members: the next one
    without an id is refused, and if there are too many also those who have not rejoined (KAFKA-9885)."""

    static_rejoin_before_sync_rebalances: bool = True
    """Whether a static member that is back between JoinGroup and SyncGroup starts a rebalance. Before 2.5 it is
    answered with the generation there is (KAFKA-9801)."""

    new_member_session_begins_with_join: bool = True
    """Whether the session of a new member begins with the answer to its first JoinGroup. In 2.4 nobody watches it until
    it is heard of again (KAFKA-9752)."""

    coordinator_type_error: Error = Error.INVALID_REQUEST
    """What FindCoordinator says of a type of key that does not exist. In 2.4: -1 (`CoordinatorType.forId`)."""

    offset_delete_repeats_topics: bool = False
    """Whether the answer to OffsetDelete has the row of a topic once for each of its partitions, every time with all of
    them. In 2.4 (`KafkaApis.handleOffsetDeleteRequest`)."""

    default_group_operations: int = -(1 << 31)
    """What DescribeGroups says of authorized operations nobody asked for. In 2.4: 0 (`KafkaApis`)."""

    @classmethod
    def of(cls, release: str, *, new_coordinator: bool) -> Dialect:
        """The dialect of a release; `new_coordinator` counts where there is a choice."""
        chosen = new_coordinator and release == NEW_COORDINATOR_CHOSEN_IN
        return KAFKA_3_9_NEW if chosen else _DIALECTS[release]


KAFKA_4_3 = Dialect()
KAFKA_4_0 = replace(KAFKA_4_3, commits_remember_topic_ids=False)
KAFKA_3_9_NEW = replace(KAFKA_4_0, group_operations=328)
KAFKA_3_9_OLD = replace(
    KAFKA_3_9_NEW,
    sync_error_while_loading=Error.REBALANCE_IN_PROGRESS,
    join_echoes_member_id_when_unavailable=True,
    join_checks_session_timeout_first=False,
    lists_groups_while_loading=True,
    serves_unreadable_partitions=True,
    writes_new_groups=False,
    waits_for_log=False,
    stable_sync_restarts_session=True,
    sync_may_name_unset_protocol=False,
    replaced_member_stays_new=True,
    group_write_error=old_group_write_error,
    offset_write_error=old_offset_write_error,
    commit_error_in_unknown_group=Error.ILLEGAL_GENERATION,
    leave_is_evaluated_once=False,
    rejection_completes_join=True,
    every_initial_delay_is_extended=False,
    expiry_ends_initial_delay=False,
    describes_assignments_of_unstable_groups=False,
    vote_order=scala_order,
    offset_delete_removes_empty_groups=True,
    writes_tombstone_at_generation_0=False,
)
KAFKA_2_8 = replace(
    KAFKA_3_9_OLD,
    any_broker_serves_admin_requests=False,
    state_filter_ignores_case=False,
    rejoin_changes_timeouts=False,
    unknown_instance_id_is_rejected=False,
    rejection_removes_pending_id=False,
)
KAFKA_2_4 = replace(
    KAFKA_2_8,
    pending_sync_expires=False,
    unstable_groups_keep_offsets=False,
    heartbeat_succeeds_before_sync=False,
    static_rejoin_is_written=False,
    size_limit_counts_parked_joins=False,
    static_rejoin_before_sync_rebalances=False,
    new_member_session_begins_with_join=False,
    coordinator_type_error=Error.UNKNOWN_SERVER_ERROR,
    offset_delete_repeats_topics=True,
    default_group_operations=0,
)

_DIALECTS = {"4.3": KAFKA_4_3, "4.0": KAFKA_4_0, "3.9": KAFKA_3_9_OLD, "2.8": KAFKA_2_8, "2.4": KAFKA_2_4}
