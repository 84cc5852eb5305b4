"""`examples/demo.py`: its claims are true of a correct run, and false of a run with a flaw."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from clients.demo import examples, false_claims, story, verdicts
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["examples", "story", "verdicts"]

NAMES = [f"{client}-{number}" for client in ("kafka-python", "confluent-kafka", "aiokafka") for number in (1, 2)]


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


def upgrade_story(story: ModuleType) -> Any:
    names = [f"confluent-kafka-{number}" for number in range(6)]
    protocols = [protocol for protocol in ("consumer", "range") for _ in names]
    ends = {0: 10, 1: 2}
    held = import_module("bouncing.processes").Callback
    owner = (held(1.0, "assigned", frozenset(ends)), held(4.0, "revoked", frozenset()))
    heir = (held(5.0, "assigned", frozenset(ends)),)
    processes = [story.Process(name, "confluent-kafka", None, pid, 0.0, 9.0, ()) for pid, name in enumerate(names)]
    return story.Upgrade(
        group_id="upgrade",
        session_timeout_ms=10_000,
        rolled_from=0.5,
        ended_at=9.0,
        processes=(replace(processes[0], callbacks=owner), *processes[1:], replace(processes[0], callbacks=heir)),
        steps=tuple(
            story.Step(name, protocol, "consumer" if at < 11 else "classic", at)
            for at, (name, protocol) in enumerate(zip([*names, *names], protocols, strict=True))
        ),
        produced=12,
        ends=ends,
        committed=ends,
        consumed=Counter([(0, offset) for offset in range(10)] + [(1, 0), (1, 1)]),
    )


UPGRADE_FLAWS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("a replacement too few", lambda seen: replace(seen, steps=seen.steps[:-1]), "replaced one by one"),
    (
        "a group that stayed classic",
        lambda seen: replace(seen, steps=tuple(replace(step, group_type="classic") for step in seen.steps)),
        "replaced one by one",
    ),
    ("partitions idle for a session", lambda seen: replace(seen, session_timeout_ms=1_000), "never stops"),
    (
        "two owners",
        lambda seen: replace(seen, processes=(*seen.processes, seen.processes[0])),
        "never stops",
    ),
    (
        "a record processed again",
        lambda seen: replace(seen, consumed=seen.consumed + Counter([(0, 3)])),
        "exactly once",
    ),
    ("a record that is not in the log", lambda seen: replace(seen, produced=13), "exactly once"),
    ("a record lost", lambda seen: replace(seen, consumed=seen.consumed - Counter([(0, 3)])), "none lost"),
    ("a commit missing", lambda seen: replace(seen, committed={0: 10}), "committed offsets"),
]


@pytest.mark.parametrize(("flaw", "change", "claim"), UPGRADE_FLAWS, ids=[flaw for flaw, _, _ in UPGRADE_FLAWS])
def test_a_flaw_in_the_rolling_upgrade_is_a_false_claim(
    story: ModuleType, verdicts: ModuleType, flaw: str, change: Callable[[Any], Any], claim: str
) -> None:
    seen = upgrade_story(story)
    assert false_claims(verdicts.of_upgrade(seen)) == []
    assert any(claim in each for each in false_claims(verdicts.of_upgrade(change(seen)))), flaw


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
