"""Starting situations of the scenarios (F1 to FO in the reference), verified on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders.requests import RANGE

if TYPE_CHECKING:
    from scenarios.player import Player


class Situations:
    """A part of `Player`. Keyword arguments go to every JoinGroup."""

    def stable_one(self: Player, **join: Any) -> str:
        """Form a stable group of one member at generation 1; return its id."""
        a = self.new_id(**join)
        joining = self.join(a, **join)
        self.pass_initial_delay(joining)
        protocol = next(iter(join.get("protocols", RANGE)))[0]
        self.expect_generation(1, joining, leader=a, protocol=protocol)
        self.sync(1, a, {a: b"a1"}).expect(assignment=b"a1")
        return a

    def join_stable(self: Player, generation: int, *members: str, **join: Any) -> str:
        """Let one more dynamic member join a stable group led by the first of `members`; return its id."""
        newcomer = self.new_id(**join)
        joins = [self.join(newcomer, **join)]
        self.expect_parked(*joins)
        joins += (self.join(member, **join) for member in members)
        self.expect_generation(generation, *joins, leader=members[0])
        return newcomer

    def unsynced_two(self: Player, **join: Any) -> tuple[str, str]:
        """Form two members at generation 2 that have not synced; return (leader, follower)."""
        a = self.stable_one(**join)
        return a, self.join_stable(2, a, **join)

    def stable_two(self: Player, **join: Any) -> tuple[str, str]:
        """Form a stable group of two members at generation 2; return (leader, follower)."""
        a, b = self.unsynced_two(**join)
        self.sync_all(2, {a: b"a2", b: b"b2"})
        return a, b

    def stable_three(self: Player, **join: Any) -> tuple[str, str, str]:
        """Form a stable group of three members at generation 3; return the leader first."""
        a, b = self.stable_two(**join)
        c = self.join_stable(3, a, b, **join)
        self.sync_all(3, {a: b"a3", b: b"b3", c: b"c3"})
        return a, b, c

    def sync_all(
        self: Player, generation: int, assignments: dict[str, bytes], instances: dict[str, str] | None = None
    ) -> None:
        """Sync all members, the leader (named first) last, and expect each one's assignment."""
        leader, *others = assignments
        names = instances or {}
        waiting = [(each, self.sync(generation, each, instance_id=names.get(each))) for each in others]
        if waiting:
            self.expect_parked(*(asked for _, asked in waiting))
        leading = self.sync(generation, leader, assignments, instance_id=names.get(leader))
        for each, asked in [(leader, leading), *waiting]:
            asked.expect(assignment=assignments[each])

    def static_one(self: Player, **join: Any) -> str:
        """Form a stable group of the static member i1 at generation 1; return its id."""
        asked = self.join("", "i1", **join)
        self.pass_initial_delay(asked)
        p = self.expect_generation(1, asked)
        self.sync(1, p, {p: b"p1"}, instance_id="i1").expect(assignment=b"p1")
        return p

    def static_two(self: Player, *, synced: bool = True, **join: Any) -> tuple[str, str]:
        """Form static members i1 and i2 at generation 2, stable by default; return the leader (i1) first."""
        p = self.static_one(**join)
        second = self.join("", "i2", **join)
        self.expect_parked(second)
        self.expect_generation(2, self.join(p, "i1", **join), second, leader=p)
        q = second.answer().member_id
        if synced:
            self.sync_all(2, {p: b"p2", q: b"q2"}, {p: "i1", q: "i2"})
        return p, q

    def emptied(self: Player, **join: Any) -> str:
        """Form a group at generation 2 whose only member has left; return that member's id."""
        a = self.stable_one(**join)
        self.leave(a).expect(0)
        return a

    def offsets_only(self: Player) -> None:
        """Commit offset 42 for t-0 in a simple group, which never has members."""
        self.commit(-1, "", {(self.t, 0): 42}).expect(0)
