"""Each check has its failing scene in each version of the APIs that it reads.

A scene names no API: it depends on those without whose lines its verdict is another. Their requests and responses go
over the wire in each version, and from there into trace lines. The APIs that a check reads are those that its code
names.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from copy import deepcopy
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import Nodes
from clients.strict_connection import within
from marks.cases import case
from scenes.lines_on_the_wire import API_KEYS, GROUP_APIS, over_the_wire
from scenes.trace_tales import COMPLETING, FULL, INTERVAL_MS, PREPARING, REBALANCE_MS, SESSION_MS, STABLE, Tale

from koordinator.emulator import verify
from koordinator.emulator.trace.vocabulary import CHECKS
from koordinator.emulator.verify.conformance import SERVER_CHECKS, client_checks
from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.transaction_checks import TITLES, check_transactions
from koordinator.wire.apis import APIS
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from koordinator.wire.records import Record, write_batch
from koordinator.wire.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.emulator.verify.group_trace import Line

    Scene = Callable[[Tale], None]

COOPERATIVE = "cooperative-sticky"


# -- client checks -------------------------------------------------------------------------------------------


def unused_id(tale: Tale) -> None:
    asked = tale.asks("JoinGroup", "a", body={"session_timeout_ms": SESSION_MS})
    tale.answers(asked, "MEMBER_ID_REQUIRED", member_id="a-1")
    tale.passes(SESSION_MS + 1)
    tale.line("timer", timer="PendingMemberExpiry", member_id="a-1")


def no_lookup(tale: Tale, api: str) -> None:
    for _ in range(2):
        tale.call(api, "a", "NOT_COORDINATOR", member_id="a", generation=1)
        tale.passes(1001)


def one_lookup_of_two(tale: Tale) -> None:
    tale.beat("a", 1, "NOT_COORDINATOR")
    tale.call("FindCoordinator", "a")
    tale.passes(1001)
    no_lookup(tale, "Heartbeat")


def old_commit(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.forms({"a": [0]}, before=STABLE)
    tale.commits("a", 1, error="ILLEGAL_GENERATION")


def silence(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.passes(SESSION_MS)
    tale.beat("a")
    tale.passes(SESSION_MS)
    tale.beat("a")


def silence_in_a_consumer_group(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.passes(INTERVAL_MS + 1000)
    tale.beats("a", 2)


def silence_of_one_that_did_not_leave(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [0]})
    tale.call("LeaveGroup", "a", member_id="a")
    tale.passes(SESSION_MS)
    tale.call("OffsetFetch", "c")


def no_generation(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    tale.call(api, "a", "ILLEGAL_GENERATION", member_id="a", generation=-1)


def static_leave(tale: Tale) -> None:
    tale.forms({"a": [0]}, instances={"a": "one"})
    tale.call("LeaveGroup", "a", member_id="a", instance_id="one")


def static_leave_on_a_connection_for(tale: Tale, api: str) -> None:
    tale.line("member", change="added", member_id="a", instance_id="one", cause="member_join")
    tale.call(api, "a", member_id="a", generation=1)
    tale.call("LeaveGroup", "a", member_id="a")


def static_leave_of_a_consumer_group(tale: Tale) -> None:
    tale.enters("a", 2, [0], "one")
    tale.beats("a", -1, instance="one")


def taken_too_early(tale: Tale) -> None:
    tale.forms({"a": [0, 1]}, protocol=COOPERATIVE)
    tale.forms({"a": [0], "b": [1]}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0, 1]})


def foreign_commit(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]}, protocol=COOPERATIVE)
    tale.commits("a", 1, 1)


def owned_again(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, given=[0])
    tale.beats("a", 2, 3, owned={"t": [0]})
    tale.beats("a", 3, owned={"t": [0, 1]}, **FULL)


def owned_twice(tale: Tale) -> None:
    tale.forms({"a": [0, 1], "b": [1]})


def never_joined(tale: Tale) -> None:
    tale.passes(REBALANCE_MS + 1)
    tale.beat("c", 0)


def no_rejoin(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    tale.call(api, "a", "REBALANCE_IN_PROGRESS", member_id="a", generation=1)
    never_joined(tale)


def no_rejoin_of_one_that_did_not_leave(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    for name in ("a", "b"):
        tale.beat(name, error="REBALANCE_IN_PROGRESS")
    tale.call("LeaveGroup", "a", member_id="a")
    never_joined(tale)


def tight_loop(tale: Tale, api: str) -> None:
    for _ in range(15):
        tale.call(api, "a", "FENCED_INSTANCE_ID", member_id="a", generation=1)
        tale.passes(20)


def revoked_uncommitted(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)


def left_uncommitted(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.call("LeaveGroup", "a", member_id="a")


def one_commit_of_two(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.fetches("a")
    tale.commits("a", 1)
    tale.forms({"a": [0]}, before=STABLE)
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)


def one_fetch_of_two_after_the_signal(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)
    tale.fetches("a")
    tale.forms({"a": [0]}, before=STABLE)


def not_everything_repeated(tale: Tale) -> None:
    tale.enters("a", 2, [0])
    tale.beats("a", 2, error="NOT_COORDINATOR")
    tale.beats("a", 2)


def epoch_gone_back(tale: Tale) -> None:
    tale.enters("a", 2, [0, 1])
    tale.beats("a", 2, 3, owned={"t": [0]})
    tale.beats("a", 2)


def refused_commit(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    body = {"offsets": [["t", 0, 1]]}
    tale.call(api, "a", "ILLEGAL_GENERATION", member_id="a", generation=1, body=body)
    never_joined(tale)


def refused_commit_of_one_that_did_not_leave(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    for name in ("a", "b"):
        tale.commits(name, 1, error="ILLEGAL_GENERATION")
    tale.call("LeaveGroup", "a", member_id="a")
    never_joined(tale)


def late_leader(tale: Tale, api: str) -> None:
    request = tale.joins("a")
    tale.state(PREPARING, COMPLETING, 1, "joined")
    tale.answers(request, generation=1, body={"protocol": "range", "leader": "a", "members": ["a"]})
    tale.passes(REBALANCE_MS + 1)
    tale.call(api, "a", "UNKNOWN_MEMBER_ID", member_id="a", generation=1)


# -- coordinator checks --------------------------------------------------------------------------------------


def skipped_generation(tale: Tale) -> None:
    tale.state(PREPARING, PREPARING, 1, "metadata_change")
    tale.state(PREPARING, COMPLETING, 5, "joined")


def two_leaders(tale: Tale) -> None:
    for name, asked in {"a": tale.joins("a"), "b": tale.joins("b")}.items():
        body = {"protocol": "range", "leader": name, "members": ["a", "b"] if name == "a" else []}
        tale.answers(asked, generation=1, body=body)


def member_list_for_a_follower(tale: Tale) -> None:
    body = {"protocol": "range", "leader": "b", "members": ["a", "b"]}
    tale.answers(tale.joins("a"), generation=1, body=body)


def old_generation_accepted(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    tale.forms({"a": [0]}, before=STABLE)
    tale.call(api, "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})


def id_required_twice(tale: Tale) -> None:
    tale.call("JoinGroup", "a", "MEMBER_ID_REQUIRED", member_id="a-1")


def removed_too_soon(tale: Tale, api: str) -> None:
    tale.forms({"a": [0]})
    tale.passes(SESSION_MS)
    # a SyncGroup that completes the rebalance restarts the session, too
    tale.state(STABLE, COMPLETING, 2, "joined")
    tale.call(api, "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})
    tale.passes(SESSION_MS - 1)
    tale.member("removed", "a", "session_expired")


def one_member_too_many(tale: Tale, api: str) -> None:
    for name in ("a", "b"):
        tale.member("added", name, "member_join")
    tale.call(api, "c", "GROUP_MAX_SIZE_REACHED", member_id="c", generation=0)
    tale.member("added", "d", "member_join")
    tale.state(PREPARING, COMPLETING, 2, "joined")


def static_rejoin_with_a_rebalance(tale: Tale) -> None:
    tale.state(COMPLETING, STABLE, 1, "assigned")
    asked = tale.asks("JoinGroup", "one", instance_id="one", body={"protocols": ["range"]})
    tale.member("replaced", "one-1", "fenced", "one")
    tale.state(STABLE, PREPARING, 1, "metadata_change", member_id="one-2")
    tale.answers(asked, member_id="one-2", generation=1, body={"protocol": "range", "leader": "one-1"})


def old_member_not_fenced(tale: Tale, api: str) -> None:
    tale.member("replaced", "one-1", "fenced", "one")
    tale.call(api, "old", member_id="one-1", instance_id="one", generation=1)


def protocol_without_support(tale: Tale) -> None:
    tale.answers(tale.joins("a"), generation=1, body={"protocol": "sticky", "leader": "a"})


def request_skipped(tale: Tale, api: str) -> None:
    tale.asks(api, "a", member_id="a", generation=1)
    tale.call(api, "a", member_id="a", generation=1)


def given_to_two(tale: Tale) -> None:
    tale.step("a", 2, [0, 1])
    tale.step("b", 3, [1])


def member_epoch_back(tale: Tale) -> None:
    tale.step("a", 3, [0])
    tale.step("a", 2, [0])


# -- transactions --------------------------------------------------------------------------------------------


def transactions(api: str = "", version: int = 0) -> list[Line]:
    """Return the trace of a commit, an abort, a fetch of both, and two writes of a fenced producer.

    The requests of one API have a version, all others the newest that needs no other flow.
    """
    nodes = Nodes(1, kafka_version="4.4")
    peer = nodes.connect()
    newest = {"AddPartitionsToTxn": 3, "EndTxn": 3, "TxnOffsetCommit": 3}

    def ask(request: Any) -> Any:
        name = next(each.name for each in APIS.values() if each.request is type(request))
        number = version if name == api else newest.get(name, APIS[API_KEYS[name]].versions.max)
        return nodes.ask(peer, within(request, number), number)

    ask(FindCoordinatorRequest(coordinator_keys=("g",)))
    ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("x",)))
    topic = nodes.cluster.topic("t")
    assert topic is not None

    def begin() -> dict[str, Any]:
        answer = ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000))
        return {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}

    def write(producer: dict[str, Any], offset: int, sequence: int) -> None:
        row = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        topics = (TxnOffsetCommitRequestTopic(name="t", topic_id=topic.topic_id, partitions=(row,)),)
        ask(TxnOffsetCommitRequest(transactional_id="x", group_id="g", **producer, topics=topics))
        batch = write_batch([Record(0, 0, None, b"v")], **producer, base_sequence=sequence, is_transactional=True)
        rows = (PartitionProduceData(index=1, records=batch),)
        data = TopicProduceData(name="t", topic_id=topic.topic_id, partition_data=rows)
        ask(ProduceRequest(transactional_id="x", acks=-1, topic_data=(data,)))

    producer = begin()
    for number, is_commit in enumerate((True, False)):
        added = AddPartitionsToTxnTopic(name="t", partitions=(1,))
        named = {f"v3_and_below_{name}": value for name, value in {"transactional_id": "x", **producer}.items()}
        ask(AddPartitionsToTxnRequest(**named, v3_and_below_topics=(added,)))
        ask(AddOffsetsToTxnRequest(transactional_id="x", group_id="g", **producer))
        write(producer, number + 1, number)
        ask(EndTxnRequest(transactional_id="x", **producer, committed=is_commit))
    place = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=10_000)
    asked = FetchTopic(topic="t", topic_id=topic.topic_id, partitions=(place,))
    ask(FetchRequest(max_bytes=10_000, session_epoch=-1, isolation_level=1, topics=(asked,)))
    begin()
    write(producer, 3, 2)
    return nodes.trace.events()


def changed(lines: list[Line], pick: Callable[[Line], bool], **columns: Any) -> list[Line]:
    """Return the lines with other columns in the last line that is picked."""
    last = [line for line in lines if pick(line)][-1]
    return [{**line, **columns} if line is last else line for line in lines]


def answers_to(api: str) -> Callable[[Line], bool]:
    return lambda line: (line["kind"], line.get("api")) == ("response", api)


def committed_by_an_abort(lines: list[Line]) -> list[Line]:
    (aborted,) = [line for line in lines if line.get("cause") == "transaction_aborted"]
    body = {"producer_id": aborted["body"]["producer_id"], "committed": aborted["body"]["dropped"]}
    return changed(lines, lambda line: line is aborted, cause="transaction_committed", body=body)


def aborted_not_listed(lines: list[Line]) -> list[Line]:
    (fetched,) = filter(answers_to("Fetch"), lines)
    return changed(lines, answers_to("Fetch"), body={**fetched["body"], "aborted": []})


def fenced_producer_writes(lines: list[Line]) -> list[Line]:
    zombie = [*filter(answers_to("Produce"), lines)][-1]
    assert zombie["error"]
    return changed(lines, answers_to("Produce"), error=None, body={**zombie["body"], "appended": [["t", 1, 9]]})


def fenced_producer_commits(lines: list[Line]) -> list[Line]:
    assert [*filter(answers_to("TxnOffsetCommit"), lines)][-1]["error"]
    return changed(lines, answers_to("TxnOffsetCommit"), error=None, body=None)


# -- the scenes of all checks --------------------------------------------------------------------------------

LOOKED_UP = [api for api in GROUP_APIS if api not in ("AddOffsetsToTxn", "FindCoordinator")]
"""The APIs that the group's coordinator serves."""

