"""One load at a time writes to a store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from koordinator.pipeline.job_errors import JobRefused
from koordinator.pipeline.loading import Loader
from koordinator.pipeline.lock import locked
from koordinator.pipeline.store import Store

HOLDER = """
import sys
from pathlib import Path
from koordinator.pipeline.lock import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""

END_S = 600


def test_a_second_load_is_refused_and_names_the_first(tmp_path: Path) -> None:
    store = tmp_path / "store"
    second = Loader(None, Store(f"file:{store}"), print, 0.0)  # type: ignore[arg-type] - refused before it needs Spark
    with locked(store):
        owner = rf"store: process {os.getpid()} on .+, since .+, is loading into it: wait until it ends"
        with pytest.raises(JobRefused, match=owner):
            second.load([str(tmp_path)])
    assert [path.name for path in store.iterdir()] == ["lock"]


def test_a_killed_load_holds_no_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(JobRefused, match=f"process {holder.pid} "), locked(tmp_path):
            pass
        holder.kill()
        holder.wait(END_S)
    with locked(tmp_path):
        pass


def test_a_store_elsewhere_has_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with locked(Store("hdfs://namenode/store").local), locked(None):
        assert list(Path().iterdir()) == []


def test_a_folder_that_cannot_be_written_is_left_to_spark_to_explain(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with locked(tmp_path / "file" / "store"):
        pass
