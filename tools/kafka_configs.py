"""Record the configs of Kafka's releases from running brokers into `emulator/config/kafka_configs.json`.

`python tools/kafka_configs.py`, with `PYTHONPATH=tests/support`, Java 17 and Maven; needed once for a new release. Each
broker describes its own configs with synonyms and documentation. The bounds of those that can be altered come from its
refusals of invalid values, requested with `validate_only`.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from brokers.kafka_releases import BY_LINE, Release
from brokers.real_kafka import SETTINGS, RealKafka

from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.client.errors import RequiredVersion
from koordinator.emulator.config.kafka_configs import BROKER, CLIENT_METRICS, FILE, GROUP, KINDS, TOPIC, ConfigType
from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATH = Path(__file__).parents[1] / "emulator" / "config" / FILE

FAMILIES = {
    "log.retention.ms": "604800000",
    "log.retention.minutes": "10080",
    "log.retention.hours": "168",
    "log.roll.ms": "604800000",
    "log.roll.hours": "168",
    "log.roll.jitter.ms": "0",
    "log.roll.jitter.hours": "0",
}
"""Settings that are synonyms of each other: only one with a value shows in the answer."""

SUBSCRIBING = ("3.9", "4.0")
"""The releases that have client metrics, and describe only those that are set."""

NUMBERS = {
    ConfigType.INT: (-(2**31), 2**31 - 1),
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.LONG: (-(2**63), 2**63 - 1),
    ConfigType.DOUBLE: (-1e300, 1e300),
}
"""The extreme values of numbers."""

WORD = "no.such.word"

AT_LEAST = re.compile(r"Value must be (?:at least|between) (\S+)")
AT_MOST = re.compile(r"Value must be (?:no more than|between \S+ and) (\S+)")
ALSO = re.compile(r"Value must be between .* or equal to (\S+)$")
ONE_OF = re.compile(r"String must be one of: (.*)$")
NO_EMPTY_ITEMS = "values must not be empty"

DEFAULT_SOURCE = 5
DOCUMENTED_SINCE = 3  # the version of DescribeConfigs
ALL_S = 120


class Recorder:
    """The answers of one broker."""

    def __init__(self, link: BrokerConnection) -> None:
        self._link = link
        self._describing = link.version(RequiredVersion(ApiKey.DESCRIBE_CONFIGS, 1, "1.1"))
        self._altering = link.version(RequiredVersion(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, "2.3"))

    def rows(self, kind: int, name: str) -> tuple[DescribeConfigsResourceResult, ...]:
        """Return the configs of a resource; none if the release does not have the kind."""
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        request = DescribeConfigsRequest(
            resources=(resource,), include_synonyms=True, include_documentation=self._describing >= DOCUMENTED_SINCE
        )
        (result,) = self._link.send(request, self._describing, DescribeConfigsResponse).results
        sys.stderr.write(f"  {kind} {name!r}: {len(result.configs)} configs {result.error_message or ''}\n")
        return result.configs

    def refusal(self, kind: int, name: str, key: str, text: str) -> str:
        """Return why a value is refused, or ""."""
        row = AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=(AlterableConfig(name=key, value=text),)
        )
        request = IncrementalAlterConfigsRequest(resources=(row,), validate_only=True)
        (result,) = self._link.send(request, self._altering, IncrementalAlterConfigsResponse).responses
        return (result.error_message or "refused") if result.error_code else ""


def recorded(recorder: Recorder, kind: int, name: str) -> Iterator[dict[str, Any]]:
    """Yield the configs of a resource, without the values of this machine."""
    for row in recorder.rows(kind, name):
        if row.is_sensitive and row.name in SETTINGS:
            # unknown to the release, and shown because it is in the properties file
            continue
        synonyms = list(dict.fromkeys(each.name for each in row.synonyms))
        defaults = [each.value for each in row.synonyms if each.source == DEFAULT_SOURCE and each.name == row.name]
        default = row.value if kind != BROKER else defaults[0] if defaults else None
        content = {
            "name": row.name,
            "type": row.config_type or None,
            "default": default,
            "read_only": row.read_only,
            "sensitive": row.is_sensitive,
            "synonyms": synonyms or ([row.name] if kind == BROKER else []),
            "doc": row.documentation or None,
        }
        if not row.read_only:
            content |= bounds(recorder, kind, name, row)
        yield {key: each for key, each in content.items() if each not in (None, False, [])}


def bounds(recorder: Recorder, kind: int, name: str, row: DescribeConfigsResourceResult) -> dict[str, Any]:
    """Return the least and the largest value, or the legal words."""
    found: dict[str, Any] = {}
    probes: list[tuple[str, re.Pattern[str], object]] = [("choices", ONE_OF, WORD)]
    # 2.4 does not tell types
    config_type = ConfigType(row.config_type or ConfigType.LONG)
    if config_type in NUMBERS:
        lowest, highest = NUMBERS[config_type]
        probes += [("lowest", AT_LEAST, lowest), ("highest", AT_MOST, highest), ("also", ALSO, highest)]
    for key, pattern, value in probes:
        refusal = recorder.refusal(kind, name, row.name, str(value))
        match = pattern.search(refusal)
        if match:
            found[key] = match[1]
    if config_type is ConfigType.LIST and NO_EMPTY_ITEMS in recorder.refusal(kind, name, row.name, ","):
        found["no_empty_items"] = True
    if "choices" in found:
        found["choices"] = [each.strip() for each in found["choices"].split(",")]
    return found


def of_broker(release: Release, folder: Path) -> Mapping[str, list[dict[str, Any]]]:
    """Start a broker and return its configs by kind."""
    sys.stderr.write(f"{release.name}\n")
    with (
        RealKafka(folder, release, FAMILIES) as kafka,
        closing(BrokerConnection(kafka.address, Deadline(ALL_S), "1")) as link,
    ):
        kafka.create_topic("t")
        recorder = Recorder(link)
        names = {TOPIC: "t", BROKER: "1", CLIENT_METRICS: "m", GROUP: "g"}
        return {
            KINDS[kind]: sorted(recorded(recorder, kind, name), key=lambda row: row["name"])
            for kind, name in names.items()
        }


def merged(releases: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> str:
    """Return the file: a line for each config, with the releases that have it like this."""
    lines: dict[str, list[str]] = {}
    for kind in KINDS.values():
        known: dict[str, list[str]] = {}
        later: dict[str, dict[str, Any]] = {}
        for release, found in reversed(releases.items()):
            # releases before 4.3 describe no client metrics until they are set; they accept empty items
            is_hidden = kind == "client metrics" and release in SUBSCRIBING
            shown = [{key: each for key, each in row.items() if key != "no_empty_items"} for row in later.values()]
            rows = found[kind] or (shown if is_hidden else [])
            # 2.4 tells no types and no documentation
            completed = [row if "type" in row else untold(later.get(row["name"], {})) | row for row in rows]
            for row in completed:
                known.setdefault(json.dumps(row, ensure_ascii=False, sort_keys=True), []).insert(0, release)
            later = {row["name"]: row for row in completed}
        rows = sorted((json.loads(text)["name"], " ".join(names), text) for text, names in known.items())
        lines[kind] = [f'{{"in": "{names}", {text[1:]}' for _, names, text in rows]
    parts = (f' "{kind}": [\n  ' + ",\n  ".join(rows) + "\n ]" for kind, rows in lines.items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


def untold(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type, the bounds and the documentation of a config."""
    columns = ("type", "lowest", "highest", "doc")
    return {"type": int(ConfigType.STRING)} | {key: row[key] for key in columns if key in row}


def main() -> None:
    """Record all releases."""
    with TemporaryDirectory(prefix="kafka-configs-") as work:
        found = {}
        for name, release in BY_LINE.items():
            folder = Path(work, name)
            folder.mkdir()
            found[name] = of_broker(release, folder)
    PATH.write_text(merged(found), encoding="utf-8")


if __name__ == "__main__":
    main()