WITH_INSTANCE = ("Heartbeat", "JoinGroup", "LeaveGroup", "OffsetCommit", "SyncGroup", "TxnOffsetCommit")
"""The APIs whose requests name an instance."""

GENERATION_APIS = ("Heartbeat", "OffsetCommit", "SyncGroup", "TxnOffsetCommit")


def of_each(scene: Callable[..., None], apis: Iterable[str]) -> tuple[Scene, ...]:
    """Return the scene of each API."""
    return tuple(partial(scene, api=api) for api in apis)


SCENES: dict[str, tuple[Scene, ...]] = {
    "C01": (unused_id,),
    "C02": (*of_each(no_lookup, LOOKED_UP), one_lookup_of_two),
    "C03": (old_commit,),
    "C04": (
        silence,
        silence_in_a_consumer_group,
        silence_of_one_that_did_not_leave,
        *of_each(no_generation, ("Heartbeat", "OffsetCommit", "SyncGroup")),
    ),
    "C05": (
        static_leave,
        *of_each(static_leave_on_a_connection_for, ("Heartbeat", "JoinGroup", "SyncGroup")),
        static_leave_of_a_consumer_group,
    ),
    "C06": (taken_too_early, foreign_commit, owned_again),
    "C07": (owned_twice,),
    "C08": (*of_each(no_rejoin, ("Heartbeat", "SyncGroup")), no_rejoin_of_one_that_did_not_leave),
    "C09": of_each(tight_loop, GROUP_APIS),
    "C10": (revoked_uncommitted, left_uncommitted, one_commit_of_two, one_fetch_of_two_after_the_signal),
    "C11": (not_everything_repeated,),
    "C12": (epoch_gone_back,),
    "C13": (*of_each(refused_commit, ("OffsetCommit", "TxnOffsetCommit")), refused_commit_of_one_that_did_not_leave),
    "C14": of_each(late_leader, ("JoinGroup", "LeaveGroup", "SyncGroup")),
    "S01": (skipped_generation,),
    "S02": (two_leaders,),
    "S03": (member_list_for_a_follower,),
    "S04": of_each(old_generation_accepted, GENERATION_APIS),
    "S05": (id_required_twice,),
    "S06": of_each(removed_too_soon, ("Heartbeat", "JoinGroup", "OffsetCommit", "SyncGroup")),
    "S07": of_each(one_member_too_many, ("ConsumerGroupHeartbeat", "JoinGroup")),
    "S08": (static_rejoin_with_a_rebalance, *of_each(old_member_not_fenced, WITH_INSTANCE)),
    "S09": (protocol_without_support,),
    "S10": of_each(request_skipped, GROUP_APIS),
    "S11": (given_to_two,),
    "S12": (member_epoch_back,),
}
"""The failing scenes of each check of a group."""

