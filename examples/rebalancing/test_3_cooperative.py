"""Incremental Cooperative Rebalance: a newcomer gets its share in two rounds, and nobody else stops (KIP-429).

The article: "A New Consumer Joins". What used to be one rebalance for everybody is now two: in the first one the old
owners learn what to give up, in the second one the newcomer gets it. Each member says in its JoinGroup what it owns.
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


def test_members_say_what_they_own_and_keep_it_while_they_join_again() -> None:
    """What the article draws into its arrows: JoinGroup (assigned: P1, P2, P3)."""
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
        # C3 asks twice at first: the coordinator gives it a member id to come back with (KIP-394)
        assert asked[:2] == [("C3", []), ("C3", [])]
        # the first round, when the heartbeats of C1 and C2 have told them …
        assert sorted(asked[2:4]) == [("C1", [0, 1, 2]), ("C2", [3, 4, 5])]
        # … and the second one: C1 and C2 give up P3 and P6 and come again at once, C3 with its next heartbeat
        assert sorted(asked[4:]) == [("C1", [0, 1]), ("C2", [3, 4]), ("C3", [])]


def test_who_leaves_leaves_its_partitions_to_the_others_in_one_round() -> None:
    """They are nobody's when the round begins, therefore nothing has to be given up for it."""
    with Stage(protocols=["cooperative-sticky"]) as stage:
        for name in ("C1", "C2", "C3"):
            stage.start(name)
        stage.skip_rounds()
        stage.leave("C2")
        assert stage.rounds() == [{"C1": "P1 P2 P4", "C3": "P3 P5 P6"}]
