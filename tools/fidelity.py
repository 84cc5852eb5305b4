"""What docs/fidelity.md says, made from the scenarios, from what brokers said in them, and from the tables of releases.

That the emulator says the same is not looked at here: `make test` plays every scenario and compares.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import sys
from collections import Counter, defaultdict
from dataclasses import fields
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from brokers.kafka_releases import NEWEST, RELEASES
from conformance import comparison, goldens
from conformance.applicability import ABSENT, left_out
from conformance.scenarios import load
from tables import table

from koordinator.emulator.broker import versions as apis
from koordinator.emulator.broker.versions import releases
from koordinator.emulator.broker.versions.served import SERVED
from koordinator.emulator.config.settings import NEW_COORDINATOR_CHOSEN_IN
from koordinator.emulator.config.settings import RELEASES as EMULATED
from koordinator.emulator.core.dialect import Dialect
from koordinator.wire.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from brokers.kafka_releases import Release
    from conformance.scenarios import Scenario

SAME, OWN = "same", "same*"
"""What a release said, and the emulator says as that release; OWN: not what the newest said."""

GONE = "absent"
"""The scenario asks for what that release does not have."""

UNKNOWN = "not recorded"
"""Nobody has asked that broker yet."""

NAMES = {api.name for api in APIS.values()}


def brokers_table() -> str:
    """Who was asked, when, and how much."""
    head = (
        "broker",
        "Apache Kafka",
        "commit",
        "recorded on",
        "scenarios",
        "answers",
        comparison.WAITING,
        comparison.NOT_EMULATED,
        GONE,
    )
    return table(head, [_broker(release) for release in RELEASES.values()])


def _broker(release: Release) -> tuple[str, ...]:
    by, said = goldens.origin(release), golden(release.name)
    cells = Counter(cell(each, release) for each in load().values())
    answers = sum(map(len, said.values()))
    counts = (len(said), answers, cells[comparison.WAITING], cells[comparison.NOT_EMULATED], cells[GONE])
    who = (
        (f"{release.version}, {release.coordinator} coordinator", by.commit_id, by.recorded_on)
        if by
        else (UNKNOWN,) * 3
    )
    return (release.name, *who, *(f"{count:,}" for count in counts))


def versions_table() -> str:
    """Which versions of each API each release serves, and how many scenarios look at an answer of it."""
    looked_at: dict[str, Counter[int]] = defaultdict(Counter)
    for number in load():
        for api, versions in _looked_at(number).items():
            looked_at[api].update(versions)
    rows = []
    for key in sorted(SERVED):
        name = APIS[key].name
        served = (releases.ACCEPTED[release].get(key) for release in EMULATED)
        counts = ", ".join(f"v{version}: {count}" for version, count in sorted(looked_at[name].items()))
        rows.append((f"{name} ({int(key)})", *(f"{each}" if each else "" for each in served), counts))
    return table(("API", *EMULATED, "scenarios"), rows)


def dialects_table() -> str:
    """What releases do differently."""
    dialects: dict[str, Dialect] = {}
    for name in EMULATED:
        if name == NEW_COORDINATOR_CHOSEN_IN:
            dialects[f"{name}-old"] = Dialect.of(name, new_coordinator=False)
            dialects[f"{name}-new"] = Dialect.of(name, new_coordinator=True)
        else:
            dialects[name] = Dialect.of(name, new_coordinator=True)
    explained = _attribute_docs(Dialect)
    rows = (
        (explained[each.name], *(_shown(getattr(dialect, each.name)) for dialect in dialects.values()))
        for each in fields(Dialect)
    )
    return table(("", *dialects), rows)


def _shown(behaviour: object) -> str:
    """A behaviour as a word: yes or no, the number of an error, or whose rule it is."""
    if isinstance(behaviour, bool):
        return "yes" if behaviour else "no"
    if isinstance(behaviour, int):
        return str(int(behaviour))
    # the rule of one of the two coordinators
    return getattr(behaviour, "__name__").partition("_")[0].upper()  # noqa: B009 - it is any object to mypy


def missing_table() -> str:
    """What each API does not have here, in the words of its module."""
    rows = []
    for found in pkgutil.iter_modules(apis.__path__):
        said = " ".join((import_module(f"{apis.__name__}.{found.name}").__doc__ or "").split())
        api, _, missing = said.partition("Not emulated: ")
        if missing:
            rows.append((api.partition(",")[0], missing))
    return table(("API", "not emulated"), rows)


def scenarios_tables() -> str:
    """Every scenario, by chapter: its rule, what it looks at, and what each broker and the emulator say."""
    chapters: dict[str, list[Scenario]] = defaultdict(list)
    for scenario in load().values():
        chapters[_chapter(scenario)].append(scenario)
    head = ("", "rule", "from", "looks at", *RELEASES)
    return "\n".join(f"### {title}\n\n{table(head, map(_row, chapter))}" for title, chapter in chapters.items())


def _row(scenario: Scenario) -> tuple[str, ...]:
    path = Path(scenario.play.__code__.co_filename).name
    rule = scenario.name.split("_", 2)[2].replace("_", " ")
    number = f"[{scenario.number}](../tests/conformance/{path})"
    looks_at = ", ".join(f"{api} {_ranges(versions)}" for api, versions in sorted(_looked_at(scenario.number).items()))
    return (number, rule, scenario.kip, looks_at, *(cell(scenario, each) for each in RELEASES.values()))


def cell(scenario: Scenario, release: Release) -> str:
    """What becomes of a scenario on a broker of a release."""
    reason = left_out(release).get(scenario.number)
    match comparison.outcome(scenario, reason, slow=True):
        case comparison.PLAYED:
            said = golden(release.name).get(scenario.number)
            if said is None:
                return UNKNOWN
            return SAME if said == golden(NEWEST.name).get(scenario.number, said) else OWN
        case comparison.NOT_APPLICABLE:
            return GONE if reason == ABSENT else str(reason)
        case other:
            return other


def _chapter(scenario: Scenario) -> str:
    """The first line of its module: "E.3: KIP-394, a member that …"."""
    said = sys.modules[scenario.play.__module__].__doc__
    assert said, scenario.play.__module__
    return said.splitlines()[0].rstrip(".")


def _looked_at(number: str) -> dict[str, set[int]]:
    """The versions of each API whose answers a scenario looks at."""
    found: dict[str, set[int]] = defaultdict(set)
    for release in RELEASES:
        for api, version in _asked(golden(release).get(number, ())):
            found[api].add(version)
    return found


def _asked(entries: Iterable[Mapping[str, str]]) -> Iterable[tuple[str, int]]:
    """Api and version of each entry of a transcript."""
    for entry in entries:
        name, _, version = entry["request"].rpartition(" v")
        if name in NAMES:
            yield name, int(version)


@cache
def golden(name: str) -> Mapping[str, goldens.Entries]:
    """What a release said, by scenario."""
    return goldens.read(RELEASES[name])


def _ranges(numbers: Iterable[int]) -> str:
    """0, 3-5."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][-1] == number - 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, each)) for each in found)


def _attribute_docs(cls: type) -> dict[str, str]:
    """The string below each attribute of a class, as one line."""
    (body,) = (each.body for each in ast.parse(inspect.getsource(cls)).body if isinstance(each, ast.ClassDef))
    found = {}
    for attribute, doc in pairwise(body):
        match attribute, doc:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