TRANSACTION_SCENES = {
    "T01": (committed_by_an_abort,),
    "T02": (aborted_not_listed,),
    "T03": (fenced_producer_writes, fenced_producer_commits),
}
"""The failing changes of a trace with transactions, of each check of transactions."""

TRANSACTIONS_FROM = {"Fetch": 4, "Produce": 3}
"""The first version of an API with an isolation level, or with a transactional id."""

WITHOUT_EFFECT = {
    ("C02", "AddOffsetsToTxn"): "it is left out: it asks the coordinator of a transactional id",
    ("C06", "LeaveGroup"): "`Exchange.leaves` covers both kinds of groups: a consumer group has no LeaveGroup",
    (
        "C07",
        "JoinGroup",
    ): "a member's claim decides only whether the follow-up rebalance is due; C06 has it in each version",
    ("C11", "LeaveGroup"): "as C06",
    ("C12", "LeaveGroup"): "as C06",
    ("C13", "ConsumerGroupHeartbeat"): "as C06: a classic group has no ConsumerGroupHeartbeat",
    ("C14", "ConsumerGroupHeartbeat"): "as C13",
    ("S10", "Produce"): "it is left out: with acks=0 it has no response",
}
"""The APIs that a check's code names, although no verdict depends on them, each with the reason."""

