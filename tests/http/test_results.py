"""Results of operations: one dataclass for the handle, for JSON and for the OpenAPI document."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from typing import Any, get_args

import pytest
import trio
from documents import OPENAPI
from pydantic import ValidationError

from koordinator import Simulation
from koordinator.emulator.control import operations
from koordinator.emulator.control.results import GroupCheck, GroupInfo, NodeState, PartitionOffset
from koordinator.emulator.core.data.direct_records import StoredRecord
from koordinator.emulator.http.plain import ROWS_AT_ONCE, from_json, result_from_plain, to_json, to_json_in_turns

DOCUMENT: dict[str, Any] = json.loads(OPENAPI.read_text(encoding="utf-8"))
SCHEMAS: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]

UNTYPED = {"events.header", "events.read", "groups.dump"}
"""Operations whose results are lines of a file."""


def dataclasses_in(annotation: Any) -> set[type]:
    found = {each for argument in get_args(annotation) for each in dataclasses_in(argument)}
    return found | {annotation} if isinstance(annotation, type) and is_dataclass(annotation) else found


@pytest.mark.parametrize("name", operations.OPERATIONS)
def test_a_result_is_a_dataclass_or_a_plain_value(name: str) -> None:
    annotation = operations.result(name)
    untyped = {dict, Any, object} & {annotation, *get_args(annotation), *map(type, get_args(annotation))}
    assert (bool(untyped) or "dict" in str(annotation)) == (name in UNTYPED)


@pytest.mark.parametrize("name", operations.OPERATIONS)
def test_the_schema_of_a_result_has_its_fields_and_no_others(name: str) -> None:
    for kind in dataclasses_in(operations.result(name)):
        schema, names = SCHEMAS[kind.__name__], [field.name for field in fields(kind)]
        assert (list(schema["properties"]), schema["required"]) == (names, names)
        assert schema["additionalProperties"] is False


def test_json_has_the_fields_of_a_result_in_their_order() -> None:
    assert to_json([NodeState(1, "up")]) == '[{"node":1,"state":"up","rack":null}]'


def test_a_result_survives_json() -> None:
    record = StoredRecord(0, 1, 2, b"\xff", None, (("h", b"v"),))
    assert result_from_plain("topics.records", from_json(to_json([record]))) == [record]
    with Simulation(topics={"t": 2}) as cluster:
        group = cluster.group("g")
        group.create_puppet("a", topics=["t"]).join()
        snapshot = group.wait_stable(members=1).describe()
    assert result_from_plain("groups.describe", from_json(to_json(snapshot))) == snapshot
    assert asdict(snapshot)["members"][0]["assignment"] == {"t": [0, 1]}


def test_json_of_another_shape_is_refused() -> None:
    with pytest.raises(ValidationError):
        result_from_plain("groups.offsets", [{"topic": "t"}])


def test_a_check_that_passes_has_no_message() -> None:
    assert GroupCheck(ok=True, message="expected it") == GroupCheck(ok=True)


def test_a_group_that_does_not_exist_is_dead() -> None:
    assert (GroupInfo().state, GroupInfo().generation) == ("Dead", -1)
    assert PartitionOffset("t", 0, 5).leader_epoch == -1


@pytest.mark.parametrize("rows", [0, 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 1])
def test_a_long_list_is_written_in_parts_with_turns_between_them(rows: int) -> None:
    value, turns = [NodeState(each, "up") for each in range(rows)], 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async def main() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_turns)
            written = await to_json_in_turns(value)
            nursery.cancel_scope.cancel()
        return written

    assert trio.run(main) == to_json(value)
    assert turns >= (rows // ROWS_AT_ONCE if rows > ROWS_AT_ONCE else 0)
