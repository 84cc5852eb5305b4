"""DuckDB and Polars compute the same gold tables as Spark from the same Parquet files."""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from scenes.documentation import Block, blocks
from scenes.trace_tales import Tale
from spark.gold_frames import Gold
from spark.report_store import write_store

from koordinator import Simulation
from koordinator.pipeline import schema
from koordinator.pipeline.cli import jobs
from koordinator.pipeline.generate import generate_trace

if TYPE_CHECKING:
    from collections.abc import Iterator


BENCH = Path(__file__).parents[2] / "bench" / "pipeline"
TRACES = Path(__file__).parents[1] / "pages" / "traces"
NOTEBOOK = Path(__file__).parents[2] / "examples" / "pipeline.ipynb"

QUERIES = [block for block in blocks("bash") if block.page.stem in ("pipeline-sql", "pipeline-tables")]

pytestmark = pytest.mark.needs("engines")

SILVER = ("event", "call", "member_span", "round", "arrival", "move", "trace")
GOLD = (
    *("rebalance", "member_downtime", "partition_gap", "state_time"),
    *("commit", "fencing", "heartbeat", "avoided", "transaction"),
    *("delivery", "dead_letter", "task"),
)


@pytest.fixture(scope="module")
def engines() -> Iterator[Any]:
    sys.path.insert(0, str(BENCH))
    yield import_module("engines.duck"), import_module("engines.polar")
    sys.path.remove(str(BENCH))
    for name in [name for name in sys.modules if name.split(".")[0] in ("engines", "engine_jobs")]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write silver and gold of generated traces, and of traces of real clients."""
    traces = {
        f"g{number}": [json.loads(line) for line in generate_trace(2, number, 1_000).lines] for number in range(1, 4)
    }
    users = {line["client_id"]: f"User:{number}" for number, line in enumerate(traces["g3"]) if "client_id" in line}
    traces["g3"] = [line | {"principal": users.get(line.get("client_id"))} for line in traces["g3"]]
    traces |= {path.stem: [json.loads(line) for line in path.open()] for path in sorted(TRACES.glob("*.jsonl"))}
    traces |= {"transactions": transactions(), "deliveries": deliveries(), "tasks": tasks()}
    gold = Gold(traces)
    root = tmp_path_factory.mktemp("store")
    made = [
        schema.TABLES[path] for path in (*(f"silver/{name}" for name in SILVER), *(f"gold/{name}" for name in GOLD))
    ]
    write_store(root, {table: gold.table(table) for table in made})
    return root


def transactions() -> list[dict[str, Any]]:
    """Return the trace of transactions with each outcome, with refused offsets, and of one that is only aborted."""
    with Simulation(topics={"in": 2, "out": 2}) as cluster:
        one = cluster.create_producer("one").init()
        one.produce("out", "a", partition=1).send_offsets("svc", {("in", 0): 3, ("in", 1): 4})
        cluster.pass_time(1.5)
        one.send_offsets("other", {("in", 0): 3}).commit()
        one.produce("out", "b").send_offsets("svc", {("in", 7): 1})
        cluster.transaction("one").expire()
        cluster.create_producer("open").init().produce("out", "c")
        cluster.set_markers("in", 0, "delayed")
        cluster.create_producer("aborting").init().produce("in", "d").abort()
        cluster.create_producer("empty").init().abort()
        return [json.loads(json.dumps(line)) for line in cluster.events()]


def deliveries() -> list[dict[str, Any]]:
    """Return a trace of deliveries with each outcome, some of them in parts, and of dead letters."""
    tale = Tale()
    tale.takes("a", (0, 19, 1), (20, 29, 1))
    asked = tale.acknowledges("a", (0, 3, "accept"), (4, 4, "release"), (5, 5, "reject"), (6, 7, "renew"))
    asked["body"]["acknowledged"].append(["t", 0, 8, 11, ["accept", "accept", "gap", "release"]])
    tale.takes("b", (4, 4, 2), (11, 11, 2))
    tale.acknowledges("b", (4, 4, "accept"), error=121)
    tale.ends_locks("b", 4, 4, 2, "archived")
    tale.line("dead_letters", cause="delivered_too_often", body={"dead": ["t", 0, 4, 4, 2], "written_to": "dlq"})
    problem = {"dead": ["t", 0, 5, 5, 1], "written_to": "dlq", "problem": "there is no topic dlq"}
    tale.line("dead_letters", cause="rejected", body=problem)
    tale.ends_locks("a", 12, 15, 1)
    tale.takes("c", (12, 12, 2), (14, 17, 2))
    tale.acknowledges("c", (14, 14, "accept"), (15, 15, "accept"), api="ShareFetch")
    tale.acknowledges("a", (6, 6, "accept"))
    tale.acknowledges("a", (7, 7, "accept"))
    tale.lines.pop()
    tale.closes("a")
    return [json.loads(json.dumps(line)) for line in tale.lines]


def tasks() -> list[dict[str, Any]]:
    """Return the trace of a streams group whose tasks move: members join and leave, and the group gets empty.

    The engines have no rebalances of groups without join barriers; so the lines that show these are left out.
    """
    with Simulation(topics={"in": 4}) as cluster:
        group = cluster.group("app")
        one = group.create_puppet("one", topics=["in"], group_protocol="streams").join()
        group.wait_stable(members=1)
        two = group.create_puppet("two", topics=["in"], group_protocol="streams").join()
        group.wait_stable(members=2)
        one.leave()
        group.wait_stable(members=1)
        group.create_puppet("three", topics=["in"], group_protocol="streams").join()
        group.wait_stable(members=2)
        two.leave()
        events = [json.loads(json.dumps(line)) for line in cluster.events()]
    steps = ("Assigning", "Reconciling", "Stable")
    return [
        line
        for line in events
        if line["kind"] not in ("target", "reconciliation") and line.get("state_to") not in steps
    ]


@pytest.mark.parametrize("name", GOLD)
def test_duckdb_computes_the_same_table(engines: Any, store: Path, name: str) -> None:
    duck, _ = engines
    with duck.connected(store) as connection:
        duck.make(connection)
        rows, found = duck.differences(connection, store, name, name)
    assert not found
    assert rows > 0


@pytest.mark.parametrize("name", GOLD)
def test_polars_computes_the_same_table(engines: Any, store: Path, name: str) -> None:
    duck, polar = engines
    made = getattr(polar.Made(store), name)().collect()
    with duck.connected(store) as connection:
        connection.register("made", made.to_arrow())
        _, found = duck.differences(connection, store, name, "made")
    assert not found


@pytest.mark.parametrize("name", ["commit", "member_downtime"])
def test_the_compared_tables_have_rows_with_a_user(engines: Any, store: Path, name: str) -> None:
    duck, _ = engines
    with duck.connected(store) as connection:
        of_store = duck.of_store(store, schema.TABLES[f"gold/{name}"])
        query = f"SELECT count(DISTINCT principal) FROM ({of_store})"  # noqa: S608 - our own table
        (users,) = connection.execute(query).fetchone()
    assert users > 1


@pytest.mark.usefixtures("engines")
def test_the_benchmark_finds_no_difference(store: Path) -> None:
    jobs = import_module("engine_jobs")
    assert {name: job(store)[1] for name, job in jobs.ENGINES.items()} == {"duckdb": [], "polars": []}


def test_differences_are_reported(engines: Any, store: Path) -> None:
    duck, _ = engines
    with duck.connected(store) as connection:
        duck.make(connection)
        connection.execute("UPDATE rebalance SET n_joined = n_joined + 1 WHERE rebalance_no = 1")
        _, found = duck.differences(connection, store, "rebalance", "rebalance")
    assert found


@pytest.fixture
def beside(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder that has the store under the name of the examples."""
    monkeypatch.chdir(tmp_path)
    Path("store").symlink_to(store)


@pytest.mark.usefixtures("beside")
def test_the_programs_on_the_page_of_sql_run() -> None:
    programs = [block.text for block in blocks("python") if block.page.stem == "pipeline-sql"]
    assert len(programs) == 2
    for program in programs:
        exec(program, {})  # noqa: S102 - our own page


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("block", QUERIES, ids=lambda block: block.name)
def test_a_query_on_the_pages_of_sql_and_tables_has_rows(block: Block) -> None:
    arguments = shlex.split(block.text.removeprefix("koordinator-pipeline "))
    result = CliRunner().invoke(jobs, arguments, standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 0), result.stderr
    assert not re.search(r"\b0 rows", result.output), result.output


@pytest.mark.usefixtures("beside")
def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # noqa: S102 - our own notebook
    assert list(names["causes"].columns) == ["cause", "rebalances", "p95_ms"]
    assert len(names["causes"]) > 1
