"""The log lines in docs/durability.md equal those of the data directory."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster

from koordinator.emulator.config.options import Options
from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.server import build as assemble
from koordinator.emulator.storage.data_dir import JOURNAL, LOG
from koordinator.wire.records import Record, read_header, write_batch

DOCUMENT = (Path(__file__).parents[2] / "docs" / "durability.md").read_text(encoding="utf-8")
TABLE = DOCUMENT.split("| line, with a data directory |", 1)[1].split("\n\n", 1)[0]
KNOWN = {
    text: re.compile(".*".join(re.escape(part) for part in re.split(r"\b(?:N|[A-Z]{3,})\b|…", text)))
    for text in re.findall(r"^\| `([^`]+)`", TABLE, re.MULTILINE)
}


def of_a_full_disk() -> list[str]:
    files = CrashingFiles()
    durable = DurableCluster(DIR, files)
    durable.create("t")
    files.room = 0
    durable.create("u")
    files.room = None
    durable.create("u")
    return durable.logged


def of_other_owners(path: Path) -> list[str]:
    durable = DurableCluster(path / "shortened")
    durable.create("t")
    (path / "shortened" / JOURNAL).unlink()
    durable.create("u")
    shutil.rmtree(path / "shortened")
    durable.create("u")
    return durable.logged


def of_damage(path: Path) -> list[str]:
    durable = DurableCluster(path)
    for topic in ("t", "u"):
        durable.create(topic)
        for value in (b"a", b"b", b"c"):
            durable.produce(topic, value)
    durable.commit("g", "t", 1)
    topic = durable.node.cluster.topics["__consumer_offsets"]
    batch = write_batch([Record(timestamp=0, key=b"\x00\x02\x00\x01g", value=b"\x00\x63")])
    durable.node.cluster.storage.append(topic, 1, read_header(batch), batch)
    durable.built.close()
    torn, middle = path / "t-0" / LOG, path / "u-0" / LOG
    torn.write_bytes(torn.read_bytes()[:-1])
    data = middle.read_bytes()
    middle.write_bytes(b"\0" * (len(data) // 3) + data[len(data) // 3 :])
    options = Options(
        data_dir=path,
        topics={"t": 5},
        records={"u": [SeedRecord(value=b"x")]},
        config={"offsets.topic.num.partitions": 3},
    )
    logged: list[str] = []
    parts = assemble.build(options, logged.append)
    parts.close()
    return [*logged, *(f"warning: {warning}" for warning in parts.warnings)]


def test_every_line_of_a_data_directory_is_in_the_document_and_the_other_way_round(tmp_path: Path) -> None:
    said = [
        f"koordinator: {line}"
        for line in [*of_a_full_disk(), *of_other_owners(tmp_path), *of_damage(tmp_path / "damaged")]
    ]
    which = [next((text for text, pattern in KNOWN.items() if pattern.fullmatch(line)), line) for line in said]
    assert set(which) == set(KNOWN)
