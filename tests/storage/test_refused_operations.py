"""An operation that the disk refuses leaves nothing behind."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from koordinator import Cluster, Emulator
from koordinator.emulator.control.inspect.topics import Topics
from koordinator.emulator.storage.files import File

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEMBER = {"group_id": "h", "generation": 1, "members": [{"instance_id": "i"}]}
WRITING: dict[str, Callable[[Cluster], object]] = {
    "create": lambda cluster: cluster.create_topic("u", records=["a"]),
    "produce": lambda cluster: cluster.produce("t", "a"),
    "add_partitions": lambda cluster: cluster.add_partitions("t", 1),
    "load_groups": lambda cluster: cluster.load_groups([MEMBER]),
}


@pytest.mark.parametrize("operation", WRITING)
def test_an_operation_that_cannot_be_written_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    def full(_file: File, _at: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def content(cluster: Cluster) -> list[object]:
        topics = cluster._port.call(Topics.describe)
        return [topics, cluster.records("t"), cluster.dump_groups()]

    with Emulator({"t": 1}, data_dir=tmp_path) as cluster:
        cluster.load_groups([{**MEMBER, "group_id": "jumping"}])
        before = content(cluster)
        with monkeypatch.context() as disk:
            disk.setattr(File, "write", full)
            with pytest.raises(ValueError, match="Disk error: No space left on device"):
                WRITING[operation](cluster)
        assert content(cluster) == before
        WRITING[operation](cluster)
        after = content(cluster)
        assert after != before
    with Emulator(data_dir=tmp_path) as cluster:
        assert content(cluster) == after
