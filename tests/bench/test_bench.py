"""The benchmark compares what it says it compares, and gives every row a target. Nothing here looks at any time."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from koordinator.wire.codec import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCH = Path(__file__).parents[2] / "bench"
LIMIT_S = 120

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the load needs epoll and /proc")


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "measuring"]:
        del sys.modules[name]


def measuring(name: str) -> Any:
    return import_module(f"measuring.{name}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_way_to_write_a_message_writes_the_same_bytes() -> None:
    codecs = measuring("codecs")
    for _, message, version in measuring("samples").SAMPLES:
        data = encode(message, version)
        ways = codecs._ways(message, version, data)
        assert {way.name: way.write() for way in ways} == dict.fromkeys(
            ("koordinator", "stock Construct", "by hand", "kafka-python"), data
        )
        by_name = {way.name: way.read() for way in ways}
        assert by_name["koordinator"] == by_name["by hand"] == message


def test_members_of_a_group_beat_and_every_byte_of_the_answers_is_looked_at(capfd: pytest.CaptureFixture[str]) -> None:
    processes = measuring("processes")
    with processes.emulator() as server, processes.load() as load:
        load.tell(order="form", port=server.port, connections=3, in_flight=4)
        assert load.tell(order="beat", each=10).keys() == {"seconds", "p50_us", "p99_us"}
        assert server.resident_bytes() > 0
    with processes.echo() as server, processes.load() as load:
        load.tell(order="echo", port=server.port, connections=3, in_flight=4)
        load.tell(order="beat", each=10)
        with pytest.raises(RuntimeError, match="has ended"):
            load.tell(order="form", port=server.port, connections=1)
    assert "JoinGroup was answered with" in capfd.readouterr().err


def test_every_row_says_its_target_and_its_verdict(tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    command = [sys.executable, str(BENCH / "run.py"), "--quick", "--json", str(target)]
    command += ["--only", "groups", "--only", "memory", "--only", "start"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
    found = json.loads(target.read_text(encoding="utf-8"))
    assert found["quick"]
    assert len(found["rows"]) == 9
    for row in found["rows"]:
        assert row["target"], row
        assert row["met"] in (True, False, None), row
        assert row["figures"], row
        assert row["measured"] in shown, row
