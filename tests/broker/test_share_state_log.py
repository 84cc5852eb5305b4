"""Records of share partitions in `__share_group_state`, read as Kafka's `ShareCoordinatorRecordSerde` does."""

from __future__ import annotations

from uuid import UUID

import pytest

from koordinator.emulator.broker.share_state_log import share_state_batch, share_states_of
from koordinator.emulator.core.data.log import PartitionLog
from koordinator.wire.messages.share_state_records import ShareSnapshotKey, ShareSnapshotValue, write_key, write_value
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import Record, read_header, write_batch

KEY = ShareSnapshotKey(group_id="g", topic_id=UUID(int=7), partition=0)
STATE = ShareSnapshotValue(snapshot_epoch=1, state_epoch=2, leader_epoch=3, start_offset=4)


def log(*batches: bytes) -> PartitionLog:
    found = PartitionLog()
    for each in batches:
        found.append(read_header(each), each, 0)
    return found


def batch(key: bytes | None, value: bytes | None) -> bytes:
    return write_batch([Record(timestamp=1, key=key, value=value)])


def test_states_and_tombstones_are_read_in_order() -> None:
    read = list(share_states_of(log(share_state_batch(KEY, STATE, 1), share_state_batch(KEY, None, 2))))
    assert read == [(KEY, STATE), (KEY, None)]


def test_records_of_unknown_types_are_passed_over() -> None:
    unknown = batch(b"\0\x09" + write_key(KEY)[2:], write_value(STATE))
    assert list(share_states_of(log(unknown, share_state_batch(KEY, STATE, 1)))) == [(KEY, STATE)]


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, write_value(STATE)), (b"\0", b""), (write_key(KEY)[:-1], b""), (write_key(KEY), b"\0\x09")],
    ids=["no key", "no type", "a cut key", "an unknown version"],
)
def test_anything_else_makes_the_partition_unreadable(key: bytes | None, value: bytes) -> None:
    with pytest.raises(Malformed):
        list(share_states_of(log(batch(key, value))))


def test_a_record_without_a_key_is_named_by_its_offset() -> None:
    with pytest.raises(Malformed, match="offset 1: a record without a key"):
        list(share_states_of(log(share_state_batch(KEY, STATE, 1), batch(None, b""))))
