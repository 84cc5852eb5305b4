"""The part of `Group` for share groups (KIP-932): holders of records, and the end of locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.control.shares import Shares

from .names import GroupHandle, MemberLike, TopicLike, member_name, topic_name_of

if TYPE_CHECKING:
    from koordinator.emulator.control.results import SharePosition


class ShareControls(GroupHandle):
    """The records of a share group. Partitions are known once a member has fetched from them."""

    def share_positions(self, topic: TopicLike | None = None) -> list[SharePosition]:
        """Return where the group is in each partition, and the records in flight with their holders.

        `topic partition start_offset end_offset records`; each of the records has `first_offset last_offset state
        delivery_count member_id lock_remaining_ms`.
        """
        name = None if topic is None else topic_name_of(topic)
        return self._port.call(Shares.positions, group=self.id, topic=name)

    def expire_locks(
        self,
        topic: TopicLike | None = None,
        partition: int | None = None,
        offset: int | None = None,
        *,
        member: MemberLike | None = None,
    ) -> int:
        """End the locks of records now, as if their time was over; return the number of the records.

        They are delivered again, or archived at the delivery limit: `group.expire_locks("orders", 0, 5)` for one
        record, `group.expire_locks(member=m)` for all that a member holds, by its member id, or by the client id that
        no other member has. The clock does not move. Raises ValueError for a name that is not known.
        """
        return self._port.call(
            Shares.expire_locks,
            group=self.id,
            topic=None if topic is None else topic_name_of(topic),
            partition=partition,
            offset=offset,
            member=None if member is None else member_name(member),
        )
