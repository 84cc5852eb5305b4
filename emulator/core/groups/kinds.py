"""The kinds of groups, by their type in ListGroups. A new kind adds a row, and a folder for its rules."""

from __future__ import annotations

from functools import partial
from typing import Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import GroupMetadataKey

from .classic import changes, join, membership, rebalance, sync
from .classic import loading as classic_loading
from .classic import offsets as classic_offsets
from .classic import overrides as classic_overrides
from .classic.group import CLASSIC, ClassicGroup
from .consumer import offsets as consumer_offsets
from .consumer.group import ConsumerGroup
from .conversion import classic_members, removal, streams_groups
from .group import CONSUMER
from .group_store import GroupStore
from .kind import GroupKind
from .modern import loading, offsets, other_requests
from .share import heartbeat as share_heartbeat
from .share import initialization as share_initialization
from .share import offsets as share_offsets
from .share.group import SHARE, ShareGroup
from .streams import heartbeat as streams_heartbeat
from .streams import offsets as streams_offsets
from .streams.group import STREAMS, StreamsGroup

KINDS: dict[str, GroupKind[Any]] = {
    CLASSIC: GroupKind[ClassicGroup](
        join=join.join,
        sync=sync.sync,
        heartbeat=membership.heartbeat,
        leave=membership.leave,
        commit_error=classic_offsets.commit_error,
        transactional_commit_error=classic_offsets.transactional_commit_error,
        fetch_error=lambda _group, _query: Error.NONE,
        fire=rebalance.fire,
        end=changes.transition,
        restore=classic_loading.restore,
        unload=classic_loading.unload,
        keys=(GroupMetadataKey,),
        replaces=lambda _record: True,
        load=classic_loading.load,
        force_rebalance=classic_overrides.force_rebalance,
        delete=GroupStore.delete_empty_group,
        thaw=rebalance.complete_if_all_joined,
    ),
    CONSUMER: GroupKind[ConsumerGroup](
        join=classic_members.join,
        sync=classic_members.sync,
        heartbeat=classic_members.heartbeat,
        leave=classic_members.leave,
        commit_error=consumer_offsets.commit_error,
        transactional_commit_error=consumer_offsets.transactional_commit_error,
        fetch_error=offsets.fetch_error,
        fire=removal.fire,
        end=loading.end,
        keys=ConsumerGroup.record_types.keys,
        replaces=ConsumerGroup.is_replaced_by,
        load=partial(loading.load, kind=ConsumerGroup),
        force_rebalance=loading.force_rebalance,
        delete=GroupStore.delete_empty_group,
    ),
    SHARE: GroupKind[ShareGroup](
        join=other_requests.join,
        sync=other_requests.sync,
        heartbeat=lambda _store, _group, _call, _request: Error.UNKNOWN_MEMBER_ID,
        leave=other_requests.leave,
        commit_error=lambda _store, _group, _call, _request: Error.GROUP_ID_NOT_FOUND,
        transactional_commit_error=lambda _store, _group, _request: Error.GROUP_ID_NOT_FOUND,
        fetch_error=lambda _group, _query: Error.NONE,
        fire=share_heartbeat.fire,
        end=loading.end,
        keys=ShareGroup.record_types.keys,
        replaces=ShareGroup.is_replaced_by,
        load=partial(loading.load, kind=ShareGroup),
        force_rebalance=loading.force_rebalance,
        delete=share_offsets.delete_group,
        topics_deleted=share_initialization.topics_deleted,
    ),
    STREAMS: GroupKind[StreamsGroup](
        join=streams_groups.join,
        sync=other_requests.sync,
        heartbeat=lambda _store, _group, _call, _request: Error.UNKNOWN_MEMBER_ID,
        leave=other_requests.leave,
        commit_error=streams_offsets.commit_error,
        transactional_commit_error=streams_offsets.transactional_commit_error,
        fetch_error=offsets.fetch_error,
        fire=streams_heartbeat.fire,
        end=loading.end,
        keys=StreamsGroup.record_types.keys,
        replaces=StreamsGroup.is_replaced_by,
        load=partial(loading.load, kind=StreamsGroup),
        force_rebalance=loading.force_rebalance,
        delete=GroupStore.delete_empty_group,
    ),
}
