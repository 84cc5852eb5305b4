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
from collections import Counter
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"

PATIENCE_S = 180
"""The demo takes less than 60 s on an idle machine; other tests may run beside it."""

NAMES = [f"{client}-{number}" for client in ("kafka-python", "confluent-kafka", "aiokafka") for number in (1, 2)]


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in [name for name in sys.modules if name == "demo" or name.split(".")[0] == "bouncing"]:
        del sys.modules[name]


@pytest.fixture
def story() -> ModuleType:
    return import_module("bouncing.story")


@pytest.fixture
def verdicts() -> ModuleType:
    return import_module("bouncing.verdicts")


@pytest.mark.slow
def test_everything_the_demo_claims_is_true_and_stays(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "demo.py"],
        cwd=EXAMPLES,
        env={**os.environ, "KEEP": str(tmp_path / "new" / "demo")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "✗" not in done.stdout
    assert re.search(r"All 17 claims were true; \d+ s", done.stdout)
    assert re.search(r"watch it live: http://127\.0\.0\.1:\d+/", done.stdout)
    assert done.stderr == ""
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
        # a test run in the background inherits an ignored SIGINT
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads yet
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
        assert httpx.get(server.page, trust_env=False).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.page, trust_env=False)


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


# -- verdicts on a correct run and on runs with a flaw ---


def heartbeat(generation: int) -> dict[str, Any]:
    return {"kind": "request", "api": "Heartbeat", "generation": generation, "wall_ts": 0}


def rebalance(generation: int) -> list[dict[str, Any]]:
    return [
        {
            "kind": "state",
            "state_to": state_to,
            "generation": after,
            "reason": "a member left",
            "wall_ts": 0,
        }
        for state_to, after in (
            ("PreparingRebalance", generation),
            ("CompletingRebalance", generation + 1),
            ("Stable", generation + 1),
        )
    ]


def bounce_story(story: ModuleType, *, static: bool) -> Any:
    held = {name: (number,) for number, name in enumerate(NAMES)}
    before = story.Described("STABLE", held, {name: f"{name}-old" for name in NAMES})
    after = story.Described("STABLE", held, {name: f"{name}-new" for name in NAMES})
    ends = dict.fromkeys(range(len(NAMES)), 0) | {0: 10_000}
    disturbed = [] if static else [(name, "revoked") for name in NAMES[1:]]
    events = [heartbeat(1)]
    if static:
        events += [{"kind": "avoided_static", "wall_ts": 0}] * len(NAMES)
    else:
        events += [event for generation in range(1, 7) for event in rebalance(generation)]
    return story.GroupStory(
        group_id="g",
        session_timeout_ms=10_000,
        began_at=0.0,
        bounced_from=0.0,
        ended_at=9.0,
        processes=tuple(
            story.Process(name, name[:-2], name if static else None, pid, 0.0, 1.0, ())
            for pid, name in enumerate([*NAMES, *NAMES])
        ),
        leader=NAMES[0],
        before=before,
        after=after,
        generation_before=1,
        generation_after=1 if static else 7,
        bounces=tuple(
            story.Bounce(
                name, name[:-2], "closed", pid, pid + 6, 1.0, 2.0, held[name], held[name], after, tuple(disturbed)
            )
            for pid, name in enumerate(NAMES)
        ),
        events=tuple(events),
        ends=ends,
        committed=ends,
        consumed=Counter((0, offset) for offset in range(10_000)),
    )


def false_claims(found: Any) -> list[str]:
    return [each.claim for each in found if not each.is_true]


def bounce_changed(seen: Any, **changes: Any) -> Any:
    first, *others = seen.bounces
    return replace(seen, bounces=(replace(first, **changes), *others))


STATIC_FLAWS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("another generation", lambda seen: replace(seen, generation_after=2), "the group as described is the same"),
    (
        "a heartbeat in another generation",
        lambda seen: replace(seen, events=(*seen.events, heartbeat(2))),
        "the group as described is the same",
    ),
    (
        "a state that is not Stable",
        lambda seen: bounce_changed(seen, away=replace(seen.after, state="PREPARING_REBALANCE")),
        "the group as described is the same",
    ),
    (
        "another assignment",
        lambda seen: replace(seen, after=replace(seen.after, partitions={**seen.after.partitions, NAMES[0]: (9,)})),
        "the group as described is the same",
    ),
    (
        "a callback",
        lambda seen: bounce_changed(seen, disturbed=((NAMES[1], "assigned"),)),
        "no callback in the survivors",
    ),
    (
        "a rebalance in the trace",
        lambda seen: replace(seen, events=(*seen.events, *rebalance(1))),
        "none in the trace",
    ),
    ("a bounce that the group did not see", lambda seen: replace(seen, events=seen.events[:-1]), "none in the trace"),
    ("away for too long", lambda seen: bounce_changed(seen, back_at=11.0), "within its session timeout"),
    ("a member that was not bounced", lambda seen: replace(seen, bounces=seen.bounces[1:]), "session timeout"),
    (
        "a member that left",
        lambda seen: replace(
            seen, events=(*seen.events, {"kind": "request", "api": "LeaveGroup", "generation": None, "wall_ts": 0})
        ),
        "within its session timeout",
    ),
    (
        "a member id that stayed",
        lambda seen: replace(seen, after=replace(seen.after, member_ids=seen.before.member_ids)),
        "within its session timeout",
    ),
    ("five members", lambda seen: replace(seen, processes=seen.processes[1:6] + seen.processes[7:]), "form one group"),
    (
        "two members in one process",
        lambda seen: replace(seen, processes=(replace(seen.processes[0], pid=1), *seen.processes[1:])),
        "form one group",
    ),
    (
        "a record lost",
        lambda seen: replace(seen, consumed=Counter({record: 1 for record in seen.consumed if record != (0, 77)})),
        "none lost",
    ),
    ("a record invented", lambda seen: replace(seen, consumed=seen.consumed + Counter([(1, 0)])), "none lost"),
    (
        "a record too few",
        lambda seen: replace(seen, ends={**seen.ends, 0: 9_999}, committed={**seen.ends, 0: 9_999}),
        "none lost",
    ),
    ("a commit missing", lambda seen: replace(seen, committed={**seen.ends, 0: 9_000}), "committed offsets"),
]

