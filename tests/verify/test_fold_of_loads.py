"""The fold of a log that arrives in several loads, against the naive fold of all its lines at once."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.pipeline.fold.group_facts import NEVER, WATCHED
from koordinator.pipeline.fold.settled import CARRIED, SETTLED_ROWS
from koordinator.pipeline.fold.trace_fold import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.trace.exchanges import Line

Row = dict[str, Any]
Tables = dict[str, list[Row]]

STATE = "silver/group_state"
KEYS = {
    "silver/member": ("group_id", "member_id"),
    "silver/member_span": ("group_id", "member_id", "joined_seq"),
    "silver/round": ("group_id", "rebalance_no"),
    "gold/rebalance": ("group_id", "rebalance_no"),
    "gold/fencing": ("seq",),
}


class BrokerLog:
    """The events of a random log of one broker, with groups that are older than the log or begin in it."""

    def __init__(self, chance: random.Random, n_groups: int) -> None:
        self.chance = chance
        self.lines: list[Line] = []
        self.us = 1_000_000
        self.members: dict[str, dict[str, str | None]] = {}
        self.states: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        for number in range(n_groups):
            group = f"g{number}"
            is_old = chance.random() < 0.5
            self.members[group] = {self.id("old"): None, self.id("s0"): "s0"} if is_old else {}
            self.states[group] = "Stable" if is_old else "Empty"
            self.generations[group] = 7 if is_old else 0

    def id(self, name: str) -> str:
        return f"{name}-{UUID(int=self.chance.getrandbits(128))}"

    def log(self, group: str, kind: str, **columns: Any) -> None:
        self.us += self.chance.choice((1_000, 400_000, 5_000_000))
        line = {"seq": len(self.lines) + 1, "kind": kind, "group_id": group, "wall_ts": self.us}
        self.lines.append(line | {"group_ts_us": self.us} | {n: v for n, v in columns.items() if v is not None})

    def state(self, group: str, to: str, *, known: bool = True, **columns: Any) -> None:
        before = self.states[group] if known else None
        self.states[group] = to
        self.log(group, "state", state_from=before, state_to=to, generation=self.generations[group], **columns)

    def prepare(self, group: str, cause: str, member: str | None = None) -> None:
        """Start a rebalance; the reason names some static members, as Kafka's reasons do."""
        instance = self.members[group].get(member or "") if self.chance.random() < 0.5 else None
        self.state(group, "PreparingRebalance", known=False, cause=cause, member_id=member, instance_id=instance)

    def happens(self, group: str) -> None:
        """Log something that the state of the group allows."""
        members, state = self.members[group], self.states[group]
        actions = {
            "PreparingRebalance": (self.completes, self.completes, self.joins, self.times_out, self.unloads),
            "CompletingRebalance": (self.assigns, self.assigns, self.assigns, self.rejoins, self.unloads),
            "Stable": (self.joins, self.leaves, self.bounces, self.rejoins, self.rejoins, self.unloads),
            "Empty": (self.joins, self.joins, self.unloads),
            "Dead": (self.loads,),
        }[state]
        action = self.chance.choice(actions)
        if members or action in (self.joins, self.loads, self.unloads, self.completes):
            action(group)

    def joins(self, group: str) -> None:
        instance = self.chance.choice((None, None, f"s{self.chance.randrange(3)}"))
        if instance in self.members[group].values() and instance is not None:
            return
        member = self.id(instance or "c")
        if instance is None:
            self.log(group, "member", change="pending", member_id=member, cause="member_id_required")
            if self.chance.random() < 0.1:
                self.log(group, "timer", timer="PendingMemberExpiry", member_id=member)
                return
        self.members[group][member] = instance
        self.log(group, "member", change="added", member_id=member, instance_id=instance, cause="member_join")
        if self.states[group] != "PreparingRebalance":
            self.prepare(group, "member_join", member)

    def leaves(self, group: str) -> None:
        member = self.chance.choice(list(self.members[group]))
        instance = self.members[group].pop(member) if self.chance.random() < 0.8 else None
        self.members[group].pop(member, None)
        self.log(group, "member", change="removed", member_id=member, instance_id=instance, cause="member_leave")
        self.prepare(group, "member_leave", member)

    def bounces(self, group: str) -> None:
        """Replace a static member; only some releases name the new member id."""
        static = [member for member, instance in self.members[group].items() if instance]
        if static:
            old = self.chance.choice(static)
            instance = self.members[group].pop(old)
            new = self.id(str(instance))
            self.members[group][new] = instance
            reason = self.chance.choice((None, f"{old} was replaced by {new}"))
            self.log(group, "member", change="replaced", member_id=old, instance_id=instance, reason=reason)

    def rejoins(self, group: str) -> None:
        self.prepare(group, "leader_rejoin", self.chance.choice(list(self.members[group])))

    def times_out(self, group: str) -> None:
        member = self.chance.choice(list(self.members[group]))
        self.members[group].pop(member)
        self.log(group, "member", change="removed", member_id=member, cause="join_timeout")

    def completes(self, group: str) -> None:
        self.generations[group] += self.chance.choice((1, 1, 1, 1, 2))
        members = len(self.members[group])
        if not members:
            self.state(group, "Empty", cause="emptied")
        else:
            self.state(group, "CompletingRebalance", cause="joined", body={"n_members": members})

    def assigns(self, group: str) -> None:
        members = self.members[group]
        body = {"n_members": len(members), "n_static": sum(map(bool, members.values()))}
        leader = self.chance.choice((None, *members))
        self.state(group, "Stable", cause="assigned", member_id=leader, body=body)

    def unloads(self, group: str) -> None:
        if self.chance.random() < 0.2:
            self.state(group, "Dead", known=False, cause="unloaded")

    def loads(self, group: str) -> None:
        self.state(group, "Stable" if self.members[group] else "Empty", known=False, cause="loaded")


