"""A data directory that others remove, replace or shorten: its server acknowledges and changes nothing more."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from brokers.durable_broker import DurableCluster

from koordinator.emulator.storage.data_dir import JOURNAL, LOG, REPLACED, DataDir, DataDirRefused
from koordinator.emulator.storage.files import File, Files
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def contents(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def filled(path: Path) -> DurableCluster:
    """Return a cluster with records and offsets."""
    durable = DurableCluster(path)
    durable.create("t")
    assert durable.produce("t", b"before") is durable.commit("g", "t", 1) is Error.NONE
    return durable


def refusals(durable: DurableCluster) -> set[Error]:
    """Write something of each kind; return the errors."""
    return {
        durable.produce("t", b"lost"),
        durable.commit("g", "t", 2),
        durable.commit("new", "t", 2),
        durable.create("u"),
        durable.delete("t"),
    }


REFUSED = {Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR}
"""Kafka's errors of a failed log directory: of the data plane, and of a coordinator."""


def said(path: Path, reason: str) -> str:
    return f"data directory {path}: {reason}; serving continues, and failed writes are refused"


def test_a_server_whose_directory_was_replaced_leaves_the_new_owner_everything(tmp_path: Path) -> None:
    path = tmp_path / "d"
    first = filled(path)
    shutil.rmtree(path)
    second = DurableCluster(path)
    second.create("t")
    offsets = range(2, 22)
    assert {second.commit("g", "t", offset) for offset in offsets} == {Error.NONE}
    before = contents(path)
    assert refusals(first) == REFUSED
    assert first.logged == [said(path, REPLACED)]
    assert (first.values("t"), first.committed("g", "t")) == ([b"before"], 1), "reads go on"
    assert contents(path) == before
    second.built.close()
    third = DurableCluster(path)
    assert (third.committed("g", "t"), third.logged) == (offsets[-1], [])


def test_the_end_of_a_server_whose_directory_was_replaced_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "d"
    first = filled(path)
    shutil.rmtree(path)
    second = DurableCluster(path)
    # a partition's directory without a log
    (path / "t-0").mkdir()
    before = contents(path)
    first.built.close()
    assert contents(path) == before
    second.built.close()


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_server_whose_directory_was_removed_makes_nothing(tmp_path: Path, is_made_again: bool) -> None:  # noqa: FBT001
    path = tmp_path / "d"
    durable = filled(path)
    shutil.rmtree(path)
    if is_made_again:
        path.mkdir()
    assert refusals(durable) == REFUSED
    assert durable.logged == [said(path, REPLACED)]
    assert list(tmp_path.rglob("*")) == ([path] if is_made_again else [])


def test_a_server_whose_directory_comes_back_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "d"
    durable = filled(path)
    path.rename(tmp_path / "moved")
    assert refusals(durable) == REFUSED
    (tmp_path / "moved").rename(path)
    assert durable.produce("t", b"after") is durable.commit("g", "t", 3) is Error.NONE
    durable.built.close()
    durable = DurableCluster(path)
    assert (durable.values("t"), durable.committed("g", "t")) == ([b"before", b"after"], 3)


@pytest.mark.parametrize("name", [f"t-0/{LOG}", JOURNAL])
@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"short")])
def test_nothing_is_written_after_lost_content(tmp_path: Path, name: str, damage: Callable[[Path], object]) -> None:
    durable = filled(tmp_path)
    damage(tmp_path / name)
    changes = {JOURNAL: lambda: durable.create("u")}
    assert changes.get(name, lambda: durable.produce("t", b"lost"))() is Error.KAFKA_STORAGE_ERROR
    assert durable.logged == [said(tmp_path, f"{name}: shortened by others; restart the server")]
    assert (tmp_path / name).read_bytes() in {b"", b"short"}, "a longer file would end in zeros"
    assert durable.commit("g", "t", 2) is Error.NONE, "other files are written"


def test_a_start_on_a_directory_that_is_replaced_meanwhile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d"
    filled(path).built.close()
    late = DataDir(path, print)
    shutil.rmtree(path)
    filled(path).built.close()
    before = contents(path)
    with pytest.raises(DataDirRefused, match="removed or replaced"):
        late.begin("c")
    assert contents(path) == before


def test_a_directory_that_is_removed_before_its_lock_is_taken_is_refused(tmp_path: Path) -> None:
    class RemovingFiles(Files):
        def open(self, path: Path) -> File:
            file = super().open(path)
            shutil.rmtree(path.parent)
            return file

    with pytest.raises(DataDirRefused, match="removed or replaced"):
        DataDir(tmp_path / "d", print, RemovingFiles())