COLUMNS = {
    "member_id": ("member_id",),
    "instance_id": ("group_instance_id", "instance_id"),
    "generation": ("generation_id", "generation_id_or_member_epoch", "member_epoch"),
}
"""The columns of a sender, with their fields."""


def judged(check: str, lines: list[Line]) -> tuple[str, tuple[int, ...], str]:
    """Return status, evidence and message."""
    if check in TITLES:
        found = check_transactions(lines)[check]
    elif check in SERVER_CHECKS:
        found = SERVER_CHECKS[check][1](GroupTrace(lines, "g"))
    else:
        found = client_checks(GroupTrace(lines, "g"), auto_commit=True)[check]()
    return found.status, found.evidence, found.message


def without(lines: list[Line], api: str) -> list[Line]:
    return [line for line in lines if line.get("api") != api]


def played(scene: Scene) -> list[Line]:
    tale = Tale()
    scene(tale)
    return tale.lines


def apis_of(check: str, lines: list[Line]) -> list[str]:
    """Return the APIs whose lines the verdict depends on."""
    verdict = judged(check, lines)
    apis = sorted({line["api"] for line in lines if "api" in line})
    return [api for api in apis if judged(check, without(lines, api)) != verdict]


def has_field(cls: Any, names: tuple[str, ...], version: int) -> bool:
    """Return whether a message, or a row of it, has one of these fields in a version."""
    specs = {name: spec for name, spec in fields_of(cls).items() if version in spec.versions}
    rows = [spec.type for spec in specs.values() if spec.is_array and isinstance(spec.type, type)]
    return not specs.keys().isdisjoint(names) or any(
        has_field(row, names, version) for row in rows if is_dataclass(row)
    )


