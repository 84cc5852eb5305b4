"""`koordinator transactions`: the transactional ids of all brokers, with their states and partitions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from koordinator import Emulator
from koordinator.cli import commands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator(topics={"orders": 2}, brokers=2) as cluster:
        yield cluster


def ran(cluster: Cluster, *arguments: str, command: str = "list", status: int = 0) -> str:
    servers = ("--bootstrap-server", cluster.bootstrap_servers)
    result = CliRunner().invoke(commands, ["transactions", command, *servers, *arguments], standalone_mode=False)
    assert result.return_value == status, result.output
    return result.output


def test_every_transactional_id_is_listed_with_its_partitions(cluster: Cluster) -> None:
    cluster.create_producer("open").init().produce("orders", "a", partition=1)
    cluster.create_producer("idle").init()
    assert [line.split()[:4] for line in ran(cluster).splitlines()[2:]] == [
        ["idle", "Empty", str(cluster.transaction("idle").producer_id), "0"],
        ["open", "Ongoing", str(cluster.transaction("open").producer_id), "0"],
    ]
    assert "orders: 1" in ran(cluster)


def test_a_state_selects_transactions_in_one_document(cluster: Cluster) -> None:
    cluster.create_producer("open").init().produce("orders", "a", partition=1)
    cluster.create_producer("idle").init()
    document = json.loads(ran(cluster, "--json", "--state", "ongoing"))
    (row,) = document["transactions"]
    assert (row["transactional_id"], row["partitions"], document["errors"]) == ("open", {"orders": [1]}, [])
    assert row["started_ms"] == cluster.transaction("open").describe().started_ms


def test_a_cluster_without_transactions_says_so(cluster: Cluster) -> None:
    assert ran(cluster) == "no transactions\n"


def test_an_open_transaction_is_aborted_and_its_producer_fenced(cluster: Cluster) -> None:
    cluster.create_producer("p", "open").init().produce("orders", "a", partition=1)
    assert ran(cluster, "open", command="abort") == "open: aborted\n"
    cluster.transaction("open").wait_state("Empty")
    assert cluster.producers["p"].produce("orders", "late").error == "INVALID_PRODUCER_EPOCH"


def test_only_an_open_transaction_can_be_aborted(cluster: Cluster) -> None:
    cluster.create_producer("idle").init()
    epoch = cluster.transaction("idle").producer_epoch
    document, _, _ = ran(cluster, "idle", "nosuch", "--json", command="abort", status=1).partition("koordinator ")
    found = json.loads(document)
    assert found["aborted"] == []
    assert [(row["transactional_id"], row["message"]) for row in found["errors"]] == [
        ("idle", "it is Empty, not Ongoing"),
        ("nosuch", "there is no such transactional id"),
    ]
    assert cluster.transaction("idle").producer_epoch == epoch
