"""`koordinator share-offsets`: describe, reset and delete where share groups start, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.groups_command import Ran, commit, runner
from clients.share_member import ShareMember

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster

HEAD = ["GROUP", "TOPIC", "PARTITION", "START"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `koordinator share-offsets` with arguments."""
    return runner(capsys, "share-offsets")


def reads(cluster: Cluster) -> None:
    """Let a member of `workers` read three records of t-0, accept two, and end."""
    with ShareMember(cluster, "t", "A", "workers") as member:
        member.join()
        while not cluster.group("workers").share_positions():
            member.fetch()
        cluster.produce("t", *({"value": each, "partition": 0, "timestamp": at} for at, each in enumerate("abc")))
        while not member.fetch(wait_ms=5_000):
            pass
        assert member.acknowledge(0, 1) == 0
        member.beat(-1)
    # the end of the session releases the third record, and stores the start offset behind the others
    while cluster.group("workers").share_positions():
        pass


def test_describe_shows_start_and_lag(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    reads(cluster)
    ran = run("describe", "workers", *at)
    assert (ran.status, ran.err) == (0, [])
    assert ran.rows == [[*HEAD, "LEADER EPOCH", "LAG"], ["workers", "t", "0", "2", "0", "1"]]
    row = {"group_id": "workers", "topic": "t", "partition": 0, "start": 2, "leader_epoch": 0, "lag": 1}
    assert run("describe", "workers", "--json", *at).document == {"offsets": [row], "errors": []}


def test_describe_of_a_missing_group_names_a_similar_one(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    reads(cluster)
    ran = run("describe", "worker", "workers", *at)
    assert (ran.status, len(ran.rows)) == (1, 2)
    assert ran.failures == ["worker: GROUP_ID_NOT_FOUND (69): Group worker not found; did you mean 'workers'?"]


@pytest.mark.parametrize(
    ("place", "starts"),
    [
        (("--to-earliest",), ["0", "0", "0", "0"]),
        (("--to-latest",), ["3", "0", "0", "0"]),
        (("--to-datetime", "1970-01-01T00:00:00.002Z"), ["2", "0", "0", "0"]),
        (("--to-datetime", "1970-01-01T00:00:01"), ["3", "0", "0", "0"]),
    ],
)
def test_reset_to_a_place(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], place: tuple[str, ...], starts: list[str]
) -> None:
    reads(cluster)
    rows = [["workers", "t", str(number), start] for number, start in enumerate(starts)]
    before = run("describe", "workers", *at).rows
    dry = run("reset", "workers", "--topic", "t", *place, "--dry-run", *at)
    assert (dry.status, dry.rows) == (0, [HEAD, *rows])
    assert run("describe", "workers", *at).rows == before
    assert run("reset", "workers", "--all-topics", *place, *at).rows == [HEAD, *rows]
    assert [row[:4] for row in run("describe", "workers", *at).rows[1:]] == rows


def test_delete_of_topics(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    reads(cluster)
    ran = run("delete", "workers", "--topic", "t", "--topic", "missing", *at)
    assert (ran.status, ran.out) == (1, "workers: deleted t\n")
    assert ran.failures == [
        "workers: missing: UNKNOWN_TOPIC_OR_PARTITION (3): This server does not host this topic-partition."
    ]
    assert run("describe", "workers", *at).out == "no offsets\n"


def test_a_group_with_members_is_refused(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    with ShareMember(cluster, "t", "A", "workers") as member:
        member.join()
        refused = "workers: NON_EMPTY_GROUP (68): The group is not empty."
        for command in (("reset", "--to-latest"), ("delete",)):
            ran = run(command[0], "workers", "--topic", "t", *command[1:], *at)
            assert (ran.status, ran.out, ran.failures) == (1, "", [refused])


def test_other_groups_and_topics_are_refused(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    commit(cluster.bootstrap_servers, "svc", {0: 1})
    ran = run("delete", "svc", "--topic", "t", *at)
    assert ran.failures == ["svc: GROUP_ID_NOT_FOUND (69): Group svc is not a share group."]
    missing = run("reset", "workers", "--topic", "missing", "--to-latest", *at)
    assert (missing.status, missing.failures) == (1, ["missing: UNKNOWN_TOPIC_OR_PARTITION (3)"])


@pytest.mark.parametrize("kind", ["classic", "consumer", "streams"])
@pytest.mark.parametrize("command", [("describe",), ("reset", "--all-topics", "--to-latest", "--dry-run")])
def test_a_group_of_another_type_is_refused_with_its_type(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], kind: str, command: tuple[str, ...]
) -> None:
    cluster.group("svc").create_puppet("a", topics=["t"], group_protocol=kind).join()
    ran = run(command[0], "svc", *command[1:], *at)
    refusal = f"svc: is a {kind} group, not a share group; `groups describe` shows its offsets"
    assert (ran.status, ran.out, ran.failures) == (1, "", [refusal])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("reset", "workers", "--to-latest"), "give either --all-topics, or at least one --topic"),
        (("reset", "workers", "--topic", "t"), "give one of --to-earliest, --to-latest and --to-datetime"),
        (
            ("reset", "workers", "--topic", "t", "--to-datetime", "soon"),
            "Invalid value for '--to-datetime': 'soon': give a time such as 2026-11-29T10:00:00Z",
        ),
        (("delete", "workers"), "Missing option '--topic'."),
    ],
)
def test_usage_errors(run: Callable[..., Ran], at: tuple[str, str], arguments: tuple[str, ...], text: str) -> None:
    ran = run(*arguments, *at)
    assert (ran.status, ran.failures) == (2, [text])