def recorded(seed: int, n_lines: int) -> list[Line]:
    log = BrokerLog(random.Random(seed), n_groups=2)
    while len(log.lines) < n_lines:
        log.happens(log.chance.choice(list(log.states)))
    return log.lines


def folded(lines: Iterable[Line], end_us: int) -> Tables:
    tables: Tables = defaultdict(list)
    watched = {"kind": WATCHED, "seq": NEVER, "wall_ts": end_us, "group_ts_us": end_us}
    for path, rows in fold("t", [*lines, watched]):
        tables[path] += [{name: value for name, value in row.items() if value is not None} for row in rows]
    return json.loads(json.dumps(tables, default=sorted))  # type: ignore[no-any-return]


def goes_on(states: list[Row], lines: list[Line]) -> bool:
    """Return whether no line is late, or names a member that older rows name differently."""
    for state in states:
        own = [line for line in lines if line["group_id"] == state["group_id"]]
        named = {line.get("member_id") for line in own if line.get("instance_id")}
        if any(line["seq"] <= state["last_seq"] for line in own) or named & {*state["strangers"]}:
            return False
    return True


def loaded(store: Tables, before: list[Line], lines: list[Line], end_us: int) -> Tables:
    """Return the tables after one more load."""
    states = store.get(STATE, [])
    if not goes_on(states, lines):
        return folded([*before, *lines], end_us)
    carried = [
        {"kind": CARRIED, "seq": 0, "group_id": row["group_id"], "body": json.loads(row["state"])} for row in states
    ]
    new = folded([*carried, *lines], end_us)
    cuts = {row["group_id"]: row["cut_seq"] for row in states}
    for path, column in SETTLED_ROWS.items():
        made = {key(path, row) for row in new.get(path, [])}
        for row in store.get(path, []):
            is_settled = column is None or (column in row and row[column] < cuts[row["group_id"]])
            if is_settled and key(path, row) not in made:
                new[path].append(row)
    return new


def key(path: str, row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in KEYS[path])


def counted(tables: Tables, *but: str) -> dict[str, Counter[str]]:
    return {
        path: Counter(json.dumps(row, sort_keys=True) for row in rows)
        for path, rows in tables.items()
        if path not in but and rows
    }


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), n_lines=st.integers(1, 120), cuts=st.lists(st.floats(0, 1), max_size=6))
def test_any_cut_of_a_log_into_loads_gives_the_tables_of_the_naive_fold(
    seed: int, n_lines: int, cuts: list[float]
) -> None:
    lines = recorded(seed, n_lines)
    store: Tables = {}
    begin = 0
    for cut in [*sorted(cuts), 1.0]:
        end = round(cut * len(lines))
        end_us = lines[end - 1]["group_ts_us"] + 1_000_000 if end else 0
        store = loaded(store, lines[:begin], lines[begin:end], end_us) if end else store
        begin = end
    expected = folded(lines, lines[-1]["group_ts_us"] + 1_000_000)
    assert counted(store, STATE) == counted(expected, STATE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_state_of_a_group_does_not_grow_with_its_history(seed: int) -> None:
    sizes = []
    lines = recorded(seed, 4_000)
    for until in (400, 4_000):
        tables = folded(lines[:until], lines[until - 1]["group_ts_us"])
        sizes.append(max(len(row["state"]) for row in tables[STATE]))
    assert sizes[1] < 3 * sizes[0] + 4_000
