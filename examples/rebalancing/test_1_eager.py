"""Eager rebalance ("Stop The World"): on every change all members stop, revoke everything, and start over.

The article: "Eager Rebalance Protocol 升级" and "Stop The World". Since Kafka 0.9 the coordinator only collects the
members (JoinGroup); one of them, the leader, assigns the partitions, and the coordinator distributes the result
(SyncGroup).

The earlier schemes are not played here. First, consumers watched /consumers/<group>/ids and /brokers/ids in ZooKeeper,
and each computed the whole assignment. A new consumer notified all of them (the herd effect), and because they could
see different states of ZooKeeper they could compute different results. In the next version the coordinator itself
assigned.
"""

from rebalancing.stage import HEARTBEAT_S, SESSION_S, Stage


def test_a_newcomer_stops_all_members() -> None:
    with Stage(protocols=["range"]) as stage:
        stage.start("C1")
        stage.start("C2")
        stage.skip_rounds()
        c3 = stage.group.create_puppet("C3", ["range"], heartbeat_interval=HEARTBEAT_S)

        c3.join()
        # C1 and C2 do not know yet; the next heartbeat tells them (REBALANCE_IN_PROGRESS) …
        assert stage.group.state == "PreparingRebalance"
        assert stage.owns == {"C1": "P1 P2 P3", "C2": "P4 P5 P6", "C3": ""}
        # … then they revoke their partitions and send JoinGroup; the last of them completes the generation
        stage.pass_time(HEARTBEAT_S)
        assert stage.rounds() == [{"C1": "P1 P2", "C2": "P3 P4", "C3": "P5 P6"}]


def test_no_member_consumes_while_one_is_late() -> None:
    """The barrier: no assignment before the last member has joined or its timeout has expired."""
    with Stage(protocols=["range"]) as stage:
        stage.start("C1")
        stage.start("C2", behaviour={"kind": "straggler", "delay_s": 60})
        stage.pass_time(120)
        stage.skip_rounds()
        stage.start("C3")
        assert stage.owns["C1"] == stage.owns["C3"] == ""
        assert stage.rounds() == []
        stage.pass_time(60)
        assert stage.rounds()[-1] == {"C1": "P1 P2", "C2": "P3 P4", "C3": "P5 P6"}


def test_a_restart_rebalances_all_members_twice() -> None:
    """The article: every deployment of one instance costs two rebalances."""
    with Stage(protocols=["range"]) as stage:
        for name in ("C1", "C2", "C3"):
            stage.start(name)
        stage.skip_rounds()
        stage.leave("C2")
        stage.start_again("C2")
        without_it, with_it = stage.rounds()
        assert without_it == {"C1": "P1 P2 P3", "C3": "P4 P5 P6"}
        assert with_it == {"C1": "P1 P2", "C2": "P3 P4", "C3": "P5 P6"}


def test_a_long_pause_looks_like_death() -> None:
    """A process that pauses, to collect garbage, sends no heartbeats and is removed when its session expires."""
    with Stage(protocols=["range"]) as stage:
        stage.start("C1")
        stage.start("C2")
        stage.skip_rounds()
        stage.kill("C2", for_s=SESSION_S - HEARTBEAT_S)
        assert stage.rounds() == []
        stage.pass_time(5)
        assert stage.rounds() == [{"C1": "P1 P2 P3 P4 P5 P6"}]
