"""`examples/demo.py`: its claims hold, it ends its processes, and it reports a claim that fails."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from clients.consumers import PATIENCE_S
from clients.demo import EXAMPLES, examples, false_claims, story, verdicts
from rich.console import Console

__all__ = ["examples", "story", "verdicts"]

"""The demo takes less than 60 s on an idle machine; other tests may run beside it."""

NAMES = [f"{client}-{number}" for client in ("kafka-python", "confluent-kafka", "aiokafka") for number in (1, 2)]


@pytest.mark.slow
def test_everything_the_demo_claims_is_true_and_stays(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "demo.py"],
        cwd=EXAMPLES,
        # without PATH there is no Java, whose members are tested elsewhere
        env={**os.environ, "KEEP": str(tmp_path / "new" / "demo"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "✗" not in done.stdout
    assert re.search(r"All 22 claims were true; \d+ s", done.stdout)
    assert re.search(r"watch it live: http://127\.0\.0\.1:\d+/", done.stdout)
    (refused,) = done.stderr.splitlines()
    assert refused.endswith("JoinGroup is refused: group 'full' is full: group.max.size=2")
    seen = json.loads((tmp_path / "new" / "demo" / "seen.json").read_text())
    assert seen["groups"]["static"]["avoided"] == 6
    assert seen["groups"]["dynamic"]["completed"] > 12
    header = json.loads((tmp_path / "new" / "demo" / "trace.jsonl").read_text().partition("\n")[0])
    assert (header["kind"], header["run_id"]) == ("header", seen["run_id"])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="children are looked for in /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_the_server_and_the_members_end_with_the_demo(number: signal.Signals, code: int, tmp_path: Path) -> None:
    (tmp_path / "seen.json").write_text("the counts of an earlier run")
    with subprocess.Popen(
        [sys.executable, "-u", "demo.py"],
        cwd=EXAMPLES,
        env={**os.environ, "KEEP": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "records produced" in line:
                break
        # the members are just starting
        members: set[int] = set()
        while len(members) < 1 + 6:
            assert demo.poll() is None
            members = children(demo.pid)
        demo.send_signal(number)
        demo.communicate(timeout=PATIENCE_S)
        assert demo.returncode == code
    assert not (tmp_path / "seen.json").exists()
    # a member that was just starting ends without a signal, as in the next test
    until = time.monotonic() + PATIENCE_S
    while any(is_alive(pid) for pid in members):
        assert time.monotonic() < until, members


def test_a_member_process_ends_with_its_parent() -> None:
    clients = import_module("bouncing.clients")
    # nothing listens there: the client retries without end
    nowhere = clients.Membership("127.0.0.1:1", "t", "g", "m", None, 10_000, 500)
    with subprocess.Popen(
        [sys.executable, "-m", "bouncing.member", "confluent-kafka", json.dumps(asdict(nowhere))],
        cwd=EXAMPLES,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as member:
        assert member.stdin is not None
        assert member.stdout is not None
        assert json.loads(member.stdout.readline())["pid"] == member.pid
        member.stdin.close()
        assert member.wait(PATIENCE_S) == 1


def test_the_page_is_kept_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    demo, shown = import_module("demo"), io.StringIO()
    waits: list[str] = []

    class Interrupted:
        def wait(self) -> None:
            waits.append(shown.getvalue())
            raise KeyboardInterrupt

    monkeypatch.setattr(demo, "threading", SimpleNamespace(Event=Interrupted))
    with import_module("bouncing.server").Server() as server:
        demo.hold(Console(file=shown, width=200), server)
        (line,) = waits
        assert server.page in line
        assert httpx.get(server.page, trust_env=False, timeout=PATIENCE_S).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.page, trust_env=False, timeout=PATIENCE_S)


def test_a_failed_wait_names_its_condition() -> None:
    processes = import_module("bouncing.processes")
    with pytest.raises(processes.LateError, match=r"waited 0.01 s in vain for: six members"):
        processes.wait_for("six members", lambda: False, patience_s=0.01)


def status(pid: int) -> tuple[str, int] | None:
    """Return state and parent of a process; None for a missing process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def children(pid: int) -> set[int]:
    running = {int(each.name): status(int(each.name)) for each in Path("/proc").iterdir() if each.name.isdigit()}
    return {child for child, known in running.items() if known is not None and known[1] == pid}


def is_alive(pid: int) -> bool:
    known = status(pid)
    return known is not None and known[0] != "Z"


def test_counts_are_completed_and_avoided_rebalances() -> None:
    steps = [("Empty", "PreparingRebalance"), ("PreparingRebalance", "CompletingRebalance")]
    superseded = [("CompletingRebalance", "PreparingRebalance"), ("PreparingRebalance", "CompletingRebalance")]
    ended = [("CompletingRebalance", "Stable"), ("Stable", "PreparingRebalance"), ("PreparingRebalance", "Empty")]
    changes = [
        {"kind": "state", "wall_ts": 1, "generation": 1, "reason": "", "state_from": before, "state_to": after}
        for before, after in (*steps, *superseded, *ended, ("Empty", "PreparingRebalance"))
    ]
    lines = [{**line, "group_id": "g"} for line in (*changes, {"kind": "avoided_static"})]
    kept = import_module("bouncing.kept")
    assert kept.counted([{"kind": "header"}, *lines]) == {"g": {"completed": 1, "emptied": 1, "avoided": 1}}


def test_the_trace_of_another_run_is_not_counted(tmp_path: Path) -> None:
    kept = import_module("bouncing.kept")
    (tmp_path / "trace.jsonl").write_text('{"kind": "header", "run_id": "later"}\n')
    with pytest.raises(ValueError, match="the trace of run later, not of mine; run the demo again"):
        kept.write_seen(tmp_path, "mine")


def test_consecutive_records_are_reported_as_one_run() -> None:
    member = import_module("bouncing.member")
    assert member.runs([(0, 4), (0, 5), (1, 0), (0, 6), (0, 8)]) == [[0, 4, 5], [1, 0, 0], [0, 6, 6], [0, 8, 8]]


@pytest.mark.needs("java")
def test_six_consumers_of_two_languages_change_their_protocol_and_back_and_lose_and_repeat_nothing() -> None:
    demo, acts, verdicts = (import_module(name) for name in ("demo", "bouncing.acts", "bouncing.verdicts"))
    processes, server = import_module("bouncing.processes"), import_module("bouncing.server")
    with server.Server() as running, processes.Company() as company:
        cluster = running.remote.create("rolling", config=demo.PROMPT)
        with acts.Scene(cluster, company, print) as scene:
            seen = acts.upgrade(scene, ("confluent-kafka", "java"))
    assert false_claims(verdicts.of_upgrade(seen)) == []
    assert seen.consumed.total() > 1_000
