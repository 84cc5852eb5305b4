import sys
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.wire.frames import FrameBuffer, frame
from koordinator.wire.primitives import Malformed


def all_frames(buffer: FrameBuffer) -> list[bytes]:
    return list(iter(buffer.next_frame, None))


@pytest.mark.slow
@given(st.lists(st.binary(max_size=20), max_size=8), st.data())
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frame(each) for each in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    buffer = FrameBuffer(20)
    received = []
    for start, end in pairwise([0, *cuts, len(stream)]):
        buffer.feed(stream[start:end])
        received += all_frames(buffer)
    assert received == frames
    assert len(buffer) == 0


def test_an_incomplete_frame_is_kept_until_the_rest_comes() -> None:
    buffer = FrameBuffer(100)
    buffer.feed(b"\0\0")
    assert buffer.next_frame() is None
    buffer.feed(b"\0\3ab")
    assert buffer.next_frame() is None
    assert len(buffer) == 6
    buffer.feed(b"c\0")
    assert buffer.next_frame() == b"abc"
    assert len(buffer) == 1


def test_a_frame_of_the_limit_is_taken_and_one_more_byte_is_malformed() -> None:
    buffer = FrameBuffer(5)
    buffer.feed(frame(b"12345"))
    assert buffer.next_frame() == b"12345"
    buffer.feed(frame(b"123456")[:4])  # no need to wait for what follows
    for _ in range(2):  # and it stays so
        with pytest.raises(Malformed, match="6 bytes"):
            buffer.next_frame()


def test_a_negative_length_is_malformed() -> None:
    buffer = FrameBuffer(5)
    buffer.feed(b"\xff\xff\xff\xff")
    with pytest.raises(Malformed, match="-1 bytes"):
        buffer.next_frame()


def test_announced_lengths_allocate_nothing() -> None:
    buffer = FrameBuffer(2**31 - 1)
    buffer.feed(b"\x7f\xff\xff\xff" + b"x" * 100)
    assert buffer.next_frame() is None
    assert len(buffer) == 104
    assert sys.getsizeof(buffer) < 1000


@pytest.mark.slow
def test_many_frames_in_one_piece_take_time_in_proportion() -> None:
    buffer = FrameBuffer(10)
    buffer.feed(frame(b"1234") * 400_000)  # moving the rest for each would take minutes
    started = process_time()
    assert sum(1 for _ in all_frames(buffer)) == 400_000
    assert process_time() - started < 10


def test_one_frame_in_many_pieces_takes_time_in_proportion() -> None:
    buffer = FrameBuffer(2**24)
    data = frame(b"x" * 2**24)
    started = process_time()
    for at in range(0, len(data), 100):  # 170,000 pieces: copying what is there for each would take minutes
        assert buffer.next_frame() is None
        buffer.feed(data[at : at + 100])
    assert buffer.next_frame() == data[4:]
    assert process_time() - started < 10


def test_the_parts_of_a_frame_stand_behind_their_length_together() -> None:
    assert frame(b"ab", b"cde") == b"\0\0\0\5abcde"
    assert frame(b"") == b"\0\0\0\0"