DYNAMIC_FLAWS: list[tuple[str, Callable[[Any], Any], str]] = [
    (
        "a rebalance too few",
        lambda seen: replace(seen, events=seen.events[:-3], generation_after=6),
        "each bounce rebalances the group",
    ),
    ("a generation that was not seen", lambda seen: replace(seen, generation_after=8), "rebalances the group"),
    (
        "a survivor undisturbed",
        lambda seen: bounce_changed(seen, disturbed=seen.bounces[0].disturbed[1:]),
        "takes the survivors' partitions away",
    ),
]


def test_a_true_story_has_true_verdicts_only(story: ModuleType, verdicts: ModuleType) -> None:
    static, dynamic = bounce_story(story, static=True), bounce_story(story, static=False)
    assert false_claims(verdicts.of_static(static)) == []
    assert false_claims(verdicts.of_dynamic(dynamic)) == []
    again = replace(static, consumed=static.consumed + static.consumed)
    assert false_claims(verdicts.of_static(again)) == [], "records may be seen again"


@pytest.mark.parametrize(("flaw", "change", "claim"), STATIC_FLAWS, ids=[flaw for flaw, _, _ in STATIC_FLAWS])
def test_a_flaw_in_the_static_bounces_is_a_false_claim(
    story: ModuleType, verdicts: ModuleType, flaw: str, change: Callable[[Any], Any], claim: str
) -> None:
    false = false_claims(verdicts.of_static(change(bounce_story(story, static=True))))
    assert any(claim in each for each in false), flaw


@pytest.mark.parametrize(("flaw", "change", "claim"), DYNAMIC_FLAWS, ids=[flaw for flaw, _, _ in DYNAMIC_FLAWS])
def test_a_flaw_in_the_dynamic_bounces_is_a_false_claim(
    story: ModuleType, verdicts: ModuleType, flaw: str, change: Callable[[Any], Any], claim: str
) -> None:
    false = false_claims(verdicts.of_dynamic(change(bounce_story(story, static=False))))
    assert any(claim in each for each in false), flaw


def test_dynamic_members_do_not_pass_for_static_ones(story: ModuleType, verdicts: ModuleType) -> None:
    false = " ".join(false_claims(verdicts.of_static(bounce_story(story, static=False))))
    for way in ("as described is the same", "no callback in the survivors", "none in the trace"):
        assert way in false


@pytest.mark.parametrize(
    "flaw",
    [{"error": "", "text": ""}, {"error": "KafkaTimeoutError"}, {"status": 0}, {"on_the_wire": 0}, {"taken_over": ()}],
)
def test_a_duplicate_without_fencing_is_a_false_claim(
    story: ModuleType, verdicts: ModuleType, flaw: dict[str, Any]
) -> None:
    seen = story.Fencing("i", "kafka-python", 1, "confluent-kafka", 2, "FencedInstanceIdError", "", 3, 1, (0,))
    assert false_claims(verdicts.of_fencing([seen])) == []
    assert len(false_claims(verdicts.of_fencing([replace(seen, **flaw)]))) == 1


@pytest.mark.parametrize("flaw", [{"error": "", "text": ""}, {"status": 0}, {"on_the_wire": 0}, {"members_after": 3}])
def test_a_group_that_takes_one_too_many_is_a_false_claim(
    story: ModuleType, verdicts: ModuleType, flaw: dict[str, Any]
) -> None:
    seen = story.Refusal("confluent-kafka", 1, 2, "GROUP_MAX_SIZE_REACHED", "", 3, 1, 2)
    assert false_claims(verdicts.of_refusals([seen])) == []
    assert len(false_claims(verdicts.of_refusals([replace(seen, **flaw)]))) == 1


def test_the_demo_ends_with_0_only_if_every_claim_was_true(verdicts: ModuleType) -> None:
    demo = import_module("demo")
    shown = io.StringIO()
    true = verdicts.Verdict("act", "a claim", is_true=True, evidence="seen")
    assert demo.conclude(Console(file=shown), [true, true], 1.0) == 0
    assert "✗" not in shown.getvalue()
    assert demo.conclude(Console(file=shown), [true, replace(true, is_true=False)], 1.0) == 1
    assert "✗" in shown.getvalue()
    assert demo.conclude(Console(file=shown), [], 1.0) == 1
