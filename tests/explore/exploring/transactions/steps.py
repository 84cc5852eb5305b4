"""Sequences of two producers and one consumer of a group; they may share a transactional id."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exploring.releases import versions_of
from exploring.steps import short

if TYPE_CHECKING:
    from exploring.releases import Release

DRAWS = (8, 20)

IDENTITIES = ("current",) * 20 + ("previous", "previous", "next epoch", "another id")
"""The identity that a producer claims."""

SEQUENCES = ("next",) * 20 + ("last", "gap", "zero")

WEIGHTS = {
    "init": 5,
    "add": 8,
    "add_offsets": 5,
    "produce": 14,
    "plain_produce": 2,
    "commit_offsets": 8,
    "end": 12,
    "verify": 2,
    "write_marker": 2,
    "plain_commit": 2,
    "delete_offsets": 1,
    "delete_group": 1,
    "list_transactions": 1,
    "time_out": 1,
}


NEEDED = {"verify": ("AddPartitionsToTxn", 4), "list_transactions": ("ListTransactions", 0)}
"""The API and version of the steps that not all releases know."""

TRANSACTION = ("add", "produce", "produce", "add_offsets", "commit_offsets", "end")
WHOLE = 0.12
"""The share of draws that give a whole transaction."""


@dataclass(frozen=True)
class Step:
    """One operation of `Playing`, with its arguments."""

    name: str
    arguments: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={short(value)}' for name, value in self.arguments)})"


@dataclass(frozen=True)
class Sequence:
    """Steps, the setup before them, and the number of steps before the broker restarts."""

    name: str
    steps: tuple[Step, ...]
    restart_after: int
    shares_id: bool = False
    has_member: bool = False

    def text(self) -> str:
        """Return the steps, one a line."""
        setup = [f"shares_id={self.shares_id} has_member={self.has_member} restart_after={self.restart_after}"]
        return "\n".join(setup + [f"{number}: {step}" for number, step in enumerate(self.steps)])


class _Generator:
    def __init__(self, chance: random.Random, release: Release) -> None:
        self.chance = chance
        self.release = release
        self.is_modern = chance.random() < 0.6
        self.weights = {
            name: weight
            for name, weight in WEIGHTS.items()
            for api, version in [NEEDED.get(name, ("Produce", 0))]
            if versions_of(release, api)[1] >= version
        }

    def version(self, api: str, first: int = 0, last: int = 99, modern: int = 99) -> int:
        """Draw a version; with transaction version 2 mostly those from `modern` on, without mostly earlier ones."""
        lowest, newest = versions_of(self.release, api)
        versions = range(max(lowest, first), min(newest, last) + 1)
        liked = [each for each in versions if (each >= modern) == self.is_modern]
        return self.chance.choice(liked if liked and self.chance.random() < 0.85 else versions)

    def steps(self) -> list[Step]:
        """Draw one step, or the steps of a transaction by the rules."""
        if self.chance.random() < WHOLE:
            slot = self.chance.randrange(2)
            names = [name for name in TRANSACTION if name == "add" or self.chance.random() < 0.7]
            return [self._step(name, slot=slot, who="current") for name in names]
        return [self._step(self.chance.choices(list(self.weights), list(self.weights.values()))[0])]

    def _step(self, name: str, **fixed: Any) -> Step:
        return Step(name, tuple({**getattr(self, name)(), **fixed}.items()))

    def _producer(self) -> dict[str, Any]:
        return {"slot": self.chance.randrange(2), "who": self.chance.choice(IDENTITIES)}

    def _member(self) -> str:
        return self.chance.choice(("none", "none", "member", "member", "old generation", "ghost"))

    def _offset(self) -> dict[str, Any]:
        return {"partition": self.chance.randrange(2), "offset": self.chance.randrange(100)}

    def init(self) -> dict[str, Any]:
        who = self.chance.choice(("nobody",) * 4 + ("current", "current", "previous", "next epoch", "another id"))
        return {"slot": self.chance.randrange(2), "who": who, "version": self.version("InitProducerId", 0, 5)}

    def add(self) -> dict[str, Any]:
        partitions = self.chance.choice(((0,), (0,), (1,), (0, 1), (0, 1), (), (0, 9)))
        return self._producer() | {"partitions": partitions, "version": self.version("AddPartitionsToTxn", 0, 3)}

    def add_offsets(self) -> dict[str, Any]:
        return self._producer() | {"version": self.version("AddOffsetsToTxn")}

    def produce(self) -> dict[str, Any]:
        return self._producer() | {
            "partition": self.chance.randrange(2),
            "sequence": self.chance.choice(SEQUENCES),
            "tid": self.chance.choice(("own",) * 10 + ("other", "none")),
            "is_transactional": self.chance.random() < 0.93,
            "version": self.version("Produce", 3, 12, modern=12),
        }

    def plain_produce(self) -> dict[str, Any]:
        return {"partition": self.chance.randrange(2)}

    def commit_offsets(self) -> dict[str, Any]:
        version = self.version("TxnOffsetCommit", modern=5)
        return self._producer() | self._offset() | {"member": self._member(), "version": version}

    def end(self) -> dict[str, Any]:
        is_commit = self.chance.random() < 0.6
        return self._producer() | {"is_commit": is_commit, "version": self.version("EndTxn", modern=5)}

    def verify(self) -> dict[str, Any]:
        return self._producer() | {"is_verify_only": self.chance.random() < 0.6}

    def write_marker(self) -> dict[str, Any]:
        # a higher epoch sticks the transaction for good
        return {
            "slot": self.chance.randrange(2),
            "who": self.chance.choice(("current",) * 9 + ("previous", "next epoch")),
            "partition": self.chance.randrange(2),
            "is_commit": self.chance.random() < 0.3,
            "version": self.version("WriteTxnMarkers", 1),
        }

    def plain_commit(self) -> dict[str, Any]:
        return self._offset() | {"member": self._member()}

    def delete_offsets(self) -> dict[str, Any]:
        return {}

    def delete_group(self) -> dict[str, Any]:
        return {}

    def list_transactions(self) -> dict[str, Any]:
        states = self.chance.choice(((), ("Ongoing",), ("CompleteCommit", "CompleteAbort"), ("Empty", "Bogus")))
        return {"states": states}

    def time_out(self) -> dict[str, Any]:
        return {"slot": self.chance.randrange(2)}


def generate(seed: str, release: Release) -> Sequence:
    """Return the sequence of a seed."""
    chance = random.Random(f"transactions {seed}")
    draw = _Generator(chance, release)
    beginning = [Step("init", (("slot", slot), ("who", "nobody"), ("version", 4))) for slot in (0, 1)]
    steps = [*beginning, *(step for _ in range(chance.randint(*DRAWS)) for step in draw.steps())]
    return Sequence(
        name=seed,
        shares_id=chance.random() < 0.4,
        has_member=chance.random() < 0.5,
        steps=tuple(steps),
        restart_after=chance.randint(4, len(steps)),
    )
