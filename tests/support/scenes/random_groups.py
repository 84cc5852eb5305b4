"""Random histories of consumer groups, driven by the answers of a broker.

A request is a small JSON object, as in a recording (`recorded_groups`): `m` member id, `e` epoch, `i` instance id,
`rt` rebalance timeout, `names`, `a` assignor, `rack`, `owned`; or `describe`.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    JSON = Any
    Ask = Callable[[JSON], JSON]

TOPICS = {
    "t": 4,
    "u": 2,
    "orders": 6,
    "payments": 6,
    "a.b": 3,
    "Zeta": 12,
    "kappa": 24,
    **{f"p{count}": count for count in (1, 3, 5, 7, 8, 10, 11, 13, 16, 17, 20, 25, 30, 40)},
}
"""Topics of many sizes, with names in several orders of their hashes."""

KINDS = ("equal", "equal", "mixed", "mixed", "mixed", "static", "static", "static", "range", "handshake")
"""Equal or mixed subscriptions, static members that are replaced, the assignor range, any step of the handshake."""

WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet")

UNKNOWN_MEMBER_ID = 25

GROWTH = 0.12
"""The share of steps that add partitions to a topic, in groups of the kind `growing`."""


@dataclass
class Client:
    """A member as its client knows it."""

    instance_id: str | None
    names: list[str]
    epoch: int
    given: list[JSON]
    has_left: bool = False


class RandomHistory:
    """One group; `play` returns its requests with the answers."""

    def __init__(
        self, rng: random.Random, ask: Ask, topics: Sequence[str] = tuple(TOPICS), kind: str | None = None
    ) -> None:
        self.kind = rng.choice(KINDS) if kind is None else kind
        self._rng, self._ask = rng, ask
        fewest = 2 if "mixed" in self.kind else 1
        self._pool = rng.sample(list(topics), rng.randint(fewest, min(5, len(topics))))
        if self._chance(0.15):
            self._pool.append("missing")
        self._assignor = rng.choice([None, "range"]) if self.kind == "range" else None
        self._members: dict[str, Client] = {}
        self._used: set[str] = set()
        self._steps: list[tuple[JSON, JSON]] = []

    def play(self) -> list[tuple[JSON, JSON]]:
        """Send 4 to 34 requests, and describe the group in between."""
        for _ in range(self._rng.randint(4, 34)):
            self._step()
            if self.kind != "handshake" or self._chance(0.4):
                self._send({"describe": 1})
        self._send({"describe": 1})
        return self._steps

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _send(self, request: JSON) -> JSON:
        answer = self._ask({name: value for name, value in request.items() if value is not None})
        self._steps.append((request, answer))
        return answer

    def _step(self) -> None:
        rng, members, is_handshake = self._rng, self._members, self.kind == "handshake"
        live = [member_id for member_id, member in members.items() if not member.has_left]
        away = [member_id for member_id, member in members.items() if member.has_left]
        static = [member_id for member_id in live if members[member_id].instance_id]
        chance = rng.random()
        if self.kind.startswith("growing") and self._chance(GROWTH):
            self._ask({"grow": rng.choice([name for name in self._pool if name != "missing"])})
        elif not live or (chance < (0.15 if is_handshake else 0.45) and len(members) < 30):
            self._join(self._new_id(), self._new_instance_id())
        elif chance < (0.25 if is_handshake else 0.62):
            self._leave(rng.choice(live))
        elif self.kind == "static" and chance < 0.72 and static:
            member_id = rng.choice(static)
            if not self._send({"m": member_id, "e": -2, "i": members[member_id].instance_id})["c"]:
                members[member_id].has_left = True
        elif self.kind == "static" and chance < 0.85 and away:
            self._replace(rng.choice(away))
        else:
            self._heartbeat(rng.choice(live))

    def _subscription(self) -> list[str]:
        keeps = {"equal": 1.0, "growing": 1.0, "static": 0.7, "handshake": 0.4}.get(self.kind, 0.0)
        return (
            list(self._pool)
            if self._chance(keeps)
            else self._rng.sample(self._pool, self._rng.randint(1, len(self._pool)))
        )

    def _new_id(self) -> str:
        rng = self._rng
        makers = (
            lambda: base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("="),
            lambda: f"c{rng.randrange(60)}",
            lambda: f"{rng.choice(WORDS)}{rng.randrange(10)}",
        )
        while True:
            member_id = rng.choice(makers)()
            if member_id not in self._used:
                self._used.add(member_id)
                return member_id

    def _new_instance_id(self) -> str | None:
        share = {"static": 0.6, "range": 0.3}.get(self.kind, 0.0)
        instance_id = f"i{self._rng.randrange(12)}"
        is_used = any(member.instance_id == instance_id for member in self._members.values())
        return instance_id if self._chance(share) and (not is_used or self._chance(0.2)) else None

    def _join(self, member_id: str, instance_id: str | None, names: list[str] | None = None) -> bool:
        names = self._subscription() if names is None else names
        assignor = self._assignor if self._chance(0.7) else None
        timeout_ms = self._rng.choice([300_000, 600_000])
        request = {"m": member_id, "e": 0, "rt": timeout_ms, "names": names, "i": instance_id, "a": assignor}
        answer = self._send({**request, "owned": []})
        if not answer["c"]:
            self._members[member_id] = Client(instance_id, names, answer["e"], answer["as_"] or [])
        return not answer["c"]

    def _leave(self, member_id: str) -> None:
        instance_id = self._members[member_id].instance_id if self._chance(0.5) else None
        if not self._send({"m": member_id, "e": -1, "i": instance_id})["c"]:
            del self._members[member_id]

    def _replace(self, old_id: str) -> None:
        old = self._members[old_id]
        new_id = self._new_id() if self._chance(0.8) else old_id
        names = list(old.names) if self._chance(0.7) else self._subscription()
        if self._join(new_id, old.instance_id, names) and new_id != old_id:
            del self._members[old_id]

    def _heartbeat(self, member_id: str) -> None:
        member = self._members[member_id]
        fields: dict[str, JSON] = {}
        acknowledges = {"equal": 0.0, "growing": 0.3, "range": 0.3}.get(self.kind, 0.6)
        chance = self._rng.random()
        if chance < acknowledges:
            fields["owned"] = member.given
        elif chance < acknowledges + 0.08 and member.given:
            fields["owned"] = [[topic, listed[: len(listed) // 2]] for topic, listed in member.given]
        elif chance < acknowledges + 0.10:
            fields["owned"] = []
        fields["e"] = member.epoch
        if self.kind == "handshake":
            unusual: list[dict[str, JSON]] = [
                {"e": max(1, member.epoch - 1)},
                {"e": member.epoch + 1},
                {"names": self._subscription()},
                {"names": []},
                {"rack": f"r{self._rng.randrange(3)}"},
                {"a": self._rng.choice(["range", "uniform"])},
            ]
            if self._chance(0.03):
                self._join(member_id, None, member.names)
                return
            fields |= self._rng.choice(unusual) if self._chance(0.23) else {}
        elif self._chance(0.06):
            fields["names"] = self._subscription()
        answer = self._send({"m": member_id, **fields})
        if answer["c"] == UNKNOWN_MEMBER_ID:
            del self._members[member_id]
        elif not answer["c"]:
            member.epoch, member.names = answer["e"], fields.get("names", member.names)
            member.given = member.given if answer["as_"] is None else answer["as_"]
