"""Generate docs/scenarios.csv and the tables of docs/fidelity.md.

They come from the scenarios, the recorded broker responses and the release tables.

`make test` plays every scenario and compares the emulator with the recorded responses; this module does not.
"""

from __future__ import annotations

import ast
import csv
import inspect
import re
import sys
from collections import Counter, defaultdict
from dataclasses import fields
from functools import cache
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from broken.consumer_groups import CONSUMER_GROUP_RULES
from broken.rules import RULES, BrokenRule, by_part
from brokers.kafka_releases import COMPARED, NEWEST, RELEASES
from scenarios import comparison, goldens
from scenarios.applicability import ABSENT, left_out
from scenarios.registry import load
from tables import table

from koordinator.emulator.broker import releases
from koordinator.emulator.config.settings import NEW_COORDINATOR_CHOSEN_IN
from koordinator.emulator.config.settings import RELEASES as EMULATED
from koordinator.emulator.core.dialect import Dialect, dialect_of_release
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from brokers.kafka_releases import Release
    from scenarios.registry import Scenario

SAME, OWN = "same", "same*"
"""The emulator's responses equal this release's; with OWN, the newest release's differ."""

NOT_IN_RELEASE = "absent"
"""The scenario uses a feature that the release does not have."""

UNKNOWN = "not recorded"
"""The broker's responses have not been recorded yet."""

NAMES = {api.name for api in APIS.values()}

SCENARIOS = Path(__file__).parents[1] / "docs" / "scenarios.csv"


def brokers_table() -> str:
    """Return the table of reference brokers."""
    head = (
        "broker",
        "Apache Kafka",
        "commit",
        "recorded on",
        "scenarios",
        "answers",
        comparison.WAITING,
        NOT_IN_RELEASE,
    )
    return table(head, [_broker(release) for release in COMPARED.values()])


def _broker(release: Release) -> tuple[str, ...]:
    origin, responses = goldens.origin(release), golden(release.name)
    cells = Counter(cell(scenario, release) for scenario in load().values())
    total = sum(map(len, responses.values()))
    counts = (len(responses), total, cells[comparison.WAITING], cells[NOT_IN_RELEASE])
    build = (
        (f"{release.version}, {release.coordinator} coordinator", origin.commit_id, origin.recorded_on)
        if origin
        else (UNKNOWN,) * 3
    )
    return (release.name, *build, *(f"{count:,}" for count in counts))


def versions_table() -> str:
    """Return the table of API versions by release, with the number of scenarios that compare a response of each."""
    compared: dict[str, Counter[int]] = defaultdict(Counter)
    for number in load():
        for api, versions in _compared_versions(number).items():
            compared[api].update(versions)
    rows = []
    for key in sorted(APIS):
        name = APIS[key].name
        served = (releases.ACCEPTED[release].get(key) for release in EMULATED)
        counts = ", ".join(f"v{version}: {count}" for version, count in sorted(compared[name].items()))
        rows.append((f"{name} ({int(key)})", *(f"{versions}" if versions else "" for versions in served), counts))
    return table(("API", *EMULATED, "scenarios"), rows)


def dialects_table() -> str:
    """Return the table of differences between releases."""
    dialects: dict[str, Dialect] = {}
    for name in EMULATED:
        if name == NEW_COORDINATOR_CHOSEN_IN:
            dialects[f"{name}-old"] = dialect_of_release(name, new_coordinator=False)
            dialects[f"{name}-new"] = dialect_of_release(name, new_coordinator=True)
        else:
            dialects[name] = dialect_of_release(name, new_coordinator=True)
    docs = _attribute_docs(Dialect)
    rows = (
        (docs[field.name], *(_behaviour(getattr(dialect, field.name)) for dialect in dialects.values()))
        for field in fields(Dialect)
    )
    return table(("", *dialects), rows)


def _behaviour(behaviour: object) -> str:
    """Return yes or no, an error number, or the coordinator whose rule applies."""
    if isinstance(behaviour, bool):
        return "yes" if behaviour else "no"
    if isinstance(behaviour, int):
        return str(int(behaviour))
    if isinstance(behaviour, Versions):
        return "" if behaviour == Versions("none") else str(behaviour)
    # a function of one of the two coordinators
    if isinstance(behaviour, str):
        return behaviour
    return getattr(behaviour, "__name__").partition("_")[0].upper()  # noqa: B009 - mypy knows only `object`


def consumer_hard_parts_table() -> str:
    """Return the table of the rules of consumer groups that `make broken-rules` breaks, with their tests."""
    return hard_parts_table(CONSUMER_GROUP_RULES)


def hard_parts_table(broken: Iterable[BrokenRule] = RULES) -> str:
    """Return the table of the rules of transactions that `make broken-rules` breaks, with their tests."""
    rows = (
        ("" if number else part, rule.rule, ", ".join(f"`{name}`" for name in rule.test_names))
        for part, rules in by_part(broken).items()
        for number, rule in enumerate(rules)
    )
    return table(("part", "rule", "tests that fail without it"), rows)


