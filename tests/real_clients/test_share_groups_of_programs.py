"""Share groups (KIP-932) with Java's client and franz-go: record limits, renewals, and Java's admin for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.line_clients import TOOLS, ClientError, LineClients
from clients.share_groups import configure

from koordinator.client.connection import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster

SETTINGS = {"group.share.heartbeat.interval.ms": 100, "group.share.record.lock.duration.ms": 2_000}

pytestmark = pytest.mark.koordinator(topics={"t": 1}, config=SETTINGS)

KINDS = [pytest.param(kind, marks=pytest.mark.needs(TOOLS[kind])) for kind in ("java", "franz-go")]

WHOLE_BATCHES = "-"

RENEWED_S = 3.0
"""Longer than a lock lasts."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return the client of the members."""
    assert isinstance(request.param, str)
    return request.param


@pytest.fixture
def members(kind: str, koordinator: Cluster) -> Iterator[LineClients]:
    """Return the members of group g, which reads from the earliest record."""
    configure(koordinator, "g", share_auto_offset_reset="earliest")
    with LineClients(kind, koordinator.bootstrap_servers, "sharing") as members:
        yield members


def share(members: LineClients, name: str, mode: str = "explicit", records: object = WHOLE_BATCHES) -> None:
    members.ask("share", name, "g", mode, records, "t")


def test_the_next_poll_accepts_what_the_last_one_returned(koordinator: Cluster, members: LineClients) -> None:
    koordinator.produce("t", ["a", "b"])
    share(members, "one", "implicit")
    assert members.ask("take", "one") == "ax1 bx1"
    koordinator.produce("t", ["c"])
    assert members.ask("take", "one") == "cx1"
    assert not members.ask("poll", "one")
    members.ask("leave", "one")
    koordinator.produce("t", ["d"])
    share(members, "two")
    assert members.ask("take", "two") == "dx1"


def test_a_record_is_accepted_released_or_rejected(koordinator: Cluster, members: LineClients) -> None:
    koordinator.produce("t", ["a", "b", "c"])
    share(members, "one")
    assert members.ask("take", "one") == "ax1 bx1 cx1"
    for how, value in (("accept", "a"), ("release", "b"), ("reject", "c")):
        members.ask(how, "one", value)
    assert members.ask("commit", "one") == "NONE"
    assert members.ask("take", "one") == "bx2"
    members.ask("accept", "one", "b")
    members.ask("leave", "one")
    koordinator.produce("t", ["d"])
    share(members, "two")
    assert members.ask("take", "two") == "dx1"


def test_a_limit_of_records_divides_a_batch(koordinator: Cluster, members: LineClients) -> None:
    koordinator.produce("t", ["a", "b", "c", "d", "e"])
    share(members, "one", records=2)
    for values in ("ab", "cd", "e"):
        assert members.ask("take", "one") == " ".join(f"{value}x1" for value in values)
        members.ask("accept", "one", *values)
        assert members.ask("commit", "one") == "NONE"


def test_a_renewed_lock_lasts_longer(koordinator: Cluster, members: LineClients, kind: str) -> None:
    koordinator.produce("t", ["a"])
    share(members, "one")
    assert members.ask("take", "one") == "ax1"
    share(members, "two")
    until = Deadline(RENEWED_S)
    while until.left():
        members.ask("renew", "one", "a")
        assert members.ask("commit", "one") == "NONE"
        if kind == "java":  # it returns renewed records again
            assert members.ask("take", "one") == "ax1"
        assert not members.ask("poll", "two")
    members.ask("accept", "one", "a")
    assert members.ask("commit", "one") == "NONE"


def test_a_record_is_delivered_to_another_member_when_its_lock_expires(
    koordinator: Cluster, members: LineClients
) -> None:
    koordinator.produce("t", ["a"])
    share(members, "slow", records=1)  # else franz-go fetches beforehand, and gets the record again itself
    assert members.ask("take", "slow") == "ax1"
    share(members, "other")
    assert members.ask("take", "other") == "ax2"
    members.ask("accept", "slow", "a")
    assert members.ask("commit", "slow") == "INVALID_RECORD_STATE"
    members.ask("accept", "other", "a")
    assert members.ask("commit", "other") == "NONE"


def test_a_member_that_leaves_releases_its_records(koordinator: Cluster, members: LineClients) -> None:
    koordinator.produce("t", ["a", "b", "c"])
    share(members, "one")
    assert members.ask("take", "one") == "ax1 bx1 cx1"
    members.ask("accept", "one", "b")
    members.ask("leave", "one")
    share(members, "two")
    assert members.ask("take", "two") == "ax2 cx2"


@pytest.mark.parametrize("kind", [KINDS[0]])
def test_javas_admin_lists_describes_and_deletes_a_group(koordinator: Cluster, members: LineClients) -> None:
    koordinator.produce("t", ["a", "b", "c"])
    share(members, "one")
    members.ask("take", "one")
    assert members.ask("list", "-") == "g=Share/Stable"
    assert members.ask("describe", "g") == "Stable 1 [t-0]"
    with pytest.raises(ClientError, match="GroupNotEmptyException"):
        members.ask("delete", "g")
    members.ask("leave", "one")
    assert members.ask("describe", "g") == "Empty 0"
    members.ask("delete", "g")
    assert members.ask("list", "-") == ""
    with pytest.raises(ClientError, match="GroupIdNotFoundException"):
        members.ask("describe", "g")
    share(members, "two")
    assert members.ask("take", "two") == "ax1 bx1 cx1"


@pytest.mark.parametrize("kind", [KINDS[0]])
def test_javas_admin_lists_alters_and_deletes_offsets(koordinator: Cluster, members: LineClients) -> None:
    koordinator.produce("t", ["a", "b", "c"])
    share(members, "one")
    members.ask("take", "one")
    members.ask("accept", "one", "a", "b")
    members.ask("commit", "one")
    assert members.ask("offsets", "g") == "t-0=0/1"
    with pytest.raises(ClientError, match="GroupNotEmptyException"):
        members.ask("alter", "g", "t", 0, 1)
    members.ask("leave", "one")
    members.ask("alter", "g", "t", 0, 1)
    assert members.ask("offsets", "g") == "t-0=1/2"
    share(members, "two")
    assert members.ask("take", "two") == "bx1 cx1"
    members.ask("leave", "two")
    members.ask("forget", "g", "t")
    assert members.ask("offsets", "g") == ""
    with pytest.raises(ClientError, match="no offset information"):
        members.ask("forget", "g", "t")
    members.ask("alter", "new", "t", 0, 2)
    assert members.ask("offsets", "new") == "t-0=2/1"
    assert members.ask("list", "-") == "g=Share/Empty new=Share/Empty"