def versions_that_carry(api: str, lines: list[Line]) -> list[int]:
    """Return the versions of an API whose requests have the fields of these lines: OffsetCommit v0 has no member."""
    requests = [line for line in lines if line.get("api") == api and line["kind"] == "request"]
    cls, versions = APIS[API_KEYS[api]].request, APIS[API_KEYS[api]].versions
    told = (fields for column, fields in COLUMNS.items() if any(column in line for line in requests))
    needed = [fields for fields in told if has_field(cls, fields, versions.max)]
    return [each for each in versions if all(has_field(cls, fields, each) for fields in needed)]


def name_of(scene: Scene) -> str:
    if isinstance(scene, partial):
        return f"{scene.func.__name__}-{scene.keywords['api']}"
    return scene.__name__


SCENE_CASES = [
    pytest.param(check, scene, id=f"{check}-{name_of(scene)}") for check, scenes in SCENES.items() for scene in scenes
]


@pytest.mark.slow
@pytest.mark.parametrize(("check", "scene"), SCENE_CASES)
def test_a_check_fails_in_each_version(check: str, scene: Scene) -> None:
    status, evidence, _ = judged(check, played(scene))
    assert status == "fail"
    for api in apis_of(check, played(scene)):
        versions = versions_that_carry(api, played(scene))
        assert versions
        for version in versions:
            lines = played(scene)
            over_the_wire(lines, api, version)
            with case(check, api, version):
                assert judged(check, lines)[:2] == (status, evidence)


