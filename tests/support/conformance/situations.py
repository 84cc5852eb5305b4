"""The fixtures of the scenarios, F1 to FO: situations from which they start, each looked at on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.requests import RANGE

if TYPE_CHECKING:
    from conformance.player import Player


class Situations:
    """Part of the `Player`. Keywords go to every JoinGroup."""

    def f1(self: Player, **join: Any) -> str:
        """One member, stable at generation 1. Its id."""
        a = self.new_id(**join)
        joining = self.join(a, **join)
        self.pass_initial_delay(joining)
        protocol = next(iter(join.get("protocols", RANGE)))[0]
        self.formed(1, joining, leader=a, protocol=protocol)
        self.sync(1, a, {a: b"a1"}).expect(assignment=b"a1")
        return a

    def joined_by(self: Player, generation: int, *members: str, **join: Any) -> str:
        """One more dynamic member joins a stable group, led by the first of its members. Its id."""
        newcomer = self.new_id(**join)
        joins = [self.join(newcomer, **join)]
        self.expect_parked(*joins)
        joins += (self.join(member, **join) for member in members)
        self.formed(generation, *joins, leader=members[0])
        return newcomer

    def fc2(self: Player, **join: Any) -> tuple[str, str]:
        """Two members at generation 2, nobody has synced. The leader first."""
        a = self.f1(**join)
        return a, self.joined_by(2, a, **join)

    def f2(self: Player, **join: Any) -> tuple[str, str]:
        """Two members, stable at generation 2. The leader first."""
        a, b = self.fc2(**join)
        self.synced(2, {a: b"a2", b: b"b2"})
        return a, b

    def f3(self: Player, **join: Any) -> tuple[str, str, str]:
        """Three members, stable at generation 3. The leader first."""
        a, b = self.f2(**join)
        c = self.joined_by(3, a, b, **join)
        self.synced(3, {a: b"a3", b: b"b3", c: b"c3"})
        return a, b, c

    def synced(
        self: Player, generation: int, assignments: dict[str, bytes], instances: dict[str, str] | None = None
    ) -> None:
        """All members sync, the leader (the first one named) last, and each is given its bytes."""
        leader, *others = assignments
        names = instances or {}
        waiting = [(each, self.sync(generation, each, instance_id=names.get(each))) for each in others]
        if waiting:
            self.expect_parked(*(asked for _, asked in waiting))
        leading = self.sync(generation, leader, assignments, instance_id=names.get(leader))
        for each, asked in [(leader, leading), *waiting]:
            asked.expect(assignment=assignments[each])

    def fs1(self: Player, **join: Any) -> str:
        """A static member, i1, stable at generation 1. Its id."""
        asked = self.join("", "i1", **join)
        self.pass_initial_delay(asked)
        p = self.formed(1, asked)
        self.sync(1, p, {p: b"p1"}, instance_id="i1").expect(assignment=b"p1")
        return p

    def fs2(self: Player, *, synced: bool = True, **join: Any) -> tuple[str, str]:
        """Two static members, i1 and i2, at generation 2, stable unless said. The leader (i1) first."""
        p = self.fs1(**join)
        second = self.join("", "i2", **join)
        self.expect_parked(second)
        self.formed(2, self.join(p, "i1", **join), second, leader=p)
        q = second.answer().member_id
        if synced:
            self.synced(2, {p: b"p2", q: b"q2"}, {p: "i1", q: "i2"})
        return p, q

    def fe(self: Player, **join: Any) -> str:
        """A group that had one member: empty at generation 2. The member's old id."""
        a = self.f1(**join)
        self.leave(a).expect(0)
        return a

    def fo(self: Player) -> None:
        """A simple group: offsets, 42 for t-0, and no member ever."""
        self.commit(-1, "", {(self.t, 0): 42}).expect(0)
