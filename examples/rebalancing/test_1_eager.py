"""Eager Rebalance: whoever comes or goes, everybody stops, gives up everything, and starts anew. "Stop The World".

The article: "Eager Rebalance Protocol 升级" and "Stop The World". Since Kafka 0.9 the coordinator only collects who is
there (JoinGroup); one of the members, the leader, shares out the partitions, and the coordinator hands on what it has
decided (SyncGroup).

What came before is not played here. At first consumers watched ZooKeeper: each had watchers on /consumers/<group>/ids
and on /brokers/ids, and computed the whole assignment by itself. When one consumer came, all of them were notified
(the herd effect), and as they might see different states of ZooKeeper at that moment they might not even come to the
same result. The coordinator of the next version, which assigned by itself, is history, too.
"""

from rebalancing.stage import HEARTBEAT_S, SESSION_S, Stage


def test_a_newcomer_stops_everybody() -> None:
    with Stage(protocols=["range"]) as stage:
        stage.start("C1")
        stage.start("C2")
        stage.skip_rounds()
        c3 = stage.group.puppet("C3", ["range"], heartbeat_interval_s=HEARTBEAT_S)

        c3.join()
        # C1 and C2 do not know yet: the next heartbeat tells them (REBALANCE_IN_PROGRESS) …
        assert stage.group.state == "PreparingRebalance"
        assert stage.owns == {"C1": "P1 P2 P3", "C2": "P4 P5 P6", "C3": ""}
        # … and then they give up what they have and send JoinGroup; the last one of them completes the generation
        stage.pass_time(HEARTBEAT_S)
        assert stage.rounds() == [{"C1": "P1 P2", "C2": "P3 P4", "C3": "P5 P6"}]


def test_while_one_member_is_late_nobody_consumes() -> None:
    """The barrier: no assignment before the last member has joined, or its time is over."""
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


def test_a_restart_rebalances_everybody_twice() -> None:
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
    """A process that stands still, to collect garbage, sends no heartbeats: it is out when its session is over."""
    with Stage(protocols=["range"]) as stage:
        stage.start("C1")
        stage.start("C2")
        stage.skip_rounds()
        stage.kill("C2", for_s=SESSION_S - HEARTBEAT_S)
        assert stage.rounds() == []
        stage.pass_time(5)
        assert stage.rounds() == [{"C1": "P1 P2 P3 P4 P5 P6"}]