@pytest.fixture(scope="module")
def newest() -> list[Line]:
    return transactions()


TRANSACTION_CASES = [(check, change) for check, changes in TRANSACTION_SCENES.items() for change in changes]


@pytest.mark.slow
@pytest.mark.parametrize(("check", "change"), TRANSACTION_CASES)
def test_a_check_of_transactions_fails_in_each_version(
    newest: list[Line], check: str, change: Callable[[list[Line]], list[Line]]
) -> None:
    assert judged(check, newest)[0] == "pass"
    status, evidence, _ = judged(check, change(newest))
    assert status == "fail"
    for api in apis_of(check, change(newest)):
        for version in range(TRANSACTIONS_FROM.get(api, 0), APIS[API_KEYS[api]].versions.max + 1):
            with case(check, api, version):
                if api in TRANSACTIONS_FROM:
                    lines = transactions(api, version)
                else:
                    lines = deepcopy(newest)
                    over_the_wire(lines, api, version)
                assert judged(check, change(lines))[:2] == (status, evidence)


def test_a_join_without_a_rebalance_timeout_has_its_session_timeout(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.passes(SESSION_MS)
    tale.joins("a")
    over_the_wire(tale.lines, "JoinGroup", 0)
    assert judged("C08", tale.lines)[0] == "pass"


# -- no check reads another API ------------------------------------------------------------------------------


def test_each_check_has_a_failing_scene() -> None:
    assert {*SCENES} == {*CHECKS, *SERVER_CHECKS}
    assert {*TRANSACTION_SCENES} == {*TITLES}


class Code:
    """The definitions of the package of checks, by name; methods of public classes as `.name`."""

    def __init__(self) -> None:
        self._definitions: dict[str, list[ast.AST]] = defaultdict(list)
        for path in Path(verify.__file__).parent.glob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                match node:
                    case ast.ClassDef(name=name, body=body):
                        for method in (each for each in body if isinstance(each, ast.FunctionDef)):
                            self._definitions[name if name.startswith("_") else f".{method.name}"].append(method)
                    case ast.FunctionDef(name=name):
                        self._definitions[name].append(node)
                    case ast.Assign() | ast.AnnAssign():
                        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                        for each in (name for target in targets for name in ast.walk(target)):
                            if isinstance(each, ast.Name):
                                self._definitions[each.id].append(node)

    def apis(self, function: str) -> set[str]:
        """Return the APIs that a function names, or a definition that it uses."""
        found, todo, seen = set(), [function], {*TEXTS}
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for node in (each for definition in self._definitions[name] for each in ast.walk(definition)):
                match node:
                    case ast.Constant(value=str(text)) if text in API_KEYS:
                        found.add(text)
                    case ast.Name(id=used):
                        todo.append(used)
                    case ast.Attribute(attr=used):
                        todo.append(f".{used}")
        return found


TEXTS = (".describe", ".label", ".software", ".clients")
"""Methods that name members and clients in messages, from all requests."""


def function_of(check: str) -> str:
    """Return the name of a check's function."""
    if check in SERVER_CHECKS:
        return SERVER_CHECKS[check][1].__name__
    return client_checks(GroupTrace([], "g"))[check].__code__.co_names[-1]


@pytest.mark.slow
def test_a_check_reads_no_api_without_a_failing_scene(newest: list[Line]) -> None:
    code = Code()
    for check, scenes in SCENES.items():
        with case(check):
            covered = {api for scene in scenes for api in apis_of(check, played(scene))}
            exempt = {api for other, api in WITHOUT_EFFECT if other == check}
            assert code.apis(function_of(check)) <= covered | exempt
            assert not covered & exempt
    covered = {api for check, change in TRANSACTION_CASES for api in apis_of(check, change(newest))}
    assert code.apis("_TransactionTrace") <= covered
