"""Whatever happens to healthy puppets, it ends in a stable group in which every partition is owned exactly once."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

from brokers.cluster import GROUP
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scenes.puppet_scene import REBALANCE_MS, SESSION_MS, Show

NAMES = ("a", "b", "c", "d")
NODES = 3
PROTOCOLS = (
    ("range",),
    ("cooperative-sticky",),
    ("cooperative-sticky", "range"),
    ("sticky", "roundrobin", "range"),
)

# all offer the same, in orders of their own: a group that was loaded knows of each member only what it voted for, and
# refuses who does not offer that (as Kafka does)
crews = st.sampled_from(PROTOCOLS).flatmap(
    lambda offered: st.lists(
        st.tuples(st.permutations(offered), st.booleans()), min_size=len(NAMES), max_size=len(NAMES)
    )
)
names = st.sampled_from(NAMES)
steps = st.one_of(
    st.tuples(st.sampled_from(["join", "leave", "stop"]), names),
    st.tuples(st.just("wait"), st.integers(0, 2 * SESSION_MS)),
    st.tuples(st.just("advance"), st.integers(0, 2 * SESSION_MS)),
    st.tuples(st.just("move"), st.integers(1, NODES), st.integers(0, 500)),
    st.tuples(st.just("kill"), st.integers(1, NODES)),
    st.tuples(st.just("start"), st.integers(1, NODES)),
    st.tuples(st.just("grow"), st.integers(1, 2)),
)


def do(show: Show, step: tuple[Any, ...]) -> None:
    """A step, if it can be done."""
    match step:
        case "wait", ms:
            show.wait(ms)
        case "advance", ms if show.runtime.broker_of_group(GROUP) is not None and GROUP in show.runtime.groups():
            show.advance(ms)
        case "move", node, load_ms if show.runtime.states[node] == "up":
            show.do(show.runtime.move_coordinator, GROUP, node, load_ms)
        case "kill", node if show.runtime.states[node] == "up":
            show.do(show.runtime.kill_node, node)
        case "start", node if show.runtime.states[node] == "down":
            show.do(show.runtime.start_node, node)
        case "grow", more if not any(puppet["instance_id"] for puppet in show.puppets.list(show.now)):
            # what has grown while a static leader was away nobody looks for when it is back, as in Kafka
            topic = show.runtime.cluster.topics["t"]
            show.runtime.cluster.grow_topic(topic, len(topic.logs) + more)
        case ("join" | "leave" | "stop") as verb, name:
            state = show.state(name)
            if (verb == "join") == (state in {"out", "failed"}) and (verb, state) != ("leave", "leaving"):
                show.tell(name, verb)
        case _:
            pass


@settings(max_examples=60)
@given(crews, st.lists(steps, max_size=25))
# its connection ends while a JoinGroup waits to be sent again
@example([(["range"], False)] * 4, [("move", 3, 1), ("join", "a"), ("move", 1, 101), ("kill", 3)])
def test_any_script_ends_in_a_stable_group_that_owns_every_partition_once(
    puppets: list[tuple[list[str], bool]], script: list[tuple[Any, ...]]
) -> None:
    show = Show(NODES)
    for name, (protocols, is_static) in zip(NAMES, puppets, strict=True):
        show.puppet(name, joins=False, protocols=protocols, instance_id=name if is_static else None)
    for step in script:
        do(show, step)
    for node, state in show.runtime.states.items():
        if state == "down":
            show.do(show.runtime.start_node, node)
    show.wait(2 * REBALANCE_MS + 2 * SESSION_MS)
    inside = {name for name in NAMES if show.state(name) != "out"}
    assert {show.state(name) for name in inside} <= {"stable"}
    if not inside:
        return
    assert show.is_settled()
    assert show.members() == inside
    owned = Counter(chain.from_iterable(show.holds(*inside).values()))
    assert owned == Counter(range(len(show.runtime.cluster.topics["t"].logs)))
