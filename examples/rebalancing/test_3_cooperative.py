"""Incremental cooperative rebalance: a newcomer gets its share in two rounds, and no other member stops (KIP-429).

The article: "A New Consumer Joins". One rebalance for all becomes two: in the first round the old owners learn which
partitions to revoke, in the second the newcomer gets them. Each member names its partitions in JoinGroup.
"""

from rebalancing.stage import Stage


def test_a_newcomer_gets_its_partitions_in_two_rounds() -> None:
    with Stage(protocols=["cooperative-sticky"]) as stage:
        stage.start("C1")
        stage.start("C2")
        assert stage.owns == {"C1": "P1 P2 P3", "C2": "P4 P5 P6"}
        stage.skip_rounds()

        stage.start("C3")

        first, second = stage.rounds()
        assert first == {"C1": "P1 P2", "C2": "P4 P5", "C3": ""}
        assert second == {"C1": "P1 P2", "C2": "P4 P5", "C3": "P3 P6"}


def test_members_report_and_keep_their_partitions_while_they_rejoin() -> None:
    """The article draws it into its arrows: JoinGroup (assigned: P1, P2, P3)."""
    with Stage(protocols=["cooperative-sticky"]) as stage:
        stage.start("C1")
        stage.start("C2")
        asked_before = len(stage.events)
        stage.start("C3")
        asked = [
            (line["client_id"], line["body"].get("owned", {}).get("t", []))
            for line in stage.events[asked_before:]
            if line["kind"] == "request" and line["api"] == "JoinGroup"
        ]
        # C3 joins twice at first: the coordinator gives it a member id to join with (KIP-394)
        assert asked[:2] == [("C3", []), ("C3", [])]
        # the first round, after the heartbeats of C1 and C2 …
        assert sorted(asked[2:4]) == [("C1", [0, 1, 2]), ("C2", [3, 4, 5])]
        # … and the second: C1 and C2 revoke P3 and P6 and rejoin at once, C3 after its next heartbeat
        assert sorted(asked[4:]) == [("C1", [0, 1]), ("C2", [3, 4]), ("C3", [])]


def test_partitions_of_a_leaving_member_move_in_one_round() -> None:
    """The partitions have no owner when the round begins, so no member has to revoke any."""
    with Stage(protocols=["cooperative-sticky"]) as stage:
        for name in ("C1", "C2", "C3"):
            stage.start(name)
        stage.skip_rounds()
        stage.leave("C2")
        assert stage.rounds() == [{"C1": "P1 P2 P4", "C3": "P3 P5 P6"}]
