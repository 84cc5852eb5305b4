"""What running brokers said: tests/golden/<release>/, a file for each module of scenarios and a line for each answer.

Only `make conformance` writes them, when told to, from what a broker has just said.
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

    from conformance.scenarios import Scenario

FOLDER = Path(__file__).parents[2] / "golden"

BROKER = "broker.json"
"""The file in each folder that says who said it."""

Entries = list[dict[str, Any]]
"""The entries of a transcript."""


@dataclass(frozen=True)
class Origin:
    """Who said it: a release, with the commit it was built of in its own words, and on which day."""

    version: str
    commit_id: str
    recorded_on: str

    def is_same_broker(self, other: Origin) -> bool:
        """Whether only the day differs."""
        return (self.version, self.commit_id) == (other.version, other.commit_id)


def origin(release: Release) -> Origin | None:
    """Who said what is in the release's folder, if there is anything."""
    path = FOLDER / release.name / BROKER
    return Origin(**json.loads(path.read_text())) if path.is_file() else None


def read(release: Release) -> dict[str, Entries]:
    """The transcripts of a release, by the number of the scenario."""
    found: dict[str, Entries] = {}
    for path in sorted((FOLDER / release.name).glob("*.json")):
        if path.name != BROKER:
            found.update(json.loads(path.read_text()))
    return found


def record(release: Release, by: Origin, said: Mapping[str, Entries], applicable: Mapping[str, Scenario]) -> None:
    """Write down what a broker has just said; what the same broker said earlier in other scenarios is kept."""
    before = origin(release)
    kept = read(release) if before is not None and before.is_same_broker(by) else {}
    chapters: dict[str, dict[str, Entries]] = {}
    for number, entries in sorted({**kept, **said}.items()):
        if number in applicable:
            chapters.setdefault(_chapter(applicable[number]), {})[number] = entries
    folder = FOLDER / release.name
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.json"):
        path.unlink()
    (folder / BROKER).write_text(json.dumps(asdict(by), indent=1) + "\n")
    for name, chapter in chapters.items():
        (folder / f"{name}.json").write_text(_text(chapter))


def differences(one: str, ones: Sequence[Any], other: str, others: Sequence[Any]) -> Iterator[str]:
    """Where two transcripts differ; each with the name of who said it."""
    width = max(len(one), len(other))
    for number, (mine, theirs) in enumerate(zip_longest(ones, others), 1):
        if mine != theirs:
            yield f"answer {number}\n  {one:<{width}} {json.dumps(mine)}\n  {other:<{width}} {json.dumps(theirs)}"


def _chapter(scenario: Scenario) -> str:
    """The module it stands in."""
    return Path(scenario.play.__code__.co_filename).stem.removeprefix("test_")


def _text(chapter: Mapping[str, Entries]) -> str:
    """As JSON, an answer in a line, so that a difference is a line."""
    plays = []
    for number, entries in chapter.items():
        lines = ",\n".join(f" {json.dumps(each, ensure_ascii=False)}" for each in entries)
        plays.append(f'"{number}": [\n{lines}\n]')
    return "{\n" + ",\n".join(plays) + "\n}\n"
