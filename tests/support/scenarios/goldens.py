"""Answers of running brokers: tests/golden/<release>/, one file per scenario module and one line per answer.

Only `make conformance CONFORMANCE=--record` writes them, from the answers of a live broker.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from brokers.kafka_releases import Release

    from scenarios.registry import Scenario

FOLDER = Path(__file__).parents[2] / "golden"

BROKER = "broker.json"
"""The file in each folder that names the broker."""

Entries = list[dict[str, Any]]
"""The entries of a transcript."""


@dataclass(frozen=True)
class Origin:
    """The broker that gave the answers: its release, its build commit, and the day."""

    version: str
    commit_id: str
    recorded_on: str

    def is_same_broker(self, other: Origin) -> bool:
        """Whether both are the same build, whatever the day."""
        return (self.version, self.commit_id) == (other.version, other.commit_id)


def origin(release: Release) -> Origin | None:
    """Return the broker that gave the answers of a release; None if there are none."""
    path = FOLDER / release.name / BROKER
    return Origin(**json.loads(path.read_text())) if path.is_file() else None


def read(release: Release) -> dict[str, Entries]:
    """Return the transcripts of a release, by scenario number."""
    found: dict[str, Entries] = {}
    for path in sorted((FOLDER / release.name).glob("*.json")):
        if path.name != BROKER:
            found.update(json.loads(path.read_text()))
    return found


def record(release: Release, by: Origin, said: Mapping[str, Entries], applicable: Mapping[str, Scenario]) -> None:
    """Store new answers of a broker; keep earlier answers of the same broker to other scenarios.

    Scenarios that are not `recorded` for the release are left out.
    """
    before = origin(release)
    kept = read(release) if before is not None and before.is_same_broker(by) else {}
    chapters: dict[str, dict[str, Entries]] = {}
    for number, entries in sorted({**kept, **said}.items()):
        if number in applicable and number.startswith(release.recorded):
            chapters.setdefault(_chapter(applicable[number]), {})[number] = entries
    folder = FOLDER / release.name
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.json"):
        path.unlink()
    (folder / BROKER).write_text(json.dumps(asdict(by), indent=1) + "\n")
    for name, chapter in chapters.items():
        (folder / f"{name}.json").write_text(_text(chapter))


def differences(one: str, ones: Sequence[Any], other: str, others: Sequence[Any]) -> Iterator[str]:
    """Yield the differences of two transcripts; each side is named."""
    width = max(len(one), len(other))
    for number, (mine, theirs) in enumerate(zip_longest(ones, others), 1):
        if mine != theirs:
            yield f"answer {number}\n  {one:<{width}} {json.dumps(mine)}\n  {other:<{width}} {json.dumps(theirs)}"


def _chapter(scenario: Scenario) -> str:
    """Return the module of a scenario."""
    return Path(scenario.play.__code__.co_filename).stem.removeprefix("test_")


def _text(chapter: Mapping[str, Entries]) -> str:
    """Render as JSON with one answer per line, so that a difference is a line."""
    plays = []
    for number, entries in chapter.items():
        lines = ",\n".join(f" {json.dumps(each, ensure_ascii=False)}" for each in entries)
        plays.append(f'"{number}": [\n{lines}\n]')
    return "{\n" + ",\n".join(plays) + "\n}\n"
