"""The commit room: here the records of groups are written, take effect, and are taken back if their write fails.

A handler reads the state, decides on records and an answer, and hands both over; recorded state changes only where
records are replayed. The model is Kafka's `CoordinatorRuntime`.

* **Offsets** take effect when they are durable, in the order of the log, as loading replays them. Until then their
  partitions are in flight (`GroupStore.in_flight`), and a failed write leaves nothing to take back.
* **Consumer, share and streams groups** replay their records at once: the next request builds on them. The write has a
  `Journal`: for each change the key and what was there before. A failed write takes its changes back, after those of
  all later writes of the group, which were decided on top of them and fail as well.
* **Classic groups** change first and write what they have become, as in Kafka. A write may have a completion, Kafka's
  `appendFuture`.
* **Answers** wait for the write. One of a request without records waits for the newest write of its group, because it
  may speak of it.
* **Soft state** is in no record: parked requests, sessions, timers, what is pending. It stays when a write fails, but
  for the timers of members which the write has changed; they are in its journal.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import OffsetCommitKey
from koordinator.wire.values import mutable

from ..journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from koordinator.wire.apis import Message

    from ..effects import Answer, Call
    from .group import BaseGroup
    from .group_store import GroupStore
    from .records import CoordinatorRecord

    Completion = Callable[[GroupStore, BaseGroup, Error], None]


@mutable
class GroupWrite:
    """A batch of records in flight; `position` orders it in the log. `completed` is called at its end, before answers.

    The records of a transaction have the id and epoch of its `producer`.
    """

    group: BaseGroup
    records: Sequence[CoordinatorRecord]
    answers: list[Answer] = field(default_factory=list)
    journal: Journal = field(default_factory=Journal)
    completed: Completion | None = None
    producer: tuple[int, int] | None = None
    position: int = 0


def or_error(store: GroupStore, call: Call | None, response: Message | None) -> list[Answer]:
    """Return the answer of a call, if there is one: this response, or one of its kind with the error of the write."""
    if call is None or response is None:
        return []
    kind: Callable[..., Message] = type(response)

    def answer(error: Error) -> Message:
        return response if error is Error.NONE else kind(error_code=store.dialect.group_write_error(error))

    return [(call, answer)]


def answer_after_writes(store: GroupStore, group: BaseGroup, call: Call | None, response: Message | None) -> None:
    """Answer a call, after the newest write of its group."""
    for write in reversed(store.writes.values()):
        if write.group is group:
            write.answers += or_error(store, call, response)
            return
    store.reply(call, response)


def complete(store: GroupStore, write: GroupWrite, error: Error) -> list[int]:
    """Let a durable write take effect, or take a failed one back, and answer what waits for it.

    Return the tokens of the later writes that were taken back with it, and fail as well.
    """
    group, later = write.group, {}
    if error is Error.NONE:
        group.stored = True
        store.written(group.partition)
        # the group may not use its topics any more
        group.earliest_offset_expiry = 0
        replay_offsets(store, write)
    else:
        later = {token: each for token, each in store.writes.items() if each.group.id == group.id and each.journal}
        for each in reversed([write, *later.values()]):
            each.journal.revert()
    if write.completed is not None:
        write.completed(store, group, error)
    if error is not Error.NONE:
        store.discard_if_unused(group)
    for call, answer in write.answers:
        response = answer(error)
        if response is not None:
            store.reply(call, response)
    return list(later)


def take_back(store: GroupStore, newest: int, call: Call | None = None) -> None:
    """Take back what a request or a timer has changed before a bug ended it: its writes fail, and reach no log.

    `newest` is the token of the newest write before it. The members of classic groups stay as they are, as in Kafka.
    """
    placed, store.placed = store.placed, None
    for token in [each for each in reversed(store.writes) if each > newest]:
        write = store.withdraw(token)
        write.answers = [answer for answer in write.answers if answer[0] is not call]
        complete(store, write, Error.UNKNOWN_SERVER_ERROR)
    if placed is not None:
        placed.revert()


def replay_offsets(store: GroupStore, write: GroupWrite) -> None:
    """Replay the records of offsets in a write."""
    producer_id, ends_pending = write.producer and write.producer[0], store.dialect.tombstones_end_pending_offsets
    for record in write.records:
        if isinstance(record.key, OffsetCommitKey):
            write.group.table.replay(record, write.position, producer_id, ends_pending=ends_pending)
            write.group.earliest_offset_expiry = 0
