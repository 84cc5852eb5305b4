"""`koordinator offsets --data-dir`: groups for the next cluster on a directory, and those of a stopped one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from clients.groups_command import Ran, runner

from koordinator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORLD: list[dict[str, object]] = [
    {"group_id": "svc", "generation": 7, "members": [{"instance_id": "a", "assignment": {"t": [0]}}, {}]},
    {"group_id": "svc", "topic": "t", "partition": 0, "offset": 5},
    {"group_id": "simple", "topic": "t", "partition": 1, "offset": 6},
]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `koordinator offsets` with arguments."""
    return runner(capsys, "offsets")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "world.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in WORLD), encoding="utf-8")
    return path


def test_groups_loaded_into_a_new_directory_are_in_the_next_cluster(
    run: Callable[..., Ran], world: Path, tmp_path: Path
) -> None:
    there = tmp_path / "data"
    ran = run("load", str(world), "--data-dir", str(there))
    assert (ran.status, ran.out, ran.err) == (0, "svc: 2 members, 1 offset\nsimple: 0 members, 1 offset\n", [])
    with Emulator(topics={"t": 2}, data_dir=there) as cluster:
        svc = cluster.group("svc").describe()
        assert (svc.state, svc.generation, [member.instance_id for member in svc.members]) == ("Stable", 7, ["a", None])
        assert cluster.group("simple").offsets == {("t", 1): 6}


def test_the_groups_of_a_stopped_cluster_are_dumped(run: Callable[..., Ran], tmp_path: Path) -> None:
    there, other = tmp_path / "data", tmp_path / "other"
    with Emulator(topics={"t": 2}, config={"offsets.topic.num.partitions": 3}, data_dir=there) as cluster:
        cluster.load_groups(WORLD)
        expected = cluster.dump_groups()
    ran = run("dump", "-", "--data-dir", str(there))
    assert (ran.status, [json.loads(line) for line in ran.out.splitlines()]) == (0, expected)
    with Emulator(data_dir=other) as cluster:
        cluster.load_groups(expected)
        assert cluster.dump_groups() == expected


def test_a_partition_that_a_topic_of_the_directory_does_not_have_is_refused(
    run: Callable[..., Ran], world: Path, tmp_path: Path
) -> None:
    there = tmp_path / "data"
    with Emulator(topics={"t": 1}, data_dir=there):
        pass
    ran = run("load", str(world), "--data-dir", str(there))
    assert (ran.status, ran.failures) == (1, ["simple: topic t has 1 partition: there is no partition 1"])
    with Emulator(data_dir=there) as cluster:
        assert cluster.dump_groups() == []


def test_loading_keeps_the_groups_of_the_directory(run: Callable[..., Ran], world: Path, tmp_path: Path) -> None:
    there = tmp_path / "data"
    with Emulator(topics={"t": 2}, config={"offsets.topic.num.partitions": 3}, data_dir=there) as cluster:
        cluster.load_groups([{"group_id": "svc", "topic": "t", "partition": 1, "offset": 1}, *WORLD[2:]])
    assert run("load", str(world), "--data-dir", str(there)).status == 0
    with Emulator(config={"offsets.topic.num.partitions": 3}, data_dir=there) as cluster:
        assert cluster.group("svc").offsets == {("t", 0): 5, ("t", 1): 1}
        assert cluster.group("svc").generation == 7


@pytest.mark.parametrize("command", ["dump", "load"])
def test_a_directory_in_use_is_refused_with_one_line(
    run: Callable[..., Ran], world: Path, tmp_path: Path, command: str
) -> None:
    there = tmp_path / "data"
    with Emulator(data_dir=there) as cluster:
        ran = run(command, str(world), "--data-dir", str(there))
        assert cluster.dump_groups() == []
    line = f"koordinator offsets {command}: data directory {there}: in use by another process"
    assert (ran.status, ran.out, ran.err) == (2, "", [line])
    assert world.read_text(encoding="utf-8").count("\n") == len(WORLD)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "give either --bootstrap-server or --data-dir"),
        (("--data-dir", "x", "--bootstrap-server", "a:1"), "give either --bootstrap-server or --data-dir"),
        (("--data-dir", "{foreign}"), "data directory {foreign}: not empty, and without koordinator.json"),
    ],
)
@pytest.mark.parametrize("command", ["dump", "load"])
def test_a_usage_error_is_one_line_and_status_2(
    run: Callable[..., Ran], world: Path, tmp_path: Path, command: str, arguments: tuple[str, ...], expected: str
) -> None:
    ran = run(command, str(world), *(each.format(foreign=tmp_path) for each in arguments))
    (line,) = ran.err
    assert (ran.status, ran.out) == (2, "")
    assert expected.format(foreign=tmp_path) in line


def test_a_dump_creates_no_directory(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run("dump", "-", "--data-dir", str(tmp_path / "none"))
    assert (ran.status, ran.err) == (
        2,
        [f"koordinator offsets dump: data directory {tmp_path / 'none'}: does not exist"],
    )
    assert not list(tmp_path.iterdir())