NOT_EMULATED = {
    ApiKey.PRODUCE: "`compression.type`: batches are stored as they were sent; a record length inside a compressed "
    "batch is compared with its fields (87)",
    ApiKey.FETCH: "brokers that fetch: they get no records",
    ApiKey.LIST_OFFSETS: "v0 with `max_num_offsets` above 1 (there are no segments); tiered storage",
    ApiKey.METADATA: "REBOOTSTRAP_REQUIRED in v13 (KIP-1102)",
    ApiKey.OFFSET_COMMIT: "the ZooKeeper of brokers of 2.4 and 2.8",
    ApiKey.OFFSET_FETCH: "the ZooKeeper of brokers of 2.4 and 2.8",
    ApiKey.SHARE_FETCH: "the race of two fetches for one partition with a wait of 0; dead letters that share a batch",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "the half minute that an unknown partition takes",
    ApiKey.JOIN_GROUP: "-1 for two protocols of one name (the first counts); in 2.8 the failure of a leader that uses a"
    " version before 5 in a group with static members (35, or no answer until the next rebalance)",
    ApiKey.CREATE_TOPICS: "replication (a factor up to the number of brokers is accepted and shown), timeouts, "
    "policies",
    ApiKey.DESCRIBE_CONFIGS: "the loggers of a broker (42)",
    ApiKey.ALTER_CONFIGS: "a resource given twice, to which brokers of 2.8 and 3.9 do not respond (-1 and 42); in 2.4 "
    "the texts of -1, and the connection that a null closes (-1)",
    ApiKey.DESCRIBE_LOG_DIRS: "sizes of volumes (-1)",
    ApiKey.CREATE_PARTITIONS: "timeouts",
    ApiKey.DELETE_GROUPS: "GROUP_DELETION_FAILED, the error of a plugin for streams groups; messages in v3 are null",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "the loggers of a broker (42); in 2.4 logs that keep a broker's value after its "
    "deletion",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "patterns where google-re2 is missing (128)",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "-1 for a topology with a negative epoch, which puppets send: it gives way to the "
    "group's",
    ApiKey.ALTER_CLIENT_QUOTAS: "host names for the entity type `ip` (42), except `localhost`",
    ApiKey.DESCRIBE_QUORUM: "times (-1); the metadata log has a counter of changes for its end, and each broker is a "
    "voter",
    ApiKey.UNREGISTER_BROKER: "a registered broker stays: it is answered as if it had registered again",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "eligible leader replicas, which are always empty",
}
"""The features of each served API that are missing here."""


def missing_table() -> str:
    """Return the table of missing features by API."""
    rows = [(f"{APIS[key].name} ({int(key)})", text) for key, text in NOT_EMULATED.items()]
    return table(("API", "not emulated"), rows)


def chapters_table() -> str:
    """Return a row for each chapter of scenarios: how many there are, and how many of them each broker has answered."""
    chapters: dict[str, list[Scenario]] = defaultdict(list)
    for scenario in load().values():
        chapters[_chapter(scenario)].append(scenario)
    rows = []
    for title, chapter in chapters.items():
        numbers = [each.number for each in chapter]
        answered = (sum(each.number in golden(name) for each in chapter) for name in RELEASES)
        rows.append((title, f"{numbers[0]} to {numbers[-1]}", str(len(chapter)), *map(str, answered)))
    return table(("chapter", "scenarios", "all", *RELEASES), rows)


def scenarios_csv() -> str:
    """Return a row for each scenario: its chapter, its rule, the APIs that it compares, the result per broker."""
    file = StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(("scenario", "chapter", "rule", "source", "compares", "file", *RELEASES))
    rows.writerows(map(_row, load().values()))
    return file.getvalue()


def _row(scenario: Scenario) -> tuple[str, ...]:
    path = f"tests/conformance/{Path(scenario.play.__code__.co_filename).name}"
    rule = scenario.name.split("_", 2)[2].replace("_", " ")
    apis_compared = ", ".join(
        f"{api} {_ranges(versions)}" for api, versions in sorted(_compared_versions(scenario.number).items())
    )
    results = (cell(scenario, release) for release in RELEASES.values())
    return (scenario.number, _chapter(scenario), rule, scenario.kip, apis_compared, path, *results)


def cell(scenario: Scenario, release: Release) -> str:
    """Return the result of a scenario on a broker of a release."""
    reason = left_out(release).get(scenario.number)
    match comparison.outcome(scenario, reason, slow=True):
        case comparison.PLAYED:
            responses = golden(release.name).get(scenario.number)
            if responses is None:
                return UNKNOWN
            return SAME if responses == golden(NEWEST.name).get(scenario.number, responses) else OWN
        case comparison.NOT_APPLICABLE:
            return NOT_IN_RELEASE if reason == ABSENT else str(reason)
        case other:
            return other


def _chapter(scenario: Scenario) -> str:
    """Return the first line of the scenario's module docstring, without its number: "E.3: KIP-394, a member that …"."""
    doc = sys.modules[scenario.play.__module__].__doc__
    assert doc, scenario.play.__module__
    return re.sub(r"^[A-Z]\.\d+: ", "", doc.splitlines()[0]).rstrip(".")


def _compared_versions(number: str) -> dict[str, set[int]]:
    """Return the versions of each API whose responses a scenario compares."""
    versions: dict[str, set[int]] = defaultdict(set)
    for release in RELEASES:
        for api, version in _requests(golden(release).get(number, ())):
            versions[api].add(version)
    return versions


def _requests(entries: Iterable[Mapping[str, str]]) -> Iterable[tuple[str, int]]:
    """Yield the API and version of each request of a transcript."""
    for entry in entries:
        name, _, version = entry["request"].rpartition(" v")
        if name in NAMES:
            yield name, int(version)


@cache
def golden(name: str) -> Mapping[str, goldens.Entries]:
    """Return the recorded responses of a release, by scenario."""
    return goldens.read(COMPARED[name])


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: `0, 3-5`."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join("-".join(map(str, bounds)) for bounds in ranges)


def _attribute_docs(cls: type) -> dict[str, str]:
    """Return the docstring of each attribute of a class, as one line."""
    (body,) = (node.body for node in ast.parse(inspect.getsource(cls)).body if isinstance(node, ast.ClassDef))
    docs = {}
    for attribute, doc in pairwise(body):
        match attribute, doc:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = " ".join(text.split())
    return docs
