"""Initial frames for fuzzing: a valid one of each API and version, and those of earlier findings.

Run `PYTHONPATH=tests/support python -m builders.corpus` to renew `seeds.txt`. `findings.txt` is written by hand: a
name, the failure, and the frames that caused it, in hexadecimal digits with their lengths.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from builders.valid_frames import Valid, served
from koordinator.wire.apis import APIS

FOLDER = Path(__file__).parents[2] / "fuzz" / "corpus"
EACH = 2
SEED = 389


@cache
def seeds() -> tuple[bytes, ...]:
    """Return a few valid frames of every version of every API."""
    return tuple(bytes.fromhex(line.split()[-1]) for line in _lines("seeds.txt"))


@cache
def findings() -> dict[str, tuple[bytes, ...]]:
    """Return, by name, the frames that caused a finding when sent on one connection."""
    rows = (line.split() for line in _lines("findings.txt"))
    return {name: tuple(map(bytes.fromhex, frames)) for name, *frames in rows}


def everything() -> list[bytes]:
    """Return the frames of both."""
    return [*seeds(), *(frame for frames in findings().values() for frame in frames)]


def made() -> str:
    """Return the text of `seeds.txt`."""
    chance = random.Random(SEED)
    valid = Valid(chance)
    lines = [
        f"{APIS[key].name} v{version} {valid.frame(key, version).hex()}\n"
        for key, version in served()
        for _ in range(EACH)
    ]
    return "# made by tests/support/builders/corpus.py: API, version, frame\n" + "".join(lines)


def _lines(name: str) -> list[str]:
    lines = (FOLDER / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


if __name__ == "__main__":
    (FOLDER / "seeds.txt").write_text(made())
