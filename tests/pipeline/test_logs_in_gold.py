"""Gold tables from logs of real brokers and clients, which tests/support/spark/record_logs.py recorded."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from spark.gold_frames import Gold
from spark.log_rows import LOGS, RELEASES, recorded

from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.rebalances import rebalances
from koordinator.pipeline.frames import rows_of, table_of
from koordinator.pipeline.schema import BRONZE_LINE, CLIENT_JOIN, EVENT, REBALANCE
from koordinator.pipeline.silver.line_rows import FileTypes, md5, read_lines, stem_of
from koordinator.pipeline.silver.logs.reader import OTHER_CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.pipeline.queries import Row

CLIENTS = {
    "aiokafka-aio-1.log": "aiokafka",
    "confluent-kafka-rd-1.log": "librdkafka",
    "confluent-kafka-rd-3.log": "librdkafka",
    "java-java-1.log": "java",
    "java-java-s2.log": "java",
    "kafka-python-kp-1.log": "kafka_python",
    "kafka-python-kp-s1.log": "kafka_python",
}
"""Logs of the clients of Kafka 4.3, and their sources."""

GOLDEN = (
    *("group_id", "rebalance_no", "gen_before", "gen_after", "cause", "sub_cause", "members_before", "members_after"),
    *("n_static", "n_timed_out", "join_ms", "sync_ms", "storm_id", "outcome"),
)

Found = tuple[dict[str, list["Row"]], dict[str, list["Row"]], dict[str, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def found() -> Found:
    """Return the rebalances of all brokers, the joins of the clients of one broker, and the events as trace lines."""
    logs = {release: (recorded(release), "server_log") for release in RELEASES}
    logs |= {name: (recorded("4.3", name), source) for name, source in CLIENTS.items()}
    rows = [row for name, (texts, _) in logs.items() for row in bronze(f"{name}/log", texts)]
    types = {f"{name}/log": (source, source if source in OTHER_CLIENTS else None) for name, (_, source) in logs.items()}
    read = rows_of(read_lines(table_of(rows, BRONZE_LINE), FileTypes(types)))
    names = {md5(stem_of(f"{name}/log")): name for name in logs}
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in sorted((row for row in read if row.part == "event"), key=lambda row: row.seq):
        lines.setdefault(names[row.trace_id], []).append(_line(row))
    gold = Gold(lines)
    return _by_trace(gold.rows(REBALANCE)), _by_trace(gold.rows(CLIENT_JOIN)), lines


def bronze(name: str, lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the lines of a log, which is a trace of its own."""
    same = {"source_file": name, "block_start": 0, "ingest_id": "ingest"}
    return [same | {"row_id": number, "raw": line} for number, line in enumerate(lines)]


def _line(row: Row) -> dict[str, Any]:
    """Return the event as the emulator would write it."""
    line = {name: row[name] for name in EVENT.names if row[name] is not None and name != "trace_id"}
    line |= {"wall_ts": line.pop("wall_us"), "group_ts_us": line.pop("group_us")}
    return line | ({"body": json.loads(row.body)} if row.body else {})


def _by_trace(rows: list[Row]) -> dict[str, list[Row]]:
    return {name: [row for row in rows if row.trace_id == name] for name in {row.trace_id for row in rows}}


@pytest.mark.parametrize("release", RELEASES)
def test_the_rebalances_equal_those_that_the_broker_stabilized(found: Found, release: str) -> None:
    matches = [re.search(r"Stabilized group (\S+) generation (\d+)", line) for line in recorded(release)]
    rows = [row for row in found[0][release] if row.join_seq is not None]
    assert [(row.group_id, row.gen_after) for row in rows] == sorted(
        (each[1], int(each[2])) for each in matches if each
    )


@pytest.mark.parametrize("release", RELEASES)
def test_the_emulator_finds_the_same_rebalances_in_a_broker_log(found: Found, release: str) -> None:
    for group in {row.group_id for row in found[0][release]}:
        mine = [row for row in found[0][release] if row.group_id == group]
        verdict = rebalances(GroupTrace(found[2][release], group))
        assert [(row.cause, row.gen_before, row.gen_after, row.outcome, row.join_ms, row.sync_ms) for row in mine] == [
            (each.cause, each.generation_before, each.generation, each.outcome, each.join_ms, each.sync_ms)
            for each in verdict
        ]


@pytest.mark.parametrize("release", RELEASES)
def test_rebalances_of_recorded_logs_equal_the_golden_ones(found: Found, release: str) -> None:
    table = [GOLDEN, *(tuple(_cell(row[name]) for name in GOLDEN) for row in found[0][release])]
    text = "".join(",".join(cells) + "\n" for cells in table)
    golden = LOGS / release / "rebalances.csv"
    if not golden.exists():
        golden.write_text(text)
        pytest.fail(f"{golden} was not there: look at what is written there now")
    assert text == golden.read_text()


def _cell(value: object) -> str:
    return "" if value is None else str(value)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_log_has_every_generation_of_its_broker(found: Found, name: str) -> None:
    joins = found[1][name]
    generations = [row.generation for row in joins]
    made = {row.gen_after for row in found[0]["4.3"] if row.group_id == joins[0].group_id}
    assert generations == list(range(generations[0], generations[0] + len(generations)))
    assert set(generations) <= made
    assert {row.source for row in joins} == {CLIENTS[name]}
    assert joins[0].cause == "member_join"
    assert all(0 <= row.join_ms <= (row.total_ms or row.join_ms) for row in joins)


@pytest.mark.parametrize("name", [name for name, source in CLIENTS.items() if source != "kafka_python"])
def test_the_rejoin_reasons_of_clients_are_recognized(found: Found, name: str) -> None:
    later = found[1][name][1:]
    assert {row.cause for row in later} <= {"already_rebalancing", "failed"}
    assert [row for row in later if row.cause == "already_rebalancing"]


def test_a_join_without_an_assignment_has_no_total_time(found: Found) -> None:
    ends = {row.generation: row.total_ms for row in found[1]["kafka-python-kp-1.log"]}
    # the leader rejoined at once, because it had new metadata
    assert [number for number, total_ms in ends.items() if total_ms is None] == [3, 4]
